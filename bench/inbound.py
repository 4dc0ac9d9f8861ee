"""What comes in, through the whole pipeline: from the inbox to calendar, replies and the message's end.

    python -m bench.inbound                          1,000 conversations of 20 messages, PostgreSQL, the rules
    python -m bench.inbound --conversations 200 --database sqlite
    python -m bench.inbound --trips                  how often a message goes to the database, too

The engine as `serve` wires it, in one process: intake, rules, workflows, the ledger, the built-in calendar,
and replies on a channel that takes them at once. All conversations, each at another point of the script, say
their next line when half of the last round is worked through. Counted from the first line taken in to the
last task settled, on a database that has seen some talk before; the end state is checked. Every line is
worded a little differently, so that nothing is understood from memory.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from tidings.app import App, build
from tidings.config import ChannelSettings, InboundSettings, Settings
from tidings.inbound.domain import IncomingMessage
from tidings.inbound.sources.settings import SourceSettings
from tidings.inbound.workflow.settings import WorkflowSettings
from tidings.kernel.gc_tuning import tune_gc
from tidings.observability.events import BatchSettled, Event
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore

from .noise import Noise, cpu_of_family
from .rows import Row, table
from .servers import postgres

BAR = 300.0
SOURCE = SourceSettings("crew", "webhook")
SQUADS = tuple(str(number) for number in range(30, 70))
PARTS = (
    (
        (0, "good morning {name}"),
        (0, "{name} here, we have no crew {day0} 1800-0600"),
        (1, "thanks for letting us know {name}"),
        (0, "hi {name}, remove us from {day0} 1800-2000"),
        (1, "did anybody feed {name}"),
    ),
    ((1, "hi {name}, we can cover {day1}"), (1, "1800-2300"), (0, "thanks {name}!")),
    (
        (0, "{name}, who has the keys to the rig?"),
        (1, "hi {name}, add a crew for {day2} night"),
        (0, "see you at the drill {name}"),
        (1, "ok {name}"),
    ),
    ((0, "hi {name}, squad {squad} can cover {day3} 0600-1200"), (1, "great {name}")),
    ((0, "hi {name}, no crew on {day4}"), (0, "never mind"), (1, "happy birthday {name}")),
    ((1, "hi {name}, we will have a crew {day4} 0600-1800"), (0, "lol {name}"), (1, "see you later {name}")),
)
LINES = sum(map(len, PARTS))
EARLIER = 30  # conversations that are over before anything is measured
DAYS = 27  # over which requests are spread
COMMANDS = 4  # that a conversation comes to, at the least: what others have done already is only said

People = Sequence[tuple[str, tuple[str, str]]]  # the squad of each conversation, and who speaks


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, print the table and one JSON line; 0 when the bar holds."""
    parser = argparse.ArgumentParser(prog="python -m bench.inbound", description=__doc__)
    parser.add_argument("--conversations", type=int, default=1000)
    parser.add_argument("--slots", type=int, default=250)
    parser.add_argument("--runner", choices=["plain", "langgraph"], default="plain")
    parser.add_argument("--database", choices=["postgres", "sqlite"], default="postgres")
    parser.add_argument("--trips", action="store_true", help="count the questions to the database")
    options = parser.parse_args(argv)
    with _database(options.database) as url, Noise() as noise:
        figures = _run(url, options)
    row = Row(
        key=f"inbound_{options.database}",
        what=f"{options.conversations:,} conversations of {LINES} messages, {options.database}",
        measured=figures["per_s"],
        at_least=BAR,
        foreign_cpu=noise.share,
    )
    print(table([row]))
    print(json.dumps(figures))
    return 0 if row.holds else 1


@contextmanager
def _database(kind: str) -> Iterator[str]:
    if kind == "sqlite":
        with tempfile.TemporaryDirectory() as folder:
            yield f"sqlite:///{folder}/bench.db"
    else:
        with postgres() as server, server.database() as dsn:
            yield dsn


def _run(url: str, options: argparse.Namespace) -> dict[str, Any]:
    import uvloop

    return dict(uvloop.run(_measure(url, options)))


async def _measure(url: str, options: argparse.Namespace) -> dict[str, Any]:
    settled = Settled()
    app = build(_settings(url, options), emit=settled)
    await app.open()
    trips: Counter[str] = Counter()
    try:
        app.workflows.ready()
        app.worker.start()
        await _talk(app, settled, await _people(app, EARLIER), "earlier")
        await _tidy(app.store)
        people = await _people(app, options.conversations)
        tune_gc()
        if options.trips and isinstance(app.store, PostgresStore):
            _count(app.store, trips)
        used, family, began = _cpu(), cpu_of_family(), time.perf_counter()
        await _talk(app, settled, people, "c")
        passed, used, family = settled.last - began, _cpu() - used, cpu_of_family() - family
        messages = options.conversations * LINES
        return {
            "per_s": round(messages / passed, 1),
            "ms_of_cpu": {
                "own": round(1000 * used / messages, 2),
                "server": round(1000 * (family - used) / messages, 2),
            },
            "seconds": round(passed, 2),
            **await _end(app.store, options.conversations + EARLIER),
            **({"trips": {name: round(n / messages, 2) for name, n in trips.most_common()}} if trips else {}),
        }
    finally:
        await app.close()


def _settings(url: str, options: argparse.Namespace) -> Settings:
    workflow = WorkflowSettings(enabled=True, squads=SQUADS, admins=("crew:boss",), runner=options.runner)
    return Settings(
        database=url,
        concurrency=options.slots,
        channels={SOURCE.name: ChannelSettings("noop", {})},
        inbound=InboundSettings(sources={SOURCE.name: SOURCE}, workflow=workflow),
        sandbox=False,
    )


class Settled:
    """Notes when something was settled last."""

    def __init__(self) -> None:
        self.last = 0.0
        self.news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """Called for every event of the engine."""
        if isinstance(event, BatchSettled):
            self.last = time.perf_counter()
            self.news.set()


async def _talk(app: App, settled: Settled, people: People, group: str) -> None:
    """The whole script in all of these conversations."""
    for number in range(LINES):
        await _say(app, number, people, group)
        await _until(app.store, settled, len(people) // 2)
    await _until(app.store, settled, 0)


async def _tidy(store: Store) -> None:
    """What a server does by itself within minutes: without it, plans are those of empty tables."""
    if isinstance(store, PostgresStore):
        async with store._connection() as connection:
            await connection.execute("vacuum analyze", timeout=300)


async def _people(app: App, conversations: int) -> People:
    """Two members of one squad in each conversation."""
    people = []
    for number in range(conversations):
        squad = SQUADS[number % len(SQUADS)]
        pair = (f"{number}a", f"{number}b")
        for sender in pair:
            await app.inbound.roster.put({"sender": sender, "name": f"Name {sender}", "squad": squad})
        people.append((squad, pair))
    return people


async def _say(app: App, number: int, people: People, group: str) -> None:
    """The next line of every conversation; each begins with another part of the script."""
    now = app.clock.now() - len(people)
    said = []
    for place, (squad, pair) in enumerate(people):
        who, text = _script(place % len(PARTS))[number]
        days = {f"day{n}": _day((place + 5 * n) % DAYS) for n in range(5)}
        words = text.format(squad=squad, name=_name(place), **days)
        sender, at = pair[who], now + place
        said.append(
            IncomingMessage(SOURCE.name, f"{group}{place}-{number}", f"{group}{place}", sender, sender, words, at)
        )
    await app.inbound.ingestion.called(SOURCE, said)
    app.worker.runner.wake()


@cache
def _script(first: int) -> list[tuple[int, str]]:
    return [line for part in (*PARTS[first:], *PARTS[:first]) for line in part]


@cache
def _day(number: int) -> str:
    day = datetime.now(UTC) + timedelta(days=2 + number)
    return f"{day:%b} {day.day}".lower()


def _name(number: int) -> str:
    """A name that nobody else has."""
    return "".join(("ba", "ne", "ri", "do", "lu", "ka", "me", "si", "to", "fu")[int(n)] for n in f"{number:03}")


async def _until(store: Store, settled: Settled, left: int) -> None:
    """Wait until so many tasks are left."""
    while True:
        settled.news.clear()
        if await _left(store) <= left:
            return
        try:
            async with asyncio.timeout(0.1):
                await settled.news.wait()
        except TimeoutError:
            pass
        await asyncio.sleep(0.1 if left else 0.02)


async def _left(store: Store) -> int:
    return int((await _ask(store, "select count(*) from tasks where state in ('pending', 'processing')"))[0][0])


async def _end(store: Store, conversations: int) -> dict[str, Any]:
    """What it came to; anything but the script's own end is an error."""
    decisions = dict(await _ask(store, "select decision, count(*) from handled_messages group by decision"))
    effects = dict(await _ask(store, "select state, count(*) from effects group by state"))
    ended = dict(await _ask(store, "select ended, count(*) from inbox group by ended"))
    failed = await _ask(store, "select count(*) from tasks where state <> 'done'")
    replies = await _ask(store, "select count(*) from messages")
    disorder = await _ask(
        store,
        "select count(*) from (select i.n < lag(i.n) over (partition by h.conversation order by h.n) "
        "as wrong from handled_messages h join inbox i on i.id = h.message) x where wrong",
    )
    end = {
        "decisions": decisions,
        "effects": effects,
        "ended": ended,
        "not_done": failed[0][0],
        "replies": replies[0][0],
        "out_of_order": disorder[0][0],
    }
    is_right = (
        set(effects) == {"confirmed"}
        and effects["confirmed"] >= conversations * COMMANDS
        and ended == {"done": conversations * LINES}
        and not end["not_done"]
        and not end["out_of_order"]
    )
    assert is_right, f"the end state is wrong: {end}"
    return end


async def _ask(store: Any, sql: str) -> list[tuple[Any, ...]]:
    if isinstance(store, PostgresStore):
        async with store._connection() as connection:
            return [tuple(row) for row in await connection.fetch(sql, timeout=300)]
    return list(store._reader.execute(sql))


def _count(store: PostgresStore, trips: Counter[str]) -> None:
    """Count what goes to the server, by statement."""
    names = {statement.sql: name for name, statement in store._sql.items()}

    def counting(call: Callable[..., Any]) -> Callable[..., Any]:
        async def counted(connection: Any, query: str, *args: Any, **named: Any) -> Any:
            trips[names.get(query, query[:40])] += 1
            trips["all"] += 1
            return await call(connection, query, *args, **named)

        return counted

    import asyncpg

    for method in ("fetch", "fetchrow", "fetchval", "fetchmany", "executemany", "execute", "copy_records_to_table"):
        setattr(asyncpg.Connection, method, counting(getattr(asyncpg.Connection, method)))


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
