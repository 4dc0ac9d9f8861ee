"""What a node does with a hint when others are there, too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.runner import RunnerOptions, TaskRunner
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome
from tidings.store.postgres import PostgresStore

from .kernel_harness import KernelHarness


class Calls:
    """Counts two verbs of a store, and tells when the next one has been answered."""

    def __init__(self, store: PostgresStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[str] = []
        self._news = asyncio.Event()
        for verb in ("claim", "next_due"):
            monkeypatch.setattr(store, verb, self._counted(verb, getattr(store, verb)))

    def _counted(self, verb: str, real: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            answer = await real(*args)
            self.made.append(verb)
            self._news.set()
            return answer

        return call

    async def until(self, *last: str) -> None:
        """Wait until these were the last ones."""
        async with asyncio.timeout(10):
            while tuple(self.made[-len(last) :]) != last:
                self._news.clear()
                await self._news.wait()


async def test_a_node_that_came_for_nothing_looks_before_it_claims(
    postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hint that others follow more quickly costs one cheap question; what is there is claimed."""
    sent = asyncio.Event()

    def send(_message: Message) -> Outcome:
        sent.set()
        return Done()

    store = PostgresStore(postgres_url, now=clock.now)
    await store.open()
    world = await KernelHarness(store, clock, send).open()
    worker = world.worker
    runner = TaskRunner(store, clock, worker.node, world.lanes, worker.runner._handlers,
                    emit=world.events.append, has_peers=lambda: True,
                    options=RunnerOptions(poll_interval=timedelta(minutes=1)))  # fmt: skip
    calls = Calls(store, monkeypatch)
    monkeypatch.setattr(store, "hint", AsyncMock())  # the hints of this test are given by hand
    await runner.start()
    await calls.until("claim", "next_due")  # it looks when it begins

    runner._hinted()
    await calls.until("next_due", "next_due")
    await world.send()
    runner._hinted()
    await calls.until("next_due", "next_due", "next_due", "claim", "next_due")
    async with asyncio.timeout(10):
        await sent.wait()

    runner._hinted()
    await calls.until("claim", "next_due", "claim", "next_due")  # whoever found something is quick
    await runner.stop()
    await store.close()
