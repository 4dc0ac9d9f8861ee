"""Write-back: status, sent time and error of imported rows reach the old table, whatever dies in between."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pymysql
import pytest

from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Unknown
from tidings.model.task import Category
from tidings.model.time import HOUR, SECOND, iso
from tidings.outbound.imports.settings import ImportSettings, read_import
from tidings.outbound.imports.table_import import TableImportReport, TableImportService
from tidings.outbound.imports.undo import ImportUndo
from tidings.outbound.imports.write_back import WriteBackRelay, write_back_status
from tidings.store.external_tables.registry import open_table

from ..other_databases import MongoServer
from .harness import AppHarness, house
from .program import run, serving, until

OPTIONS = {
    "table": "reminders",
    "channel": "out",
    "map": {"to": "who", "text": "say", "at": "due"},
    "where": "status = 'pending'",
    "write_back": {"status": "status", "sent_at": "sent_at", "error": "problem"},
    "words": {"imported": "queued", "sent": "done"},
}
Rows = dict[str, tuple[Any, Any, Any]]
STATES = ["p1", "p2", "p3", "p4", "p5"]


class OldTable:
    """The other system's table: how to fill it, and what its pages show."""

    def __init__(self, url: str, fill: Callable[[str], Any], read: Callable[[], Any], **options: Any) -> None:
        self.settings: ImportSettings = read_import("old", {**OPTIONS, "url": url, **options})
        self.fill = fill
        self.read = read


@pytest.fixture(params=["sqlite", "postgres", "mysql", "mongo"])
async def old(request: pytest.FixtureRequest, tmp_path: Path) -> OldTable:
    """A table of another system, on each kind of database."""
    made: OldTable = {"sqlite": _sqlite, "postgres": _postgres, "mysql": _mysql, "mongo": _mongo}[request.param](
        request, tmp_path
    )
    return made


def _sqlite(_: pytest.FixtureRequest, tmp_path: Path) -> OldTable:
    path = tmp_path / "old.db"

    def execute(sql: str, row: tuple[Any, ...] = ()) -> list[Any]:
        connection = apsw.Connection(str(path))
        try:
            return list(connection.execute(sql, row))
        finally:
            connection.close()

    async def fill(due: str) -> None:
        execute(
            "create table reminders (id integer primary key, who text, say text, due text, sent_at text, problem text,"
            " status text check (who <> 'p9' or status <> 'queued'))"
        )
        for n in range(1, 6):
            execute("insert into reminders values (?, ?, 'hi', ?, null, null, 'pending')", (n, f"p{n}", due))

    async def read() -> Rows:
        return {who: rest for who, *rest in execute("select who, status, sent_at, problem from reminders")}

    made = OldTable(f"sqlite:///{path}", fill, read)
    vars(made)["execute"] = execute
    return made


def _postgres(request: pytest.FixtureRequest, _: Path) -> OldTable:
    url = request.getfixturevalue("bare_postgres_url")

    @asynccontextmanager
    async def connected() -> AsyncIterator[Any]:
        connection = await asyncpg.connect(url)
        yield connection
        await connection.close()

    async def fill(due: str) -> None:
        async with connected() as connection:
            await connection.execute(
                "create type word as enum ('pending', 'queued', 'done', 'failed', 'unknown', 'cancelled');"
                "create table reminders (id uuid primary key default gen_random_uuid(), who text, say text,"
                " due timestamptz, sent_at timestamptz, problem varchar(500), status word default 'pending');"
            )
            for who in STATES:
                await connection.execute(f"insert into reminders (who, say, due) values ('{who}', 'hi', '{due}')")

    async def read() -> Rows:
        async with connected() as connection:
            rows = await connection.fetch("select who, status::text, sent_at, problem from reminders")
        return {row[0]: (row[1], row[2] and iso(round(row[2].timestamp() * SECOND)), row[3]) for row in rows}

    return OldTable(url, fill, read)


def _mysql(request: pytest.FixtureRequest, _: Path) -> OldTable:
    server = request.getfixturevalue("mariadb_server")

    def execute(sql: str) -> Any:
        with pymysql.connect(user="root", unix_socket=server.partition("=")[2], autocommit=True) as connection:
            cursor = connection.cursor()
            cursor.execute(sql)
            return cursor.fetchall()

    async def fill(due: str) -> None:
        execute("drop database if exists old")
        execute("create database old")
        execute(
            "create table old.reminders (id bigint auto_increment primary key, who varchar(40), say text, due bigint,"
            " sent_at bigint, problem text, status enum('pending', 'queued', 'done', 'failed', 'unknown', 'cancelled'))"
        )
        for who in STATES:
            stamp = f"unix_timestamp('{due[:19].replace('T', ' ')}')"
            execute(f"insert into old.reminders values (null, '{who}', 'hi', {stamp}, null, null, 'pending')")

    async def read() -> Rows:
        rows = execute("select who, status, sent_at, problem from old.reminders")
        return {who: (status, sent and iso(sent * SECOND), problem) for who, status, sent, problem in rows}

    return OldTable(server.replace("/?", "/old?"), fill, read, time="s", where="status = 'pending' and say like '%h%'")


def _mongo(request: pytest.FixtureRequest, _: Path) -> OldTable:
    mongo: MongoServer = request.getfixturevalue("mongo")
    jobs = mongo.data["crm"]["reminders"]

    async def fill(due: str) -> None:
        jobs.insert_many([{"who": who, "say": "hi", "due": due, "status": "pending"} for who in STATES])

    async def read() -> Rows:
        found = jobs.find()
        return {
            one["who"]: (
                one["status"],
                one.get("sent_at") and f"{one['sent_at']:%Y-%m-%dT%H:%M:%S.000Z}",
                one.get("problem"),
            )
            for one in found
        }

    return OldTable(mongo.url, fill, read, where='{"status": "pending"}')


@asynccontextmanager
async def living(old: OldTable, url: str) -> AsyncIterator[AppHarness]:
    """Our engine with this import in its settings, and the old table filled."""
    async with house(url, imports={"old": old.settings}) as home:
        await old.fill(str(iso((home.clock.now() + HOUR) // SECOND * SECOND)))
        yield home


async def take(home: AppHarness, old: OldTable) -> TableImportReport:
    app = home.app
    service = TableImportService(
        app.store, app.clock, app.outbound, list(app.channels), grace=app.settings.expire_after
    )
    async with open_table(old.settings.url, old.settings.table) as opened:
        return await service.take(opened, old.settings.request, dry_run=False)


def relay(home: AppHarness) -> WriteBackRelay:
    return next(actor for actor in home.app.actors if isinstance(actor, WriteBackRelay))


def scripted(message: Message) -> Outcome:
    outcomes: dict[str, Outcome] = {
        "p2": Reject(Category.PERMANENT, "number is blocked"),
        "p3": Unknown("the connection was cut", hold=True),
    }
    return outcomes.get(message.recipient, Done("receipt"))


async def state(home: AppHarness) -> dict[str, Any]:
    return (await write_back_status(home.app.store))[0]


async def test_the_old_table_shows_what_became_of_its_rows(old: OldTable, tmp_path: Path) -> None:
    """At once after the import, after each result, and after a person's action; in the old system's words."""
    async with living(old, f"sqlite:///{tmp_path}/tidings.db") as home:
        home.script("out", scripted)
        assert (await take(home, old)).taken == 5
        await relay(home).step()
        assert {row[0] for row in (await old.read()).values()} == {"queued"}
        assert (await take(home, old)).read == 0  # the condition finds nothing more

        by_name = {message["to"]: message["id"] for message in await home.everything()}
        await home.http.post(f"/v1/messages/{by_name['p5']}/cancel")
        await relay(home).step()
        assert (await old.read())["p5"][0] == "cancelled"  # before its time

        home.clock.advance(3602)
        await home.work()
        sent_at = iso(home.clock.now() // SECOND * SECOND)
        for _ in range(4):
            home.clock.advance(1)
            await relay(home).step()
        rows = await old.read()
        assert {who: row[0] for who, row in rows.items()} == {
            "p1": "done", "p2": "failed", "p3": "unknown", "p4": "done", "p5": "cancelled",
        }  # fmt: skip
        assert str(rows["p1"][1])[:19] == str(sent_at)[:19]
        assert "number is blocked" in rows["p2"][2]
        assert "cut" in rows["p3"][2]

        home.script("out", lambda _: Done("receipt"))
        await home.http.post(f"/v1/messages/{by_name['p2']}/retry")
        await relay(home).step()
        assert (await old.read())["p2"][0] == "queued"
        for _ in range(4):
            await home.work()
            home.clock.advance(2)
            await relay(home).step()
        assert (await old.read())["p2"][::2] == ("done", None) or (await old.read())["p2"][::2] == ["done", None]
        told = await state(home)
        assert (told["imported"], told["waiting"], told["rejected"], told["problem"]) == (5, 0, 0, None)


async def test_undo_gives_rows_their_old_status_back(old: OldTable, tmp_path: Path) -> None:
    """So that the old system sends them again; afterwards they can be imported again."""
    async with living(old, f"sqlite:///{tmp_path}/tidings.db") as home:
        report = await take(home, old)
        await relay(home).step()
        told = await ImportUndo(home.app.store, home.app.outbound).undo(str(report.run))
        await relay(home).step()
        assert (told["cancelled"], {row[0] for row in (await old.read()).values()}) == (5, {"pending"})
        assert (await take(home, old)).taken == 5


@pytest.fixture
def file(request: pytest.FixtureRequest, tmp_path: Path) -> OldTable:
    """The old table in a SQLite file."""
    return _sqlite(request, tmp_path)


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, tmp_path: Path, file: OldTable) -> AsyncIterator[AppHarness]:
    """Our engine on both databases, with the old table imported."""
    url = f"sqlite:///{tmp_path}/tidings.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    async with living(file, url) as home:
        await take(home, file)
        yield home


async def test_a_database_that_is_away_is_retried_with_backoff(
    home: AppHarness, file: OldTable, tmp_path: Path
) -> None:
    """The state says since when, why, and when it is tried again; nothing is lost."""
    (tmp_path / "old.db").rename(tmp_path / "away.db")
    waits = []
    for _ in range(11):
        began = home.clock.now()
        await relay(home).step()
        told = await state(home)
        assert "there is no file" in told["problem"]
        await relay(home).step()  # not before its time
        assert (await state(home))["failures"] == told["failures"]
        due = (await home.app.store.read("write_back_list", tenant="default", limit=1))[0]["next_at"]
        waits.append((due - began) // SECOND)
        home.clock.advance((due - began) / SECOND)
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    assert told["failing_since"] is not None

    (tmp_path / "away.db").rename(tmp_path / "old.db")
    home.clock.advance(300)
    await home.work()  # the messages became due meanwhile
    for _ in range(3):
        home.clock.advance(60)
        await relay(home).step()
    assert {row[0] for row in (await file.read()).values()} <= {"queued", "done"}
    assert (await state(home))["failing_since"] is None


async def test_a_row_that_is_rejected_or_gone_does_not_delay_the_others(home: AppHarness, file: OldTable) -> None:
    """It is listed with the reason, and tried again later."""
    execute = vars(file)["execute"]
    execute("update reminders set who = 'p9' where id = 2")
    execute("delete from reminders where id = 3")
    await relay(home).step()
    rows = await file.read()
    assert {who: row[0] for who, row in rows.items()} == {
        "p1": "queued",
        "p9": "pending",
        "p4": "queued",
        "p5": "queued",
    }
    rejected = {row["key"]: row["problem"] for row in (await state(home))["rejected_rows"]}
    assert ("CHECK" in rejected["2"], "does not exist" in rejected["3"]) == (True, True)

    execute("update reminders set who = 'p2' where id = 2")
    home.clock.advance(301)
    await relay(home).step()
    assert (await file.read())["p2"][0] == "queued"
    assert [row["key"] for row in (await state(home))["rejected_rows"]] == ["3"]


async def test_a_crash_after_the_update_repeats_it_harmlessly(home: AppHarness, file: OldTable) -> None:
    """At least once: the update sets values, so a second one changes nothing. On PostgreSQL a lease must end first."""
    real, store = home.app.store.write, home.app.store

    async def dying(steps: Any) -> Any:
        if any(step.name == "import_written" for step in steps):
            raise RuntimeError("killed")
        return await real(steps)

    vars(store)["write"] = dying
    with pytest.raises(RuntimeError):
        await relay(home).step()
    del vars(store)["write"]
    assert {row[0] for row in (await file.read()).values()} == {"queued"}
    assert (await state(home))["waiting"] == 5
    await relay(home).step()  # another process: on PostgreSQL the lease of the dead one is not over
    assert (await state(home))["waiting"] == (0 if home.app.store.sole_worker else 5)
    home.clock.advance(61)
    await relay(home).step()
    assert (await state(home))["waiting"] == 0


@pytest.mark.parametrize("overtaken", [False, True])
async def test_a_change_during_an_update_is_written_afterwards(
    home: AppHarness, file: OldTable, monkeypatch: pytest.MonkeyPatch, overtaken: bool
) -> None:
    """The older state does not stay in the old table, even if another process wrote the newer one in between."""
    message = next(message for message in await home.everything() if message["to"] == "p1")
    real = WriteBackRelay._update

    async def slow(self: WriteBackRelay, *args: Any) -> dict[str, str]:
        monkeypatch.undo()
        found = {} if overtaken else await real(self, *args)
        await home.http.post(f"/v1/messages/{message['id']}/cancel")
        if overtaken:
            home.clock.advance(61)  # its lease is over
            await relay(home).step()
            assert (await file.read())["p1"][0] == "cancelled"
            found = await real(self, *args)
        return found

    monkeypatch.setattr(WriteBackRelay, "_update", slow)
    await relay(home).step()
    assert (await file.read())["p1"][0] == "queued"
    await relay(home).step()
    assert (await file.read())["p1"][0] == "cancelled"


async def test_schedules_and_broadcasts_are_written_back(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """A schedule's last run; each recipient's own result."""
    file = _sqlite(request, tmp_path)
    plain = file.settings
    mapped = replace(plain.request, map=["to=who,text=say,at=due,group=problem"], source="old")
    file.settings = replace(plain, request=mapped, write_back={"status": "status", "sent_at": "sent_at"})
    async with living(file, f"sqlite:///{tmp_path}/tidings.db") as home:
        vars(file)["execute"]("update reminders set problem = 'all'")
        home.script("out", scripted)
        await take(home, file)
        await relay(home).step()
        assert {row[0] for row in (await file.read()).values()} == {"queued"}
        for _ in range(8):
            home.clock.advance(900)
            await home.work()
        assert {who: row[0] for who, row in (await file.read()).items()} == {
            "p1": "done", "p2": "failed", "p3": "unknown", "p4": "done", "p5": "done",
        }  # fmt: skip

        vars(file)["execute"]("update reminders set status = 'pending', sent_at = null, problem = 'daily'")
        again = replace(mapped, map=["to=who,text=say,at=due,repeat=problem"], source="again")
        settings = replace(file.settings, request=again)
        relay(home)._imports["again"] = settings
        file.settings = settings
        report = await take(home, file)
        assert report.schedules == 5
        for _ in range(30):
            home.clock.advance(3600)
            await home.work()
        await relay(home).step()
        rows = await file.read()
        assert {row[0] for row in rows.values()} == {"queued"}
        assert all(row[1] is not None for row in rows.values())
        told = await ImportUndo(home.app.store, home.app.outbound).undo(str(report.run))
        await relay(home).step()
        assert told["schedules_ended"] == 5
        assert {row[0] for row in (await file.read()).values()} == {"pending"}


@pytest.mark.crash
@pytest.mark.timeout(180)
def test_kill_9_during_a_write_back_loses_nothing(tmp_path: Path) -> None:
    """The real command: import by name, serve, kill it while it writes back, serve again; `import status` says so."""
    rows = 600
    connection = apsw.Connection(str(tmp_path / "old.db"))
    connection.setbusytimeout(60_000)
    list(
        connection.execute("create table jobs (id integer primary key, who text, status text, sent text, problem text)")
    )
    with connection:
        for n in range(rows):
            list(connection.execute("insert into jobs values (?, ?, 'pending', null, null)", (n, f"p{n}")))
    (tmp_path / "tidings.toml").write_text(
        """
        [channels.out]
        kind = "noop"

        [imports.old]
        url = "sqlite:///old.db"
        table = "jobs"
        channel = "out"
        map = { to = "who", text = "'hello'" }
        where = "status = 'pending'"
        write_back = { status = "status", sent_at = "sent", error = "problem" }
        """
    )

    def count(status: str) -> int:
        ((found,),) = connection.execute("select count(*) from jobs where status = ?", (status,))
        return int(found)

    taken = run("import", "run", "old", "--json", folder=tmp_path)
    assert json.loads(taken.stdout)["taken"] == rows, taken.stderr
    for share in (1, rows // 2):
        with serving(tmp_path, "--port", "0") as process:
            until(lambda share=share: count("imported") + count("sent") >= share, "rows are written back")  # type: ignore[misc]
            process.kill()
    with serving(tmp_path, "--port", "0"):
        until(lambda: count("sent") == rows, "all rows are written back")
        told = json.loads(run("import", "status", "--json", folder=tmp_path).stdout)["items"]
    connection.close()
    assert [(row["source"], row["imported"], row["problem"]) for row in told] == [("old", rows, None)]
    unknown = run("import", "run", "odl", folder=tmp_path)
    assert (unknown.returncode, "onfigured imports: old" in unknown.stderr) == (2, True)
