"""Limits over four processes: what a simulated Telegram sees of 30 a second, and of 1 a second per chat.

    python -m bench.limits_fleet               its own PostgreSQL, 30 s each, one JSON line at the end
    python -m bench.limits_fleet --seconds 10

The judge is the ledger of the receiver, not the engine: in no second of it, wherever that begins, may there
be more than the limit and 5 %; and over the whole run not less than 85 % of what is allowed. The receiver
answers at once or after 50 ms, by chance. The first two seconds, in which each process makes its connection,
are not judged.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
import time
from bisect import bisect_left
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from tidings.app import build
from tidings.model.message import Draft
from tidings.model.time import SECOND

from .fleet import Channels, Sandbox, micros_of, sandbox, settings_of, workers
from .noise import Noise
from .servers import postgres

CHANNEL = "telegram"
PER_SECOND, PER_CHAT = 30, 1
OVER, UNDER = 1.05, 0.85
WORKERS = 4
CHATS = 20
WARM = 2 * SECOND  # from the first arrival on: connections are being made, whose cost is not the limit's


class Judged(NamedTuple):
    """What the receiver saw."""

    arrived: int
    most_in_a_second: int  # of one line, wherever the second begins
    share: float  # of what is allowed
    least_gap_ms: float  # between two arrivals of one line
    holds: bool


def judge(lines: Mapping[str, Sequence[int]], limit: int) -> Judged:
    """Arrivals in microseconds, by line (all, or one per chat), each with the same limit per second."""
    begin = min(times[0] for times in lines.values()) + WARM
    lines = {name: [at for at in times if at >= begin] for name, times in lines.items()}
    most = max(most_within_a_second(times) for times in lines.values())
    share = sum(throughput(times) for times in lines.values()) / (limit * len(lines))
    gaps = [later - earlier for times in lines.values() for earlier, later in pairwise(times)]
    least = min(gaps, default=0) / 1000
    holds = most <= limit * OVER and share >= UNDER
    return Judged(sum(map(len, lines.values())), most, round(share, 3), round(least, 1), holds)


def most_within_a_second(times: Sequence[int]) -> int:
    """The fullest second; it begins with one of the arrivals and does not contain its end."""
    return max((bisect_left(times, at + SECOND) - i for i, at in enumerate(times)), default=0)


def throughput(times: Sequence[int]) -> float:
    """Arrivals per second between the first and the last, as both ends of a run are ragged."""
    if len(times) < 2:
        return 0.0
    return (len(times) - 1) * SECOND / (times[-1] - times[0])


def main(argv: Sequence[str] | None = None) -> int:
    """Run, and print what was seen; 0 when the bars hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.limits_fleet", description=__doc__)
    parser.add_argument("--seconds", type=int, default=30, help="length of each run")
    parser.add_argument("--workers", type=int, default=WORKERS)
    parser.add_argument("--database", help="an empty one, for a single run in which both limits are reached")
    options = parser.parse_args(argv)
    result: dict[str, Any] = {"workers": options.workers, "seconds": options.seconds}
    with Noise() as noise:
        runs = run_both if options.database else run_each
        for name, judged in runs(options):
            result[name] = judged._asdict()
            print(f"{name}: {result[name]}", file=sys.stderr, flush=True)
    result |= {"others_cpu": noise.share, "all_hold": result["account"]["holds"] and result["chat"]["holds"]}
    print(json.dumps(result))
    return 0 if result["all_hold"] else 1


def run_each(options: argparse.Namespace) -> Iterator[tuple[str, Judged]]:
    """First 30 a second, each message to a chat of its own; then 1 a second for each of twenty chats."""
    n = PER_SECOND * options.seconds
    with postgres() as server:
        with server.database() as dsn:
            seen = arrivals(dsn, [str(10_000 + number) for number in range(n)], count=options.workers)
        yield "account", judge({"all": [at for _, at in seen]}, PER_SECOND)
        with server.database() as dsn:
            to = [str(10_000 + number % CHATS) for number in range(CHATS * options.seconds)]
            seen = arrivals(dsn, to, count=options.workers)
        yield "chat", judge(by_chat(seen), PER_CHAT)


def run_both(options: argparse.Namespace) -> Iterator[tuple[str, Judged]]:
    """As many chats as the account's limit has room for: both limits at once."""
    to = [str(10_000 + number % PER_SECOND) for number in range(PER_SECOND * options.seconds)]
    seen = arrivals(options.database, to, count=options.workers)
    yield "account", judge({"all": [at for _, at in seen]}, PER_SECOND)
    yield "chat", judge(by_chat(seen), PER_CHAT)


def by_chat(seen: Sequence[tuple[str, int]]) -> Mapping[str, Sequence[int]]:
    """The arrivals of each chat."""
    lines: dict[str, list[int]] = {}
    for chat, at in seen:
        lines.setdefault(chat, []).append(at)
    return lines


def arrivals(dsn: str, to: Sequence[str], *, count: int) -> list[tuple[str, int]]:
    """Who got a message when; every message once, or it is an error."""
    with tempfile.TemporaryDirectory(prefix="limits-") as folder, sandbox(Path(folder)) as phone:
        phone.break_("slow", seconds=0.05, rate=0.5)
        channels: Channels = {CHANNEL: ("telegram", {"token": "1:drill", "base_url": phone.url})}
        with workers(count, dsn, channels):
            asyncio.run(_send(dsn, channels, to))
            _wait(phone, len(to))
        lines = phone.lines()
    assert len({line["id"] for line in lines}) == len(lines) == len(to), "lost or doubled"
    return [(line["to"], micros_of(line["time"])) for line in lines]


async def _send(dsn: str, channels: Channels, to: Sequence[str]) -> None:
    app = build(settings_of(dsn, channels))
    await app.open()

    async def drafts() -> AsyncIterator[tuple[int, Draft]]:
        for number, chat in enumerate(to):
            yield number, Draft(CHANNEL, chat, f"message {number}")

    async for lines in app.messages.accept_many(drafts()):
        assert all(line.error is None for line in lines), lines
    await app.close()


def _wait(phone: Sandbox, n: int) -> None:
    """Until all have arrived, as long as something still does."""
    seen, since = 0, time.monotonic()
    while seen < n:
        time.sleep(0.2)
        now = len(phone.lines())
        since = time.monotonic() if now > seen else since
        seen = now
        assert time.monotonic() - since < 30, f"only {seen} of {n} arrived"


if __name__ == "__main__":
    sys.exit(main())
