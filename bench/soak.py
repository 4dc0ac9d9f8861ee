"""A fleet under fire: 5 nodes, 10,000 messages a minute, somebody killed every 20 seconds (B16, B17).

    python -m bench.soak                    15 minutes on a PostgreSQL of its own, one JSON line at the end
    python -m bench.soak --minutes 60

Kills come at random moments, as those of power cuts and out-of-memory killers do; with --aimed they hit only
nodes that have something in hand, as those of a drill do, which proves more with fewer kills.

The judge is the ledger of the drill: the producer's log, the receiver's, the injector's and the engine's own
books. The receiver answers within 5 ms. What is asked beside it: how many are overdue at any look, how long
the question for the next due message takes, and whether anybody waits for another's lock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import asyncpg

from tidings.app import open_store
from tidings.config import Settings
from tidings.drill.checker import percentile
from tidings.drill.report import DrillReport, as_json
from tidings.drill.runner import DrillProgress, run
from tidings.drill.scratch import scratch_space
from tidings.drill.workload import CHANNEL, RECOVERY_GRACE, DrillOptions
from tidings.kernel.clock import SystemClock

from .noise import Noise
from .rows import Row, table
from .servers import postgres

WORKERS = 5
PER_MINUTE = 10_000
EVERY = 20  # seconds between two kills
DELAY = (0.0, 0.005)
LOOK = 0.25  # seconds between two questions
LOCKED = """
select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"""


class Looks:
    """What was seen while it ran."""

    def __init__(self) -> None:
        self.most_waiting = 0
        self.asked: list[float] = []
        self.locked: list[bool] = []
        self.errors = 0  # times that a worker had no answer from the database

    def told(self, now: DrillProgress) -> None:
        """The drill's own news: what waits or is at work is no more than what is due or about to be."""
        self.most_waiting = max(self.most_waiting, now.waiting)
        if sys.stderr.isatty():
            print(f"\r{now.seconds:6.0f} s  accepted {now.accepted:,}  waiting {now.waiting:,}  "
                  f"killed {now.killed}", end="", file=sys.stderr)  # fmt: skip

    @asynccontextmanager
    async def asking(self, url: str, server: str) -> AsyncIterator[None]:
        """Ask for the next due message all the time, as a node does that has nothing to do."""
        store = open_store(Settings(database=url), SystemClock())

        async def ask() -> None:
            await store.open()
            connection = await asyncpg.connect(server)
            while True:
                began = time.perf_counter()
                await store.next_due({CHANNEL})
                self.asked.append(time.perf_counter() - began)
                self.locked.append(await connection.fetchval(LOCKED) > 0)
                await asyncio.sleep(LOOK)

        asking = asyncio.create_task(ask())
        try:
            yield
        finally:
            asking.cancel()
            with suppress(asyncio.CancelledError):
                await asking
            await store.close()

    def read_logs(self, folder: Path) -> None:
        """What the workers said themselves."""
        logs = [log.read_bytes() for log in folder.glob("worker-*.jsonl")]
        self.errors = sum(log.count(b'"event":"store_error"') for log in logs)


def rows_of(found: DrillReport, looks: Looks, foreign: float) -> list[Row]:
    """The bars of the fleet."""
    late = found.lateness
    within = sum(seconds <= 1 for seconds in late) / len(late)
    twice = len({*found.witnessed, *found.silent}) / found.accepted

    def row(
        key: str,
        what: str,
        measured: float,
        unit: str = "",
        *,
        at_least: float | None = None,
        at_most: float | None = None,
    ) -> Row:
        return Row(
            key=key, what=what, unit=unit, measured=measured, at_least=at_least, at_most=at_most,
            foreign_cpu=foreign,
        )  # fmt: skip

    return [
        row("lost", "lost", len(found.lost) + len(found.stuck), at_most=0),
        row("silent", "doubled in silence", len(found.silent), at_most=0),
        row("delivered", "delivered", 100 * found.delivered / found.accepted, "%", at_least=99.9),
        row("twice", "sent twice, each flagged and witnessed", 100 * twice, "%", at_most=0.01),
        row("errors", "scheduling errors", 100 * looks.errors / found.accepted, "%", at_most=0.1),
        row(
            "locks",
            "looks at which somebody waited for a lock",
            100 * sum(looks.locked) / len(looks.locked),
            "%",
            at_most=1,
        ),
        row("within", "within 1 s of its time", 100 * within, "%", at_least=95),
        row("latest", "the latest", max(late), "s", at_most=found.lease + RECOVERY_GRACE),
        row("overdue", "waiting or at work, at any look", looks.most_waiting, at_most=1000),
        row("due", "question for the next due, p99", 1000 * percentile(looks.asked, 0.99), " ms", at_most=100),
    ]


async def soak(url: str, minutes: float, seed: int, *, aimed: bool) -> tuple[DrillReport, Looks]:
    """Run the drill, and look on."""
    seconds = 60 * minutes
    course = DrillOptions(
        messages=round(PER_MINUTE * minutes),
        kills=math.ceil(seconds / EVERY),
        workers=WORKERS,
        seconds=seconds,
        on_unknown="resend",
        seed=seed,
        delay=DELAY,
        aimed=aimed,
    )
    settings, looks = Settings(database=url), Looks()
    async with scratch_space(settings, keep=False) as place, looks.asking(place.database, url):
        found = await run(course, settings, place, looks.told)
        looks.read_logs(place.folder)
        return found, looks


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print what was seen; 0 when every bar holds."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=15)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--aimed", action="store_true", help="kill only those that have something in hand")
    chosen = parser.parse_args(argv)
    with postgres() as server, server.database() as url, Noise() as noise:
        found, looks = asyncio.run(soak(url, chosen.minutes, chosen.seed, aimed=chosen.aimed))
    rows = rows_of(found, looks, noise.share)
    print(table(rows))
    holds = found.is_clean and all(row.holds for row in rows)
    print(json.dumps({"rows": [row.as_json() for row in rows], "drill": as_json(found), "all_hold": holds}))
    return 0 if holds else 1


if __name__ == "__main__":
    raise SystemExit(main())
