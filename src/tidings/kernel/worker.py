"""A node's life: join, beat, reap, run, prune, leave. Each duty has its own small loop and one step.

On a store with one working process, a node that may not work waits for the lock and then takes over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..model.errors import TemporaryError, error_text
from ..observability import memory_usage
from ..observability.events import ClockDrift, Emit, NodeFenced, NodeJoined, StoreTrouble
from ..store.port import Step, Store
from .actor import Actor
from .clock import Clock, DriftLevel, classify_drift
from .clock_changes import apply_clock_change
from .executor import Executor, LocalExecutor
from .expirer import Expirer
from .failover import RewindRecovery
from .handler import Handler
from .heartbeats import Node, RewindDetected
from .lanes import Lane
from .pruner import Pruner, RetentionPolicy
from .reaper import Reaper
from .runner import RunnerOptions, TaskRunner

WORK_LOCK_POLL = 0.2  # seconds between two looks at the work lock
HEARTBEAT_RETRY = 0.2  # seconds until a beat that failed is tried again: on a bad line every chance counts
MIN_ACTOR_INTERVAL = (
    0.1  # seconds between two steps of an actor that hints call: on a busy node they come all the time
)


class Worker:
    """Everything one node does besides accepting."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        tunables: RunnerOptions = RunnerOptions(),
        lease: timedelta = timedelta(seconds=10),
        beat: timedelta = timedelta(seconds=2),
        quarantine_after: int = 4,
        retention: RetentionPolicy = RetentionPolicy(),
        contents: tuple[str, ...] = (),
        actors: Sequence[Actor] = (),
        pruners: Sequence[Actor] = (),  # act in their own time: no hint is about them
        observers: Sequence[Actor] = (),  # act also where this process may not work
        memory_limit: int | None = None,  # bytes; None: what the system allows
        runs: Mapping[str, Lane] | None = None,  # the lanes this process works on; None: all
        hands: Callable[[TaskRunner, LocalExecutor], Executor] | None = None,
        also_load: Callable[[], Mapping[str, Any]] = dict,  # what else the others should know of this node
        name: str | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes if runs is None else runs
        self._handlers = handlers
        self._emit = emit
        self._tunables = tunables
        self._beat = beat.total_seconds()
        self._hands = hands
        self._also_load = also_load
        self.node = Node(store, clock, lease=lease, name=name)
        self.runner = self._new_runner()
        self.reaper = Reaper(
            store,
            clock,
            lanes,
            handlers=handlers,
            lease=lease,
            emit=emit,
            me=lambda: self.node.id,
            quarantine_after=quarantine_after,
        )
        self.pruner = Pruner(store, clock, retention, emit=emit, me=lambda: self.node.id, contents=contents)
        self.rewinds = RewindRecovery(store, handlers, emit=emit, me=lambda: self.node.id, actors=actors)
        self.sweeper = Expirer(store, clock, lanes, emit=emit, me=lambda: self.node.id)
        self._actors = [(actor, asyncio.Event()) for actor in actors]
        self._pruners = pruners
        self._onlookers = observers
        self._looking: list[asyncio.Task[None]] = []
        self._memory_limit = memory_limit
        self._loops: list[asyncio.Task[None]] = []
        self._life: asyncio.Task[None] | None = None
        self._retiring: set[asyncio.Task[None]] = set()
        self.is_working = False

    def _new_runner(self) -> TaskRunner:
        return TaskRunner(
            self._store,
            self._clock,
            self.node,
            self._lanes,
            self._handlers,
            emit=self._emit,
            tunables=self._tunables,
            wake_actors=self.wake_actors,
            has_peers=lambda: not self._store.sole_worker and self.reaper.sees_others,
            hands=self._hands,
        )

    def narrow(self, queues: Collection[str], actors: Collection[str]) -> None:
        """Before the start: run these queues and actors only. What dead nodes left is given back anyhow."""
        self._lanes = {name: lane for name, lane in self._lanes.items() if lane.queue in queues}
        self._actors = [(actor, stirred) for actor, stirred in self._actors if actor.name in actors]
        self._onlookers = self._pruners = ()
        self.runner = self._new_runner()

    def wake_actors(self) -> None:
        """Something may have to be done at once: every actor looks, but for the pruners."""
        for _, stirred in self._actors:
            stirred.set()

    def start_observers(self) -> None:
        """Begin what a process does that only accepts and shows."""
        self._looking = [asyncio.create_task(self._look(actor)) for actor in self._onlookers]

    def start(self) -> None:
        """Work as soon as this process may."""
        self.start_observers()
        self._life = asyncio.create_task(self._live())

    async def stop(self) -> None:
        """Finish or give back what is in hand, then leave."""
        for looking in self._looking:
            looking.cancel()
        await asyncio.gather(*self._looking, return_exceptions=True)
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        if self.is_working:
            await self.runner.stop()
        await asyncio.gather(*self._retiring, return_exceptions=True)
        for loop in self._loops:
            loop.cancel()
        await asyncio.gather(*self._loops, return_exceptions=True)
        if self.is_working:
            with contextlib.suppress(TemporaryError):
                await self.node.leave()
        self.is_working = False

    async def _live(self) -> None:
        while not self._store.may_work():  # noqa: ASYNC110  (a file lock has no event)
            await asyncio.sleep(WORK_LOCK_POLL)
        while True:
            try:
                await self.node.join()
                while not await self.rewinds.step():  # noqa: ASYNC110  (another node's commit has no event)
                    await asyncio.sleep(1)
                await apply_clock_change(self._store, self.node.id, self._emit)
                await self.reaper.step()
                await self.runner.start()
                break
            except Exception as error:  # an actor's step: whoever serves must also work, or say why not
                self._emit(StoreTrouble("start", error_text(error)))
                await asyncio.sleep(1)
        self.is_working = True
        self._emit(NodeJoined(self.node.id, self.node.name))
        self._loops = [
            asyncio.create_task(self._every(self._beat, self._beat_once, "heartbeat", again=HEARTBEAT_RETRY)),
            asyncio.create_task(self._every(1.0, self._reap_once, "reap")),
            asyncio.create_task(self._every(30.0, self.pruner.step, "prune")),
            asyncio.create_task(self._every(5.0, self.sweeper.step, "sweep")),
            *(asyncio.create_task(self._act(actor, stirred)) for actor, stirred in self._actors),
            *(asyncio.create_task(self._act(actor, asyncio.Event())) for actor in self._pruners),
        ]

    async def _act(self, actor: Actor, stirred: asyncio.Event) -> None:
        """Step after step; between two of them as long as the actor says, or until a hint."""
        while True:
            stirred.clear()
            delay, began = 1.0, self._clock.monotonic()
            if self.node.is_trusted and self._store.may_work():
                try:
                    delay = await actor.step()
                except Exception as error:  # an actor's step: the next one must come all the same
                    self._emit(StoreTrouble(actor.name, error_text(error)))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await stirred.wait()
                    await asyncio.sleep(began + MIN_ACTOR_INTERVAL - self._clock.monotonic())

    async def _look(self, actor: Actor) -> None:
        while True:
            delay = 1.0
            try:
                delay = await actor.step()
            except Exception as error:  # an actor's step: the next one must come all the same
                self._emit(StoreTrouble(actor.name, error_text(error)))
            await asyncio.sleep(delay)

    async def _every(
        self,
        seconds: float,
        step: Callable[[], Awaitable[object]],
        where: str,
        *,
        again: float = float("inf"),  # seconds until one that failed is repeated, if that is sooner
    ) -> None:
        pause = seconds
        while True:
            await asyncio.sleep(pause)
            try:
                await step()
                pause = seconds
            except Exception as error:  # an actor's step: the next one must come all the same
                self._emit(StoreTrouble(where, error_text(error)))
                pause = min(seconds, again * (0.5 + self._clock.chance()))

    async def _beat_once(self) -> None:
        try:
            if not await self.node.beat(json.dumps(self.load)):
                self._emit(NodeFenced(self.node.id))
                await self._begin_anew()
        except RewindDetected as rewound:
            await self._recover(rewound)
        drift = self._clock.drift()
        if classify_drift(drift) is not DriftLevel.FINE:
            self._emit(ClockDrift(drift.total_seconds(), classify_drift(drift) is DriftLevel.UNHEALTHY))

    @property
    def load(self) -> dict[str, Any]:
        """How busy this node is, and how much of its memory it uses."""
        share = memory_usage.usage_fraction(self._memory_limit)
        used = {} if share is None else {"memory": round(share, 4)}
        return {**self.runner.load, **used, **self._also_load()}

    async def _recover(self, rewound: RewindDetected) -> None:
        """Begin anew once what may have been sent is marked; the reaper decides what this node still held."""
        await self.rewinds.open(rewound)
        if await self.rewinds.step():
            await self._store.write([Step("node_dead", {"id": self.node.id, "heartbeat": self.node.beats})])
            await self._begin_anew()

    async def _begin_anew(self) -> None:
        """This incarnation is given up: what it still sends is late, and a new one begins."""
        old, self.node = (
            self.runner,
            Node(self._store, self._clock, lease=timedelta(seconds=self.node.lease), name=self.node.name),
        )
        self.runner = self._new_runner()
        retiring = asyncio.create_task(old.stop())
        self._retiring.add(retiring)  # beside the new one: waiting for it would silence the beat
        retiring.add_done_callback(self._retiring.discard)
        await self.node.join()
        await self.runner.start()

    async def _reap_once(self) -> None:
        self.runner.overrun()
        await self.reaper.step()
        await apply_clock_change(self._store, self.node.id, self._emit)
