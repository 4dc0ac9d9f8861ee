"""Slots: a fixed number of workers fed by one fetcher.

A slot takes one job after the other. What the first slot does not finish in its stride (because it waits for
the outside world) is spread over the others, so a channel that answers at once costs no switch of tasks.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Any, NamedTuple, Protocol

from ..model.task import Task, TaskId
from .lanes import Lane


class ReadyTask(NamedTuple):
    """One claimed task, ready to run."""

    task: Task
    lane: Lane
    content: Any
    run: Callable[[Task, Any], Awaitable[Any]]
    claimed_at: int
    give_up: float  # monotonic; after this it is cut off


class Executor(Protocol):
    """Who does what the runner claimed: slots of its own, or somebody elsewhere."""

    @property
    def ids(self) -> Collection[TaskId]:
        """The tasks in hand."""

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Start these."""

    async def quiet(self) -> None:
        """Wait until nothing is in hand."""

    def cut_off(self, *, after: float = float("inf")) -> None:
        """End the jobs whose time was up before `after` (monotonic)."""

    def close(self) -> None:
        """Nothing more will be fed."""


class LocalExecutor:
    """Runs jobs; `attempt` must end normally whatever happens, also when its job is cut off."""

    def __init__(self, count: int, attempt: Callable[[ReadyTask], Awaitable[None]]) -> None:
        self._count = count
        self._attempt = attempt
        self._ready: deque[ReadyTask] = deque()
        self._workers: set[asyncio.Task[None]] = set()
        self._idle: list[asyncio.Future[None]] = []
        self._running: dict[TaskId, tuple[asyncio.Task[None], ReadyTask]] = {}
        self._quiet = asyncio.Event()
        self._quiet.set()

    @property
    def ids(self) -> Collection[TaskId]:
        """The tasks in hand."""
        return {*self._running, *(job.task.id for job in self._ready)}

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Start these; never more than there are free slots."""
        if jobs:
            self._ready.extend(jobs)
            self._quiet.clear()
            self._rouse()
            asyncio.get_running_loop().call_soon(self._spread)

    async def quiet(self) -> None:
        """Wait until nothing is in hand."""
        await self._quiet.wait()

    def cut_off(self, *, after: float = float("inf")) -> None:
        """Cancel the jobs whose time was up before `after` (monotonic)."""
        for worker, job in list(self._running.values()):
            if job.give_up < after:
                worker.cancel()

    def close(self) -> None:
        """End the slots; nothing is in hand any more."""
        for worker in self._workers:
            worker.cancel()

    def _spread(self) -> None:
        for _ in range(len(self._ready)):
            if not self._rouse():
                break

    def _rouse(self) -> bool:
        while self._idle:
            waiting = self._idle.pop()
            if not waiting.done():
                waiting.set_result(None)
                return True
        if len(self._workers) >= self._count:
            return False
        worker = asyncio.create_task(self._work())
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)
        return True

    async def _work(self) -> None:
        me = asyncio.current_task()
        assert me is not None
        loop = asyncio.get_running_loop()
        while True:
            while self._ready:
                job = self._ready.popleft()
                self._running[job.task.id] = (me, job)
                await self._attempt(job)
                del self._running[job.task.id]
            if not self._running:
                self._quiet.set()
            self._idle.append(waiting := loop.create_future())
            await waiting
