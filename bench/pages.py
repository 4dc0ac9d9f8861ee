"""The pages over a full database: how long the server needs for each, at the 95th percentile.

    python -m bench.pages                        its own PostgreSQL, 100,000 messages
    python -m bench.pages --messages 1000000     the size that the bar is for: 200 ms
    python -m bench.pages --plans                the plans of what they read, too

The engine looks on and sends nothing; requests come in-process, so what is measured is the server's own time:
parsing, the database, the page. A tenth of the messages are dead letters, a quarter still waits.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

import asyncpg
import httpx

from tidings.api import create_api
from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.dashboard import add_dashboard
from tidings.dashboard.navigation import GROUPS
from tidings.migration.job_file import read_job
from tidings.model.time import DAY, HOUR, MINUTE
from tidings.store.statements import load_statements

from .noise import Noise
from .rows import Row, table
from .servers import Server, postgres

BAR = 200.0  # milliseconds
CHANNELS = ("phone", "mail", "chat")
READS = (
    *(
        "counts",
        "counts_due",
        "oldest_due",
        "attempt_tally_minutes",
        "attempt_tally_sums",
        "message_newest",
        "message_window",
    ),
    *(
        "message_to",
        "message_ended",
        "dead_page",
        "dead_groups",
        "upcoming_counts",
        "upcoming_page",
        "upcoming_ordered",
    ),
    *("schedule_upcoming", "broadcast_upcoming", "schedule_page", "broadcast_page", "contact_page", "list_page"),
    *("list_count", "list_members", "suppression_page", "template_page", "subscription_page", "inbox_page"),
)
GROWING = ("tasks", "messages", "history", "contacts", "contact_addresses", "list_members", "schedules")


def main(argv: Sequence[str] | None = None) -> int:
    """Fill, measure, print the table and one JSON line; 0 when every page is within the bar."""
    parser = argparse.ArgumentParser(prog="python -m bench.pages", description=__doc__)
    parser.add_argument("--messages", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--plans", action="store_true")
    options = parser.parse_args(argv)
    with postgres() as server:
        rows = asyncio.run(_measure(server, options))
    print(table(rows))
    print(json.dumps({row.key: round(row.measured or 0, 1) for row in rows}))
    return 0 if all(row.holds for row in rows) else 1


async def _measure(server: Server, options: argparse.Namespace) -> list[Row]:
    with server.database() as dsn:
        channels = {name: ChannelSettings("noop") for name in CHANNELS}
        app = build(Settings(database=dsn, channels=channels, sandbox=False))
        await app.open()
        try:
            connection = await asyncpg.connect(dsn)
            began = perf_counter()
            await _fill(connection, options.messages)
            await _move(app, connection, options.messages)
            print(f"filled in {perf_counter() - began:.0f} s", file=sys.stderr)
            if options.plans:
                await _plans(app)
            places = await _places(connection, app)
            with Noise() as noise:
                found = await _look(app, places, options.rounds)
            await connection.close()
        finally:
            await app.close()
    return [replace(row, foreign_cpu=noise.share) for row in found]


async def _fill(connection: asyncpg.Connection, count: int) -> None:
    """Rows straight into the tables: it is the pages that are measured, not the way in."""
    now: int = await connection.fetchval("select tidings_now()")
    people = min(100_000, max(100, count // 10))
    given = {"now": now, "count": count, "people": people, "day": DAY, "hour": HOUR}
    for statement in _STATEMENTS:
        await connection.execute(statement.format(**given, minute=MINUTE))
    await connection.execute("select setval('task_ids', $1)", 2 * count)
    await connection.execute("vacuum analyze")


async def _move(app: App, connection: asyncpg.Connection, count: int) -> None:
    """A hundred migrations, each type with a thousandth of the messages' number; one in 50 quarantined."""
    job = {
        "name": "bench",
        "source": {"kind": "ndjson", "path": "people"},
        "target": {"kind": "http", "url": "http://127.0.0.1:1/", "key_header": "idempotency-key"},
        "types": {name: {"fields": {"name": "name"}} for name in ("people", "notes")},
    }
    await app.migrations.create(read_job(job, is_local=True), by="bench")
    first: int = await connection.fetchval("select max(n) from jobs")
    given = {"first": first, "records": max(100, count // 1000), "now": app.outbound.clock.now()}
    for statement in _JOBS:
        await connection.execute(statement.format(**given))
    await connection.execute("vacuum analyze jobs, job_types, job_batches, job_records, job_log")


_JOBS = (
    """insert into jobs (id, tenant, name, pair, state, held, round, mapping_hash, definition, created_at,
         changed_at, started_at, ended_at)
       select 'job-' || g, j.tenant, 'Move ' || g, j.pair,
         case when g % 10 = 0 then 'paused' else 'completed' end, case when g % 10 = 0 then 'running' end, 1,
         j.mapping_hash, j.definition, {now}, {now}, {now} - 60000000, {now}
       from jobs j, generate_series(1, 100) g where j.n = {first}""",
    """insert into job_types (job, type, wave, extracted, is_read, linked)
       select j.n, t, 0, {records}, true, true
       from jobs j, unnest(array['people', 'notes']) t where j.n > {first}""",
    """insert into job_records (job, round, type, source_id, state, changed_at, target_id, raw)
       select j.n, 1, t, r::text, 'written', {now}, 'x' || r,
         '{{"id": "' || r || '", "name": "Person ' || r || '"}}'
       from jobs j, unnest(array['people', 'notes']) t, generate_series(1, {records}) r
       where j.n > {first} and r % 50 <> 0""",
    """insert into job_records (job, round, type, source_id, state, changed_at, fingerprint, reason, failure)
       select j.n, 1, t, r::text, 'rejected', {now}, 'validation/' || t || '/email/' || r % 7,
         'invalid address', 'validation'
       from jobs j, unnest(array['people', 'notes']) t, generate_series(50, {records}, 50) r
       where j.n > {first}""",
    """insert into job_batches (id, job, type, round, phase, system, first, last, size, state, written,
         made_at, changed_at)
       select j.n || '/' || t || b, j.n, t, 1, 'run', 'default/http', b, b, 100, 'completed', 98, {now}, {now}
       from jobs j, unnest(array['people', 'notes']) t, generate_series(1, {records} / 100) b
       where j.n > {first}""",
    """insert into job_log (record, at, what) select seq, {now}, 'written' from job_records""",
)

_STATEMENTS = (
    # 60 % sent, 10 % dead (a quarter of them unknown), 5 % given up, 25 % waiting over the next two weeks.
    """insert into tasks (id, due_at, changed_at, tenant, queue, kind, priority, attempts, state, unknown,
         category)
       select n, case when n % 20 < 15 then {now} - {day} - n
           else {now} + (n::bigint * 7919 % 14) * {day} + n::bigint * 104729 % {day} end,
         {now} - {day} + n, 'default', (array['phone', 'mail', 'chat'])[n % 3 + 1], 'message',
         case when n % 7 = 0 then 2 else 5 end, case when n % 20 >= 15 then 0 else 1 end,
         case when n % 20 < 12 then 'done' when n % 20 < 14 then 'failed' when n % 20 = 14 then 'cancelled'
              else 'pending' end,
         n % 20 = 13 and n % 3 = 0,
         case when n % 20 in (12, 13) then (array['permanent', 'temporary', 'system'])[n % 3 + 1] end
       from generate_series(1, {count}) n""",
    """insert into messages (task, accepted_at, scheduled_at, id, tenant, channel, recipient, content)
       select n, {now} - {day} + n, {now} - {day} + n, '0199' || lpad(to_hex(n), 28, '0'), 'default',
         (array['phone', 'mail', 'chat'])[n % 3 + 1], 'user-' || n % {people},
         '{{"text": "Hello number ' || n || ', your order is on its way and arrives tomorrow."}}'
       from generate_series(1, {count}) n""",
    """insert into history (task, at, attempt, origin, state, category, detail)
       select n, {now} - {hour} + n % {hour}, 1, 'processing',
         case when n % 20 < 12 then 'done' else 'failed' end,
         case when n % 20 in (12, 13) then 'permanent' end,
         case when n % 20 in (12, 13) then 'no such number' else 'receipt ' || n end
       from generate_series(1, {count}) n where n % 20 < 14""",
    """insert into contacts (id, tenant, name, timezone, language, tags, attributes, created_at, changed_at)
       select 'c' || lpad(n::text, 12, '0'), 'default', 'Person ' || n, 'Europe/Berlin',
         case when n % 50 = 0 then 'de' else 'en' end,
         case when n % 500 = 0 then '["rare"]' else '["volunteer"]' end, '{{"city": "Bonn"}}', {now}, {now}
       from generate_series(1, {people}) n""",
    """insert into contact_addresses (tenant, channel, address, contact)
       select 'default', 'phone', 'user-' || n, 'c' || lpad(n::text, 12, '0')
       from generate_series(1, {people}) n""",
    """insert into lists (id, tenant, name, filter, created_at)
       select 'l' || lpad(n::text, 6, '0'), 'default', 'list-' || lpad(n::text, 4, '0'),
         case when n % 2 = 0 then '{{"tags_all":["rare"]}}' end, {now}
       from generate_series(1, 100) n""",
    """insert into list_members (list, contact)
       select 'l000001', 'c' || lpad(n::text, 12, '0') from generate_series(1, {people}) n""",
    """insert into suppressions (tenant, address, channel, reason, at)
       select 'default', 'user-' || n, 'phone', 'opted out', {now}
       from generate_series(1, {people} / 10) n""",
    """insert into templates (id, tenant, name, version, created_at, changed_at)
       select 't' || n, 'default', 'template-' || n, 1, {now}, {now} from generate_series(1, 200) n""",
    """insert into template_versions (template, version, content, variables, created_at)
       select 't' || n, 1, '{{"text": "Hello {{{{ contact.name }}}}"}}', '{{}}', {now}
       from generate_series(1, 200) n""",
    """insert into subscriptions (id, tenant, url, events, secret, created_at, changed_at)
       select 's' || n, 'default', 'https://example.com/' || n, '["message.*"]', 'whsec_x', {now}, {now}
       from generate_series(1, 100) n""",
    """insert into schedules (id, tenant, name, rule, timezone, makes, body, grace, next_at, created_at,
         changed_at)
       select 'p' || lpad(n::text, 6, '0'), 'default', 'Schedule ' || n, '{{"daily":{{"at":["09:00:00"]}}}}',
         'Europe/Berlin', 'message', '{{"channel": "phone", "to": "ada", "text": "Hello"}}', {hour},
         {now} + n::bigint * 8000000, {now}, {now}
       from generate_series(1, 10000) n""",
    "insert into task_groups (kind) select 'broadcast' from generate_series(1, 200)",
    """insert into broadcasts (group_id, id, tenant, name, channel, state, starts, content, options,
         accepted_at,
         started_at, changed_at, total, check_at)
       select n, 'b' || lpad(n::text, 6, '0'), 'default', 'Broadcast ' || n, 'phone',
         case when n % 10 = 0 then 'new' else 'completed' end, 'scheduled', '{{"text": "News"}}', '{{}}',
         {now}, {now}, {now}, 1000, case when n % 10 = 0 then {now} + n * {hour} end
       from generate_series(1, 200) n""",
    """insert into task_group_counts (group_id, n, outcome) select n, 1000, 'done'
       from generate_series(1, 200) n""",
    """insert into messages (task, accepted_at, scheduled_at, id, tenant, channel, recipient, content,
         group_id, part)
       select {count} + n, {now}, {now}, 'r' || lpad(n::text, 12, '0'), 'default', 'phone', 'user-' || n, '',
         1, 0
       from generate_series(1, {people}) n""",
    """insert into attempt_tallies (at, queue, outcome, n, ms, packed)
       select ({now} / {minute} - n) * {minute}, queue, outcome, 1000, 5000, true
       from generate_series(0, 60) n, unnest(array['phone', 'mail', 'chat']) queue,
         unnest(array['done', 'failed:permanent', 'retry:temporary']) outcome""",
    """insert into inbox (id, tenant, source, platform_id, conversation, chat, sender, name, kind, sent_at,
         received_at, ended, text)
       select 'i' || n, 'default', 'phone', n::text, 'chat-' || n % 1000, 'chat', 'sender-' || n % 500,
         'Name', 'message', {now}, {now}, 'done', 'I can take the shift on Sunday'
       from generate_series(1, {people}) n""",
)


async def _places(connection: asyncpg.Connection, app: App) -> list[str]:
    """Every page of the navigation, lists with their filters, and one of each kind."""
    waiting: str = await connection.fetchval(
        "select m.id from messages m join tasks t on t.id = m.task where t.state = 'pending' limit 1"
    )
    failed: str = await connection.fetchval(
        "select m.id from messages m join tasks t on t.id = m.task where t.state = 'failed' limit 1"
    )
    today = await connection.fetchval("select (now() at time zone 'utc')::date + 1")
    deep = str(app.outbound.clock.now())
    return [
        "/",
        "/live?now=1",
        *(entry.path for group in GROUPS for entry in group.entries),
        *(f"/messages?state={state}" for state in ("pending", "processing", "sent", "failed", "expired")),
        "/messages?channel=mail",
        "/messages?to=user-7",
        "/messages?channel=nothing-of-it&state=sent",
        f"/messages/{waiting}",
        f"/messages/{failed}",
        "/dead?channel=mail&category=permanent&held=no",
        "/dead?held=yes",
        f"/upcoming/{today}",
        f"/upcoming/{today}?since={deep}",
        "/contacts?tags=rare",
        "/contacts?tags=nobody",
        "/contacts?address=user-77",
        "/contacts/c000000000077",
        "/lists/l000001",
        "/lists/l000002",
        "/templates/template-7",
        "/subscriptions/s7",
        "/schedules?state=active",
        "/schedules/p000007",
        "/schedules/p000007/edit",
        "/schedules/new",
        "/broadcasts/b000001",
        "/broadcasts/b000001?state=waiting",
        "/broadcasts/new?list=list-0001&template=template-7",
        "/broadcasts/new?list=list-0002&template=template-7",
        "/channels/phone",
        "/rollout/phone",
        "/migrations?state=paused",
        "/migrations/job-7",
        "/migrations/job-7?type=notes&state=rejected",
        "/migrations/job-7/records/notes/50",
        "/inbox?state=done",
        "/inbox?sender=sender-7",
    ]


async def _look(app: App, places: Sequence[str], rounds: int) -> list[Row]:
    """Each page some times, one request after the other, in turns."""
    api = create_api(app)
    pages = add_dashboard(api, app)
    took: dict[str, list[float]] = {path: [] for path in places}
    transport = httpx.ASGITransport(api)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=None) as client:
        for number in range(rounds + 1):
            for path in places:
                began = perf_counter()
                answer = await client.get(path, headers={"accept": "text/html"})
                if number:  # the first round warms up
                    took[path].append(1000 * (perf_counter() - began))
                if answer.status_code not in (200, 422):
                    print(f"{path}: {answer.status_code}", file=sys.stderr)
    pages.close()
    return [
        Row(key=path, what=path, unit="ms", measured=_p95(times), at_most=BAR, samples=times)
        for path, times in took.items()
    ]


def _p95(times: Sequence[float]) -> float:
    return sorted(times)[max(0, round(0.95 * len(times)) - 1)]


async def _plans(app: App) -> None:
    """What the pages read, as PostgreSQL goes about it; a walk through a growing table is marked."""
    store: Any = app.store
    known = load_statements("postgres")
    for name in READS:
        statement = known[name]
        nulls = ", ".join("null" for _ in statement.names)
        async with store._connection() as connection:
            await connection.execute(f"prepare p as {statement.sql}")
            found = await connection.fetch(f"explain execute p({nulls})" if nulls else "explain execute p")
            await connection.execute("deallocate p")
        plan = "\n".join(row[0] for row in found)
        walks = any(f"Seq Scan on {place} " in plan for place in GROWING)
        print(f"-- {name}{'  WALKS THROUGH A TABLE' if walks else ''}\n{plan}\n")


if __name__ == "__main__":
    raise SystemExit(main())
