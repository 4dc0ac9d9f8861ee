"""The runner: claims what can start now, runs it, and settles what came of it.

One fetcher feeds a fixed number of slots (A1). Outcomes are settled in batches, in the order they came in;
an outcome that cannot be written is kept and written before anything new is claimed. The node's beat, the
reaper and the other duties run beside it in `loop.py`.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple, Protocol

from ..model.errors import Temporary, TidingsError
from ..model.outcome import Defer, Outcome, Reject, Retry, Unknown
from ..model.task import Category, Settled, State, Task, TaskId, Transition
from ..model.time import SECOND
from ..observability.events import (
    AttemptFailed,
    BatchSettled,
    ChannelResumed,
    ChannelStopped,
    ClaimLost,
    Emit,
    Event,
    StoreTrouble,
    TasksExpired,
)
from ..store.port import OrderKey, Row, Step, Store, Tally, Wish
from .breaker import fold
from .clock import Clock
from .crashpoints import point
from .decide import SUSPECT, Decision, Park, decide
from .lanes import Lane
from .nodes import Node
from .queue import expire, late_result
from .slots import Job, Slots

_LARGEST_SETTLE = 1000
_FAIR_SHARE = 8  # one slot in eight goes to the oldest due


class Handler(Protocol):
    """What a kind of task does. Knows nothing of queues, claims or retries."""

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """The contents of these tasks, in one batch."""

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt."""


@dataclass(frozen=True, slots=True)
class Tunables:
    """How hard a node works (A11)."""

    slots: int = 100
    poll: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=20)  # for what is in hand when the node is asked to stop


class Stepped(NamedTuple):
    """What one step of the runner did."""

    claimed: int
    expired: int
    settled: int


class _Result(NamedTuple):
    task: Task
    outcome: Outcome
    claimed_at: int
    seconds: float


class Runner:
    """One node's worker: `start` and `stop` for the loops, `step` for tests that move time by hand."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Node,
        lanes: Mapping[str, Lane],
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        tunables: Tunables = Tunables(),
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._lanes = lanes
        self._handlers = handlers
        self._emit = emit
        self._tunables = tunables
        self._limited = frozenset(lane.queue for lane in lanes.values() if lane.per_second is not None)
        self._queues: dict[str, Row] = {}  # as last read: which breakers are not quite closed
        self._busy: Counter[str] = Counter()  # attempts under way, by queue
        self._in_flight = 0
        self._slots = Slots(tunables.slots, self._attempt)
        self._beginning: set[asyncio.Task[None]] = set()
        self._results: deque[_Result] = deque()
        self._late: deque[_Result] = deque()  # results whose claim had gone
        self._unwritten = 0  # results handed in but not yet durable
        self._credit = 0
        self._least_room = max(1, tunables.slots // 4)  # below this, a claim waits a moment for more
        self._probing: set[str] = set()
        self._changed = asyncio.Event()  # a slot came free, or a result was written
        self._handed_in = asyncio.Event()
        self._woken = asyncio.Event()
        self._stopping = False
        self._loops: list[asyncio.Task[None]] = []
        self._doubtful_claim = False

    # -- life

    async def start(self) -> None:
        """Begin to work in the background."""
        for lane in self._lanes.values():
            await self._store.write(lane.join())
        self._store.on_hint(self._hinted)
        self._loops = [asyncio.create_task(self._fetch_loop()), asyncio.create_task(self._settle_loop())]

    async def stop(self) -> None:
        """Finish what is in hand within the grace time, give the rest back, write everything down (E8)."""
        self._stopping = True
        self.wake()
        fetching, settling = self._loops if self._loops else (None, None)
        if fetching is not None:
            await asyncio.wait([fetching])
        deadline = self._clock.monotonic() + self._tunables.grace.total_seconds()
        while self._in_flight and self._clock.monotonic() < deadline:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        self._slots.cut_off()  # their outcome becomes Unknown: the request may have left
        while self._in_flight:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        if settling is not None:
            self._handed_in.set()
            await asyncio.wait([settling], timeout=30)
            settling.cancel()
        self._slots.close()

    def wake(self) -> None:
        """Look for due tasks now."""
        self._woken.set()

    def _hinted(self) -> None:
        """Somebody accepted something: all nodes hear it, so each waits a moment of its own."""
        if self._store.sole_worker:
            self.wake()
        else:
            asyncio.get_running_loop().call_later(self._clock.chance() * 0.003, self.wake)

    @property
    def load(self) -> dict[str, int]:
        """How busy this node is."""
        return {"slots": self._tunables.slots, "in_flight": self._in_flight, "unwritten": self._unwritten}

    def overrun(self) -> None:
        """Cut off attempts that have passed their deadline by far; called once a second."""
        self._slots.cut_off(after=self._clock.monotonic())

    # -- one step, for virtual time

    async def step(self) -> Stepped:
        """Claim once, run everything claimed to its end, settle all of it."""
        for lane in self._lanes.values():
            if lane.queue not in self._queues:
                await self._store.write(lane.join())
        await self._refresh()
        claimed, expired = await self._fetch()
        await self._slots.quiet()
        settled = 0
        while self._results:
            settled += await self._settle_some()
        await self._settle_late()
        return Stepped(claimed, expired, settled)

    # -- claiming

    async def _fetch_loop(self) -> None:
        pause = 0.1
        refreshed = float("-inf")
        while not self._stopping:
            self._woken.clear()
            try:
                if self._clock.monotonic() - refreshed >= self._tunables.poll.total_seconds():
                    await self._refresh()
                    refreshed = self._clock.monotonic()
                if not await self._enough_room() or self._stopping:
                    continue
                wanted = self._room_for_one_claim()
                claimed, expired = await self._fetch()
                pause = 0.1
                if claimed + expired < wanted and not self._stopping:
                    await self._sleep_until_due(claimed + expired)
                    if self._queues_may_open():
                        refreshed = float("-inf")
                elif claimed:
                    await self._store_hint_on()
            except Exception as error:  # an actor's step: the next one must come all the same
                self._emit(StoreTrouble("claim", _reason(error)))
                self._doubtful_claim = True
                await self._wait(self._woken, pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)

    async def _store_hint_on(self) -> None:
        """A full claim: there may be more than this node can take, so let the others look too."""
        if not self._store.sole_worker and self._room() == 0:
            await self._store.hint()

    async def _enough_room(self) -> bool:
        """Wait until a claim is worth its transaction: a quarter of the slots, or a moment has passed."""
        if self._room() < self._least_room:
            self._changed.clear()
            await self._wait(self._changed, 0.05)
        return self._room() > 0

    def _room(self) -> int:
        """Free slots; none while results pile up that cannot be written."""
        slots = self._tunables.slots
        return max(0, min(slots - self._in_flight, 2 * slots - self._in_flight - self._unwritten))

    def _room_for_one_claim(self) -> int:
        """At most half the slots, so that claiming one half overlaps with running the other."""
        return min(self._room(), max(1, self._tunables.slots // 2)) if self._loops else self._room()

    def _room_of(self, queue: str, room: int) -> int:
        """How many of `room` the channel's own cap leaves."""
        cap = self._lanes[queue].cap
        return room if cap is None else max(0, min(room, cap - self._busy[queue]))

    async def _fetch(self) -> tuple[int, int]:
        """One claim, and the start of everything it brought."""
        if self._doubtful_claim:
            await self._give_back_strangers()
        if not self._store.may_work() or not self._node.is_trusted:
            return 0, 0
        room = self._room_for_one_claim()
        rooms = {queue: free for queue in self._lanes if (free := self._room_of(queue, room))}
        if room < 1 or not rooms:
            return 0, 0
        probes = await self._ask_for_probes(rooms)
        for queue in probes:
            rooms[queue] = 1
        self._credit += room
        fair, self._credit = divmod(self._credit, _FAIR_SHARE)
        claimed = await self._store.claim(
            self._node.id, Wish(rooms, room, fair, self._limited & rooms.keys(), frozenset(probes))
        )
        point("claimed")
        if claimed.expired:
            await self._expire(claimed.expired)
        await self._return_probes(probes - {task.queue for task in claimed.tasks})
        self._reserve(claimed.tasks)
        if self._loops and not any(task.crashes >= SUSPECT for task in claimed.tasks):
            # The next claim is on its way while this one is loaded and begun.
            self._beginning.add(begin := asyncio.create_task(self._begin(claimed.tasks)))
            begin.add_done_callback(self._begun)
        else:
            await self._begin_all(claimed.tasks)
        return len(claimed.tasks), len(claimed.expired)

    def _reserve(self, tasks: list[Task]) -> None:
        """From here on these hold their slots."""
        for task in tasks:
            self._busy[task.queue] += 1
        self._in_flight += len(tasks)

    def _begun(self, begin: asyncio.Task[None]) -> None:
        self._beginning.discard(begin)
        if not begin.cancelled() and begin.exception() is not None:
            self._emit(StoreTrouble("begin", repr(begin.exception())))

    async def _begin_all(self, tasks: list[Task]) -> None:
        suspects = [task for task in tasks if task.crashes >= SUSPECT]
        if not suspects:
            await self._begin(tasks)
            return
        # Tasks that were around when a node died are tried alone, one by one, so that blame is certain.
        now = self._clock.now()
        for task in suspects[1:]:
            self._drop(task)
        await self._give_back(suspects[1:], "waits to be tried alone", lambda i: now + (i + 1) * SECOND // 20)
        await self._begin([task for task in tasks if task.crashes < SUSPECT])
        await self._quiet(but=1)
        await self._begin(suspects[:1])
        await self._quiet()

    async def _begin(self, tasks: list[Task]) -> None:
        """Load contents in batches by kind, mark starts where that is needed, and run."""
        if not tasks:
            return
        claimed_at = self._clock.now()
        by_kind: dict[str, list[Task]] = {}
        for task in tasks:
            by_kind.setdefault(task.kind, []).append(task)
        for kind, group in by_kind.items():
            handler = self._handlers.get(kind)
            if handler is None:
                self._hand_in_all(
                    group, Defer(claimed_at + 60 * SECOND, f"this node does not know {kind!r}"), claimed_at
                )
                continue
            try:
                contents = await handler.load(group)
                marked = await self._mark_started(group)
            except Temporary as error:
                self._emit(StoreTrouble("load", error.problem))
                self._hand_in_all(group, Defer(claimed_at, "the database did not answer"), claimed_at)
                continue
            except Exception as error:  # a handler may do anything; its tasks must not vanish with it
                self._hand_in_all(
                    group, Retry(Category.SYSTEM, f"{type(error).__name__}: {error}"), claimed_at
                )
                continue
            self._run_all(handler, group, contents, marked, claimed_at)

    def _run_all(
        self,
        handler: Handler,
        group: list[Task],
        contents: Mapping[TaskId, Any],
        marked: set[TaskId],
        claimed_at: int,
    ) -> None:
        now = self._clock.monotonic()
        jobs: list[Job] = []
        for task in group:
            lane = self._lanes[task.queue]
            if task.id not in contents:
                missing = Retry(Category.SYSTEM, "its content is missing")
                self._hand_in(_Result(task, missing, claimed_at, 0.0))
            elif lane.marks_start and not task.start_at and task.id not in marked:
                self._drop(task)  # the claim was lost before the start: somebody else has it
            else:
                paced = max(0, task.start_at - claimed_at) / SECOND
                give_up = now + paced + lane.deadline.total_seconds() + 2
                jobs.append(Job(task, lane, contents[task.id], handler.run, claimed_at, give_up))
        self._slots.feed(jobs)

    async def _mark_started(self, group: list[Task]) -> set[TaskId]:
        """Intent before effect: one write for the whole batch."""
        to_mark = [task for task in group if self._lanes[task.queue].marks_start and not task.start_at]
        if not to_mark:
            return set()
        marked = await self._store.start(self._node.id, to_mark)
        point("started")
        return marked

    async def _attempt(self, job: Job) -> None:
        """One attempt, whose outcome is handed in whatever happens."""
        began = self._clock.monotonic()
        outcome: Outcome | None = None
        try:
            if job.task.start_at:
                outcome = await self._await_turn(job.task, job.lane)
            if outcome is None and not self._node.is_trusted:
                outcome = Defer(job.claimed_at, "this node could not be sure of its claim any more")
            if outcome is None:
                outcome = await job.run(job.task, job.content)
        except asyncio.CancelledError:
            if (me := asyncio.current_task()) is not None:
                me.uncancel()  # the attempt ends, its slot goes on
            why = "the node stopped meanwhile" if self._stopping else "it was cut off after its deadline"
            outcome = Unknown(why)
        except Exception as error:  # a handler may do anything; its task must not vanish with it
            outcome = Retry(Category.SYSTEM, f"{type(error).__name__}: {error}")
        point("sent")
        self._hand_in(_Result(job.task, outcome, job.claimed_at, self._clock.monotonic() - began))

    async def _await_turn(self, task: Task, lane: Lane) -> Outcome | None:
        """Wait for the instant that the rate limit reserved, then mark the start."""
        delay = (task.start_at - self._clock.now()) / SECOND
        if delay > 0:
            await asyncio.sleep(delay)
        if lane.marks_start and task.id not in await self._store.start(self._node.id, [task]):
            return Defer(task.due_at, "the claim was lost before the start")
        return None

    # -- results

    def _drop(self, task: Task) -> None:
        self._busy[task.queue] -= 1
        self._in_flight -= 1
        if not self._in_flight or self._tunables.slots - self._in_flight == self._least_room:
            self._changed.set()
        if self._busy[task.queue] + 1 == self._lanes[task.queue].cap:
            self._woken.set()  # its channel was full, and there may be more

    def _hand_in(self, result: _Result) -> None:
        self._drop(result.task)
        self._results.append(result)
        self._unwritten += 1
        self._handed_in.set()

    def _hand_in_all(self, group: list[Task], outcome: Outcome, claimed_at: int) -> None:
        for task in group:
            self._hand_in(_Result(task, outcome, claimed_at, 0.0))

    async def _settle_loop(self) -> None:
        pause = 0.05
        largest = _LARGEST_SETTLE
        while not (self._stopping and not self._in_flight and not self._results and not self._late):
            if not self._results and not self._late:
                self._handed_in.clear()
                await self._wait(self._handed_in, 0.2)
                continue
            try:
                await self._settle_late()
                await self._settle_some(largest)
                pause, largest = 0.05, _LARGEST_SETTLE
            except Temporary as error:
                self._emit(StoreTrouble("settle", error.problem))
                await asyncio.sleep(pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)
            except Exception as error:  # one result that cannot be written must not hold up the others
                self._emit(StoreTrouble("settle", _reason(error)))
                if largest == 1:
                    spoilt = self._results.popleft()
                    reason = f"its result could not be written: {type(error).__name__}"
                    self._results.append(spoilt._replace(outcome=Reject(Category.SYSTEM, reason)))
                    await asyncio.sleep(pause)
                largest = 1

    async def _settle_late(self) -> None:
        """Results whose claim had gone: kept in the history, and proof where they say 'sent'."""
        while self._late:
            late = self._late[0]
            await late_result(self._store, self._node.id, late.task, late.outcome)
            self._late.popleft()

    async def _settle_some(self, largest: int = _LARGEST_SETTLE) -> int:
        """Write the oldest results; they stay in hand until the database has said yes."""
        batch = [self._results[i] for i in range(min(largest, len(self._results)))]
        if not batch:
            return 0
        now = self._clock.now()
        decisions = [
            decide(r.task, r.outcome, self._lanes[r.task.queue], now=now, chance=self._clock.chance())
            for r in batch
        ]
        also = _effects(decisions) + self._breaker_steps(batch)
        keys: set[OrderKey] = {
            (r.task.queue, r.task.order_key) for r in batch if r.task.order_key is not None
        }
        answers = await self._store.settle(
            self._node.id, [d.move for d in decisions], keys=keys, tally=_tally(batch, decisions), also=also
        )
        point("settled")
        for _ in batch:
            self._results.popleft()
        self._unwritten -= len(batch)
        self._changed.set()
        self._tell(batch, decisions, answers)
        if also:
            await self._refresh()
        if any(d.move.to is State.PENDING or r.task.order_key for d, r in zip(decisions, batch, strict=True)):
            self.wake()
        return len(batch)

    def _tell(self, batch: list[_Result], decisions: list[Decision], answers: list[Settled]) -> None:
        counts = Counter(decision.what for decision in decisions)
        if counts["done"] < len(batch):
            for result, decision in zip(batch, decisions, strict=True):
                if decision.what != "done":
                    self._emit(_told(self._node.id, result, decision))
        if Settled.CLAIM_LOST in answers:
            for result, decision, answer in zip(batch, decisions, answers, strict=True):
                if answer is Settled.CLAIM_LOST:
                    self._late.append(result)
                    self._handed_in.set()
                    self._emit(ClaimLost(self._node.id, result.task.id, result.task.queue, decision.what))
        took = sum(result.seconds for result in batch) * 1000
        self._emit(BatchSettled(self._node.id, len(batch), dict(counts), took))

    # -- channels

    async def _refresh(self) -> None:
        before = self._queues
        self._queues = {row["name"]: row for row in await self._store.read("queue_list")}
        for name, row in self._queues.items():
            for event in _news(before.get(name), row):
                self._emit(event)

    def _queues_may_open(self) -> bool:
        return any(row["opened_at"] is not None for row in self._queues.values())

    async def _ask_for_probes(self, rooms: Mapping[str, int]) -> set[str]:
        now = self._clock.now()
        granted: set[str] = set()
        for queue in rooms:
            row = self._queues.get(queue)
            if row is None or row["opened_at"] is None or (row["parked_until"] or 0) > now:
                continue
            if (await self._store.write([Step("breaker_probe", {"name": queue})]))[0]:
                granted.add(queue)
        self._probing |= granted
        return granted

    async def _return_probes(self, unused: set[str]) -> None:
        for queue in unused:
            self._probing.discard(queue)
            await self._store.write([Step("breaker_return", {"name": queue})])

    def _breaker_steps(self, batch: list[_Result]) -> list[Step]:
        """What these results mean for their channels' breakers; nothing, in the common case."""
        groups: dict[tuple[str, int], list[Outcome]] = {}
        for result in batch:
            groups.setdefault((result.task.queue, result.claimed_at), []).append(result.outcome)
        steps: list[Step] = []
        for (queue, claimed_at), outcomes in groups.items():
            # Whoever slept through its lease saw time-outs of its own making, not of the channel.
            trail = fold(outcomes if self._node.is_trusted else ())
            row = self._queues.get(queue)
            troubled = row is None or row["failures"] or row["opened_at"] is not None
            if trail.failures:
                rule = self._lanes[queue].breaker
                steps.append(
                    Step(
                        "breaker_failed",
                        {
                            "name": queue,
                            "reset": trail.reset,
                            "count": trail.failures,
                            "threshold": rule.threshold,
                            "cooldown": int(rule.cooldown.total_seconds() * SECOND),
                            "claimed_at": claimed_at,
                        },
                    )
                )
            elif trail.reset and troubled:
                steps.append(Step("breaker_closed", {"name": queue, "claimed_at": claimed_at}))
            elif queue in self._probing and not trail.reset:
                steps.append(Step("breaker_return", {"name": queue}))
            self._probing.discard(queue)
        return steps

    # -- rare things

    async def _expire(self, tasks: list[Task]) -> None:
        gone = await expire(self._store, [task._asdict() for task in tasks], self._node.id)
        self._emit(TasksExpired(gone))

    async def _give_back(self, tasks: Sequence[Task], why: str, due: Callable[[int], int]) -> None:
        moves = [
            Transition(
                t.id, t.claim_no, State.PENDING, t.tries - 1, due(i), None, why, False, t.throttles, t.crashes
            )
            for i, t in enumerate(tasks)
        ]
        if moves:
            await self._store.settle(self._node.id, moves)

    async def _give_back_strangers(self) -> None:
        """After a claim whose answer was lost: what we hold without knowing it goes back."""
        if self._beginning:  # claimed, not yet among the attempts, and no strangers
            await asyncio.wait(self._beginning)
        held = await self._store.read("node_held", node=self._node.id, after=0, limit=10_000)
        mine = {result.task.id for result in self._results} | set(self._slots.ids)
        strangers = [
            Task(*(row[name] for name in Task._fields[:14])) for row in held if row["id"] not in mine
        ]
        await self._give_back(strangers, "the answer to its claim was lost", lambda i: strangers[i].due_at)
        self._doubtful_claim = False

    async def _quiet(self, *, but: int = 0) -> None:
        """Wait until nothing is in hand, but for so many that have not begun."""
        while self._in_flight > but or self._unwritten:
            if not self._loops:  # a step by hand
                await self._slots.quiet()
                while self._results:
                    await self._settle_some()
                continue
            self._changed.clear()
            await self._wait(self._changed, 0.1)

    async def _sleep_until_due(self, found: int) -> None:
        """Sleep until the next known due time, a hint, or the poll interval."""
        asked = self._clock.monotonic()
        due = await self._store.next_due([queue for queue in self._lanes if self._room_of(queue, 1)])
        self._clock.learn(due.now, asked, self._clock.monotonic())
        longest = self._tunables.poll.total_seconds()
        delay = longest if due.at is None else min(longest, (due.at - self._clock.now()) / SECOND)
        if not self._node.is_trusted or not self._store.may_work():
            delay = longest  # nothing may be claimed until the next beat
        elif delay <= 0 and not found:
            delay = (
                0.002 + 0.01 * self._clock.chance()
            )  # somebody else is taking it, or no slot of its channel is free
        if delay > 0:
            await self._wait(self._woken, delay)

    @staticmethod
    async def _wait(event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass


def _reason(error: Exception) -> str:
    return error.problem if isinstance(error, TidingsError) else f"{type(error).__name__}: {error}"


def _news(before: Row | None, now: Row) -> list[Event]:
    """What has changed about a channel since it was last looked at."""
    stood = before is not None and (before["paused"] or before["opened_at"] is not None)
    stands = now["paused"] or now["opened_at"] is not None
    if stands and not stood:
        how = "paused" if now["paused"] else "breaker open"
        reason = now["pause_reason"] or f"{now['failures']} failures in a row"
        return [ChannelStopped(now["name"], how, reason, now["parked_until"])]
    return [ChannelResumed(now["name"])] if stood and not stands else []


def _effects(decisions: list[Decision]) -> list[Step]:
    steps: dict[object, Step] = {}
    for decision in decisions:
        match decision.effect:
            case None:
                pass
            case Park(queue=queue, until=until, reason=reason):
                steps[decision.effect] = Step("queue_park", {"name": queue, "until": until, "reason": reason})
            case pause:
                steps[decision.effect] = Step("queue_pause", {"name": pause.queue, "reason": pause.reason})
    return list(steps.values())


def _tally(batch: list[_Result], decisions: list[Decision]) -> list[Tally]:
    sums: dict[tuple[str, str], list[float]] = {}
    for result, decision in zip(batch, decisions, strict=True):
        entry = sums.setdefault((result.task.queue, decision.what), [0, 0.0])
        entry[0] += 1
        entry[1] += result.seconds
    return [Tally(queue, what, int(n), round(seconds * 1000)) for (queue, what), (n, seconds) in sums.items()]


def _told(node: int, result: _Result, decision: Decision) -> AttemptFailed:
    task, move = result.task, decision.move
    return AttemptFailed(
        node,
        task.id,
        task.tenant,
        task.queue,
        task.tries,
        decision.what,
        None if move.category is None else move.category.value,
        move.detail or "",
        result.seconds * 1000,
    )
