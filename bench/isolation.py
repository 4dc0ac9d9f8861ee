"""Isolation: 10,000 messages over four channels, three of which are in trouble.

    python -m bench.isolation                    its own PostgreSQL, two processes, one JSON line at the end
    python -m bench.isolation --messages 1000 --database postgresql://...   a small one, on an empty database

One channel is down (500), one lets 30 a second through and answers the rest with 429 and a wait, one loses
5 % of its answers, one is well. The healthy one has a rate of its own, which this machine can keep, and is
compared with itself alone. Then all faults are cleared and everything must arrive. The judge is the ledger of
the sandbox: nothing may be missing from it, and each duplicate in it must be
recorded in the engine's history as unknown.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tidings.app import App, build
from tidings.model.message import Draft
from tidings.model.time import SECOND

from .fleet import Channels, Sandbox, micros_of, sandbox, settings_of, workers
from .noise import Noise
from .servers import postgres

HEALTHY, DOWN, THROTTLED, DROPPING = "healthy", "down", "throttled", "dropping"
SHARES = {HEALTHY: 0.4, DOWN: 0.1, THROTTLED: 0.1, DROPPING: 0.4}
SEEN_AS = {HEALTHY: "phone", DOWN: "slack", THROTTLED: "twilio", DROPPING: "telegram"}
BAR = 0.8
WORKERS = 2
UNKNOWN = "no answer after the request was sent%"


def main(argv: Sequence[str] | None = None) -> int:
    """Measure alone, beside failing channels, and after recovery; return 0 if all bars hold."""
    parser = argparse.ArgumentParser(prog="python -m bench.isolation", description=__doc__)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rate", type=float, default=200, help="of the healthy channel, per second")
    parser.add_argument("--database", help="an empty one, instead of a server of our own")
    parser.add_argument("--broken", action="store_true", help="leave what is down as it is: quicker")
    options = parser.parse_args(argv)
    counts = {name: round(options.messages * share) for name, share in SHARES.items()}
    with Noise() as noise, databases(options.database) as take:
        alone = asyncio.run(drill(take(), {HEALTHY: counts[HEALTHY]}, options))
        company = asyncio.run(drill(take(), counts, options))
    ratio = round(company["per_s"] / alone["per_s"], 3)
    result = {"messages": options.messages, "alone_per_s": alone["per_s"], **company, "ratio": ratio}
    result["others_cpu"] = noise.share
    result["all_hold"] = ratio >= BAR and not company["lost"] and not company["unflagged"]
    print(json.dumps(result))
    return 0 if result["all_hold"] else 1


@contextlib.contextmanager
def databases(given: str | None) -> Iterator[Any]:
    """A function that gives an empty database; of one that was given, schema by schema."""
    if given is not None:
        numbers = iter(range(9))
        mark = "&" if "?" in given else "?"
        yield lambda: f"{given}{mark}schema=drill_{next(numbers)}"
        return
    with postgres() as server, contextlib.ExitStack() as stack:
        yield lambda: stack.enter_context(server.database())


async def drill(dsn: str, counts: Mapping[str, int], options: argparse.Namespace) -> dict[str, Any]:
    """Send so many on each channel and see what arrives."""
    with tempfile.TemporaryDirectory(prefix="isolation-") as folder, sandbox(Path(folder)) as phone:
        _break(phone)
        channels = _channels(phone.url, options.rate)
        app = build(settings_of(dsn, channels))
        await app.open()
        ids = await _accept(app, counts)
        with workers(WORKERS, dsn, channels):
            per_s = await _rate(phone, counts[HEALTHY])
            if counts.get(DOWN):
                await _mend(app, phone, is_left=options.broken)
        judged = await _judge(app, phone, ids, is_left=options.broken) if counts.get(DOWN) else {}
        await app.close()
    return {"per_s": per_s, **judged}


def _break(phone: Sandbox) -> None:
    phone.break_("500", channel=SEEN_AS[DOWN])
    phone.break_("429", channel=SEEN_AS[THROTTLED], seconds=1, per_second=30)
    phone.break_("lost", channel=SEEN_AS[DROPPING], rate=0.05)


def _channels(url: str, rate: float) -> Channels:
    account = "AC" + "0" * 32
    common = {"policy": "drill", "per_second": rate}
    return {
        HEALTHY: ("sandbox", {"url": url, **common}),
        DOWN: ("slack", {"token": "xoxb-drill", "base_url": f"{url}/api", "policy": "drill"}),
        THROTTLED: ("twilio", {"account_sid": account, "auth_token": "drill", "sender": "Tidings",
                               "base_url": url, **common}),
        DROPPING: ("telegram", {"token": "1:drill", "base_url": url, "on_unknown": "resend", **common}),
    }  # fmt: skip


async def _accept(app: App, counts: Mapping[str, int]) -> dict[str, str]:
    """All of them before anybody works, mixed; gives each id with its channel."""
    wanted = sorted((i / n, name, i) for name, n in counts.items() for i in range(n))

    async def drafts() -> AsyncIterator[tuple[int, Draft]]:
        for number, (_, name, i) in enumerate(wanted):
            to = {HEALTHY: f"ada-{i}", DOWN: f"C{i:09}", THROTTLED: f"+1555{i:07}", DROPPING: f"{10_000 + i}"}[name]
            yield number, Draft(name, to, f"message {i}")

    ids: dict[str, str] = {}
    async for lines in app.messages.accept_many(drafts()):
        for line in lines:
            assert line.error is None, line
            ids[str(line.id)] = wanted[len(ids)][1]
    return ids


async def _rate(phone: Sandbox, n: int) -> float:
    """Messages per second of the healthy channel, from its first arrival to its last."""
    times: list[int] = []
    since = time.monotonic()
    while len(times) < n:
        await asyncio.sleep(0.25)
        before = len(times)
        times = [micros_of(line["time"]) for line in phone.lines() if line["channel"] == SEEN_AS[HEALTHY]]
        since = time.monotonic() if len(times) > before else since
        assert time.monotonic() - since < 60, f"the healthy channel stands still at {len(times)} of {n}"
    return round((n - 1) * SECOND / (times[n - 1] - times[0]), 1)


async def _mend(app: App, phone: Sandbox, *, is_left: bool) -> None:
    """Take the faults away (but for the one that is down, if that is wanted) and wait for the end."""
    if not is_left:
        phone.heal()
    give_up = time.monotonic() + 300
    while await _open(app, is_left=is_left):
        assert time.monotonic() < give_up, "it does not end"
        await asyncio.sleep(0.5)


async def _open(app: App, *, is_left: bool) -> int:
    """What still waits or is under way."""
    rows = await _ask(app, "select queue, count(*) from tasks where state in ('pending', 'processing') group by 1")
    return sum(count for queue, count in rows if queue != DOWN or not is_left)


async def _judge(app: App, phone: Sandbox, ids: Mapping[str, str], *, is_left: bool) -> dict[str, Any]:
    """Who is missing, who got it twice, and whether that is written down."""
    copies = Counter(line["id"] for line in phone.lines() if line["copy"] > 0)
    states = dict(await _ask(app, "select m.id, t.state from messages m join tasks t on t.id = m.task"))
    waiting = {id_ for id_, state in states.items() if state == "pending" and is_left and ids[id_] == DOWN}
    lost = [id_ for id_ in ids if not copies[id_] and id_ not in waiting]
    sql = "select distinct m.id from history h join messages m on m.task = h.task where h.detail like $1"
    flagged = {id_ for (id_,) in await _ask(app, sql, UNKNOWN)}
    missed = await _ask(app, "select count(*) from history where detail = 'missed its rate-limit slot'")
    twice = [id_ for id_, count in copies.items() if count > 1]
    return {
        "lost": len(lost),
        "waiting": len(waiting),
        "duplicates": sum(copies[id_] - 1 for id_ in twice),
        "unflagged": sum(id_ not in flagged for id_ in twice),
        "unknown": len(flagged),
        "missed_turns": missed[0][0],
    }


async def _ask(app: App, sql: str, *values: Any) -> list[Any]:
    store: Any = app.store
    async with store._connection() as connection:
        return [tuple(row) for row in await connection.fetch(sql, *values, timeout=60)]


if __name__ == "__main__":
    sys.exit(main())
