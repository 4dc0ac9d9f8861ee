"""The dispatcher's executor: publishes claimed tasks and settles them by the reports of transports.

To the runner it is an executor like any other: it is fed with tasks, and effect result is handed in once. A
task is published once per claim; without a confirm it counts as published. From then on only a report ends
it, or a marker through the outcome queue after all timeouts. Tasks in flight when this process stops or dies
are recovered by another dispatcher (`recovery.py`). Channels that do not use RabbitMQ run in local slots.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from ..kernel.executor import LocalExecutor, ReadyTask
from ..kernel.quarantine import ISOLATE_AFTER
from ..kernel.runner import TaskRunner
from ..kernel.settler import AttemptResult
from ..model.errors import TemporaryError
from ..model.outcome import Defer, Outcome
from ..model.task import TaskId
from ..model.time import SECOND
from ..observability.events import NoTransport, ReportRefused, ReportUnreadable, StoreError, TransportLost
from .broker_messages import BrokerMessage, ack_all
from .context import DispatchContext
from .flow_control import FlowControl
from .in_flight_tasks import RETURN_REASONS, InFlightTask, InFlightTasks, completion_bound
from .publisher import TaskPublisher
from .rabbitmq import BrokerDown, outcome_queue
from .reconciliation import OutcomeMarkers, interpret_outcome, record_late_outcomes, settle_unknown
from .wire_format import MARKER_TYPE, ReturnReason, TransportReport, Unreadable, decode_report

PREFETCH = 200  # reports
_SUSPEND_FACTOR = 1.5  # times the batch TTL: wait before a channel without transports is tried again


class RemoteExecutor:
    """The in-flight tasks of one node incarnation."""

    def __init__(
        self,
        context: DispatchContext,
        runner: TaskRunner,
        *,
        local: LocalExecutor,
        limits: Mapping[str, int],  # maximum in flight by channel
    ) -> None:
        (
            self._broker, self._store, self._clock, _, self._queues, self._handlers,
            self._terms, _, self._emit,
        ) = context  # fmt: skip
        self._context = context
        self._runner = runner
        self._node = runner.node
        self._local = local
        self._in_flight = InFlightTasks(context.tokens)
        self._publisher = TaskPublisher(context, self._node, end=self._end, spawn=self._spawn)
        self.flow = FlowControl(
            context, limits, can_publish=lambda: self._is_ready and self._broker.is_up, opened=runner.wake
        )
        self._acks: deque[tuple[BrokerMessage, list[TaskId]]] = deque()
        self._markers = OutcomeMarkers(context, lambda: self._node.id, lambda: self._node.id)
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._is_reading = self._is_ready = False
        self._leaving: asyncio.Task[None] | None = None
        self._acking = False
        self._closed = False

    # -- executor interface

    @property
    def ids(self) -> Collection[TaskId]:
        return {*self._local.ids, *self._in_flight.held}

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Publish these tasks, or start them locally."""
        here = [job for job in jobs if job.task.queue not in self._queues]
        self._local.feed(here)
        away = [job for job in jobs if job.task.queue in self._queues]
        if not away:
            return
        self._quiet.clear()
        now = self._clock.monotonic()
        for job in away:
            length = completion_bound(ttl=self._terms.ttl, within=self._terms.within, lane=job.lane)
            wait = max(0.0, (job.task.start_at - job.claimed_at) / SECOND) if job.task.start_at else 0.0
            alone = job.task.crashes >= ISOLATE_AFTER
            entry = InFlightTask(job.task, job.lane, job.claimed_at, now + wait + length, job.content, alone=alone)
            self._in_flight.add(entry)
        self.flow.add([job.task.queue for job in away])
        self._spawn(self._publisher.publish_tasks([self._in_flight.held[job.task.id] for job in away]))

    async def quiet(self) -> None:
        await self._local.quiet()
        await self._quiet.wait()

    def cut_off(self, *, after: float = float("inf")) -> None:
        """Check timeouts, once a second. Without `after`: leave all tasks to another dispatcher."""
        self._local.cut_off(after=after)
        if after == float("inf"):
            self._closed = True
            for entry in list(self._in_flight.held.values()):
                self._give_up(entry)
        elif self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self.tick())

    def close(self) -> None:
        self._closed = True
        self._local.close()
        for task in (*self._tasks, *([self._ticking] if self._ticking else [])):
            task.cancel()
        self._leaving = asyncio.create_task(self._leave())

    async def left(self) -> None:
        """Wait until the outcome queue is free for another consumer."""
        if self._leaving is not None:
            await asyncio.wait([self._leaving])

    async def _leave(self) -> None:
        await self.acknowledge()
        if self._is_reading:
            await self._broker.leave(outcome_queue(self._node.id))

    def settled(self) -> None:
        """Acknowledge reports soon, because results were written."""
        if self._acks and not self._acking:
            self._acking = True
            self._spawn(self.acknowledge())

    # -- reports

    async def prepare(self) -> float:
        """Declare the outcome queue, and open the windows once it is reliable. Return seconds to wait."""
        queue = outcome_queue(self._node.id)
        if self._is_ready or self._closed or not self._node.id or not self._broker.is_up:
            return 1.0
        if not self._is_reading:
            self._is_reading = True
            with suppress(BrokerDown):  # it is declared on the next connection
                await self._broker.read(queue, self._take, prefetch=PREFETCH, own=True)
        self._is_ready = self._broker.is_settled(queue)
        self.flow.set_all()
        return 1.0 if self._is_ready else 0.1

    async def _take(self, batch: list[BrokerMessage]) -> None:
        """Process reports and markers in order of arrival."""
        reports: list[tuple[BrokerMessage, TransportReport]] = []
        for incoming in batch:
            try:
                if incoming.kind != MARKER_TYPE:
                    reports.append((incoming, decode_report(incoming.body)))
                    continue
                await self._apply(reports)
                reports = []
                sent = self._markers.returned(incoming.body)
                if sent is not None and not self._closed:
                    await self._marked(sent)
            except Unreadable as error:  # its tasks are still in flight and settled after their timeouts
                self._emit(ReportUnreadable(str(error)))
            self._acks.append((incoming, []))
        await self._apply(reports)
        await self.acknowledge()

    async def _apply(self, reports: list[tuple[BrokerMessage, TransportReport]]) -> None:
        if self._closed:
            return  # redelivered to the dispatcher that recovers this one
        now = self._clock.monotonic()
        effects = [self._in_flight.apply(report, now) for _, report in reports]
        starts = [e.task for effect in effects for e in effect.started if e.task.id in self._in_flight.held]
        if starts:  # of tasks that have not ended meanwhile
            await self._write_persistently(lambda: self._store.start(self._node.id, starts))
        for (incoming, report), effect in zip(reports, effects, strict=True):
            if effect.refused:
                self._emit(ReportRefused(report.transport, report.channel, effect.refused))
            if effect.ended or effect.started:
                self.flow.is_served(report.channel)
            for entry, outcome, seconds in effect.ended:
                self.flow.note_done(entry.task.queue)
                self._settle(entry, interpret_outcome(self._handlers, entry, outcome), seconds)
            if any(reason is ReturnReason.EXPIRED for _, reason in effect.returned):
                self._suspend(report.channel, now)
            for entry, reason in effect.returned:
                self._settle(entry, Defer(entry.task.due_at, RETURN_REASONS[reason]))
            if effect.late:
                late = partial(record_late_outcomes, self._context, self._node.id, report.channel, effect.late)
                await self._write_persistently(late)
            ids = [e.task.id for e, *_ in effect.ended] + [e.task.id for e, _ in effect.returned]
            self._acks.append((incoming, ids))

    def _suspend(self, channel: str, now: float) -> None:
        """Suspend a channel that no transport serves."""
        if now - self._broker.up_since < self._terms.ttl:
            return  # the batch expired while the broker was away: that says nothing about transports
        if self.flow.suspend(channel, _SUSPEND_FACTOR * self._terms.ttl):
            self._emit(NoTransport(channel))

    async def _write_persistently(self, write: Callable[[], Awaitable[object]]) -> None:
        """Retry a write until the database responds: the next step depends on it."""
        pause = 0.05
        while not self._closed:
            try:
                await write()
                return
            except TemporaryError as error:
                self._emit(StoreError.of("dispatch", error))
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)

    async def acknowledge(self) -> None:
        """Acknowledge reports whose results are durable."""
        self._acking = False
        if not self._acks:
            return
        unwritten = self._runner.unwritten
        durable: list[BrokerMessage] = []
        while self._acks and not any(id_ in unwritten for id_ in self._acks[0][1]):
            durable.append(self._acks.popleft()[0])
        await ack_all(durable)

    # -- timeouts

    async def tick(self) -> None:
        """Once a second: adjust windows, settle unknown tasks, send a marker for silent ones."""
        now = self._clock.monotonic()
        self.flow.adjust()
        await self.acknowledge()
        await self._settle_unknown(self._in_flight.unknown(now))
        if self._in_flight.silent(now):
            await self._markers.send(now)

    async def _marked(self, sent: float) -> None:
        silent = self._in_flight.silent(sent)
        await self._settle_unknown([entry for entry in silent if entry.may_have_started])
        for entry in silent:
            if not entry.may_have_started:
                self._end(entry, Defer(entry.task.due_at, "no transport reported on it in time"))

    async def _settle_unknown(self, entries: list[InFlightTask]) -> None:
        if not entries:
            return
        try:
            decisions = await settle_unknown(self._context, self._node.id, entries)
        except TemporaryError as error:
            self._emit(StoreError.of("settle", error))
            return
        for entry in entries:
            self._give_up(entry)
        quarantined = sum(decision.what.startswith("failed") for decision in decisions)
        self._emit(TransportLost(self._node.id, len(entries) - quarantined, quarantined))

    # -- ends

    def _end(self, entry: InFlightTask, outcome: Outcome) -> None:
        """Settle a task that ended without having been published."""
        if entry.task.id in self._in_flight.held:
            self._in_flight.drop(entry)
            self._settle(entry, outcome)

    def _settle(self, entry: InFlightTask, outcome: Outcome, seconds: float = 0.0) -> None:
        self._forget(entry)
        self._runner.hand_in(AttemptResult(entry.task, outcome, entry.claimed_at, seconds, entry.content))

    def _give_up(self, entry: InFlightTask) -> None:
        """Free the task's slot without settling it."""
        if entry.task.id in self._in_flight.held:
            self._in_flight.drop(entry)
            self._forget(entry)
            self._runner.release(entry.task)

    def _forget(self, entry: InFlightTask) -> None:
        self.flow.remove(entry.task.queue)
        if not self._in_flight.held:
            self._quiet.set()

    def _spawn(self, work: Any) -> None:
        self._tasks.add(task := asyncio.create_task(work))
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._emit(StoreError.of("dispatch", error))
