"""Procrastinate: bulk defer first, then one worker in this process drains and ends by itself.

The clock runs from the first job's start to the last `succeeded` event that the database recorded.
"""

from __future__ import annotations

import asyncio
import time
from importlib.metadata import version
from typing import Any

import psycopg
from procrastinate import App, PsycopgConnector

from bench.calls import serve
from bench.payload import content

CHUNK = 1_000
CAP = 300  # seconds after which a drain is given up

STATE = """
select (select count(*) from procrastinate_jobs where status = 'succeeded'),
       (select count(*) from procrastinate_jobs where status <> 'succeeded'),
       (select count(*) from procrastinate_events),
       (select extract(epoch from max(at))::float8 from procrastinate_events where type = 'succeeded')"""


async def drain(dsn: str, n: int, concurrency: int = 50) -> dict[str, Any]:
    """Defer n jobs, drain them with one worker, verify the end state."""
    app = App(connector=PsycopgConnector(conninfo=dsn, min_size=4, max_size=concurrency + 4))
    starts: list[float] = []

    @app.task(queue="bench")  # type: ignore[untyped-decorator]
    async def noop(body: dict[str, str]) -> None:
        starts.append(time.time())

    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        began = time.perf_counter()
        for start in range(0, n, CHUNK):
            bodies = [{"body": content(number)} for number in range(start, min(start + CHUNK, n))]
            await noop.batch_defer_async(*bodies)
        bulk = n / (time.perf_counter() - began)
        await _tidy(dsn)
        await asyncio.wait_for(app.run_worker_async(concurrency=concurrency, wait=False), CAP)
    async with await psycopg.AsyncConnection.connect(dsn) as connection:
        row = await (await connection.execute(STATE)).fetchone()
    assert row is not None
    succeeded, others, events, last = row
    return {
        "per_s": round(n / (last - min(starts)), 1),
        "bulk_per_s": round(bulk, 1),
        "verified": (succeeded, others, len(starts)) == (n, 0, n),
        "version": version("procrastinate"),
        "n": n,
        "concurrency": concurrency,
        "history_rows": events,
    }


async def _tidy(dsn: str) -> None:
    async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
        await connection.execute("vacuum analyze procrastinate_jobs")
        await connection.execute("checkpoint")


if __name__ == "__main__":
    serve([drain])
