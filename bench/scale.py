"""At scale: a claim among ten million rows, and an hour's backlog of half a million after a stop.

    python -m bench.scale claim                     10,000,000 pending rows; 20 queues
    python -m bench.scale catch_up                  500,000 overdue; urgent messages come in meanwhile

Each on a PostgreSQL of its own. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import time
from collections.abc import Sequence

import uvloop

from tidings.model.message import Draft, Message
from tidings.model.task import OnUnknown
from tidings.model.time import MINUTE, SECOND

from .engine import CHANNEL, Engine, Marking, engine
from .figures import spread
from .noise import Noise
from .ours import claim_latency
from .rows import Row, table
from .servers import postgres

URGENT = 0  # priority
EVERY = 0.1  # seconds between two urgent messages
DOWN = 55 * MINUTE  # how long ago the oldest was due: less than the grace period, so none expires
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


def main(argv: Sequence[str] | None = None) -> int:
    """Run one of them, print the table and one line of JSON; 0 when every bar holds."""
    parser = argparse.ArgumentParser(prog="python -m bench.scale", description=__doc__)
    parser.add_argument("what", choices=["claim", "catch_up"])
    parser.add_argument("--rows", type=int)
    chosen = parser.parse_args(argv)
    measure, usual = (claiming, 10_000_000) if chosen.what == "claim" else (catching_up, 500_000)
    rows = measure(chosen.rows or usual)
    holds = all(row.holds for row in rows if row.has_bar)
    print(table(rows))
    print(json.dumps({"rows": [row.as_json() for row in rows], "all_hold": holds}))
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
