"""Planted bugs that the simulation cannot see, each with the test of another layer that must fail on it.

A pytest plugin: `TIDINGS_PLANT=cursor_first pytest -p tests.simulation.elsewhere …` runs tests with the bug.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from tidings.dispatch.rabbitmq import BrokerConnection
from tidings.store.port import Step
from tidings.store.sqlite import SqliteStore

_background: set[asyncio.Task[Any]] = set()


def _cursor_first() -> None:
    enqueue = SqliteStore.enqueue

    async def hasty(self: SqliteStore, tasks: Any, *rows: Any, also: Sequence[Step] = (), **options: Any) -> Any:
        moves = [step for step in also if step.name == "source_move"]
        if moves:
            await self.write(moves)
        rest = [step for step in also if step.name != "source_move"]
        return await enqueue(self, tasks, *rows, also=rest, **options)

    SqliteStore.enqueue = hasty  # type: ignore[method-assign]


def _no_confirm() -> None:
    publish = BrokerConnection.publish

    async def hasty(self: BrokerConnection, *arguments: Any, **options: Any) -> None:
        _background.add(publishing := asyncio.create_task(publish(self, *arguments, **options)))
        publishing.add_done_callback(_background.discard)

    BrokerConnection.publish = hasty  # type: ignore[method-assign]


class Elsewhere(NamedTuple):
    """A bug, and the test that must not pass with it."""

    grow: Callable[[], None]
    test: str


PLANTS = {
    "cursor_first": Elsewhere(
        _cursor_first, "tests/contract/test_sources.py::test_a_failed_insert_holds_the_cursor_and_notifies_after_three"
    ),
    "no_confirm": Elsewhere(
        _no_confirm, "tests/dispatch/test_publishing.py::test_an_unroutable_message_was_not_published"
    ),
}

if planted := os.environ.get("TIDINGS_PLANT"):
    PLANTS[planted].grow()
