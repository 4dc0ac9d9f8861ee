"""Start marks: loads claimed tasks and marks them as started before anything is sent.

Contents are loaded in batches by kind; rate-limit slots are reserved and start marks written where needed. A
task that cannot start is settled with the reason.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from ..model.errors import TemporaryError
from ..model.outcome import Defer, Retry, raised
from ..model.task import Category, Task, TaskId
from ..model.time import SECOND
from ..observability.events import StoreError
from .crash_points import crash_point
from .executor import ReadyTask
from .handler import Handler, RateLimitedHandler, ReservedSlot
from .node_context import NodeContext
from .settler import AttemptResult


class TaskStarter:
    """Starts the claimed tasks of one node."""

    def __init__(
        self,
        context: NodeContext,
        *,
        keyed: frozenset[str],  # queues whose recipients have rate limits
        feed: Callable[[Sequence[ReadyTask]], None],
        hand_in: Callable[[AttemptResult], None],
        drop: Callable[[Task], None],  # frees the slot without settling
    ) -> None:
        self._store, self._clock, self._node, self._lanes, self._handlers, self._emit = context
        self._keyed = keyed
        self._feed = feed
        self._hand_in = hand_in
        self._drop = drop

    async def start_tasks(self, tasks: list[Task], durable: Awaitable[bool] | None = None) -> bool:
        """Start all tasks once their claim is durable. Return False if nobody knows whether it is."""
        if not tasks:
            return True
        claimed_at = self._clock.now()
        by_kind: dict[str, list[Task]] = {}
        for task in tasks:
            by_kind.setdefault(task.kind, []).append(task)
        loaded = await self._load_all(by_kind, claimed_at)
        if durable is not None:
            try:
                is_durable = await durable
            except Exception as error:  # the claim may have been written, as when the claim itself fails
                self._emit(StoreError.of("claim", error))
                for task in tasks:
                    self._drop(task)
                return False
            if not is_durable:
                loaded = await self._load_all(by_kind, claimed_at)
        crash_point("claimed")
        for kind, contents in loaded.items():
            await self._start_group(kind, by_kind[kind], contents, claimed_at)
        return True

    async def _start_group(
        self, kind: str, group: list[Task], contents: Mapping[TaskId, Any] | Defer | Retry, claimed_at: int
    ) -> None:
        """Reserve slots, write start marks and run the tasks; or settle all of them with one outcome."""
        marked: set[TaskId] = set()
        if not isinstance(contents, Defer | Retry):
            try:
                group, contents = await self._reserve_slots(kind, group, contents)
                marked = await self._mark_started(group)
            except TemporaryError as error:
                contents = self._defer_unloaded(error, claimed_at)
        if isinstance(contents, Defer | Retry):
            for task in group:
                self._hand_in(AttemptResult(task, contents, claimed_at, 0.0))
        else:
            self._run_all(self._handlers[kind], group, contents, marked, claimed_at)

    async def _reserve_slots(
        self, kind: str, group: list[Task], contents: Mapping[TaskId, Any]
    ) -> tuple[list[Task], Mapping[TaskId, Any]]:
        """Reserve rate-limit slots for tasks of keyed queues; they had none when they were claimed."""
        handler = self._handlers[kind]
        keyed = [task for task in group if task.queue in self._keyed and task.id in contents]
        if not keyed or not isinstance(handler, RateLimitedHandler):
            return group, contents
        reserved = await handler.take_slots(keyed, contents)
        timed = {id_: slot.at for id_, slot in reserved.items() if isinstance(slot, ReservedSlot)}
        group = [task._replace(start_at=timed[task.id]) if task.id in timed else task for task in group]
        return group, {**contents, **reserved}

    async def _load_all(
        self, by_kind: Mapping[str, list[Task]], claimed_at: int
    ) -> dict[str, Mapping[TaskId, Any] | Defer | Retry]:
        return {kind: await self._load(kind, group, claimed_at) for kind, group in by_kind.items()}

    async def _load(self, kind: str, group: list[Task], claimed_at: int) -> Mapping[TaskId, Any] | Defer | Retry:
        """Return the contents of these tasks, or an outcome for all of them."""
        handler = self._handlers.get(kind)
        if handler is None:
            return Defer(claimed_at + 60 * SECOND, f"this node has no handler for {kind!r}")
        try:
            return await handler.load(group)
        except TemporaryError as error:
            return self._defer_unloaded(error, claimed_at)
        except Exception as error:  # any exception of a handler is an outcome of its tasks
            return raised(error)

    def _defer_unloaded(self, error: TemporaryError, claimed_at: int) -> Defer:
        self._emit(StoreError.of("load", error))
        return Defer(claimed_at, "the database did not respond")

    def _run_all(
        self, handler: Handler, group: list[Task], contents: Mapping[TaskId, Any], marked: set[TaskId], claimed_at: int
    ) -> None:
        now = self._clock.monotonic()
        jobs: list[ReadyTask] = []
        for task in group:
            lane = self._lanes[task.queue]
            if task.id not in contents:
                missing = Retry(Category.SYSTEM, "its content is missing")
                self._hand_in(AttemptResult(task, missing, claimed_at, 0.0))
            elif lane.marks_start and not task.start_at and task.id not in marked:
                self._drop(task)  # the claim was lost before the attempt started: another node has the task
            else:
                paced = (task.start_at - claimed_at) / SECOND if task.start_at else 0
                jobs.append(
                    ReadyTask(task, lane, contents[task.id], handler.run, claimed_at, now + paced + lane.patience)
                )
        self._feed(jobs)

    async def _mark_started(self, group: list[Task]) -> set[TaskId]:
        """Write the start marks of the whole batch before anything is sent."""
        to_mark = [task for task in group if self._lanes[task.queue].marks_start and not task.start_at]
        if not to_mark:
            return set()
        marked = await self._store.start(self._node.id, to_mark)
        crash_point("started")
        return marked
