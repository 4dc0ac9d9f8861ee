"""Import of whole systems: recurring rows become schedules, grouped rows broadcasts, from databases and files."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import pytest
from bson import ObjectId

from tidings.model.errors import Invalid
from tidings.model.time import HOUR, instant, iso, moment
from tidings.outbound.imports.row_parser import recurrence_rule
from tidings.outbound.imports.settings import TableImportRequest
from tidings.outbound.imports.table_import import TableImportReport, TableImportService
from tidings.outbound.imports.undo import ImportUndo
from tidings.store.external_tables.registry import open_table

from ..other_databases import MongoServer
from .harness import AppHarness, house

REMINDERS = (
    "create table reminders (id integer primary key, who text, say text, due text, again text, zone text, squad text)"
)
MAP = ["to=who,text=say,at=due,repeat=again,timezone=zone"]


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """Our own engine, on both databases."""
    url = f"sqlite:///{tmp_path}/tidings.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_url")
    async with house(url) as made:
        yield made


@pytest.fixture
def old(tmp_path: Path) -> str:
    """The URL of another system's SQLite file."""
    return f"sqlite:///{tmp_path}/old.db"


def write(url: str, sql: str, rows: list[tuple[Any, ...]] | None = None) -> None:
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    with connection:
        for row in [()] if rows is None else rows:
            list(connection.execute(sql, row))
    connection.close()


async def take(
    home: AppHarness, url: str, table: str | None, *, dry_run: bool = False, **wish: Any
) -> TableImportReport:
    app = home.app
    service = TableImportService(
        app.store, app.clock, app.outbound, list(app.channels), grace=app.settings.expire_after
    )
    async with open_table(url, table) as opened:
        return await service.take(opened, TableImportRequest(**{"channel": "out"} | wish), dry_run=dry_run)


async def schedules(home: AppHarness) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await home.http.get("/v1/schedules", params={"limit": 100})).json()["items"]
    return items


async def broadcasts(home: AppHarness) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = (await home.http.get("/v1/broadcasts")).json()["items"]
    return items


async def work(home: AppHarness, seconds: float = 0) -> None:
    """Let time pass, and run the actors and what is due."""
    home.clock.advance(seconds)
    for _ in range(3):
        for actor in home.app.actors:
            if actor.name in ("scheduler", "broadcast_feeder"):
                await actor.step()
        await home.work()


async def test_recurring_rows_become_schedules_and_others_messages(home: AppHarness, old: str) -> None:
    """One table, both kinds; a dry run shows them, a repeat makes neither twice, and undo ends the schedules."""
    write(old, REMINDERS)
    due = iso(home.clock.now() + HOUR)
    rows = [
        (1, "ada", "pills", due, "daily", "Europe/Berlin", None),
        (2, "bob", "rent", due, "0 9 1 * *", None, None),
        (3, "cyd", "once", due, "none", None, None),
        (4, "dot", "bins", due, "FREQ=WEEKLY;INTERVAL=2", None, None),
        (5, "eve", "oops", due, "now and then", None, None),
        (6, "fay", "when", due, "daily", "Mars/Olympus", None),
    ]
    write(old, "insert into reminders values (?, ?, ?, ?, ?, ?, ?)", rows)
    dry = await take(home, old, "reminders", map=MAP, dry_run=True)

    assert (dry.messages, dry.schedules, dry.refused, await schedules(home)) == (1, 3, 2, [])
    assert [(row["key"], row["field"]) for row in dry.bad] == [("5", "repeat"), ("6", "timezone")]
    assert [row["kind"] for row in dry.samples] == ["schedule", "schedule", "message", "schedule"]

    report = await take(home, old, "reminders", map=MAP)
    again = await take(home, old, "reminders", map=MAP)
    made = {row["message"]["to"]: row for row in await schedules(home)}
    assert (report.taken, again.taken, again.known) == (4, 0, 4)
    assert made["ada"]["timezone"] == "Europe/Berlin"
    assert made["ada"]["next_at"] == due
    assert made["bob"]["rule"] == {"cron": "0 9 1 * *"}
    assert made["dot"]["rule"] == {"rrule": "FREQ=WEEKLY;INTERVAL=2"}

    await work(home, 3601)
    assert sorted(message["to"] for message in await home.everything() if message["state"] == "sent") == [
        "ada",
        "cyd",
        "dot",
    ]
    told = await ImportUndo(home.app.store, home.app.outbound).undo(str(report.run))
    assert (told["schedules_ended"], told["sent"], told["cancelled"]) == (3, 1, 0)
    assert {row["state"] for row in await schedules(home)} == {"ended"}
    assert (await take(home, old, "reminders", map=MAP)).schedules == 3


async def test_grouped_rows_become_broadcasts(home: AppHarness, old: str) -> None:
    """One broadcast per group, with the content that its rows share; a row that differs is reported."""
    write(old, REMINDERS)
    due = iso(home.clock.now() + HOUR)
    rows: list[tuple[Any, ...]]
    rows = [(n, f"p{n}", "Water is back", due, None, None, f"ward {n % 2}") for n in range(1, 9)]
    rows += [
        (9, "p9", "Something else", due, None, None, "ward 1"),
        (10, "p2", "Water is back", due, None, None, "ward 0"),
    ]
    rows += [(11, "", "Water is back", due, None, None, "ward 1"), (12, "solo", "Only you", due, None, None, None)]
    write(old, "insert into reminders values (?, ?, ?, ?, ?, ?, ?)", rows)
    mapping = ["to=who,text=say,at=due,group=squad"]
    dry = await take(home, old, "reminders", map=mapping, dry_run=True)

    assert (dry.broadcasts, dry.messages, dry.taken, dry.refused) == (2, 1, 10, 2)
    assert sorted((row["key"], row["field"]) for row in dry.bad) == [("11", "to"), ("9", "text")]
    assert await broadcasts(home) == []

    report = await take(home, old, "reminders", map=mapping)
    write(old, "insert into reminders values (20, 'late', 'Water is back', ?, null, null, 'ward 1')", [(due,)])
    again = await take(home, old, "reminders", map=mapping)
    assert (report.broadcasts, again.broadcasts, again.taken, again.known) == (2, 1, 1, 10)
    await work(home)
    made = await broadcasts(home)
    assert sorted((one["xref"], one["total"], one["state"]) for one in made) == [
        ("ward 0", 4, "ready"), ("ward 1", 1, "ready"), ("ward 1", 4, "ready"),
    ]  # fmt: skip

    told = await ImportUndo(home.app.store, home.app.outbound).undo(str(again.run))
    assert told["cancelled"] == 1
    for _ in range(4):
        await work(home, 1800)
    states = {one["xref"]: one["state"] for one in await broadcasts(home) if one["total"] == 4}
    assert states == {"ward 0": "completed", "ward 1": "completed"}
    sent = [message["to"] for message in await home.everything() if message["state"] == "sent"]
    assert sorted(sent) == sorted([*(f"p{n}" for n in range(1, 9)), "solo"])
    done = await ImportUndo(home.app.store, home.app.outbound).undo(str(report.run))
    assert (done["sent"], done["cancelled"]) == (10, 0)
    assert (await take(home, old, "reminders", map=mapping)).taken == 1  # the one that was undone


async def test_a_crash_while_a_broadcast_is_written_leaves_nothing_half_done(home: AppHarness, old: str) -> None:
    """The broadcast and the keys of its rows are one transaction."""
    write(old, REMINDERS)
    due = iso(home.clock.now() + HOUR)
    write(old, "insert into reminders values (?, ?, 'x', ?, null, null, 'all')", [(n, f"p{n}", due) for n in range(30)])
    real, store = home.app.store.write, home.app.store

    async def dying(steps: Any) -> Any:
        if any(step.name == "broadcast_add" for step in steps):
            raise RuntimeError("killed")
        return await real(steps)

    vars(store)["write"] = dying
    with pytest.raises(RuntimeError):
        await take(home, old, "reminders", map=["to=who,text=say,at=due,group=squad"])
    del vars(store)["write"]
    assert await broadcasts(home) == []
    assert (await take(home, old, "reminders", map=["to=who,text=say,at=due,group=squad"])).taken == 30
    assert len(await broadcasts(home)) == 1


async def test_a_mongodb_collection_is_imported(home: AppHarness, mongo: MongoServer) -> None:
    """ObjectId keys, dates, nested documents, a filter in JSON; more than one page."""
    at = moment(home.clock.now() + 2 * HOUR)
    documents = [
        {"_id": ObjectId(), "chat": 1000 + n, "body": {"text": f"hello {n}"}, "when": at, "status": "pending"}
        for n in range(600)
    ]
    mongo.data["crm"]["jobs"].insert_many([*documents, {"chat": 1, "body": {"text": "old"}, "status": "sent"}])
    wish: dict[str, Any] = {"map": ["to=chat,text=body.$.text,at=when"], "where": '{"status": "pending"}'}
    report = await take(home, mongo.url, "jobs", **wish)
    again = await take(home, mongo.url, "jobs", **wish)

    assert (report.read, report.taken, again.known, again.taken) == (600, 600, 600, 0)
    assert report.samples[0]["key"] == str(documents[0]["_id"])
    assert report.samples[0]["at"] == iso(instant(at))
    for changed, field in (({"where": "status = 'x'"}, "where"), ({"map": ["to=chat,text=bdy"]}, "map")):
        with pytest.raises(Invalid) as refused:
            await take(home, mongo.url, "jobs", **wish | changed)
        assert refused.value.field == field
    with pytest.raises(Invalid, match="unknown table 'jbs'"):
        await take(home, mongo.url, "jbs", **wish)


@pytest.mark.parametrize("form", ["csv", "ndjson", "json"])
async def test_files_are_imported(tmp_path: Path, form: str) -> None:
    """A CSV as Excel saves it, one object per line, or one array; bad files are one clear error."""
    rows = [
        {"id": n, "phone": f"+97798000000{n:02}", "text": f"hi; {n}", "due": "2027-03-01T09:00:00Z"} for n in range(20)
    ]
    file = tmp_path / f"list.{form}"
    if form == "csv":
        lines = [f'{row["id"]};{row["phone"]};"{row["text"]}";{row["due"]}' for row in rows]
        file.write_text("\ufeffid;phone;text;due\r\n" + "\r\n".join(lines) + "\r\n", encoding="utf-8")
    else:
        file.write_text("\n".join(map(json.dumps, rows)) if form == "ndjson" else json.dumps(rows))
    async with house(f"sqlite:///{tmp_path}/tidings.db") as home:
        wish: dict[str, Any] = {"map": ["to=phone,text=text,at=due"], "key": "id"}
        report = await take(home, str(file), None, **wish)
        assert (report.taken, (await take(home, str(file), None, **wish)).known) == (20, 20)
        assert report.samples[0]["text"] == "hi; 0"
        for changed, field in (({"key": None}, "key"), ({"key": "due"}, "key"), ({"where": "1 = 1"}, "where")):
            with pytest.raises(Invalid) as refused:
                await take(home, str(file), None, **wish | changed)
            assert refused.value.field == field
        file.write_bytes(b"id,phone\n1,\xff\xfe\n")
        with pytest.raises(Invalid, match="cannot be read"):
            await take(home, str(file), None, **wish)


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        ("daily", {"daily": "14:45:00"}),
        ("Weekly", {"weekly": "mon 14:45:00"}),
        ("weekdays", {"weekly": "mon, tue, wed, thu, fri 14:45:00"}),
        ("monthly", {"monthly": "1 14:45:00"}),
        ("yearly", {"yearly": "03-01 14:45:00"}),
        ("hourly", {"every": "1h"}),
        ("90 m", {"every": "90m"}),
        ("1h 30m", {"every": "1h30m"}),
        ("RRULE:FREQ=DAILY", {"rrule": "FREQ=DAILY"}),
        ("*/5 * * * *", {"cron": "*/5 * * * *"}),
        ("@daily", {"cron": "@daily"}),
        ({"daily": "09:00"}, {"daily": "09:00"}),
    ],
)
def test_recurrences_of_other_systems_are_read(said: Any, rule: dict[str, str]) -> None:
    """Words take their day and time from the first occurrence, in the row's time zone."""
    at = instant(datetime(2027, 3, 1, 9, 0, tzinfo=UTC))
    assert recurrence_rule(said, at, ZoneInfo("Asia/Kathmandu")) == rule
