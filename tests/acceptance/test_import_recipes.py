"""The recipes of docs/how-to/recipes.md, run as printed against the schemas of the systems they are for."""

from __future__ import annotations

import json
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from bson import ObjectId

from tidings.config import ChannelSettings
from tidings.model.time import DAY, HOUR, iso, moment
from tidings.outbound.imports.settings import ImportSettings, read_import
from tidings.outbound.imports.table_import import TableImportReport, TableImportService
from tidings.outbound.imports.undo import ImportUndo
from tidings.outbound.imports.write_back import WriteBackRelay
from tidings.store.external_tables.registry import open_table

from ..docs.pages import blocks, page
from ..other_databases import MongoServer
from .harness import AppHarness, house
from .program import run

BLOCKS = {block.words: block.text for block in blocks(page("how-to/recipes.md"))}
CHANNELS = {name: ChannelSettings("noop") for name in ("telegram", "sms", "crew", "whatsapp")}


def recipe(name: str, url: str) -> dict[str, ImportSettings]:
    """The settings of a recipe, with the URL of the test's database."""
    printed = tomllib.loads(BLOCKS["toml", name])["imports"]
    return {key: replace(read_import(key, options), url=url) for key, options in printed.items()}


@asynccontextmanager
async def moving(name: str, url: str, tmp_path: Path) -> AsyncIterator[AppHarness]:
    """An engine with the recipe in its settings."""
    async with house(f"sqlite:///{tmp_path}/tidings.db", imports=recipe(name, url), channels=CHANNELS) as home:
        yield home


async def take(home: AppHarness, *, dry_run: bool = False) -> TableImportReport:
    app = home.app
    (settings,) = app.settings.imports.values()
    service = TableImportService(
        app.store, app.clock, app.outbound, list(app.channels), grace=app.settings.expire_after
    )
    async with open_table(settings.url, settings.table) as opened:
        return await service.take(opened, settings.request, dry_run=dry_run)


async def work(home: AppHarness, seconds: float) -> None:
    home.clock.advance(seconds)
    for _ in range(3):
        await home.work()


async def write_back(home: AppHarness) -> None:
    for actor in home.app.actors:
        if isinstance(actor, WriteBackRelay):
            await actor.step()


async def undo(home: AppHarness, report: TableImportReport) -> dict[str, Any]:
    return await ImportUndo(home.app.store, home.app.outbound).undo(str(report.run))


@asynccontextmanager
async def connected(url: str) -> AsyncIterator[Any]:
    connection = await asyncpg.connect(url)
    try:
        yield connection
    finally:
        await connection.close()


async def test_a_supabase_table_of_scheduled_messages(bare_postgres_url: str, tmp_path: Path) -> None:
    """uuid keys, timestamptz, and a CHECK that allows three words."""
    async with moving("supabase", bare_postgres_url, tmp_path) as home, connected(bare_postgres_url) as old:
        await old.execute(
            "create table scheduled_messages (id uuid primary key default gen_random_uuid(), title text not null,"
            " content text not null, scheduled_date timestamptz not null, recipient text not null,"
            " status text not null check (status in ('pending', 'sent', 'failed')), team_member_id uuid,"
            " created_at timestamptz default now(), updated_at timestamptz default now())"
        )
        insert = (
            "insert into scheduled_messages (title, content, scheduled_date, recipient, status)"
            " values ($1, 'hi', $2, $3, $4)"
        )
        due = moment(home.clock.now() + HOUR)
        await old.executemany(
            insert, [("t", due, "100", "pending"), ("t", due, "", "pending"), ("t", due, "7", "sent")]
        )
        dry = await take(home, dry_run=True)
        assert (dry.read, dry.taken, dry.bad[0]["field"]) == (2, 1, "to")
        await take(home)
        await write_back(home)
        assert await old.fetchval("select status from scheduled_messages where recipient = '100'") == "pending"
        await work(home, 3601)
        await work(home, 2)
        found = await old.fetchrow("select status, updated_at from scheduled_messages where recipient = '100'")
        assert (found["status"], abs(found["updated_at"].timestamp() * 1e6 - home.clock.now()) < 5e6) == ("sent", True)
        assert (await take(home)).taken == 0


async def test_sessions_of_connect(bare_postgres_url: str, tmp_path: Path) -> None:
    """Prisma's tables with enums; the due time is inside JSON; each session becomes a broadcast."""
    async with moving("connect", bare_postgres_url, tmp_path) as home, connected(bare_postgres_url) as old:
        await old.execute(
            """
            create type "SessionStatus" as enum ('NEW', 'PENDING', 'COMPLETED', 'FAILED');
            create type "TriggerType" as enum ('IMMEDIATE', 'SCHEDULED', 'MANUAL');
            create type "BroadcastStatus" as enum ('SCHEDULED', 'PENDING', 'SUCCESS', 'FAIL');
            create table tbl_sessions (id serial primary key, cuid text not null unique, app text not null,
              transport text not null, message jsonb not null, addresses jsonb not null, "maxAttempts" integer,
              "triggerType" "TriggerType" not null default 'IMMEDIATE', webhook text, options jsonb,
              status "SessionStatus" not null default 'NEW', "totalAddresses" integer not null, xref text,
              "createdAt" timestamp(3) not null default current_timestamp);
            create table tbl_broadcasts (id serial primary key, cuid text not null unique, app text not null,
              session text not null references tbl_sessions (cuid), transport text not null, address text not null,
              status "BroadcastStatus" not null default 'SCHEDULED', "maxAttempts" integer default 1, disposition jsonb,
              attempts integer default 0, "isComplete" boolean default false, "lastAttempt" timestamp(3), xref text,
              "createdAt" timestamp(3) not null default current_timestamp);
            """
        )
        await old.execute(BLOCKS["sql", "connect"])
        session = (
            'insert into tbl_sessions (cuid, app, transport, message, addresses, "triggerType", options,'
            ' "totalAddresses")'
            " values ($1, 'app', 'sms', $2, '[]', $3::text::\"TriggerType\", $4, 3)"
        )
        options = json.dumps({"scheduledTimestamp": iso(home.clock.now() + HOUR), "attemptIntervalMinutes": "5"})
        content = json.dumps({"content": "Flood warning", "meta": {}})
        await old.execute(session, "ses1", content, "SCHEDULED", options)
        await old.execute(session, "ses2", content, "MANUAL", "{}")
        for owner in ("ses1", "ses2"):
            await old.executemany(
                "insert into tbl_broadcasts (cuid, app, session, transport, address) values ($1, 'app', $2, 'sms', $3)",
                [(f"{owner}-{n}", owner, f"+97798000000{n}") for n in range(3)],
            )
        report = await take(home)
        assert (report.broadcasts, report.taken, report.refused) == (1, 3, 0)
        await write_back(home)
        words = 'select distinct status::text, "lastAttempt" is null from tbl_broadcasts where session = $1'
        assert [tuple(row) for row in await old.fetch(words, "ses1")] == [("PENDING", True)]
        assert [tuple(row) for row in await old.fetch(words, "ses2")] == [("SCHEDULED", True)]
        await work(home, 1)  # the recipients are loaded
        for _ in range(4):
            await work(home, 1000)
        await work(home, 70)
        assert [tuple(row) for row in await old.fetch(words, "ses1")] == [("SUCCESS", False)]
        (made,) = (await home.http.get("/v1/broadcasts")).json()["items"]
        assert (made["xref"], made["state"], made["counts"]["sent"]) == ("ses1", "completed", 3)


async def test_periodic_tasks_of_celery_beat(bare_postgres_url: str, tmp_path: Path) -> None:
    """The tables of django-celery-beat; imported tasks are disabled, and undo enables them."""
    async with moving("celery", bare_postgres_url, tmp_path) as home, connected(bare_postgres_url) as old:
        await old.execute(
            """
            create table django_celery_beat_intervalschedule (id serial primary key, every integer, period varchar(24));
            create table django_celery_beat_crontabschedule (id serial primary key, minute varchar(240),
              hour varchar(96), day_of_week varchar(64), day_of_month varchar(124), month_of_year varchar(64),
              timezone varchar(63));
            create table django_celery_beat_periodictask (id serial primary key, name varchar(200) unique,
              task varchar(200), args text default '[]', kwargs text default '{}', enabled boolean default true,
              last_run_at timestamptz, total_run_count integer default 0, crontab_id integer, interval_id integer);
            insert into django_celery_beat_crontabschedule
              (minute, hour, day_of_week, day_of_month, month_of_year, timezone)
              values ('30', '7', '*', '*', '*', 'Asia/Kathmandu');
            insert into django_celery_beat_intervalschedule (every, period) values (90, 'minutes');
            insert into django_celery_beat_periodictask (name, task, kwargs, crontab_id, interval_id) values
              ('pills', 'reminders.tasks.send_reminder', '{"phone": "+9779800000001", "text": "Pills"}', 1, null),
              ('water', 'reminders.tasks.send_reminder', '{"phone": "+9779800000002", "text": "Water"}', null, 1),
              ('cleanup', 'celery.backend_cleanup', '{}', 1, null);
            """
        )
        await old.execute(BLOCKS["sql", "celery"])
        report = await take(home)
        assert (report.schedules, report.refused) == (2, 0)
        made = {row["name"]: row for row in (await home.http.get("/v1/schedules")).json()["items"]}
        assert (made["pills"]["rule"], made["pills"]["timezone"]) == ({"cron": "30 7 * * *"}, "Asia/Kathmandu")
        assert made["water"]["rule"] == {"every": "1h30m"} or made["water"]["rule"] == {"every": "90m"}
        await write_back(home)
        enabled = "select name from django_celery_beat_periodictask where enabled order by name"
        assert [row[0] for row in await old.fetch(enabled)] == ["cleanup"]
        await work(home, 6000)
        await work(home, 300)
        ran = "select last_run_at is not null from django_celery_beat_periodictask where name = 'water'"
        assert await old.fetchval(ran)
        assert (await undo(home, report))["schedules_ended"] == 2
        await write_back(home)
        assert [row[0] for row in await old.fetch(enabled)] == ["cleanup", "pills", "water"]


async def test_jobs_of_agenda_on_mongodb(mongo: MongoServer, tmp_path: Path) -> None:
    """Recurring and single jobs; imported ones are disabled at once."""
    async with moving("mongo", mongo.url, tmp_path) as home:
        due = moment(home.clock.now() + DAY)
        jobs = mongo.data["crm"]["agendaJobs"]
        jobs.insert_many([
            {"_id": ObjectId(), "name": "send message", "data": {"to": "111", "text": "Good morning"}, "type": "normal",
             "nextRunAt": due, "repeatInterval": "0 9 * * *", "repeatTimezone": "Europe/Berlin", "disabled": False},
            {"_id": ObjectId(), "name": "send message", "data": {"to": "222", "text": "Once"}, "nextRunAt": due,
             "repeatInterval": None, "repeatTimezone": None},
            {"_id": ObjectId(), "name": "send message", "data": {"to": "333", "text": "Done"}, "nextRunAt": None},
            {"_id": ObjectId(), "name": "clean up", "nextRunAt": due},
        ])  # fmt: skip
        report = await take(home)
        assert (report.schedules, report.messages, report.refused) == (1, 1, 0)
        await write_back(home)
        assert [one.get("disabled") for one in jobs.find().sort("_id")] == [True, True, None, None]
        await work(home, 86_402)
        await work(home, 5)
        once = jobs.find_one({"data.to": "222"})
        assert (once["disabled"], once["lastFinishedAt"] is not None) == (True, True)
        assert (await undo(home, report))["schedules_ended"] == 1
        await write_back(home)
        assert jobs.find_one({"data.to": "111"})["disabled"] is False


async def test_workflows_of_a_groupme_bot(tmp_path: Path) -> None:
    """Open conversations, one object each, become messages to their group."""
    file = tmp_path / "workflows.json"
    file.write_text(
        json.dumps({
            "wf-1": {"group_id": "4711", "squad": 42, "status": "waiting_for_input", "reminder": "Please repeat"},
            "wf-2": {"group_id": "4712", "squad": 43, "status": "waiting_for_input", "reminder": "Please repeat"},
        })
    )  # fmt: skip
    async with moving("groupme", str(file), tmp_path) as home:
        report = await take(home)
        assert (report.messages, report.samples[0]["key"]) == (2, "wf-1")
        await work(home, 1)
        assert {message["to"] for message in await home.everything() if message["state"] == "sent"} == {"4711", "4712"}


@pytest.mark.process
def test_a_source_begins_after_the_last_message_of_the_old_bot(tmp_path: Path) -> None:
    """`tidings import cursor`, as the recipe says; a source that has read already is refused."""
    (tmp_path / "tidings.toml").write_text(
        '[channels.phone]\nkind = "noop"\n'
        '[inbound.sources.crew]\nkind = "groupme"\ntoken = "env:TOKEN"\ngroup = "4711"\n'
    )
    (tmp_path / "last_message_id.txt").write_text("173456789012345678\n")
    words = ("import", "cursor", "crew", "--from", "last_message_id.txt")
    env = {"TOKEN": "secret"}
    done = run(*words, folder=tmp_path, env=env)
    assert (done.returncode, "begins after message 173456789012345678" in done.stdout) == (0, True), done.stderr
    shown = json.loads(run("inbox", "sources", "--json", folder=tmp_path, env=env).stdout)["items"]
    assert [row["cursor"] for row in shown] == ["173456789012345678"]
    again = run(*words, folder=tmp_path, env=env)
    assert (again.returncode, "already read" in again.stderr) == (2, True)
    wrong = run("import", "cursor", "crw", "--from", "last_message_id.txt", folder=tmp_path, env=env)
    assert "olled sources: crew" in wrong.stderr
