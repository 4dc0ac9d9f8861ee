"""A worker process that works through a chat of sixty messages, and dies right after one of its commits.

It takes in the next line once nothing is left to do, so the chat comes to the same however often it is
killed; how far it has come, the inbox says. All of it is the real engine, from the rules to the replies.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import uvloop

from tidings import app as engine
from tidings.app import App
from tidings.config import ChannelSettings, InboundSettings, Settings
from tidings.inbound.domain import IncomingMessage
from tidings.inbound.effects import handler
from tidings.inbound.language.rule_interpreter import RuleInterpreter
from tidings.inbound.sources.settings import SourceSettings
from tidings.inbound.workflow.settings import WorkflowSettings
from tidings.kernel import retry
from tidings.model.time import SECOND
from tidings.store.port import ClaimResult, Row, Step
from tidings.store.postgres import PostgresStore

SOURCE = SourceSettings("crew", "webhook")
SQUADS = ("34", "42")
PEOPLE = (
    ("ann", "34", "member"), ("abe", "34", "member"), ("ada", "34", "officer"), ("ben", "42", "member"),
    ("bea", "42", "member"),
)  # fmt: skip
TALK = (
    ("ann", "we can cover {a}"), ("ben", "good morning everybody"), ("abe", "1800-0600"),
    ("ben", "we have a crew {a} 0600-1800 and {b} 0600-0700"), ("ann", "add a crew {a} 1900-2000"),
    ("bea", "remove us from {a} 0600-0700"), ("ann", "42 has no crew {a} 1800-0600"),
    ("ada", "no crew for 42 on {a}"), ("abe", "1800-0600"),
    ("ben", "maybe we could cover {a} night, not sure"), ("ann", "no crew {a}"), ("abe", "what?"),
    ("ann", "never mind"), ("bea", "we can cover {b}"), ("ben", "0600-0630"),
)  # fmt: skip
ROUNDS = 4
_OWN = ("effect_", "shift_", "hearing_", "workflow_", "case_", "notice_", "inbox_")
_LEFT = (
    "select (select count(*) from tasks where state in ('pending', 'processing')),"
    " (select count(*) from notices where sent_at is null),"
    " (select count(*) from handled_messages where deferred in ('queued', 'person') and released_at is null),"
    " (select count(*) from inbox)"
)


class Life(NamedTuple):
    """What one process is told."""

    database: str
    port: int  # of the receiver
    start: int  # the instant of the first line
    dies_after: int = 0  # commits of a kind; 0: it lives to the end
    dies_in: str = "enqueue"  # the kind, by the store's method
    lease: float = 0.4


def script(start: int) -> list[IncomingMessage]:
    """The chat, line by line."""
    first = datetime.fromtimestamp(start / SECOND, UTC)
    days = [f"{day:%b} {day.day}".lower() for n in range(ROUNDS + 1) for day in [first + timedelta(days=3 + n)]]
    said = [(who, text.format(a=days[number], b=days[number + 1])) for number in range(ROUNDS) for who, text in TALK]
    return [
        IncomingMessage(SOURCE.name, f"m{number}", "g1", who, who.title(), text, start + number * SECOND)
        for number, (who, text) in enumerate(said)
    ]


def live(life: Life) -> None:
    """The whole life of a process, as the target of a fork."""
    uvloop.run(_live(life))


async def _live(life: Life) -> None:
    # What a dead process had begun is waited for as long as its calls may last; our own calendar needs less.
    usual = handler.lane
    handler.lane = lambda *args, **named: replace(usual(*args, **named), deadline=timedelta(seconds=life.lease))
    app = engine.build(settings(life))
    await app.open()
    for sender, squad, role in PEOPLE:
        await app.inbound.roster.put({"sender": sender, "name": sender.title(), "squad": squad, "role": role})
    if life.dies_after:
        arm(app, life.dies_in, life.dies_after)
    app.worker.start()
    reaping = asyncio.create_task(_reap(app))
    lines = script(life.start)
    while True:
        tasks, notices, kept, taken = await _ask(app)
        if tasks or notices or kept:
            if not tasks:
                app.worker.wake_actors()
            await asyncio.sleep(0.004)
        elif taken == len(lines):
            break
        else:
            await app.inbound.ingestion.called(SOURCE, [lines[taken]])
            app.worker.runner.wake()
    reaping.cancel()
    await app.close()


async def _reap(app: App) -> None:
    """Look for the dead more often than in real life, so that a drill is short."""
    while True:
        await asyncio.sleep(0.1)
        if app.worker.is_working:
            await app.worker.reaper.step()


def settings(life: Life) -> Settings:
    """One source; replies and notices go to the receiver."""
    channel = {"url": f"http://127.0.0.1:{life.port}/from/{os.getpid()}", "deadline": "2s", "policy": "drill"}
    workflow = WorkflowSettings(enabled=True, squads=SQUADS, admins=("crew:boss",), runner="plain")
    return Settings(
        database=life.database,
        channels={SOURCE.name: ChannelSettings("sandbox", channel)},
        policies={
            "drill": retry.parse_policy("drill", {"backoff": "fixed", "initial_delay": "50ms", "max_attempts": 1000})
        },
        inbound=InboundSettings(sources={SOURCE.name: SOURCE}, workflow=workflow),
        poll_interval=timedelta(milliseconds=50),
        node_timeout=timedelta(seconds=life.lease),
        heartbeat_interval=timedelta(seconds=life.lease / 4),
        quarantine_after=100,
        sandbox=False,
    )


def arm(app: App, kind: str, commits: int) -> None:
    """Die right after so many commits of a kind that say something about the chat."""
    store: Any = app.store
    call = getattr(store, kind)
    left = commits

    async def mortal(*args: Any, **named: Any) -> Any:
        nonlocal left
        answer = await call(*args, **named)
        if isinstance(answer, ClaimResult) and answer.durable is not None:
            await answer.durable
        left -= _counts(kind, args, answer)
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    if isinstance(app.store, PostgresStore):
        store.read = _reading(app.store)
    setattr(store, kind, mortal)


def _counts(kind: str, args: Sequence[Any], answer: Any) -> bool:
    if kind == "claim":
        return bool(answer.tasks)
    return kind != "write" or any(step.name.startswith(_OWN) for step in args[0])


def _reading(store: PostgresStore) -> Callable[..., Any]:
    """Reading is no commit."""

    async def read(name: str, **params: Any) -> list[Row]:
        return (await PostgresStore.write(store, [Step(name, params)]))[0]

    return read


async def _ask(app: App) -> tuple[int, int, int, int]:
    store: Any = app.store
    if isinstance(store, PostgresStore):
        async with store._connection() as connection:
            return tuple(await connection.fetchrow(_LEFT))
    return tuple(store._reader.execute(_LEFT).fetchone())


# Forked processes begin with a grammar that has been used.
RuleInterpreter()._understood("no crew saturday night", 1_800_000_000 * SECOND, "34", "UTC", SQUADS)
