"""This engine's side of every measurement, each run in a fresh process by its own name.

    python -m bench.ours drain_postgres --dsn postgresql://... --n 100000 --slots 256 --started-marks

The database given is empty and nobody else's. Each function prepares what it needs, measures, verifies the
end state (a wrong one is an error, never a figure) and gives back messages per second or the named figures.
Peers and raw limits run `vacuum analyze` and `checkpoint` between filling and draining; so may we.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from . import limits
from .calls import serve


class NotBuilt(Exception):
    """The engine does not have what this measurement needs."""


def _not_built(what: str) -> NoReturn:
    raise NotBuilt(f"the engine has no {what} yet; fill in bench/ours.py")


async def drain_postgres(dsn: str, n: int, slots: int = 256, started_marks: bool = False) -> float:
    """Messages/s: n accepted first, then one worker with a no-op channel, 2 history rows each, fenced.

    The clock runs from the first send to the last settle committed. With `started_marks` the channel does not
    resend, so a mark is committed before each send.
    """
    _not_built("drain on PostgreSQL")


async def drain_sqlite(path: str, n: int, slots: int = 256) -> float:
    """The same on a SQLite file (WAL, synchronous FULL)."""
    _not_built("drain on SQLite")


async def bulk_accept_postgres(dsn: str, n: int) -> float:
    """Messages/s through the bulk accept of n messages in one call, validation included."""
    _not_built("bulk accept")


def copy_target(n: int) -> tuple[str, Sequence[limits.Load]]:
    """The real schema as DDL, and the rows that n accepted messages leave in each table, content first."""
    _not_built("schema for the raw COPY")


async def raw_copy_postgres(dsn: str, n: int) -> dict[str, Any]:
    """Raw COPY of the same rows into the same tables with the same indexes: `per_s` and `bytes_per_s`."""
    ddl, loads = copy_target(n)
    return await limits.copy(dsn, ddl, loads)


async def lag(url: str, n: int = 500, over: float = 20) -> dict[str, float]:
    """Start minus due in ms for n messages at random instants over so many seconds: p50, p95, p99, max."""
    _not_built("scheduled messages")


async def burst(url: str, n: int = 2_000) -> dict[str, float]:
    """n messages due at one instant: seconds until the first (`first_s`) and last (`last_s`) started."""
    _not_built("scheduled messages")


async def claim_latency(
    url: str,
    *,
    future: int = 5_000_000,
    keyed: int = 100_000,
    paused: int = 100_000,
    queues: int = 20,
    polls: int = 300,
) -> dict[str, float]:
    """Milliseconds for an empty poll and a claim of 100, among future, ordered and paused rows.

    Gives back `empty_p50_ms`, `empty_p99_ms`, `claim_p50_ms`, `claim_p99_ms`.
    """
    _not_built("claim")


async def memory(url: str, n: int = 1_000_000) -> dict[str, float]:
    """Resident memory while n drain: after a tenth (`early_mb`) and at the end (`late_mb`)."""
    _not_built("drain")


async def webhook_rate(path: str, n: int, in_flight: int = 100) -> float:
    """Messages/s through the signed webhook channel to a loopback receiver, on a SQLite file."""
    _not_built("webhook channel")


if __name__ == "__main__":
    serve(
        [
            drain_postgres,
            drain_sqlite,
            bulk_accept_postgres,
            raw_copy_postgres,
            lag,
            burst,
            claim_latency,
            memory,
            webhook_rate,
        ]
    )
