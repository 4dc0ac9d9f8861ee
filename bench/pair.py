"""This engine on PostgreSQL with two worker processes: they share one backlog, and every step leaves history.

    python -m bench.pair drain --dsn postgresql://... --n 100000

All messages are accepted before. Both workers wait at a gate until the other one is there, too. The clock is
the database's: from the first claim to the last outcome that the history shows. Peers pass the same gate.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager
from typing import Any

import asyncpg

from .calls import ROOT, serve

PROCESSES = 2
CAP = 300  # seconds after which a drain is given up

_GATE = 20_261_116  # the number of an advisory lock
_WAITING = "select count(*) from pg_locks where locktype = 'advisory' and objid = $1 and not granted"
_SPAN = "select min(at) filter (where origin = 'pending'), max(at) from tidings.history"
_LEFT = "select exists (select from tidings.tasks where state in ('pending', 'processing'))"


async def drain(dsn: str, n: int, slots: int = 256, processes: int = PROCESSES) -> dict[str, Any]:
    """Messages/s of two workers or more with a no-op channel, 2 history rows each, every claim fenced."""
    from tidings.model.task import OnUnknown

    from .engine import Marking, engine

    async with engine(dsn, Marking(OnUnknown.RESEND), slots=slots) as ours:
        await ours.fill(n)
        await ours.tidy()
        command = [sys.executable, "-m", "bench.pair", "work", "--dsn", dsn, "--slots", str(slots)]
        async with working(dsn, command, processes) as connection:
            await until_none(connection, _LEFT)
        await ours.verify(n)
    connection = await asyncpg.connect(dsn)
    first, last = await connection.fetchrow(_SPAN)
    parts = await connection.fetch("select count(*) from tidings.history group by node")
    await connection.close()
    return {"per_s": round(n / ((last - first) / 1e6), 1), "shares": sorted(part[0] // 2 for part in parts)}


async def work(dsn: str, slots: int = 256) -> float:
    """One worker process, until it is stopped."""
    from tidings.kernel.gc_tuning import tune_gc
    from tidings.model.task import OnUnknown

    from .engine import Marking, engine

    asked = stop_signal()
    async with engine(dsn, Marking(OnUnknown.RESEND), slots=slots) as ours:
        tune_gc()
        await pass_gate(dsn)
        ours.worker.start()
        await asked.wait()
    return 0.0


def stop_signal() -> asyncio.Event:
    """Set when this process is asked to end."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    return asked


async def pass_gate(dsn: str) -> None:
    """Wait until everybody is there."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("select pg_advisory_lock_shared($1)", _GATE)
    await connection.close()


@asynccontextmanager
async def working(dsn: str, command: Sequence[str], processes: int = PROCESSES) -> AsyncIterator[asyncpg.Connection]:
    """Two processes of this command, or so many, let through the gate together; each is ended by its pid."""
    connection = await asyncpg.connect(dsn)
    await connection.execute("select pg_advisory_lock($1)", _GATE)
    with _children(command, processes) as children:
        while await connection.fetchval(_WAITING, _GATE) < processes:
            assert all(child.poll() is None for child in children), "a worker failed"
            await asyncio.sleep(0.02)
        await connection.execute("select pg_advisory_unlock($1)", _GATE)
        yield connection
    await connection.close()


@contextmanager
def _children(command: Sequence[str], processes: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    with ExitStack() as stack:
        children = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
            for _ in range(processes)
        ]
        try:
            yield children
        finally:
            for child in children:
                child.terminate()


async def until_none(connection: asyncpg.Connection, is_left: str) -> None:
    """Wait until this question is answered with no."""
    async with asyncio.timeout(CAP):
        while await connection.fetchval(is_left):  # noqa: ASYNC110  (another process's work has no event)
            await asyncio.sleep(0.05)


if __name__ == "__main__":
    serve([drain, work])
