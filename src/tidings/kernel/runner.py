"""The runner: claims what can start now, runs it, and settles what came of it.

One fetcher feeds a fixed number of slots. Outcomes are settled in batches, in the order they came in;
an outcome that cannot be written is kept and written before anything new is claimed. The node's beat, the
reaper and the other duties run beside it in `loop.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from ..model.errors import error_text
from ..model.task import Task, TaskId
from ..model.time import SECOND
from ..observability.events import Emit, StoreTrouble, TasksExpired
from ..store.port import ClaimRequest, Store
from .attempts import AttemptRunner
from .backpressure import Backpressure
from .capacity import Capacity
from .channel_states import ChannelStates
from .claim_backoff import ClaimBackoff
from .claim_release import ClaimReleaser
from .clock import Clock
from .decisions import ISOLATE_AFTER
from .executor import Executor, LocalExecutor
from .handler import Handler
from .heartbeats import Node
from .lanes import Lane
from .settler import AttemptResult, Settler
from .start_marks import TaskStarter
from .task_actions import expire_tasks

_FAIR_SHARE = 8  # one slot in eight goes to the oldest due
_DOUBT = 0.1  # seconds after which a claim of unknown end is looked at


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """How hard a node works."""

    slots: int = 100
    poll: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=20)  # for what is in hand when the node is asked to stop


class RunnerStep(NamedTuple):
    """What one step of the runner did."""

    claimed: int
    expired: int
    settled: int


class TaskRunner:
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
        tunables: RunnerOptions = RunnerOptions(),
        wake_actors: Callable[[], None] = lambda: None,  # called when a hint comes
        has_peers: Callable[[], bool] = lambda: False,  # whether other nodes work on the same tasks
        hands: Callable[[TaskRunner, LocalExecutor], Executor]
        | None = None,  # who does the work; None: slots of our own
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._lanes = lanes
        self._handlers = handlers
        self._emit = emit
        self._tunables = tunables
        self._stir = wake_actors
        self._stagger = ClaimBackoff(clock, has_peers)
        self._following: asyncio.TimerHandle | None = None  # a hint, in a moment
        self._limited = frozenset(lane.queue for lane in lanes.values() if lane.per_second is not None)
        self._keyed = frozenset(lane.queue for lane in lanes.values() if lane.keyed) & self._limited
        self._returns = ClaimReleaser(store, node, handlers)
        self._pressure = Backpressure(emit)
        self._standing = ChannelStates(store, clock, lanes, emit=emit)
        self._settler = Settler(
            store, clock, node, lanes, self._standing, handlers, emit=emit, settled=self._settled
        )
        self._room = Capacity(tunables.slots, lanes, self._keyed)
        self._stopping = False
        attempts = AttemptRunner(
            store, clock, node, handlers, hand_in=self._hand_in, is_stopping=lambda: self._stopping
        )
        slots = LocalExecutor(tunables.slots, attempts.make)
        self._slots: Executor = slots if hands is None else hands(self, slots)
        self._starts = TaskStarter(
            store,
            clock,
            node,
            lanes,
            handlers,
            keyed=self._keyed,
            emit=emit,
            feed=self._slots.feed,
            hand_in=self._hand_in,
            drop=self._drop,
        )
        self._beginning: set[asyncio.Task[None]] = set()
        self._credit = 0
        self._changed = asyncio.Event()  # a slot came free, or a result was written
        self._woken = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._doubtful_claim = False
        self._looked_at = float("-inf")  # when attempts were last looked at for their deadline

    # -- life

    async def start(self) -> None:
        """Begin to work in the background."""
        for lane in self._lanes.values():
            await self._store.write(lane.join())
        self._store.on_hint(self._hinted)
        self._loops = [asyncio.create_task(self._fetch_loop()), asyncio.create_task(self._settler.run())]

    async def stop(self) -> None:
        """Finish what is in hand within the grace time, give the rest back, write everything down."""
        self._stopping = True
        self.wake()
        fetching, settling = self._loops if self._loops else (None, None)
        if fetching is not None:
            await asyncio.wait([fetching])
        deadline = self._clock.monotonic() + self._tunables.grace.total_seconds()
        while self._room.in_hand and self._clock.monotonic() < deadline:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        self._slots.cut_off()  # their outcome becomes Unknown: the request may have left
        while self._room.in_hand:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        self._settler.finish()
        if settling is not None:
            await asyncio.wait([settling], timeout=30)
            settling.cancel()
        self._slots.close()

    def wake(self) -> None:
        """Look for due tasks now."""
        self._woken.set()

    def _hinted(self) -> None:
        """Somebody accepted something: all nodes hear it, so each waits a moment of its own."""
        self._stir()
        if self._following is None:
            self._following = asyncio.get_running_loop().call_later(self._stagger.seconds(), self._follow)

    def _follow(self) -> None:
        self._following = None
        self.wake()

    @property
    def node(self) -> Node:
        """In whose name this works."""
        return self._node

    @property
    def unwritten(self) -> set[TaskId]:
        """Tasks whose results are not durable yet."""
        return self._settler.ids

    @property
    def load(self) -> dict[str, int]:
        """How busy this node is."""
        return {
            "slots": self._tunables.slots,
            "in_flight": self._room.in_hand,
            "unwritten": self._settler.unwritten,
        }

    def overrun(self) -> None:
        """Cut off attempts that had passed their deadline by far at the last call; called once a second.

        So a process that wakes from a pause reads the answers that came meanwhile before it gives them up.
        """
        after, self._looked_at = self._looked_at, self._clock.monotonic()
        self._slots.cut_off(after=after)

    # -- one step, for virtual time

    async def step(self) -> RunnerStep:
        """Claim once, run everything claimed to its end, settle all of it."""
        await self._standing.refresh()
        claimed, expired = await self._fetch()
        await self._slots.quiet()
        settled = 0
        while self._settler.unwritten:
            settled += await self._settler.step()
        return RunnerStep(claimed, expired, settled)

    # -- claiming

    async def _fetch_loop(self) -> None:
        pause = 0.1
        refreshed = float("-inf")
        while not self._stopping:
            self._woken.clear()
            try:
                if self._clock.monotonic() - refreshed >= self._tunables.poll.total_seconds():
                    await self._standing.refresh()
                    refreshed = self._clock.monotonic()
                if not await self._enough_room() or self._stopping:
                    continue
                wanted = self._room_for_one_claim()
                claimed, expired = await self._fetch()
                self._stagger.note(found=claimed > 0)
                pause = 0.1
                if self._pressure.rest and not self._stopping:
                    await asyncio.sleep(self._pressure.rest)
                if claimed + expired < wanted and not self._stopping:
                    await self._sleep_until_due(claimed + expired)
                    if self._standing.is_troubled:
                        refreshed = float("-inf")
                elif claimed:
                    await self._store_hint_on()
            except Exception as error:  # an actor's step: the next one must come all the same
                self._emit(StoreTrouble("claim", error_text(error)))
                self._doubtful_claim = True
                await self._wait(self._woken, pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)

    async def _store_hint_on(self) -> None:
        """A full claim: there may be more than this node can take, so let the others look too."""
        if not self._store.sole_worker and self._free() == 0:
            await self._store.hint()

    async def _enough_room(self) -> bool:
        """Wait until a claim is worth its transaction: a quarter of the slots, or a moment has passed."""
        if self._free() < self._room.worth_a_claim:
            self._changed.clear()
            await self._wait(self._changed, 0.05)
        return self._free() > 0

    def _free(self) -> int:
        return self._room.free(self._settler.unwritten)

    def _room_for_one_claim(self) -> int:
        """Half the slots, so that claiming one half overlaps with running the other; on a file, all."""
        halves = bool(self._loops) and not self._store.sole_worker
        return min(self._free(), max(1, self._tunables.slots // 2)) if halves else self._free()

    async def _fetch(self) -> tuple[int, int]:
        """One claim, and the start of everything it brought."""
        if self._doubtful_claim and self._node.knows_server:
            await self._give_back_strangers()
        if not self._store.may_work() or not self._node.is_trusted:
            return 0, 0
        room = self._room_for_one_claim()
        rooms = {queue: free for queue in self._lanes if (free := self._room.of(queue, room))}
        if room < 1 or not rooms:
            return 0, 0
        probes = await self._standing.ask_for_probes(rooms)
        for queue in probes:
            rooms[queue] = 1
        fair = 0 if probes else min(self._credit // _FAIR_SHARE, room)
        limited, keyed = self._limited & rooms.keys(), self._keyed & rooms.keys()
        wish = ClaimRequest(rooms, room, fair, limited, keyed, frozenset(probes))
        asked = self._clock.monotonic()
        if not self._node.knows_server:  # since the question for probes
            return 0, 0
        claimed = await self._store.claim(self._node.id, wish)
        self._pressure.note(self._clock.monotonic() - asked)
        if claimed.tasks:
            self._node.see(claimed.tasks[-1], settled=False)
            # By what was claimed, not by what there was room for: with a rate that is one or two at a time.
            self._credit += len(claimed.tasks) - min(fair, len(claimed.tasks)) * _FAIR_SHARE
        if claimed.expired:
            await self._expire(claimed.expired)
        await self._standing.return_probes(probes - {task.queue for task in claimed.tasks})
        if self._loops and not any(task.crashes >= ISOLATE_AFTER for task in claimed.tasks):
            # The next claim is on its way while this one is loaded and begun.
            self._room.reserve(claimed.tasks)
            self._beginning.add(begin := asyncio.create_task(self._begin(claimed.tasks, claimed.durable)))
            begin.add_done_callback(self._begun)
        else:
            if claimed.durable is not None:
                await claimed.durable
            await self._begin_all(claimed.tasks)
        return len(claimed.tasks), len(claimed.expired)

    def _begun(self, begin: asyncio.Task[None]) -> None:
        self._beginning.discard(begin)
        if not begin.cancelled() and begin.exception() is not None:
            self._emit(StoreTrouble("begin", repr(begin.exception())))
            self._doubt()

    def _doubt(self) -> None:
        """Perhaps we hold what is not in hand: it goes back in a moment, not with whatever comes next."""
        self._doubtful_claim = True
        asyncio.get_running_loop().call_later(_DOUBT, self.wake)

    async def _begin_all(self, tasks: list[Task]) -> None:
        suspects = [task for task in tasks if task.crashes >= ISOLATE_AFTER]
        # Tasks that were around when a node died are tried alone, one by one, so that blame is certain.
        now = self._clock.now()
        await self._returns.release_claims(
            suspects[1:], "waits to be tried alone", lambda i: now + (i + 1) * SECOND // 20
        )
        others = [task for task in tasks if task.crashes < ISOLATE_AFTER]
        self._room.reserve(others + suspects[:1])
        await self._begin(others)
        if suspects:
            await self._quiet(but=1)
            await self._begin(suspects[:1])
            await self._quiet()

    async def _begin(self, tasks: list[Task], durable: Awaitable[bool] | None = None) -> None:
        try:
            if not await self._starts.start_tasks(tasks, durable):
                self._doubt()
        finally:
            if self._room.have_instants(tasks):
                self.wake()

    # -- results

    def _drop(self, task: Task) -> None:
        self._room.drop(task)
        if self._room.is_worth_a_look:
            self._changed.set()
        if self._room.was_full(task.queue):
            self._woken.set()

    def release(self, task: Task) -> None:
        """Its slot is free; whoever had it settles it otherwise, or leaves it to others."""
        self._drop(task)

    def hand_in(self, result: AttemptResult) -> None:
        """What came of a task that was given to hands of another kind."""
        self._hand_in(result)

    def _hand_in(self, result: AttemptResult) -> None:
        self._drop(result.task)
        self._settler.hand_in(result)

    def _settled(self, may_claim: bool) -> None:
        self._changed.set()
        if may_claim:
            self.wake()

    # -- rare things

    async def _expire(self, tasks: list[Task]) -> None:
        gone = await expire_tasks(self._store, [task._asdict() for task in tasks], self._node.id)
        self._emit(TasksExpired(gone))

    async def _give_back_strangers(self) -> None:
        if self._beginning:  # claimed, not yet among the attempts, and no strangers
            await asyncio.wait(self._beginning)
        await self._returns.release_untracked(lambda: self._settler.ids | set(self._slots.ids))
        self._doubtful_claim = False

    async def _quiet(self, *, but: int = 0) -> None:
        """Wait until nothing is in hand, but for so many that have not begun."""
        while self._room.in_hand > but or self._settler.unwritten:
            if not self._loops:  # a step by hand
                await self._slots.quiet()
                while self._settler.unwritten:
                    await self._settler.step()
                continue
            self._changed.clear()
            await self._wait(self._changed, 0.1)

    async def _sleep_until_due(self, found: int) -> None:
        """Sleep until something is due, a hint comes, or a channel may be tried again.

        While nothing is due, a poll is this one question and no claim; so is a hint, if others are quicker.
        """
        longest = self._tunables.poll.total_seconds()
        began = self._clock.monotonic()
        is_hinted = False
        while not self._stopping:
            asked = self._clock.monotonic()
            due = await self._store.next_due([queue for queue in self._lanes if self._room.of(queue, 1)])
            self._clock.learn(due.now, asked, self._clock.monotonic())
            delay = longest if due.at is None else (due.at - self._clock.now()) / SECOND
            if not self._node.is_trusted or not self._store.may_work():
                delay = longest  # nothing may be claimed until the next beat
            elif delay <= 0 and is_hinted:
                return
            elif delay <= 0 and not found:  # somebody else takes it
                delay = 0.002 + 0.01 * self._clock.chance() + self._stagger.seconds()
            elif delay > 0:
                delay += self._stagger.late()
            if is_hinted:
                self._stagger.note(found=False)
            if delay > 0:
                await self._wait(self._woken, min(delay, longest))
            is_hinted = self._woken.is_set()
            if is_hinted and self._looks_first and self._clock.monotonic() - began < longest:
                self._woken.clear()
                continue
            if is_hinted or delay < longest:
                return
            await self._standing.refresh()
            if self._standing.is_troubled:
                return

    @property
    def _looks_first(self) -> bool:
        """Whether a claim is worth its cost only if something is there: others often come first."""
        return self._stagger.is_behind and not self._doubtful_claim and not self._standing.is_troubled

    @staticmethod
    async def _wait(event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
