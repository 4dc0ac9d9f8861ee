"""At scale: more rows, more processes, and an hour's backlog of half a million after a stop.

    python -m bench.scale claim                     10,000,000 pending rows; 20 queues
    python -m bench.scale catch_up                  500,000 overdue; urgent messages come in meanwhile
    python -m bench.scale rows                      poll, claim and drain beside 1,000 to 10,000,000 rows
    python -m bench.scale nodes                     the same backlog drained by 1 to 4 processes

Each on a PostgreSQL of its own. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence

import asyncpg
import uvloop

from tidings.model.message import Draft, Message
from tidings.model.task import OnUnknown
from tidings.model.time import MINUTE, SECOND
from tidings.store.postgres import PostgresStore

from .calls import call
from .engine import CHANNEL, Engine, Marking, engine
from .figures import spread
from .noise import Noise
from .ours import claim_latency
from .rows import Row, table
from .servers import postgres

URGENT = 0  # priority
EVERY = 0.1  # seconds between two urgent messages
DOWN = 55 * MINUTE  # how long ago the oldest was due: less than the grace period, so none expires
DRAINED = 20_000
_DONE = "select count(*) from tasks where queue = $1 and state = 'done'"
NODES = 4
_SIZE = """select pg_total_relation_size('tidings.tasks') + pg_total_relation_size('tidings.messages')
  + (select sum(pg_total_relation_size(inhrelid)) from pg_inherits
     where inhparent = 'tidings.history'::regclass)::bigint"""
NORMAL = 0.02  # seconds of lag that count as normal again


class Lags:
    """How late each message started."""

    def __init__(self) -> None:
        self.urgent: list[float] = []
        self.backlog = 0

    def note(self, message: Message) -> None:
        """One attempt begins."""
        data = message.content["data"]
        if "urgent" in data:
            self.urgent.append(time.time() - data["due"] / SECOND)
        else:
            self.backlog += 1


async def catch_up(url: str, n: int) -> tuple[float, float, Lags]:
    """Seconds from the start of a worker until the backlog is gone and an urgent message is on time again."""
    lags, chance = Lags(), random.Random(7)
    async with engine(url, Marking(OnUnknown.RESEND, lags.note), slots=256) as ours:
        now = time.time_ns() // 1000
        await ours.fill(n, at=lambda _: now - round(chance.random() * DOWN))
        await ours.tidy()
        began = time.perf_counter()
        ours.worker.start()
        while lags.backlog < n:
            await _urge(ours)
        gone, count = time.perf_counter() - began, len(lags.urgent)
        while len(lags.urgent) <= count or lags.urgent[-1] > NORMAL:
            await _urge(ours)
        return gone, time.perf_counter() - began, lags


async def _urge(ours: Engine) -> None:
    now = time.time_ns() // 1000
    draft = Draft(CHANNEL, "ada", "now", data={"due": now, "urgent": True}, priority=URGENT, at=now)
    await ours.messages.accept(draft)
    await asyncio.sleep(EVERY)


def catching_up(n: int) -> list[Row]:
    """After an hour down."""
    with postgres() as server, server.database() as url, Noise() as noise:
        gone, normal, lags = uvloop.run(catch_up(url, n))
    urgent = spread([1000 * seconds for seconds in lags.urgent])
    share = noise.share
    return [
        Row(key="gone", what=f"{n:,} overdue: the last started", measured=gone, unit="s", foreign_cpu=share),
        Row(key="normal", what="normal lag again", measured=normal, unit="s", at_most=120, foreign_cpu=share),
        Row(key="urgent", what="urgent ones meanwhile, p99", measured=urgent["p99"], unit="ms", at_most=1000,
            foreign_cpu=share, samples=[urgent["p50"], urgent["max"]]),
    ]  # fmt: skip


def claiming(n: int) -> list[Row]:
    """Among many pending rows."""
    with postgres() as server, server.database() as url, Noise() as noise:
        found = uvloop.run(claim_latency(url, future=n))
    share = noise.share
    return [
        Row(key="poll", what=f"empty poll among {n:,}, p99", measured=found["next_p99_ms"], unit="ms",
            at_most=2, foreign_cpu=share),
        Row(key="claim", what="claim of 100, p99", measured=found["claim_p99_ms"], unit="ms", at_most=10,
            foreign_cpu=share),
    ]  # fmt: skip


async def _beside(url: str, rows: int) -> dict[str, float]:
    """What a poll, a claim and a drain cost beside so many rows of the future."""
    found = await claim_latency(url, future=rows, keyed=0, paused=0, polls=150)
    async with engine(url, Marking(OnUnknown.RESEND), slots=256) as ours:
        await ours.fill(DRAINED)
        await ours.tidy()
        began = time.perf_counter()
        ours.worker.start()
        await ours.until_settled(DRAINED)
        found["per_s"] = DRAINED / (ours.last - began)
        assert isinstance(ours.store, PostgresStore)
        async with ours.store._connection() as connection:
            done = await connection.fetchval(_DONE, CHANNEL, timeout=300)
    assert done == DRAINED, f"only {done} are done"
    return found


def growing_rows(most: int) -> list[Row]:
    """From a thousand rows to so many, tenfold each time; a database of its own for each."""
    measured: list[Row] = []
    rows = 1000
    with postgres() as server:
        while rows <= most:
            with server.database() as url, Noise() as noise:
                found = uvloop.run(_beside(url, rows))
            share = noise.share
            measured += [
                Row(key=f"poll_{rows}", what=f"empty poll beside {rows:,} rows, p99",
                    measured=found["next_p99_ms"], unit="ms", at_most=2, foreign_cpu=share),
                Row(key=f"claim_{rows}", what="  claim of 100, p99", unit="ms", at_most=10,
                    measured=found["claim_p99_ms"], foreign_cpu=share),
                Row(key=f"drain_{rows}", what=f"  drain of {DRAINED:,}", measured=found["per_s"],
                    foreign_cpu=share),
            ]  # fmt: skip
            rows *= 10
    return measured


def growing_nodes(n: int) -> list[Row]:
    """One to four processes on one backlog, one PostgreSQL and the cores that there are."""
    measured: list[Row] = []
    with postgres() as server:
        for processes in range(1, NODES + 1):
            with server.database() as url, Noise() as noise:
                found = call("bench.pair", "drain", dsn=url, n=n, processes=processes)
                log, size = asyncio.run(_bytes(url))
            what = f"{n:,} drained by {processes} process" + ("" if processes == 1 else "es")
            measured.append(Row(key=f"nodes_{processes}", what=what, measured=found["per_s"],
                                foreign_cpu=noise.share, samples=found["shares"]))  # fmt: skip
    measured += [
        Row(key="bytes", what="on disk per ended message, indexes included", measured=size / n, unit="B"),
        Row(key="log", what="written to the log per message, from accepted to done", measured=log / n, unit="B"),
    ]
    return measured


async def _bytes(url: str) -> tuple[int, int]:
    """Of the write-ahead log of this fresh server's last drain, and of the tables without holes."""
    connection = await asyncpg.connect(url)
    log: int = await connection.fetchval("select wal_bytes::bigint from pg_stat_wal")
    for name in ("tasks", "messages", "history"):
        await connection.execute(f"vacuum full tidings.{name}")
    size: int = await connection.fetchval(_SIZE)
    await connection.execute("select pg_stat_reset_shared('wal')")
    await connection.close()
    return log, size


MEASURES: dict[str, tuple[Callable[[int], list[Row]], int]] = {
    "claim": (claiming, 10_000_000),
    "catch_up": (catching_up, 500_000),
    "rows": (growing_rows, 10_000_000),
    "nodes": (growing_nodes, 100_000),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of them, print the table and one line of JSON; 0 when every bar holds."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("what", choices=list(MEASURES))
    parser.add_argument("--rows", type=int)
    chosen = parser.parse_args(argv)
    measure, usual = MEASURES[chosen.what]
    rows = measure(chosen.rows or usual)
    holds = all(row.holds for row in rows if row.has_bar)
    print(table(rows))
    print(json.dumps({"rows": [row.as_json() for row in rows], "all_hold": holds}))
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
