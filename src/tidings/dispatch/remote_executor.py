"""The dispatcher's hands: what the runner claimed is packed, published and settled by what comes back.

To the runner they are slots like any other: it feeds them, and each task's result is handed in once. A task
is published once per claim; a lost confirm counts as published. It then belongs to the dispatch: only a
report, or every bound passed and a marker back through the outcome queue, ends it. Whatever this process
still has out when it stops or dies is its heir's (`heir.py`). Channels that do not go by RabbitMQ run in
ordinary slots.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..kernel.clock import Clock
from ..kernel.decisions import ISOLATE_AFTER
from ..kernel.executor import LocalExecutor, ReadyTask
from ..kernel.handler import Handler
from ..kernel.lanes import Lane
from ..kernel.runner import TaskRunner
from ..kernel.settler import AttemptResult
from ..model.errors import TemporaryError
from ..model.outcome import Defer, Outcome
from ..model.task import TaskId
from ..model.time import SECOND
from ..observability.events import (
    Emit,
    NoTransport,
    ReportRefused,
    ReportUnreadable,
    StoreTrouble,
    TransportLost,
)
from ..store.port import Store
from .broker_messages import BrokerMessage, ack_all
from .claim_tokens import ClaimTokens
from .flow_control import FlowControl
from .in_flight_tasks import RETURN_REASONS, DispatchTimeouts, InFlightTask, InFlightTasks, completion_bound
from .publisher import TaskPublisher
from .rabbitmq import (
    OUTCOME_EXCHANGE,
    BrokerConnection,
    BrokerDown,
    PublishRefused,
    PublishUnconfirmed,
    outcome_queue,
)
from .reconciliation import interpret_outcome, record_late_outcomes, settle_unknown
from .wire_format import (
    MARKER_TYPE,
    ReportedOutcome,
    ReturnReason,
    TransportReport,
    Unreadable,
    decode_marker,
    decode_report,
    encode_marker,
)

PREFETCH = 200  # reports
_REST = 1.5  # times as long as a parcel waits: until a channel that nobody serves is tried again
_AGAIN = 5.0  # seconds after which a marker that has not come back is sent again


class RemoteExecutor:
    """One node's in_flight_tasks. Made anew for each incarnation."""

    def __init__(
        self,
        link: BrokerConnection,
        store: Store,
        clock: Clock,
        runner: TaskRunner,
        lanes: dict[str, Lane],
        queues: Collection[str],
        handlers: Mapping[str, Handler],
        *,
        local: LocalExecutor,
        limits: Mapping[str, int],  # most in flight by channel
        terms: DispatchTimeouts,
        tokens: ClaimTokens,
        emit: Emit,
    ) -> None:
        self._link = link
        self._store = store
        self._clock = clock
        self._runner = runner
        self._node = runner.node
        self._queues = queues
        self._handlers = handlers
        self._local = local
        self._terms = terms
        self._emit = emit
        self._tokens = tokens
        self._errands = InFlightTasks(tokens)
        self._giving = TaskPublisher(
            link, store, clock, self._node, handlers,
            terms=terms, tokens=tokens, end=self._end, spawn=self._spawn,
        )  # fmt: skip
        self._gates = FlowControl(
            lanes, queues, limits, monotonic=clock.monotonic, can_give=self._can_give, opened=runner.wake
        )
        self._acks: deque[tuple[BrokerMessage, list[TaskId]]] = deque()
        self._marker: tuple[int, float] | None = None  # number, and when it was sent
        self._markers = 0
        self._quiet = asyncio.Event()
        self._quiet.set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._ticking: asyncio.Task[None] | None = None
        self._is_reading = self._is_ready = False
        self._leaving: asyncio.Task[None] | None = None
        self._acking = False
        self._closed = False

    # -- as slots

    @property
    def ids(self) -> Collection[TaskId]:
        """The tasks in hand."""
        return {*self._local.ids, *self._errands.held}

    def feed(self, jobs: Sequence[ReadyTask]) -> None:
        """Give these away, or start them here."""
        here = [job for job in jobs if job.task.queue not in self._queues]
        self._local.feed(here)
        away = [job for job in jobs if job.task.queue in self._queues]
        if not away:
            return
        self._quiet.clear()
        now = self._clock.monotonic()
        for job in away:
            length = completion_bound(ttl=self._terms.ttl, within=self._terms.within, lane=job.lane)
            paced = max(0.0, (job.task.start_at - job.claimed_at) / SECOND) if job.task.start_at else 0.0
            alone = job.task.crashes >= ISOLATE_AFTER
            in_flight_task = InFlightTask(
                job.task, job.lane, job.claimed_at, now + paced + length, job.content, alone=alone
            )
            self._errands.add(in_flight_task)
        self._gates.give([job.task.queue for job in away])
        self._spawn(self._giving.publish_tasks([self._errands.held[job.task.id] for job in away]))

    async def quiet(self) -> None:
        """Wait until nothing is in hand."""
        await self._local.quiet()
        await self._quiet.wait()

    def cut_off(self, *, after: float = float("inf")) -> None:
        """Once a second: look after what is out. Without a time: let go of it; it is the heir's."""
        self._local.cut_off(after=after)
        if after == float("inf"):
            self._closed = True
            for in_flight_task in list(self._errands.held.values()):
                self._let_go(in_flight_task)
        elif self._ticking is None or self._ticking.done():
            self._ticking = asyncio.create_task(self.tick())

    def close(self) -> None:
        """Nothing more will come."""
        self._closed = True
        self._local.close()
        for task in (*self._tasks, *([self._ticking] if self._ticking else [])):
            task.cancel()
        self._leaving = asyncio.create_task(self._leave())

    async def left(self) -> None:
        """Wait until its queue is free for an heir."""
        if self._leaving is not None:
            await asyncio.wait([self._leaving])

    async def _leave(self) -> None:
        await self.acknowledge()
        if self._is_reading:
            await self._link.leave(outcome_queue(self._node.id))

    def settled(self) -> None:
        """Results were written."""
        if self._acks and not self._acking:
            self._acking = True
            self._spawn(self._acknowledge_soon())

    async def _acknowledge_soon(self) -> None:
        self._acking = False
        await self.acknowledge()

    # -- what comes back

    async def prepare(self) -> float:
        """Make the outcome queue, and open the windows when it can be relied on; gives seconds to wait."""
        queue = outcome_queue(self._node.id)
        if self._is_ready or self._closed or not self._node.id or not self._link.is_up:
            return 1.0
        if not self._is_reading:
            self._is_reading = True
            with suppress(BrokerDown):  # it is made with the next connection
                await self._link.read(queue, self._take, prefetch=PREFETCH, own=True)
        self._is_ready = self._link.is_settled(queue)
        self.open_or_shut()
        return 1.0 if self._is_ready else 0.1

    async def _take(self, batch: list[BrokerMessage]) -> None:
        """Reports and markers, in the order in which they came."""
        reports: list[tuple[BrokerMessage, TransportReport]] = []
        for incoming in batch:
            try:
                if incoming.kind != MARKER_TYPE:
                    reports.append((incoming, decode_report(incoming.body)))
                    continue
                number, by = decode_marker(incoming.body)
                await self._hear(reports)
                reports = []
                await self._marked(number, by)
            except Unreadable as error:  # what it spoke of is still in hand, and its bounds decide
                self._emit(ReportUnreadable(str(error)))
            self._acks.append((incoming, []))
        await self._hear(reports)
        await self.acknowledge()

    async def _hear(self, reports: list[tuple[BrokerMessage, TransportReport]]) -> None:
        if self._closed:
            return  # not ours any more: they come again, to the heir
        now = self._clock.monotonic()
        heard = [self._errands.hear(report, now) for _, report in reports]
        starts = [e.task for each in heard for e in each.started if e.task.id in self._errands.held]
        if starts:  # of those that have not ended meanwhile
            await self._insist(lambda: self._store.start(self._node.id, starts))
        for (incoming, report), each in zip(reports, heard, strict=True):
            if each.refused:
                self._emit(ReportRefused(report.transport, report.channel, each.refused))
            if each.ended or each.started:
                self._gates.is_served(report.channel)
            for in_flight_task, outcome, seconds in each.ended:
                self._gates.note_done(in_flight_task.task.queue)
                self._hand(
                    in_flight_task, interpret_outcome(self._handlers, in_flight_task, outcome), seconds
                )
            if any(why is ReturnReason.EXPIRED for _, why in each.back):
                self._nobody_took(report.channel, now)
            for in_flight_task, why in each.back:
                self._hand(in_flight_task, Defer(in_flight_task.task.due_at, RETURN_REASONS[why]))
            if each.late:
                await self._news(report.channel, each.late)
            ids = [e.task.id for e, *_ in each.ended] + [e.task.id for e, _ in each.back]
            self._acks.append((incoming, ids))

    def _nobody_took(self, channel: str, now: float) -> None:
        """The channel rests before the next try."""
        if now - self._link.up_since < self._terms.ttl:
            return  # its time ran out while the broker was away: that says nothing about transports
        if self._gates.rest(channel, _REST * self._terms.ttl):
            self._emit(NoTransport(channel))

    @property
    def unserved(self) -> list[str]:
        """The channels whose messages no transport takes."""
        return self._gates.unserved

    async def _news(self, channel: str, late: list[ReportedOutcome]) -> None:
        await self._insist(
            lambda: record_late_outcomes(self._store, self._node.id, channel, late, emit=self._emit)
        )

    async def _insist(self, write: Callable[[], Awaitable[object]]) -> None:
        """What comes next counts on this having been written, so it waits for the database."""
        pause = 0.05
        while not self._closed:
            try:
                await write()
                return
            except TemporaryError as error:
                self._emit(StoreTrouble("dispatch", error.problem))
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)

    async def acknowledge(self) -> None:
        """Tell the broker of what is durable by now."""
        if not self._acks:
            return
        unwritten = self._runner.unwritten
        durable: list[BrokerMessage] = []
        while self._acks and not any(id_ in unwritten for id_ in self._acks[0][1]):
            durable.append(self._acks.popleft()[0])
        await ack_all(durable)

    # -- bounds

    async def tick(self) -> None:
        """Once a second: windows, what is in doubt, what nothing was heard of."""
        now = self._clock.monotonic()
        self._gates.turn()
        await self.acknowledge()
        await self._doubt(self._errands.doubtful(now))
        asked = self._marker is not None and now - self._marker[1] <= _AGAIN
        if not asked and self._errands.silent(now):
            await self._ask(now)

    async def _ask(self, now: float) -> None:
        """Send a marker after everything that may have been said about what nothing was heard of."""
        self._markers += 1
        number = self._tokens.marker(self._node.id, self._markers)
        self._marker = (number, now)
        body = encode_marker(number, self._node.id)
        try:
            await self._link.publish(OUTCOME_EXCHANGE, str(self._node.id), body, kind=MARKER_TYPE)
        except (BrokerDown, PublishRefused, PublishUnconfirmed):
            self._marker = None

    async def _marked(self, number: int, by: int) -> None:
        if self._closed or self._marker is None or (number, by) != (self._marker[0], self._node.id):
            return
        sent, self._marker = self._marker[1], None
        silent = self._errands.silent(sent)
        await self._doubt([in_flight_task for in_flight_task in silent if in_flight_task.may_have_begun])
        for in_flight_task in silent:
            if not in_flight_task.may_have_begun:
                self._end(
                    in_flight_task, Defer(in_flight_task.task.due_at, "nobody said anything about it in time")
                )

    async def _doubt(self, in_flight_tasks: list[InFlightTask]) -> None:
        if not in_flight_tasks:
            return
        try:
            decisions = await settle_unknown(
                self._store, self._node.id, in_flight_tasks, self._handlers,
                now=self._clock.now(), quarantine_after=self._terms.quarantine_after,
            )  # fmt: skip
        except TemporaryError as error:
            self._emit(StoreTrouble("settle", error.problem))
            return
        for in_flight_task in in_flight_tasks:
            self._let_go(in_flight_task)
        set_aside = sum(decision.what.startswith("failed") for decision in decisions)
        self._emit(TransportLost(self._node.id, len(in_flight_tasks) - set_aside, set_aside))

    def open_or_shut(self) -> None:
        """Nothing is claimed while there is nobody to give it to."""
        self._gates.set_all()

    def _can_give(self) -> bool:
        return self._is_ready and self._link.is_up

    # -- ends

    def _end(self, in_flight_task: InFlightTask, outcome: Outcome) -> None:
        """It ended here, without having been given away."""
        if in_flight_task.task.id in self._errands.held:
            self._errands.drop(in_flight_task)
            self._hand(in_flight_task, outcome)

    def _hand(self, in_flight_task: InFlightTask, outcome: Outcome, seconds: float = 0.0) -> None:
        self._forget(in_flight_task)
        self._runner.hand_in(AttemptResult(in_flight_task.task, outcome, in_flight_task.claimed_at, seconds))

    def _let_go(self, in_flight_task: InFlightTask) -> None:
        """Its slot is free, and it is not settled here."""
        if in_flight_task.task.id in self._errands.held:
            self._errands.drop(in_flight_task)
            self._forget(in_flight_task)
            self._runner.release(in_flight_task.task)

    def _forget(self, in_flight_task: InFlightTask) -> None:
        self._gates.take_back(in_flight_task.task.queue)
        if not self._errands.held:
            self._quiet.set()

    def _spawn(self, work: Any) -> None:
        self._tasks.add(task := asyncio.create_task(work))
        task.add_done_callback(self._over)

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            self._emit(StoreTrouble("dispatch", repr(task.exception())))
