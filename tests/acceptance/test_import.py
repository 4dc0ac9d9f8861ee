"""Import of another system's table: real databases on both sides, dry run, repeat, undo (B18)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import asyncpg
import pymysql
import pytest

from tidings.model.errors import Conflict, Invalid, NotFound, StoreUnavailable
from tidings.model.outcome import Done, Outcome
from tidings.model.time import DAY, HOUR, SECOND, instant, iso, moment
from tidings.outbound.imports.column_map import ColumnSource, parse_column_map, value_of
from tidings.outbound.imports.settings import TableImportRequest
from tidings.outbound.imports.table_import import TableImportReport, TableImportService
from tidings.outbound.imports.timestamps import parse_timestamp
from tidings.outbound.imports.undo import ImportUndo
from tidings.store.external_tables.port import ExternalTable
from tidings.store.external_tables.registry import open_table

from .harness import AppHarness, house
from .program import run

MAP = ("to=phone,text=body,at=payload.$.when",)


class Elsewhere:
    """The other system's database, written by the other system."""

    def __init__(self, url: str) -> None:
        self.url = url

    async def execute(self, sql: str, rows: list[tuple[Any, ...]] | None = None) -> None:
        """Run a statement, once or for each row; parameters are written as $1, $2 ..."""
        if self.url.startswith("sqlite"):
            connection = apsw.Connection(self.url.removeprefix("sqlite:///"))
            with connection:
                for row in rows if rows is not None else [()]:
                    list(connection.execute(sql.replace("$", "?"), row))
            connection.close()
            return
        if self.url.startswith("mysql"):
            with pymysql.connect(user="root", database="crm", unix_socket=self.url.partition("=")[2]) as maria:
                maria.query("set session sql_mode = concat(@@sql_mode, ',ANSI_QUOTES')")
                cursor = maria.cursor()
                marked = re.sub(r"\$\d", "%s", sql)
                cursor.executemany(marked, rows) if rows is not None else cursor.execute(sql)
                maria.commit()
            return
        other = await asyncpg.connect(self.url)
        if rows is None:
            await other.execute(sql)
        else:
            await other.executemany(sql, rows)
        await other.close()

    @asynccontextmanager
    async def table(self, name: str = "reminders") -> AsyncIterator[ExternalTable]:
        """One of its tables, as we see it."""
        async with open_table(self.url, name) as opened:
            yield opened


@pytest.fixture(params=["sqlite", "postgres", "mysql"])
async def other(request: pytest.FixtureRequest, tmp_path: Path) -> Elsewhere:
    """A database with an empty table of reminders."""
    url = f"sqlite:///{tmp_path}/other.db"
    if request.param == "postgres":
        url = request.getfixturevalue("bare_postgres_url")
    if request.param == "mysql":
        url = request.getfixturevalue("mariadb_server").replace("/?", "/crm?")
        with pymysql.connect(user="root", unix_socket=url.partition("=")[2]) as maria:
            maria.query("drop database if exists crm")
            maria.query("create database crm")
    made = Elsewhere(url)
    await made.execute(
        "create table reminders (id integer primary key, phone varchar(40), body text, status varchar(20),"
        " payload text)"
    )
    return made


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[AppHarness]:
    """Our own engine, on a file of its own."""
    async with house(f"sqlite:///{tmp_path}/tidings.db") as made:
        yield made


def importer(home: AppHarness) -> TableImportService:
    app = home.app
    return TableImportService(app.store, app.clock, app.outbound, list(app.channels), grace=app.settings.expire_after)


async def undo(home: AppHarness, run: str | None) -> dict[str, Any]:
    return await ImportUndo(home.app.store, home.app.outbound).undo(str(run))


async def fill(other: Elsewhere, home: AppHarness, count: int, *, first: int = 1) -> None:
    """Pending reminders, due from an hour on; every second one has its time in milliseconds."""
    rows: list[tuple[Any, ...]] = []
    for n in range(first, first + count):
        at = home.clock.now() + HOUR + n * SECOND
        when = iso(at) if n % 2 else at // 1000
        rows.append((n, f"+977{n:07}", f"hello {n}", "pending", json.dumps({"when": when})))
    await other.execute("insert into reminders values ($1, $2, $3, $4, $5)", rows)


async def take(other: Elsewhere, home: AppHarness, *, dry_run: bool = False, **wish: Any) -> TableImportReport:
    async with other.table() as table:
        chosen = TableImportRequest(**{"map": MAP, "channel": "out"} | wish)
        return await importer(home).take(table, chosen, dry_run=dry_run)


async def test_a_dry_run_reports_every_bad_row_and_writes_nothing(other: Elsewhere, home: AppHarness) -> None:
    """Counts, samples, and each bad row with its reason (B18)."""
    await fill(other, home, 1200)
    await other.execute("update reminders set phone = '' where id = 7")
    await other.execute("update reminders set payload = 'oops' where id = 8")
    await other.execute("""update reminders set payload = '{"when": "soon"}' where id = 9""")
    report = await take(other, home, dry_run=True)

    assert (report.run, report.read, report.taken, report.known, report.refused) == (None, 1200, 1197, 0, 3)
    assert [(bad["key"], bad["field"]) for bad in report.bad] == [("7", "to"), ("8", "payload"), ("9", "at")]
    assert all(bad["problem"] and bad["remedy"] for bad in report.bad)
    assert report.samples[0] == {
        "key": "1", "kind": "message", "channel": "out", "to": "+9770000001",
        "at": iso(home.clock.now() + HOUR + SECOND), "text": "hello 1", "data": None,
    }  # fmt: skip
    assert await home.everything() == []
    assert await importer(home).runs() == []


async def test_the_rows_become_messages_at_their_own_times(other: Elsewhere, home: AppHarness) -> None:
    """Times in a JSON column, as ISO 8601 or as milliseconds; only the rows that were asked for."""
    await fill(other, home, 20)
    await other.execute("update reminders set status = 'sent' where id > 10")
    report = await take(other, home, where="status = 'pending'")
    found = {message["to"]: message for message in await home.everything()}

    assert (report.taken, len(found)) == (10, 10)
    for n in range(1, 11):
        message = found[f"+977{n:07}"]
        assert (message["text"], message["state"]) == (f"hello {n}", "pending")
        assert message["scheduled_at"] == iso(home.clock.now() + HOUR + n * SECOND)
    home.clock.advance(7300)
    await home.work()
    assert {message["state"] for message in await home.everything()} == {"sent"}


async def test_a_repeated_import_takes_only_new_rows(other: Elsewhere, home: AppHarness) -> None:
    """Repeatable without doubling (B18)."""
    await fill(other, home, 700)
    first = await take(other, home)
    await fill(other, home, 30, first=701)
    second = await take(other, home)
    third = await take(other, home, dry_run=True)

    assert (first.taken, first.known) == (700, 0)
    assert (second.taken, second.known) == (30, 700)
    assert (third.taken, third.known) == (0, 730)
    assert len(await home.everything()) == 730


async def test_an_import_that_crashed_can_be_repeated(other: Elsewhere, home: AppHarness) -> None:
    """Each page and the note of where it came from are one transaction."""
    await fill(other, home, 1300)
    real, calls = home.app.store.enqueue, 0

    async def dying(*args: Any, **more: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise StoreUnavailable("the power went")
        return await real(*args, **more)

    store: Any = home.app.store
    store.enqueue = dying
    with pytest.raises(StoreUnavailable):
        await take(other, home)
    store.enqueue = real
    home.clock.advance(1)
    again = await take(other, home)

    assert (again.known, again.taken) == (1000, 300)
    everybody = [message["to"] for message in await home.everything()]
    assert len(everybody) == 1000  # one page of the list
    runs = await importer(home).runs()
    assert [(row["taken"], row["ended_at"] is None) for row in runs] == [(300, False), (1000, True)]


async def test_concurrent_imports_take_every_row_once(postgres_url: str, tmp_path: Path) -> None:
    """Whoever comes second on a page looks again and finds it taken."""
    other = Elsewhere(f"sqlite:///{tmp_path}/other.db")
    await other.execute(
        "create table reminders (id integer primary key, phone text, body text, status text, payload text)"
    )
    async with house(postgres_url) as home:
        await fill(other, home, 1100)
        reports = await asyncio.gather(*(take(other, home) for _ in range(3)))

        assert sum(report.taken for report in reports) == 1100
        counted = await home.app.store.read("message_window", before=1 << 62, window=20_000, tenant="default",
                                            channel=None, state=None, unknown=None, limit=5000)  # fmt: skip
        assert len(counted) == len({row["recipient"] for row in counted}) == 1100


async def test_undo_cancels_pending_messages_and_counts_sent_ones(other: Elsewhere, home: AppHarness) -> None:
    """Reversible (B18): afterwards the same rows may be taken again, those that were sent may not."""
    await fill(other, home, 10)
    report = await take(other, home)
    home.clock.advance(3604.5)  # the first four are due
    await home.work()
    assert report.run is not None
    told = await undo(home, report.run)

    assert told == {"run": report.run, "cancelled": 6, "being_sent": 0, "sent": 4, "failed": 0, "schedules_ended": 0}
    states = [message["state"] for message in await home.everything()]
    assert (states.count("sent"), states.count("cancelled")) == (4, 6)
    cancelled = next(message for message in await home.everything() if message["state"] == "cancelled")
    assert (await home.show(cancelled["id"]))["history"][-1]["detail"] == "its import was undone"
    with pytest.raises(Conflict, match="was undone"):
        await undo(home, report.run)
    again = await take(other, home)
    assert (again.known, again.taken) == (4, 6)
    with pytest.raises(NotFound):
        await undo(home, "nothing")


async def test_undo_requests_cancellation_of_a_message_in_flight(other: Elsewhere, home: AppHarness) -> None:
    """It is asked to end as cancelled; the run stays open until that is settled."""
    await fill(other, home, 1)
    report = await take(other, home)
    home.clock.advance(3700)
    asked: list[dict[str, Any]] = []

    class Slow(type(home.app.channels["out"])):  # type: ignore[misc]
        async def send(self, message: Any) -> Outcome:
            asked.append(await undo(home, str(report.run)))
            return Done()

    channels: Any = home.app.channels
    channels["out"] = Slow()
    await home.work()

    assert [told["being_sent"] for told in asked] == [1]
    assert (await undo(home, str(report.run)))["sent"] == 1


async def test_overdue_rows_need_the_option_overdue(other: Elsewhere, home: AppHarness) -> None:
    """A reminder of three months ago must not go out by accident."""
    await fill(other, home, 2)
    old = json.dumps({"when": iso(home.clock.now() - 90 * DAY)})
    await other.execute(f"update reminders set payload = '{old}' where id = 1")
    report = await take(other, home, dry_run=True)
    asked = await take(other, home, dry_run=True, overdue=True)

    assert (report.taken, report.refused, asked.taken) == (1, 1, 2)
    assert "--overdue" in report.bad[0]["remedy"]
    assert list(report.reasons) == ["the message was due … d ago"]


async def test_the_other_database_cannot_be_changed(other: Elsewhere, home: AppHarness) -> None:
    """Whatever the condition says, it is only read."""
    await fill(other, home, 1)
    async with other.table() as table:
        with pytest.raises(Invalid, match="semicolon"):
            wish = TableImportRequest(MAP, channel="out", where="1 = 1); delete from reminders; --")
            await importer(home).take(table, wish, dry_run=True)
        with pytest.raises(Invalid, match="rejected"):
            await anext(aiter(table.pages(["id"], "id in (delete from reminders returning id)", 10)))
    assert (await take(other, home, dry_run=True)).read == 1


async def test_a_key_must_be_unique_and_not_empty(other: Elsewhere, home: AppHarness) -> None:
    """Otherwise rows would be passed over in silence."""
    await fill(other, home, 3)
    assert (await take(other, home, dry_run=True, key="phone")).taken == 3
    with pytest.raises(Invalid, match="in several rows"):
        await take(other, home, key="status")
    await other.execute("update reminders set phone = null where id = 2")
    with pytest.raises(Invalid, match="empty in some rows"):
        await take(other, home, key="phone")
    with pytest.raises(Invalid, match="no column 'nothing'"):
        await take(other, home, key="nothing")


async def test_a_table_without_a_key_and_a_view(other: Elsewhere, home: AppHarness) -> None:
    """SQLite has a hidden key; otherwise one must be named."""
    await fill(other, home, 3)
    await other.execute("create table bare as select phone, body from reminders")
    await other.execute('create view "odd "" view" as select id, phone, body from reminders')
    async with other.table("bare") as table:
        wish = TableImportRequest(["to=phone,text=body"], channel="out")
        if other.url.startswith("sqlite"):
            assert (await importer(home).take(table, wish, dry_run=True)).taken == 3
        else:
            with pytest.raises(Invalid, match="no single-column key"):
                await importer(home).take(table, wish, dry_run=True)
    async with other.table('odd " view') as table:
        wish = TableImportRequest(["to=phone,text=body"], channel="out", key="id")
        assert (await importer(home).take(table, wish, dry_run=True)).taken == 3


async def test_native_types_of_postgres_are_read(bare_postgres_url: str, home: AppHarness) -> None:
    """uuid keys, timestamps with and without a zone, jsonb, numeric."""
    other = Elsewhere(bare_postgres_url)
    at = datetime(2027, 3, 1, 12, 0, tzinfo=UTC)
    await other.execute(
        "create table reminders (id uuid primary key default gen_random_uuid(), phone numeric,"
        " at timestamptz, local timestamp, extra jsonb)"
    )
    await other.execute(
        "insert into reminders (phone, at, local, extra) values ($1, $2, $3, $4)",
        [(9_800_000_000 + n, at, at.replace(tzinfo=None), '{"kind": "water"}') for n in range(600)],
    )
    report = await take(other, home, map=["to=phone,data=extra,at=at"], dry_run=True)
    local = await take(
        other, home, map=["to=phone,data=extra,at=local"], timezone=ZoneInfo("Asia/Kathmandu"), dry_run=True
    )
    naive = await take(other, home, map=["to=phone,data=extra,at=local"], dry_run=True)

    assert (report.taken, report.samples[0]["at"]) == (600, "2027-03-01T12:00:00.000Z")
    assert report.samples[0]["to"].startswith("98000")
    assert report.samples[0]["data"] == {"kind": "water"}
    assert local.samples[0]["at"] == "2027-03-01T06:15:00.000Z"
    assert (naive.taken, naive.bad[0]["remedy"]) == (0, "give one with --timezone")


@pytest.mark.parametrize(
    ("url", "table", "field"),
    [
        ("oracle://x/y", "t", "from"),
        ("sqlite:///does/not/exist.db", "t", "from"),
        ("postgresql://nobody@127.0.0.1:1/none", "t", "from"),
    ],
)
async def test_an_unreachable_database_is_one_clear_error(url: str, table: str, field: str) -> None:
    """One sentence, and never the password."""
    with pytest.raises(Invalid) as refused:
        async with open_table(url, table):
            pass
    assert refused.value.field == field


async def test_an_unknown_table_is_reported_with_the_existing_ones(other: Elsewhere) -> None:
    """So that a typing error is seen."""
    with pytest.raises(Invalid, match="unknown table") as refused:
        async with other.table("remindrs"):
            pass
    assert "reminders" in refused.value.remedy


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("to=phone", "the content is not mapped"),
        ("text=body", "the recipient is not mapped"),
        ("to=phone,text=body,to=body", "mapped twice"),
        ("to=phone,txt=body", "no field 'txt'"),
        ("to=phone,text=words", "no column 'words'"),
        ("to=phone,text=", "not a valid mapping"),
        ("to=phone text=body", "no column"),
        ("to=phone,text=body.$", "not a valid path"),
        ("to=phone,text=body.$.a..b", "not a valid path"),
        ("", "the recipient is not mapped"),
    ],
)
def test_a_bad_map_is_refused(text: str, problem: str) -> None:
    """One sentence that says what to write."""
    with pytest.raises(Invalid, match=problem.replace("(", r"\(")) as refused:
        parse_column_map([text], ["phone", "body"], ["out"])
    assert refused.value.remedy


def test_a_map_names_columns_paths_and_constants() -> None:
    """A configured channel's name needs no quotes, whatever the columns are called."""
    places = parse_column_map(
        ["to=phone, text='it''s, well', at=body.$.times[1].at", "channel=phone"], ["phone", "body"], ["phone"]
    )

    assert places == {
        "to": ColumnSource("phone"),
        "text": ColumnSource(None, constant="it's, well"),
        "at": ColumnSource("body", ("times", 1, "at")),
        "channel": ColumnSource(None, constant="phone"),
    }
    row = {"phone": "1", "body": '{"times": [{}, {"at": 5}]}'}
    assert value_of(places["at"], row) == 5
    assert value_of(ColumnSource("body", ("times", 7)), row) is None


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (1_800_000_000, "auto"),
        ("1800000000", "auto"),
        (1_800_000_000_000, "auto"),
        (1_800_000_000_000_000, "auto"),
        (1_800_000_000.0, "s"),
        ("2027-01-15T08:00:00Z", "auto"),
        ("2027-01-15 08:00:00+00:00", "iso"),
        ("2027-01-15T13:45:00", "auto"),
        (moment(1_800_000_000 * SECOND), "auto"),
    ],
)
def test_times_of_other_systems_are_read(value: Any, form: str) -> None:
    """Counted in seconds, milliseconds or microseconds, or written out."""
    assert parse_timestamp(value, form=form, timezone=ZoneInfo("Asia/Kathmandu")) == 1_800_000_000 * SECOND


@pytest.mark.parametrize("value", [None, "", "soon", 12, -1, True, 10**25, "2027-13-01", b"x", {"a": 1}, "1e400"])
def test_an_invalid_time_is_refused(value: Any) -> None:
    """Never guessed."""
    with pytest.raises(Invalid) as refused:
        parse_timestamp(value)
    assert refused.value.field == "at"


def test_a_time_in_a_gap_is_the_first_valid_one() -> None:
    """The same rule as everywhere."""
    at = parse_timestamp("2027-03-28T02:30:00", timezone=ZoneInfo("Europe/Berlin"))

    assert at == instant(datetime(2027, 3, 28, 1, 0, tzinfo=UTC))


def test_the_import_command_imports_lists_and_undoes(tmp_path: Path) -> None:
    """As a user types it, with a file beside our own."""
    connection = apsw.Connection(str(tmp_path / "old.db"))
    list(connection.execute("create table queue (id integer primary key, who text, say text, due text)"))
    for n in range(3):
        list(
            connection.execute(
                "insert into queue (who, say, due) values (?, 'hi', datetime('now', '+1 day') || '+00:00')", (f"p{n}",)
            )
        )
    connection.close()
    words = ["import", "--from", "sqlite:///old.db", "--table", "queue", "--map", "to=who,text=say,at=due"]
    words += ["--channel", "console"]

    dry = run(*words, "--dry-run", folder=tmp_path)
    assert (dry.returncode, "would_import\t3" in dry.stdout) == (0, True), dry.stderr
    taken = json.loads(run(*words, "--json", folder=tmp_path).stdout)
    assert (taken["taken"], taken["known"]) == (3, 0)
    again = json.loads(run(*words, "--json", folder=tmp_path).stdout)
    assert (again["taken"], again["known"]) == (0, 3)
    assert taken["run"] in run("import", "list", folder=tmp_path).stdout
    undone = run("import", "undo", taken["run"], folder=tmp_path)
    assert "cancelled\t3" in undone.stdout
    wrong = run(*words[:-4], "--map", "to=nobody", "-c", "console", folder=tmp_path)
    assert (wrong.returncode, "no column 'nobody'" in wrong.stderr) == (2, True)
    assert "Traceback" not in wrong.stderr
