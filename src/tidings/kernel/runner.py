"""The runner: claims due tasks, runs them and settles their results.

One fetcher feeds a fixed number of slots. Outcomes are settled in batches, in order of arrival; an outcome
that cannot be written is kept, and is written before anything new is claimed. Heartbeats, the reaper and
other background work run in `worker.py`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

from ..model.task import Task, TaskId
from ..model.time import SECOND
from ..observability.events import Emit, StoreError, TasksExpired
from ..store.port import ClaimRequest, Store
from .attempts import AttemptRunner
from .backpressure import Backpressure
from .capacity import Capacity
from .channel_states import ChannelStates
from .claim_backoff import ClaimBackoff
from .claim_release import ClaimReleaser
from .clock import Clock
from .executor import Executor, LocalExecutor
from .handler import Handler
from .heartbeats import Node
from .lanes import Lane
from .node_context import NodeContext
from .quarantine import ISOLATE_AFTER
from .settler import AttemptResult, Settler
from .start_marks import TaskStarter
from .task_actions import expire_tasks

_FAIR_SHARE = 8  # one slot in eight goes to the oldest due task
_CHECK_DELAY = 0.1  # seconds until a claim with an unknown result is checked


@dataclass(frozen=True, slots=True)
class RunnerOptions:
    """Concurrency, poll interval and shutdown timeout of a node."""

    concurrency: int = 100
    poll_interval: timedelta = timedelta(seconds=1)
    grace: timedelta = timedelta(seconds=20)  # for running tasks when the node stops


class RunnerStep(NamedTuple):
    """What one step of the runner did."""

    claimed: int
    expired: int
    settled: int


class TaskRunner:
    """Runs the tasks of one node: `start` and `stop` for the loops, `step` for tests with a manual clock."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Node,
        lanes: Mapping[str, Lane],
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        options: RunnerOptions = RunnerOptions(),
        wake_actors: Callable[[], None] = lambda: None,  # called when a wake-up hint arrives
        has_peers: Callable[[], bool] = lambda: False,  # whether other nodes claim the same tasks
        executor: Callable[[TaskRunner, LocalExecutor], Executor] | None = None,  # None: local slots
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._lanes = lanes
        self._handlers = handlers
        self._emit = emit
        self._options = options
        self._wake_actors = wake_actors
        self._backoff = ClaimBackoff(clock, has_peers)
        self._pending_claim: asyncio.TimerHandle | None = None  # a claim after a hint, with backoff
        self._limited = frozenset(lane.queue for lane in lanes.values() if lane.per_second is not None)
        self._keyed = frozenset(lane.queue for lane in lanes.values() if lane.keyed) & self._limited
        self._releaser = ClaimReleaser(store, node, handlers)
        self._backpressure = Backpressure(emit)
        self._channel_states = ChannelStates(store, clock, lanes, emit=emit)
        context = NodeContext(store, clock, node, lanes, handlers, emit)
        self._settler = Settler(context, self._channel_states, settled=self._settled)
        self._capacity = Capacity(options.concurrency, lanes, self._keyed)
        self._stopping = False
        attempts = AttemptRunner(context, hand_in=self.hand_in, is_stopping=lambda: self._stopping)
        slots = LocalExecutor(options.concurrency, attempts.make)
        self._executor: Executor = slots if executor is None else executor(self, slots)
        self._starter = TaskStarter(
            context, keyed=self._keyed, feed=self._executor.feed, hand_in=self.hand_in, drop=self.release
        )
        self._starting: set[asyncio.Task[None]] = set()
        self._credit = 0
        self._changed = asyncio.Event()  # a slot became free, or a result was written
        self._woken = asyncio.Event()
        self._loops: list[asyncio.Task[None]] = []
        self._may_hold_untracked = False
        self._deadlines_checked_at = float("-inf")  # when deadlines were last checked

    # -- start and stop

    async def start(self) -> None:
        """Register the lanes and start the loops."""
        for lane in self._lanes.values():
            await self._store.write(lane.join())
        self._store.on_hint(self._hinted)
        self._loops = [asyncio.create_task(self._fetch_loop()), asyncio.create_task(self._settler.run())]

    async def stop(self) -> None:
        """Finish running tasks within the shutdown timeout, release the rest, and write all results."""
        self._stopping = True
        self.wake()
        fetching, settling = self._loops if self._loops else (None, None)
        if fetching is not None:
            await asyncio.wait([fetching])
        deadline = self._clock.monotonic() + self._options.grace.total_seconds()
        while self._capacity.in_progress and self._clock.monotonic() < deadline:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        self._executor.cut_off()  # their outcome becomes Unknown: the request may have left
        while self._capacity.in_progress:
            self._changed.clear()
            await self._wait(self._changed, 0.1)
        self._settler.finish()
        if settling is not None:
            await asyncio.wait([settling], timeout=30)
            settling.cancel()
        self._executor.close()

    def wake(self) -> None:
        """Check for due tasks now."""
        self._woken.set()

    def _hinted(self) -> None:
        """Follow a hint after a short random wait: all nodes receive it."""
        self._wake_actors()
        if self._pending_claim is None:
            self._pending_claim = asyncio.get_running_loop().call_later(self._backoff.seconds(), self._follow)

    def _follow(self) -> None:
        self._pending_claim = None
        self.wake()

    @property
    def node(self) -> Node:
        """The node for which this runner claims."""
        return self._node

    @property
    def unwritten(self) -> set[TaskId]:
        """The tasks whose results are not durable yet."""
        return self._settler.ids

    @property
    def load(self) -> dict[str, Any]:
        """How busy this node is, and how long its latest attempts took."""
        return {
            "concurrency": self._options.concurrency,
            "in_flight": self._capacity.in_progress,
            "unwritten": self._settler.unwritten,
            "durations_ms": self._settler.percentiles,
        }

    def overrun(self) -> None:
        """Cancel attempts whose deadline had passed at the previous call; called once a second.

        So a process that resumes after a pause reads pending responses before it gives up on them.
        """
        after, self._deadlines_checked_at = self._deadlines_checked_at, self._clock.monotonic()
        self._executor.cut_off(after=after)

    # -- one step, for a manual clock

    async def step(self) -> RunnerStep:
        """Claim once, run all claimed tasks to their end and settle them."""
        await self._channel_states.refresh()
        claimed, expired = await self._fetch()
        await self._executor.quiet()
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
                if self._clock.monotonic() - refreshed >= self._options.poll_interval.total_seconds():
                    await self._channel_states.refresh()
                    refreshed = self._clock.monotonic()
                if not await self._enough_room() or self._stopping:
                    continue
                wanted = self._room_for_one_claim()
                claimed, expired = await self._fetch()
                self._backoff.note(found=claimed > 0)
                pause = 0.1
                if self._backpressure.rest and not self._stopping:
                    await asyncio.sleep(self._backpressure.rest)
                if claimed + expired < wanted and not self._stopping:
                    await self._sleep_until_due(claimed + expired)
                    if self._channel_states.is_troubled:
                        refreshed = float("-inf")
                elif claimed:
                    await self._hint_others()
            except Exception as error:  # the loop survives its step
                self._emit(StoreError.of("claim", error))
                self._may_hold_untracked = True
                await self._wait(self._woken, pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)

    async def _hint_others(self) -> None:
        """After a full claim, hint to the other nodes: there may be more tasks than this node can run."""
        if not self._store.sole_worker and self._free() == 0:
            await self._store.hint()

    async def _enough_room(self) -> bool:
        """Wait until a quarter of the slots is free, or briefly. Return whether a slot is free."""
        if self._free() < self._capacity.worth_a_claim:
            self._changed.clear()
            await self._wait(self._changed, 0.05)
        return self._free() > 0

    def _free(self) -> int:
        return self._capacity.free(self._settler.unwritten)

    def _room_for_one_claim(self) -> int:
        """Return the size of a claim: half the slots, to overlap claiming with running; all on SQLite."""
        halves = bool(self._loops) and not self._store.sole_worker
        return min(self._free(), max(1, self._options.concurrency // 2)) if halves else self._free()

    async def _fetch(self) -> tuple[int, int]:
        """Claim once and start the tasks. Return how many were claimed and expired."""
        if self._may_hold_untracked and self._node.knows_server:
            await self._release_untracked()
        if not self._store.may_work() or not self._node.is_trusted:
            return 0, 0
        room = self._room_for_one_claim()
        rooms = {queue: free for queue in self._lanes if (free := self._capacity.of(queue, room))}
        if room < 1 or not rooms:
            return 0, 0
        probes = await self._channel_states.ask_for_probes(rooms)
        for queue in probes:
            rooms[queue] = 1
        fair = 0 if probes else min(self._credit // _FAIR_SHARE, room)
        limited, keyed = self._limited & rooms.keys(), self._keyed & rooms.keys()
        request = ClaimRequest(rooms, room, fair, limited, keyed, frozenset(probes))
        asked = self._clock.monotonic()
        if not self._node.knows_server:  # changed since the probes were requested
            return 0, 0
        claimed = await self._store.claim(self._node.id, request)
        self._backpressure.note(self._clock.monotonic() - asked)
        if claimed.tasks:
            self._node.see(claimed.tasks[-1], settled=False)
            # By claimed tasks, not by free slots: with a rate limit a claim returns one or two.
            self._credit += len(claimed.tasks) - min(fair, len(claimed.tasks)) * _FAIR_SHARE
        if claimed.expired:
            await self._expire(claimed.expired)
        await self._channel_states.return_probes(probes - {task.queue for task in claimed.tasks})
        if self._loops and not any(task.crashes >= ISOLATE_AFTER for task in claimed.tasks):
            # The next claim runs while these tasks are loaded and started.
            self._capacity.reserve(claimed.tasks)
            self._starting.add(starting := asyncio.create_task(self._start(claimed.tasks, claimed.durable)))
            starting.add_done_callback(self._started)
        else:
            if claimed.durable is not None:
                await claimed.durable
            await self._start_all(claimed.tasks)
        return len(claimed.tasks), len(claimed.expired)

    def _started(self, starting: asyncio.Task[None]) -> None:
        self._starting.discard(starting)
        if not starting.cancelled() and (error := starting.exception()) is not None:
            self._emit(StoreError.of("starting", error))
            self._check_claims_soon()

    def _check_claims_soon(self) -> None:
        """Release untracked claims soon, without waiting for the next reason to claim."""
        self._may_hold_untracked = True
        asyncio.get_running_loop().call_later(_CHECK_DELAY, self.wake)

    async def _start_all(self, tasks: list[Task]) -> None:
        suspects = [task for task in tasks if task.crashes >= ISOLATE_AFTER]
        # Tasks that were on a node when it died run alone, one by one, so that the culprit is certain.
        now = self._clock.now()
        await self._releaser.release_claims(
            suspects[1:], "waiting to run in isolation", lambda i: now + (i + 1) * SECOND // 20
        )
        others = [task for task in tasks if task.crashes < ISOLATE_AFTER]
        self._capacity.reserve(others + suspects[:1])
        await self._start(others)
        if suspects:
            await self._wait_idle(but=1)
            await self._start(suspects[:1])
            await self._wait_idle()

    async def _start(self, tasks: list[Task], durable: Awaitable[bool] | None = None) -> None:
        try:
            if not await self._starter.start_tasks(tasks, durable):
                self._check_claims_soon()
        finally:
            if self._capacity.have_slots(tasks):
                self.wake()

    # -- results

    def release(self, task: Task) -> None:
        """Free the task's slot, without settling the task."""
        self._capacity.drop(task)
        if self._capacity.is_worth_a_look:
            self._changed.set()
        if self._capacity.was_full(task.queue):
            self._woken.set()

    def hand_in(self, result: AttemptResult) -> None:
        """Free the task's slot and settle its result."""
        self.release(result.task)
        self._settler.hand_in(result)

    def _settled(self, may_claim: bool) -> None:
        self._changed.set()
        if may_claim:
            self.wake()

    # -- rare cases

    async def _expire(self, tasks: list[Task]) -> None:
        gone = await expire_tasks(self._store, [task._asdict() for task in tasks], self._node.id)
        self._emit(TasksExpired(gone))

    async def _release_untracked(self) -> None:
        if self._starting:  # claimed, and not yet in progress
            await asyncio.wait(self._starting)
        await self._releaser.release_untracked(lambda: self._settler.ids | set(self._executor.ids))
        self._may_hold_untracked = False

    async def _wait_idle(self, *, but: int = 0) -> None:
        """Wait until no task is in progress, except `but` tasks that have not started."""
        while self._capacity.in_progress > but or self._settler.unwritten:
            if not self._loops:  # in step()
                await self._executor.quiet()
                while self._settler.unwritten:
                    await self._settler.step()
                continue
            self._changed.clear()
            await self._wait(self._changed, 0.1)

    async def _sleep_until_due(self, found: int) -> None:
        """Sleep until a task is due, a hint arrives, or a channel may be probed.

        While nothing is due, a poll is this one query and no claim. So is a hint, if other nodes are faster.
        """
        longest = self._options.poll_interval.total_seconds()
        began = self._clock.monotonic()
        is_hinted = False
        while not self._stopping:
            asked = self._clock.monotonic()
            due = await self._store.next_due([queue for queue in self._lanes if self._capacity.of(queue, 1)])
            self._clock.learn(due.now, asked, self._clock.monotonic())
            delay = longest if due.at is None else (due.at - self._clock.now()) / SECOND
            if not self._node.is_trusted or not self._store.may_work():
                delay = longest  # nothing may be claimed before the next heartbeat
            elif delay <= 0 and is_hinted:
                return
            elif delay <= 0 and not found:  # another node claims it
                delay = 0.002 + 0.01 * self._clock.chance() + self._backoff.seconds()
            elif delay > 0:
                delay += self._backoff.late()
            if is_hinted:
                self._backoff.note(found=False)
            if delay > 0:
                await self._wait(self._woken, min(delay, longest))
            is_hinted = self._woken.is_set()
            if is_hinted and self._checks_first and self._clock.monotonic() - began < longest:
                self._woken.clear()
                continue
            if is_hinted or delay < longest:
                return
            await self._channel_states.refresh()
            if self._channel_states.is_troubled:
                return

    @property
    def _checks_first(self) -> bool:
        """Whether to check for due tasks before a claim, because other nodes are often faster."""
        return self._backoff.is_behind and not self._may_hold_untracked and not self._channel_states.is_troubled

    @staticmethod
    async def _wait(event: asyncio.Event, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await event.wait()
        except TimeoutError:
            pass
