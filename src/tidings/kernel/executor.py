"""Executors: run claimed tasks in a fixed number of slots (concurrency).

A slot runs one task after another. The first slot starts each task and spreads those that have to wait over
the other slots, so tasks that finish immediately cost no task switch.
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
    give_up: float  # monotonic; later it is cancelled


class Executor(Protocol):
    """Runs claimed tasks: in local slots, or in other processes."""

    @property
    def ids(self) -> Collection[TaskId]:
        """The tasks in progress."""

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Start these tasks."""

    async def quiet(self) -> None:
        """Wait until no task is in progress."""

    def cut_off(self, *, after: float = float("inf")) -> None:
        """Cancel the tasks whose deadline passed before `after` (monotonic)."""

    def close(self) -> None:
        """Close the executor; no task may be fed afterwards."""


class LocalExecutor:
    """Runs tasks in this process. `attempt` must return normally, even if its task is cancelled."""

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
        """The tasks in progress."""
        return {*self._running, *(job.task.id for job in self._ready)}

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Start these tasks; never more than there are free slots."""
        if jobs:
            self._ready.extend(jobs)
            self._quiet.clear()
            self._rouse()
            asyncio.get_running_loop().call_soon(self._spread)

    async def quiet(self) -> None:
        """Wait until no task is in progress."""
        await self._quiet.wait()

    def cut_off(self, *, after: float = float("inf")) -> None:
        """Cancel the tasks whose deadline passed before `after` (monotonic)."""
        for worker, job in list(self._running.values()):
            if job.give_up < after:
                worker.cancel()

    def close(self) -> None:
        """Cancel all slots; no task is in progress any more."""
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
