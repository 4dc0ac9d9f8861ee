"""The transport: sends the batches that dispatchers publish, and reports each outcome. It has no database.

Each task is started at most once per claim. If the channel does not resend, its start is reported, and
confirmed by the broker, before the first byte is sent. Redelivered tasks are not sent: an attempt may have
started elsewhere, and only the dispatcher can decide. A batch is acknowledged when the broker has confirmed
the reports on all its tasks. Reports are kept until they can be published. Tasks that had not started are
dropped with their connection, because they are redelivered.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, Protocol

from ..kernel.clock import Clock
from ..kernel.crash_points import crash_point
from ..kernel.executor import LocalExecutor, ReadyTask
from ..kernel.lanes import Lane
from ..model.errors import error_text, traceback_text
from ..model.message import Message
from ..model.outcome import Done, Outcome, Unknown, raised
from ..model.task import Task, TaskId
from ..observability.events import AttemptError, BatchUnreadable, Emit, TransportAttempts
from .broker_messages import BrokerMessage
from .rabbitmq import OUTCOME_EXCHANGE, BrokerConnection, PublishError, PublishRefused, batch_queue
from .wire_format import (
    REPORT_TYPE,
    ClaimKey,
    DispatchBatch,
    DispatchItem,
    ReportedOutcome,
    ReturnReason,
    TransportReport,
    Unreadable,
    decode_batch,
    encode_report,
)

_MAX_OUTCOMES = 500  # outcomes per report
_MAX_START_REPORTS = 2  # concurrent reports of starts: further starts share the next one
_ReportEntry = ReportedOutcome | tuple[ClaimKey, ReturnReason]
_CANCEL_AFTER = 2.0  # seconds after its deadline until an attempt is cancelled


class TransportChannel(Protocol):
    """What a transport needs of a channel."""

    async def send(self, message: Message) -> Outcome:
        """Make one attempt."""

    async def lookup(self, message: Message) -> Outcome:
        """Look up the outcome of an earlier attempt."""


@dataclass(slots=True)
class _ReceivedBatch:
    """A received batch, and its tasks without a confirmed report."""

    incoming: BrokerMessage
    left: set[ClaimKey] = field(default_factory=set)


class _ReadyItem(NamedTuple):
    item: DispatchItem
    batch: DispatchBatch
    reply_to: str
    received: float


class Transport:
    """Consumes the batches of its channels from `start` to `stop`."""

    def __init__(
        self,
        senders: Mapping[str, TransportChannel],
        clock: Clock,
        connect: Callable[[Callable[[], None], Callable[[], None]], BrokerConnection],
        *,
        slots: int,
        emit: Emit,
    ) -> None:
        self._senders = senders
        self._clock = clock
        self._emit = emit
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._news = asyncio.Event()
        self._broker = connect(self._news.set, self._went)
        self._count = slots
        self._busy = 0
        self._executor = LocalExecutor(slots, self._attempt)
        self._ready: deque[_ReadyItem] = deque()
        self._in_progress: dict[ClaimKey, tuple[_ReadyItem, _ReceivedBatch]] = {}
        self._started: set[ClaimKey] = set()
        self._results: deque[tuple[str, str, _ReportEntry]] = deque()  # reply to, channel, entry
        self._stopping = False
        self._numbers = count(1)
        self._loops: list[asyncio.Task[None]] = []
        self._starting: set[asyncio.Task[None]] = set()
        self._is_starting = False
        self._sent = 0

    @property
    def load(self) -> dict[str, int]:
        """How busy this transport is."""
        return {"slots": self._count, "in_flight": self._busy, "untold": len(self._results)}

    @property
    def problem(self) -> str | None:
        """Why no batches arrive, if the broker is the reason."""
        return self._broker.problem

    # -- start and stop

    async def start(self) -> None:
        for channel in self._senders:
            await self._broker.read(batch_queue(channel), self._take, prefetch=self._count)
        await self._broker.start()
        self._loops = [asyncio.create_task(self._publish_reports()), asyncio.create_task(self._watch())]

    async def stop(self, timeout: float) -> None:
        """Finish running attempts within the shutdown timeout, return the rest, and report everything."""
        self._stopping = True
        for channel in self._senders:
            await self._broker.halt(batch_queue(channel))
        waiting, self._ready = self._ready, deque()
        for ready in waiting:
            self._add_report(ready, (ready.item.key, ReturnReason.STOPPING))
        deadline = self._clock.monotonic() + timeout
        await self._until(lambda: not self._busy, deadline)
        self._executor.cut_off()  # their outcome becomes Unknown: the request may have left
        await self._until(lambda: not self._busy, float("inf"))
        self._news.set()
        await self._until(lambda: not self._in_progress or not self._broker.is_up, deadline + 5)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        for channel in self._senders:
            await self._broker.leave(batch_queue(channel))
        await self._broker.stop()
        self._executor.close()

    async def _until(self, condition: Callable[[], bool], deadline: float) -> None:
        while not condition() and self._clock.monotonic() < deadline:  # noqa: ASYNC110  (a few times, at the end)
            await asyncio.sleep(0.01)

    def _went(self) -> None:
        """Drop tasks that have not started: they are redelivered, here or elsewhere."""
        self._ready.clear()
        for key in [key for key in self._in_progress if key not in self._started]:
            del self._in_progress[key]

    async def _watch(self) -> None:
        looked_at = float("-inf")
        while True:
            await asyncio.sleep(1)
            self._executor.cut_off(after=looked_at)  # after a pause, pending responses are read first
            looked_at = self._clock.monotonic()
            if self._sent:
                self._emit(TransportAttempts(self._name, self._sent))
                self._sent = 0

    # -- batches

    async def _take(self, batch: list[BrokerMessage]) -> None:
        for incoming in batch:
            await self._open(incoming)
        self._start_soon()

    async def _open(self, incoming: BrokerMessage) -> None:
        try:
            batch = decode_batch(incoming.body)
        except Unreadable as error:
            self._emit(BatchUnreadable(str(error)))
            await incoming.refuse()
            return
        delivery = _ReceivedBatch(incoming, {item.key for item in batch.items})
        if not delivery.left:
            await incoming.ack()
        now = self._clock.monotonic()
        for item in batch.items:
            ready = _ReadyItem(item, batch, incoming.reply_to, now)
            if item.key in self._in_progress:  # in progress here since before a reconnect
                self._in_progress[item.key] = (self._in_progress[item.key][0], delivery)
                continue
            self._in_progress[item.key] = (ready, delivery)
            if incoming.redelivered:
                self._add_report(ready, (ready.item.key, ReturnReason.REDELIVERED))
            elif self._stopping:
                self._add_report(ready, (ready.item.key, ReturnReason.STOPPING))
            elif batch.channel not in self._senders:
                self._add_report(ready, (ready.item.key, ReturnReason.UNKNOWN_CHANNEL))
            else:
                self._ready.append(ready)

    def _start_soon(self) -> None:
        """Start soon, together with other tasks that become ready now; few start reports run at once."""
        if self._ready and not self._is_starting and len(self._starting) < _MAX_START_REPORTS:
            self._is_starting = True
            asyncio.get_running_loop().call_soon(self._start_some)

    def _start_some(self) -> None:
        """Start as many as there are free slots, with one start report for all."""
        self._is_starting = False
        batch: list[_ReadyItem] = []
        now = self._clock.monotonic()
        while self._ready and self._busy < self._count:
            ready = self._ready.popleft()
            if now - ready.received > ready.batch.within_ms / 1000:
                self._add_report(ready, (ready.item.key, ReturnReason.LATE))
                continue
            self._busy += 1
            batch.append(ready)
        marked = [ready for ready in batch if ready.batch.marks_start]
        self._run([ready for ready in batch if not ready.batch.marks_start])
        groups: dict[tuple[str, str], list[_ReadyItem]] = {}
        for ready in marked:
            groups.setdefault((ready.reply_to, ready.batch.channel), []).append(ready)
        for (reply_to, channel), group in groups.items():
            self._starting.add(task := asyncio.create_task(self._mark_and_run(reply_to, channel, group)))
            task.add_done_callback(self._marked)

    def _marked(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        self._start_soon()

    async def _mark_and_run(self, reply_to: str, channel: str, group: list[_ReadyItem]) -> None:
        """Publish the start report before anything is sent."""
        report = TransportReport(channel, self._name, started=[ready.item.key for ready in group])
        try:
            await self._broker.publish(OUTCOME_EXCHANGE, reply_to, encode_report(report), kind=REPORT_TYPE)
        except PublishError:
            self._busy -= len(group)
            for ready in filter(self._is_current, group):
                del self._in_progress[ready.item.key]  # not started, and it is redelivered
            return
        remaining = list(filter(self._is_current, group))
        self._busy -= len(group) - len(remaining)
        crash_point("started")
        self._run(remaining)

    def _is_current(self, ready: _ReadyItem) -> bool:
        """Whether it is still to be sent: tasks not started are dropped with their connection."""
        return self._in_progress.get(ready.item.key, (None,))[0] is ready

    def _run(self, batch: list[_ReadyItem]) -> None:
        now = self._clock.monotonic()
        jobs: list[ReadyTask] = []
        for ready in batch:
            self._started.add(ready.item.key)
            give_up = now + ready.batch.deadline_ms / 1000 + _CANCEL_AFTER
            jobs.append(ReadyTask(self._task(ready), _NO_LANE, ready, self._send, 0, give_up))
        self._executor.feed(jobs)

    async def _attempt(self, job: ReadyTask) -> None:
        """Make one attempt and always report its outcome."""
        ready: _ReadyItem = job.content
        began = self._clock.monotonic()
        try:
            outcome = await self._send(job.task, ready)
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None:
                me.uncancel()  # the slot continues
            why = "the transport stopped" if self._stopping else "its deadline passed"
            outcome = Unknown(f"{why} during the attempt")
        except Exception as error:  # any exception of a channel is an outcome of its task
            outcome = raised(error)
            self._report_error(ready, error, self._clock.monotonic() - began)
        crash_point("sent")
        news = ReportedOutcome(ready.item.key, outcome, (self._clock.monotonic() - began) * 1000)
        self._busy -= 1
        self._sent += 1
        self._add_report(ready, news)
        self._start_soon()

    def _report_error(self, ready: _ReadyItem, error: Exception, seconds: float) -> None:
        message = ready.item.message
        ids = (ready.batch.channel, message.tenant, message.id, message.attempt)
        self._emit(AttemptError(*ids, error_text(error), seconds * 1000, traceback_text(error)))

    async def _send(self, _task: Task, ready: _ReadyItem) -> Outcome:
        sender, message = self._senders[ready.batch.channel], ready.item.message
        if ready.item.ask:
            found = await sender.lookup(message)
            if isinstance(found, Done | Unknown):
                return found
        return await sender.send(message)

    # -- reports

    def _add_report(self, ready: _ReadyItem, news: _ReportEntry) -> None:
        self._results.append((ready.reply_to, ready.batch.channel, news))
        self._news.set()

    async def _publish_reports(self) -> None:
        """Publish reports; while one is being confirmed, the next one fills."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._results and self._broker.is_up:
                groups: dict[tuple[str, str], list[_ReportEntry]] = {}
                for _ in range(min(_MAX_OUTCOMES, len(self._results))):
                    reply_to, channel, news = self._results.popleft()
                    groups.setdefault((reply_to, channel), []).append(news)
                await asyncio.gather(*(self._report(*to, news) for to, news in groups.items()))

    async def _report(self, reply_to: str, channel: str, news: list[_ReportEntry]) -> None:
        outcomes = [one for one in news if isinstance(one, ReportedOutcome)]
        returned = [one for one in news if not isinstance(one, ReportedOutcome)]
        report = TransportReport(channel, self._name, outcomes=outcomes, returned=returned)
        try:
            await self._broker.publish(OUTCOME_EXCHANGE, reply_to, encode_report(report), kind=REPORT_TYPE)
        except PublishError as error:
            # Outcomes must be reported; returned tasks are redelivered on the next connection.
            kept = news if isinstance(error, PublishRefused) else outcomes
            self._results.extendleft((reply_to, channel, one) for one in reversed(kept))
            await asyncio.sleep(0.1)
            self._news.set()
            return
        for one in news:
            await self._reported(one.key if isinstance(one, ReportedOutcome) else one[0])

    async def _reported(self, key: ClaimKey) -> None:
        """Acknowledge the batch once all its tasks are reported."""
        self._started.discard(key)
        _, delivery = self._in_progress.pop(key, (None, None))
        if delivery is not None:
            delivery.left.discard(key)
            if not delivery.left:
                await delivery.incoming.ack()

    def _task(self, ready: _ReadyItem) -> Task:
        """Return a task for the executor, with a local id: the same task may be here under two claims."""
        item, number = ready.item, TaskId(next(self._numbers))
        queue, attempts = ready.batch.channel, item.message.attempt
        return Task(
            number, item.message.tenant, queue, "", 5, 0, attempts, 0, item.claim, 0, item.ask, None, None,
            None
        )  # fmt: skip


_NO_LANE = Lane("transport")
