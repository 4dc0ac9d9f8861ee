"""PgQueuer: bulk enqueue first, then one worker in this process drains, or two in processes of their own.

The clock runs from the first job's start to the last completion that the database recorded (its log row's own
time, which is the start of that transaction: a few milliseconds in the peer's favour).
"""

from __future__ import annotations

import asyncio
import sys
import time
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import asyncpg
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver, AsyncpgPoolDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

from bench.calls import serve
from bench.pair import pass_gate, stop_signal, until_none, working
from bench.payload import encoded

CHUNK = 1_000
CAP = 300  # seconds after which a drain is given up

STATE = """
select count(*) filter (where status = 'successful') as successful,
       count(distinct job_id) filter (where status = 'successful') as jobs,
       count(*) filter (where status = 'picked') as picked,
       count(*) filter (where status not in ('queued', 'picked', 'successful')) as odd,
       extract(epoch from max(created) filter (where status = 'successful'))::float8 as last
from pgqueuer_log"""
SPAN = """
select extract(epoch from max(created) filter (where status = 'successful')
  - min(created) filter (where status = 'picked'))::float8 from pgqueuer_log"""


@dataclass
class Tally:
    """What the jobs themselves saw."""

    started: int = 0
    first: float = 0.0


async def drain(dsn: str, n: int, batch: int = 100, pool: int = 0) -> dict[str, Any]:
    """Enqueue n jobs, drain them with one worker, verify the end state.

    `pool` > 0 uses the driver for connection pools instead of the one for a single connection.
    """
    connection = await asyncpg.connect(dsn)
    bulk = await _enqueue(connection, n)
    # Statistics and a quiet disk, as after a pause. Planned blindly, the peer drains a quarter as fast.
    await connection.execute("vacuum analyze pgqueuer")
    await connection.execute("checkpoint")
    tally = Tally()
    source = await asyncpg.create_pool(dsn, min_size=pool, max_size=pool) if pool else await asyncpg.connect(dsn)
    await _work(AsyncpgPoolDriver(source) if pool else AsyncpgDriver(source), tally, n, batch)
    state = await connection.fetchrow(STATE)
    left = await connection.fetchval("select count(*) from pgqueuer")
    await source.close()
    await connection.close()
    ok = (state["successful"], state["jobs"], state["odd"], left, tally.started) == (n, n, 0, 0, n)
    return {
        "per_s": round(n / (state["last"] - tally.first), 1),
        "bulk_per_s": round(bulk, 1),
        "verified": ok,
        "version": version("pgqueuer"),
        "n": n,
        "batch": batch,
        "history_rows": state["successful"] + state["picked"],
    }


async def drain_pair(dsn: str, n: int, batch: int = 100, pool: int = 0) -> dict[str, Any]:
    """The same with two worker processes; the clock is the database's, from the first pick."""
    connection = await asyncpg.connect(dsn)
    await _enqueue(connection, n)
    await connection.execute("vacuum analyze pgqueuer")
    await connection.execute("checkpoint")
    command = [sys.executable, "-m", "bench.peers.pgqueuer", "work", "--dsn", dsn]
    command += ["--batch", str(batch), "--pool", str(pool)]
    async with working(dsn, command) as other:
        await until_none(other, "select exists (select from pgqueuer)")
    state = await connection.fetchrow(STATE)
    span = await connection.fetchval(SPAN)
    await connection.close()
    ok = (state["successful"], state["jobs"], state["odd"]) == (n, n, 0)
    return {"per_s": round(n / span, 1), "verified": ok, "history_rows": state["successful"] + state["picked"]}


async def work(dsn: str, batch: int = 100, pool: int = 0) -> float:
    """One worker process, until it is stopped."""
    asked = stop_signal()
    source = await asyncpg.create_pool(dsn, min_size=pool, max_size=pool) if pool else await asyncpg.connect(dsn)
    worker = PgQueuer(AsyncpgPoolDriver(source) if pool else AsyncpgDriver(source))

    @worker.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(job: Job) -> None:
        pass

    await pass_gate(dsn)
    running = asyncio.create_task(worker.run(batch_size=batch))
    await asked.wait()
    worker.shutdown.set()
    await running
    await source.close()
    return 0.0


async def _enqueue(connection: asyncpg.Connection, n: int) -> float:
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    began = time.perf_counter()
    for start in range(0, n, CHUNK):
        numbers = range(start, min(start + CHUNK, n))
        bodies: list[bytes | None] = [encoded(number).encode() for number in numbers]
        await queries.enqueue(["noop"] * len(bodies), bodies, [0] * len(bodies))
    return n / (time.perf_counter() - began)


async def _work(driver: AsyncpgDriver | AsyncpgPoolDriver, tally: Tally, n: int, batch: int) -> None:
    """Run one worker until every completion is recorded, or the cap is reached."""
    worker = PgQueuer(driver)
    started = asyncio.Event()

    @worker.entrypoint("noop")  # type: ignore[untyped-decorator]
    async def noop(job: Job) -> None:
        if not tally.started:
            tally.first = time.time()
        tally.started += 1
        if tally.started == n:
            started.set()

    async def stop() -> None:
        try:
            await asyncio.wait_for(started.wait(), CAP)
            for _ in range(500):
                [row] = await driver.fetch("select exists (select from pgqueuer) as more")
                if not row["more"]:
                    break
                await asyncio.sleep(0.02)
        finally:
            worker.shutdown.set()

    async with asyncio.TaskGroup() as group:
        group.create_task(stop())
        group.create_task(worker.run(batch_size=batch))


if __name__ == "__main__":
    serve([drain, drain_pair, work])
