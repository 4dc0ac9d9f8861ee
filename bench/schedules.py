"""Schedules at scale: 100,000 active ones, what they cost idle, and how fast 1,000 that are due are made.

    python -m bench.schedules                  its own PostgreSQL, both figures, with their bars
    python -m bench.schedules --schedules 20000 --due 500

Idle: the scheduler and nothing else, as in `serve`, for some seconds; CPU of this process and of the server.
Due: all in the same second; from that second to the commit that has made the last of them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tidings.kernel.clock import SystemClock
from tidings.model.time import DAY, SECOND
from tidings.outbound.channels.noop import NoopChannel, NoopSettings
from tidings.outbound.messages import MessageService
from tidings.outbound.schedules.occurrence_builder import MessageOccurrenceBuilder
from tidings.outbound.schedules.rule_parser import parse_rule
from tidings.outbound.schedules.scheduler import Scheduler
from tidings.store.postgres import PostgresStore

from .rows import Row, table
from .servers import Server, postgres

_COLUMNS = (
    "id", "tenant", "name", "rule", "timezone", "creates", "body", "catch_up", "catch_up_window", "next_at",
    "created_at", "changed_at",
)  # fmt: skip
_ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Australia/Sydney")


def main(argv: Sequence[str] | None = None) -> int:
    """Measure both, print the table and one JSON line; 0 when both bars hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules", description=__doc__)
    parser.add_argument("--schedules", type=int, default=100_000)
    parser.add_argument("--due", type=int, default=1000)
    parser.add_argument("--idle", type=float, default=20, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(argv)
    with postgres() as server:
        figures = asyncio.run(_measure(server, options))
    rows = [
        Row(
            key="schedules_idle",
            what=f"{options.schedules:,} schedules, none due: share of a core",
            unit="%",
            measured=figures["idle_share"] * 100,
            at_most=1.0,
        ),
        Row(
            key="schedules_due",
            what=f"{options.due:,} of them due in one second: made within",
            unit="s",
            measured=figures["made_within_s"],
            at_most=1.0,
            samples=figures["rounds_s"],
        ),
    ]
    print(table(rows))
    print(json.dumps(figures))
    return 0 if all(row.holds for row in rows) else 1


async def _measure(server: Server, options: argparse.Namespace) -> dict[str, Any]:
    with server.database() as dsn:
        store, clock = PostgresStore(dsn), SystemClock()
        await store.open()
        channel = NoopChannel(NoopSettings())
        messages = MessageService(store, clock, {"bench": channel})
        scheduler = Scheduler(store, clock, {"message": MessageOccurrenceBuilder(messages)})
        try:
            await _fill(store, options.schedules)
            idle = await _idle(scheduler, options.idle)
            rounds = [await _due(store, scheduler, options.due) for _ in range(options.rounds)]
        finally:
            await store.close()
    ordered = sorted(rounds)
    return {
        "schedules": options.schedules, "due": options.due, **idle,
        "made_within_s": ordered[len(ordered) // 2], "rounds_s": rounds,
    }  # fmt: skip


async def _fill(store: PostgresStore, n: int) -> None:
    """Active schedules of several kinds; each fires for the first time tomorrow or later."""
    async with store._connection() as connection:
        now = await connection.fetchval(f"select {store.schema}.tidings_now()")
        await connection.copy_records_to_table(
            "schedules",
            schema_name=store.schema,
            columns=_COLUMNS,
            records=[_row(number, now) for number in range(n)],
            timeout=120,
        )
        await connection.execute(f"vacuum analyze {store.schema}.schedules", timeout=120)


def _row(number: int, now: int) -> tuple[Any, ...]:
    minute = number % 1440
    kinds: tuple[dict[str, Any], ...] = (
        {"cron": f"{minute % 60} {minute // 60} * * *"},
        {"daily": f"{minute // 60:02}:{minute % 60:02}"},
        {"weekly": f"mon, thu {minute // 60:02}:{minute % 60:02}"},
        {"rrule": f"FREQ=DAILY;BYHOUR={minute // 60};BYMINUTE={minute % 60};BYSECOND=0"},
        {"every": "24h"},
    )
    rule = parse_rule(kinds[number % len(kinds)], anchor=now // SECOND * SECOND)
    body = json.dumps({"channel": "bench", "to": f"user-{number}", "text": "Good morning, this is your reminder"})
    timezone = _ZONES[number // len(kinds) % len(_ZONES)]
    next_at = now + DAY + number * SECOND
    return (f"{number:032x}", "default", f"schedule {number}", rule, timezone, "message", body, "latest",
            3600 * SECOND, next_at, now, now)  # fmt: skip


async def _idle(scheduler: Scheduler, seconds: float) -> dict[str, float]:
    """CPU of us and of the server while the scheduler looks and finds nothing."""
    await scheduler.step()
    servers = _server_cpu()
    ours, began, looks = _own_cpu(), time.perf_counter(), 0
    while time.perf_counter() - began < seconds:
        await asyncio.sleep(await scheduler.step())
        looks += 1
    passed = time.perf_counter() - began
    used, served = _own_cpu() - ours, _server_cpu() - servers
    return {
        "idle_share": round((used + served) / passed, 5),
        "idle_own_share": round(used / passed, 5),
        "looks_per_s": round(looks / passed, 2),
    }


async def _due(store: PostgresStore, scheduler: Scheduler, n: int) -> float:
    """Seconds from the instant to the last commit; the scheduler sleeps until then by itself."""
    async with store._connection() as connection:
        at = await connection.fetchval(f"select {store.schema}.tidings_now()") + 2 * SECOND
        before = await connection.fetchval(f"select count(*) from {store.schema}.messages", timeout=60)
        await connection.execute(
            f"update {store.schema}.schedules set next_at = $1 where id in "
            f"(select id from {store.schema}.schedules order by next_at desc limit $2)",
            at,
            n,
            timeout=60,
        )
    while True:
        pause = await scheduler.step()
        async with store._connection() as connection:
            now, made = await connection.fetchrow(
                f"select {store.schema}.tidings_now(), (select count(*) from {store.schema}.messages)", timeout=60
            )
        if made - before >= n:
            assert made - before == n, f"{made - before} were made of {n}"
            late: float = (now - at) / SECOND
            return round(late, 3)
        await asyncio.sleep(pause)


def _own_cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _server_cpu() -> float:
    """Of all processes that are children of ours (the server's), in seconds."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, tuple[int, float]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = (int(fields[1]), (int(fields[11]) + int(fields[12])) / ticks)
    family = {os.getpid()}
    while more := {pid for pid, (parent, _) in parents.items() if parent in family} - family:
        family |= more
    assert len(family) > 1, "the server is not a child process, so its CPU share is unknown"
    return sum(parents[pid][1] for pid in family - {os.getpid()} if pid in parents)


if __name__ == "__main__":
    sys.exit(main())
