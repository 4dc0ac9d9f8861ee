"""Planted bugs: each patches the engine inside a worker process, and the judge must catch every one.

They stay in the tree, because a judge that nobody tries to deceive is not known to see anything.
"""

from __future__ import annotations

import asyncio
import re
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tidings.kernel import reaper, settler
from tidings.kernel.decisions import TaskDecision
from tidings.kernel.heartbeats import Node
from tidings.kernel.lanes import Lane
from tidings.kernel.reaper import Reaper, ReapResult
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome
from tidings.model.task import Task
from tidings.outbound.channels import sandbox
from tidings.outbound.delivery import Delivery
from tidings.store import sqlite
from tidings.store.group_commit import GroupWriter
from tidings.store.statements import load_statements

_background: set[asyncio.Task[Any]] = set()


def done_before_send() -> None:
    """It is written down as done, and then sent."""
    send = Delivery.run

    async def later(self: Delivery, task: Task, content: Any) -> None:
        await asyncio.sleep(0.2)
        await send(self, task, content)

    async def run(self: Delivery, task: Task, content: Any) -> Outcome:
        _background.add(sending := asyncio.create_task(later(self, task, content)))
        sending.add_done_callback(_background.discard)
        return Done()

    Delivery.run = run  # type: ignore[method-assign]


def no_fence() -> None:
    """The last one to settle a task wins, even without its claim. PostgreSQL only.

    Settling takes 0.1 s longer, so that a worker that was paused acts clearly after its pause.
    """
    step = settler.Settler.step

    async def later(self: settler.Settler, largest: int = 1000) -> int:
        await asyncio.sleep(0.1)
        return await step(self, largest)

    settler.Settler.step = later  # type: ignore[method-assign]
    known: Any = load_statements("postgres")
    for name in ("settle", "settle_done", "start"):
        fence = r"t\.node (=|is not distinct from) (\$\d+)"
        sql, n = re.subn(fence, r"(t.node = \2 or true)", known[name].sql)
        sql, m = re.subn(r"t\.claim_no = \w+\.claim_no", "true", sql)
        assert n == m == 1, f"{name} is written otherwise now: the plant must follow"
        known[name] = known[name]._replace(sql=sql)


def no_lease() -> None:
    """Everybody else counts as dead at once."""
    reaper.find_silent_nodes = lambda seen, rows, *, now, node_timeout: ({}, list(rows))  # type: ignore[attr-defined]


def no_start_mark() -> None:
    """A channel that holds sends without having written it down."""
    made = Lane.__post_init__

    def unmarked(self: Lane) -> None:
        made(self)
        object.__setattr__(self, "marks_start", False)

    Lane.__post_init__ = unmarked  # type: ignore[method-assign]


def no_flag() -> None:
    """What was in doubt is sent again in silence."""
    judge = reaper.decide_after_crash  # type: ignore[attr-defined]

    def died(task: Task, lane: Lane | None, **facts: Any) -> TaskDecision:
        decision = judge(task, lane, **facts)
        return decision._replace(move=decision.move._replace(unknown=False))

    reaper.decide_after_crash = died  # type: ignore[attr-defined]


def no_reaper() -> None:
    """What a dead node held is never looked for."""

    async def step(self: Reaper) -> ReapResult:
        return ReapResult()

    Reaper.step = step  # type: ignore[method-assign]


def no_doubt() -> None:
    """A node that has not been heard of for a lease believes in itself."""
    Node.is_trusted = property(lambda self: True)  # type: ignore[assignment]


def fresh_id() -> None:
    """Every try carries another id, so that no receiver can remove a duplicate."""
    body_of = sandbox.body_of

    def renamed(message: Message) -> bytes:
        return body_of(message._replace(id=str(uuid.uuid4())))

    sandbox.body_of = renamed


def answer_before_commit() -> None:
    """An accept is answered before it is durable. SQLite only."""

    async def hasty(self: GroupWriter, group: Any) -> Any:
        await self._begin()
        answers = [self._run(member.work) for member in group]
        for member, (value, failure) in zip(group, answers, strict=True):
            for future in (member.early, member.future):
                if failure is None and future is not None and not future.done():
                    future.set_result(value)
        await asyncio.sleep(0.05)
        self._connection.execute("commit")
        return answers

    GroupWriter._commit = hasty  # type: ignore[method-assign]


def no_sync() -> None:
    """A commit is not written through. SQLite only."""
    connect = sqlite.connect  # type: ignore[attr-defined]

    def hasty(path: Path, now: Callable[[], int]) -> Any:
        connection = connect(path, now)
        connection.execute("pragma synchronous=normal")
        return connection

    sqlite.connect = hasty  # type: ignore[attr-defined]


PLANTS: Mapping[str, Callable[[], None]] = {
    plant.__name__: plant
    for plant in (
        done_before_send,
        no_fence,
        no_lease,
        no_start_mark,
        no_flag,
        no_reaper,
        no_doubt,
        fresh_id,
        answer_before_commit,
        no_sync,
    )
}
