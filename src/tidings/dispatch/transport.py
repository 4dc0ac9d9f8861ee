"""The transport: sends what dispatchers hand out, and tells what came of each. It has no database.

Each task is begun at most once per claim. Where the channel does not resend, its start is told, and confirmed
by the broker, before the first byte leaves. What comes redelivered is not sent: whoever had it may have
begun, and only the dispatcher can judge that. A parcel is acknowledged when the broker has confirmed the
reports on all of its tasks. Reports that cannot be told are kept until they can; what had not begun is
forgotten with its connection, for it comes again.
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
from ..model.errors import error_text
from ..model.message import Message
from ..model.outcome import Done, Outcome, Retry, Unknown
from ..model.task import Category, Task, TaskId
from ..observability.events import Emit, ParcelsSent, ParcelUnreadable
from .broker_messages import BrokerMessage
from .rabbitmq import (
    OUTCOME_EXCHANGE,
    BrokerConnection,
    BrokerDown,
    PublishRefused,
    PublishUnconfirmed,
    batch_queue,
)
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

_LARGEST = 500  # outcomes in one report
_STARTING = 2  # reports of starts under way at once: what comes meanwhile goes with the next one
_PATIENCE = 2.0  # seconds beyond its deadline after which an attempt is cut off


class TransportChannel(Protocol):
    """What a transport needs of a channel."""

    async def send(self, message: Message) -> Outcome:
        """One attempt."""

    async def lookup(self, message: Message) -> Outcome:
        """What became of an attempt in doubt."""


@dataclass(slots=True)
class _ReceivedBatch:
    """A parcel that was read, and what of it is not yet told."""

    incoming: BrokerMessage
    left: set[ClaimKey] = field(default_factory=set)


class _ReadyItem(NamedTuple):
    item: DispatchItem
    parcel: DispatchBatch
    reply_to: str
    received: float


class Transport:
    """`start` and `stop`; reads the parcels of its channels."""

    def __init__(
        self,
        senders: Mapping[str, TransportChannel],
        clock: Clock,
        connect: Callable[[Callable[[], None], Callable[[], None]], BrokerConnection],
        *,
        slots: int,
        emit: Emit,
        name: str | None = None,
    ) -> None:
        self._senders = senders
        self._clock = clock
        self._emit = emit
        self._name = name or f"{socket.gethostname()}:{os.getpid()}"
        self._link = connect(self._came, self._went)
        self._count = slots
        self._busy = 0
        self._slots = LocalExecutor(slots, self._attempt)
        self._ready: deque[_ReadyItem] = deque()
        self._in_hand: dict[ClaimKey, tuple[_ReadyItem, _ReceivedBatch]] = {}
        self._begun: set[ClaimKey] = set()
        self._results: deque[tuple[str, str, ReportedOutcome | tuple[ClaimKey, ReturnReason]]] = (
            deque()
        )  # reply to, channel, news
        self._news = asyncio.Event()
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
        """Why nothing comes, if the broker is the reason."""
        return self._link.problem

    # -- life

    async def start(self) -> None:
        """Begin to read."""
        for channel in self._senders:
            await self._link.read(batch_queue(channel), self._take, prefetch=self._count)
        await self._link.start()
        self._loops = [asyncio.create_task(self._tell()), asyncio.create_task(self._watch())]

    async def stop(self, grace: float) -> None:
        """Finish what has begun within the grace time, give back the rest, tell everything."""
        self._stopping = True
        for channel in self._senders:
            await self._link.halt(batch_queue(channel))
        waiting, self._ready = self._ready, deque()
        for ready in waiting:
            self._give_back(ready, ReturnReason.STOPPING)
        deadline = self._clock.monotonic() + grace
        await self._until(lambda: not self._busy, deadline)
        self._slots.cut_off()  # their outcome becomes Unknown: the request may have left
        await self._until(lambda: not self._busy, float("inf"))
        self._news.set()
        await self._until(lambda: not self._in_hand or not self._link.is_up, deadline + 5)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        for channel in self._senders:
            await self._link.leave(batch_queue(channel))
        await self._link.stop()
        self._slots.close()

    async def _until(self, condition: Callable[[], bool], deadline: float) -> None:
        while not condition() and self._clock.monotonic() < deadline:  # noqa: ASYNC110  (a few times, at the end)
            await asyncio.sleep(0.01)

    def _came(self) -> None:
        self._news.set()

    def _went(self) -> None:
        """What had not begun comes again, to us or to another."""
        self._ready.clear()
        for key in [key for key in self._in_hand if key not in self._begun]:
            del self._in_hand[key]

    async def _watch(self) -> None:
        looked_at = float("-inf")
        while True:
            await asyncio.sleep(1)
            self._slots.cut_off(after=looked_at)  # after a pause, answers are read first
            looked_at = self._clock.monotonic()
            if self._sent:
                self._emit(ParcelsSent(self._name, self._sent))
                self._sent = 0

    # -- parcels

    async def _take(self, batch: list[BrokerMessage]) -> None:
        for incoming in batch:
            await self._open(incoming)
        self._start_soon()

    async def _open(self, incoming: BrokerMessage) -> None:
        try:
            parcel = decode_batch(incoming.body)
        except Unreadable as error:
            self._emit(ParcelUnreadable(str(error)))
            await incoming.refuse()
            return
        delivery = _ReceivedBatch(incoming, {item.key for item in parcel.items})
        if not delivery.left:
            await incoming.ack()
        now = self._clock.monotonic()
        for item in parcel.items:
            ready = _ReadyItem(item, parcel, incoming.reply_to, now)
            if item.key in self._in_hand:  # ours, from before the connection broke
                self._in_hand[item.key] = (self._in_hand[item.key][0], delivery)
                continue
            self._in_hand[item.key] = (ready, delivery)
            if incoming.redelivered:
                self._give_back(ready, ReturnReason.REDELIVERED)
            elif self._stopping:
                self._give_back(ready, ReturnReason.STOPPING)
            elif parcel.channel not in self._senders:
                self._give_back(ready, ReturnReason.STRANGE)
            else:
                self._ready.append(ready)

    def _start_soon(self) -> None:
        """Together with what else becomes free in this moment; few such reports are under way at once."""
        if self._ready and not self._is_starting and len(self._starting) < _STARTING:
            self._is_starting = True
            asyncio.get_running_loop().call_soon(self._start_some)

    def _start_some(self) -> None:
        """As many as there are free slots; one report of their starts for all."""
        self._is_starting = False
        batch: list[_ReadyItem] = []
        now = self._clock.monotonic()
        while self._ready and self._busy < self._count:
            ready = self._ready.popleft()
            if now - ready.received > ready.parcel.within_ms / 1000:
                self._give_back(ready, ReturnReason.LATE)
                continue
            self._busy += 1
            batch.append(ready)
        marked = [ready for ready in batch if ready.parcel.marks_start]
        self._run([ready for ready in batch if not ready.parcel.marks_start])
        groups: dict[tuple[str, str], list[_ReadyItem]] = {}
        for ready in marked:
            groups.setdefault((ready.reply_to, ready.parcel.channel), []).append(ready)
        for (reply_to, channel), group in groups.items():
            self._starting.add(task := asyncio.create_task(self._mark_and_run(reply_to, channel, group)))
            task.add_done_callback(self._marked)

    def _marked(self, task: asyncio.Task[None]) -> None:
        self._starting.discard(task)
        self._start_soon()

    async def _mark_and_run(self, reply_to: str, channel: str, group: list[_ReadyItem]) -> None:
        """Intent before effect: nothing is sent before the broker has the report of its start."""
        report = TransportReport(channel, self._name, started=[ready.item.key for ready in group])
        try:
            await self._link.publish(OUTCOME_EXCHANGE, reply_to, encode_report(report), kind=REPORT_TYPE)
        except (BrokerDown, PublishRefused, PublishUnconfirmed):
            self._busy -= len(group)
            for ready in filter(self._has, group):
                del self._in_hand[ready.item.key]  # not begun, and it comes again
            return
        still = list(filter(self._has, group))
        self._busy -= len(group) - len(still)
        crash_point("started")
        self._run(still)

    def _has(self, ready: _ReadyItem) -> bool:
        """Whether it is still to be sent: with its connection what had not begun was forgotten."""
        return self._in_hand.get(ready.item.key, (None,))[0] is ready

    def _run(self, batch: list[_ReadyItem]) -> None:
        now = self._clock.monotonic()
        jobs: list[ReadyTask] = []
        for ready in batch:
            self._begun.add(ready.item.key)
            give_up = now + ready.parcel.deadline_ms / 1000 + _PATIENCE
            jobs.append(ReadyTask(self._task(ready), _NO_LANE, ready, self._send, 0, give_up))
        self._slots.feed(jobs)

    async def _attempt(self, job: ReadyTask) -> None:
        """One attempt, whose outcome is told whatever happens."""
        ready: _ReadyItem = job.content
        began = self._clock.monotonic()
        try:
            outcome = await self._send(job.task, ready)
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None:
                me.uncancel()  # the attempt ends, its slot goes on
            why = "the transport stopped meanwhile" if self._stopping else "it was cut off after its deadline"
            outcome = Unknown(why)
        except Exception as error:  # a channel may do anything; its task must not vanish with it
            outcome = Retry(Category.SYSTEM, error_text(error))
        crash_point("sent")
        news = ReportedOutcome(ready.item.key, outcome, (self._clock.monotonic() - began) * 1000)
        self._busy -= 1
        self._sent += 1
        self._say(ready, news)
        self._start_soon()

    async def _send(self, _task: Task, ready: _ReadyItem) -> Outcome:
        sender, message = self._senders[ready.parcel.channel], ready.item.message
        if ready.item.ask:
            found = await sender.lookup(message)
            if isinstance(found, Done | Unknown):
                return found
        return await sender.send(message)

    # -- reports

    def _give_back(self, ready: _ReadyItem, why: ReturnReason) -> None:
        self._say(ready, (ready.item.key, why))

    def _say(self, ready: _ReadyItem, news: ReportedOutcome | tuple[ClaimKey, ReturnReason]) -> None:
        self._results.append((ready.reply_to, ready.parcel.channel, news))
        self._news.set()

    async def _tell(self) -> None:
        """Report after report; while one is being confirmed the next one fills."""
        while True:
            await self._news.wait()
            self._news.clear()
            while self._results and self._link.is_up:
                groups: dict[tuple[str, str], list[ReportedOutcome | tuple[ClaimKey, ReturnReason]]] = {}
                for _ in range(min(_LARGEST, len(self._results))):
                    reply_to, channel, news = self._results.popleft()
                    groups.setdefault((reply_to, channel), []).append(news)
                await asyncio.gather(*(self._report(*to, news) for to, news in groups.items()))

    async def _report(
        self, reply_to: str, channel: str, news: list[ReportedOutcome | tuple[ClaimKey, ReturnReason]]
    ) -> None:
        outcomes = [one for one in news if isinstance(one, ReportedOutcome)]
        returned = [one for one in news if not isinstance(one, ReportedOutcome)]
        report = TransportReport(channel, self._name, outcomes=outcomes, returned=returned)
        try:
            await self._link.publish(OUTCOME_EXCHANGE, reply_to, encode_report(report), kind=REPORT_TYPE)
        except (BrokerDown, PublishRefused, PublishUnconfirmed) as error:
            # What was sent must be told; what was not comes again with the next connection.
            kept = news if isinstance(error, PublishRefused) else outcomes
            self._results.extendleft((reply_to, channel, one) for one in reversed(kept))
            await asyncio.sleep(0.1)
            self._news.set()
            return
        for one in news:
            await self._told(one.key if isinstance(one, ReportedOutcome) else one[0])

    async def _told(self, key: ClaimKey) -> None:
        """The broker has it: when all of its parcel are told, the parcel need not come again."""
        self._begun.discard(key)
        _, delivery = self._in_hand.pop(key, (None, None))
        if delivery is not None:
            delivery.left.discard(key)
            if not delivery.left:
                await delivery.incoming.ack()

    def _task(self, ready: _ReadyItem) -> Task:
        """What a slot runs: numbered here, because a task may be here twice, under two claims."""
        item, number = ready.item, TaskId(next(self._numbers))
        queue, attempts = ready.parcel.channel, item.message.attempt
        return Task(
            number, item.message.tenant, queue, "", 5, 0, attempts, 0, item.claim, 0, item.ask, None, None,
            None
        )  # fmt: skip


_NO_LANE = Lane("transport")
