"""A node's loops: join, heartbeat, reap, run, prune, leave. Each background job has its own loop.

On a store with one working process, a node waits for the work lock and then takes over.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..model.errors import TemporaryError
from ..observability import memory_usage
from ..observability.events import ClockDrift, Emit, NodeFenced, NodeJoined, StoreError
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

WORK_LOCK_POLL = 0.2  # seconds between two attempts to get the work lock
HEARTBEAT_RETRY = 0.2  # seconds until a failed heartbeat is repeated: on a bad connection every chance counts
MIN_ACTOR_INTERVAL = 0.1  # seconds between two steps of an actor: a busy node gets hints all the time


class Worker:
    """All background work of one node."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lanes: Mapping[str, Lane],
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        options: RunnerOptions = RunnerOptions(),
        node_timeout: timedelta = timedelta(seconds=10),
        heartbeat_interval: timedelta = timedelta(seconds=2),
        quarantine_after: int = 4,
        retention: RetentionPolicy = RetentionPolicy(),
        contents: tuple[str, ...] = (),
        actors: Sequence[Actor] = (),
        pruners: Sequence[Actor] = (),  # run by time only: hints do not wake them
        observers: Sequence[Actor] = (),  # run also in processes that may not work
        memory_limit: int | None = None,  # bytes; None: the system's limit
        runs: Mapping[str, Lane] | None = None,  # the lanes of this process; None: all
        executor: Callable[[TaskRunner, LocalExecutor], Executor] | None = None,
        also_load: Callable[[], Mapping[str, Any]] = dict,  # more information for the node's row
        name: str | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes if runs is None else runs
        self._handlers = handlers
        self._emit = emit
        self._options = options
        self._heartbeat_interval = heartbeat_interval.total_seconds()
        self._executor = executor
        self._also_load = also_load
        self.node = Node(store, clock, node_timeout=node_timeout, name=name)
        self.runner = self._new_runner()
        self.reaper = Reaper(
            store,
            clock,
            lanes,
            handlers=handlers,
            node_timeout=node_timeout,
            emit=emit,
            me=lambda: self.node.id,
            quarantine_after=quarantine_after,
        )
        self.pruner = Pruner(store, clock, retention, emit=emit, me=lambda: self.node.id, contents=contents)
        self.rewinds = RewindRecovery(store, handlers, emit=emit, me=lambda: self.node.id, actors=actors)
        self.expirer = Expirer(store, clock, lanes, emit=emit, me=lambda: self.node.id)
        self._actors = [(actor, asyncio.Event()) for actor in actors]
        self._pruners = pruners
        self._observers = observers
        self._observing: list[asyncio.Task[None]] = []
        self._memory_limit = memory_limit
        self._cpu = memory_usage.CpuUsage()
        self._loops: list[asyncio.Task[None]] = []
        self._running: asyncio.Task[None] | None = None
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
            options=self._options,
            wake_actors=self.wake_actors,
            has_peers=lambda: not self._store.sole_worker and self.reaper.sees_others,
            executor=self._executor,
        )

    def narrow(self, queues: Collection[str], actors: Collection[str]) -> None:
        """Before the start: run only these queues and actors. Dead nodes are reaped in any case."""
        self._lanes = {name: lane for name, lane in self._lanes.items() if lane.queue in queues}
        self._actors = [(actor, woken) for actor, woken in self._actors if actor.name in actors]
        self._observers = self._pruners = ()
        self.runner = self._new_runner()

    def wake_actors(self) -> None:
        """Wake all actors except the pruners."""
        for _, woken in self._actors:
            woken.set()

    def start_observers(self) -> None:
        """Start the actors of a process that only accepts and shows messages."""
        self._observing = [asyncio.create_task(self._observe(actor)) for actor in self._observers]

    def start(self) -> None:
        """Start working as soon as this process may."""
        self.start_observers()
        self._running = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Finish or release running tasks, then leave."""
        for observing in self._observing:
            observing.cancel()
        await asyncio.gather(*self._observing, return_exceptions=True)
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
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

    async def _run(self) -> None:
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
            except Exception as error:  # a serving process must also work, or report why not
                self._emit(StoreError.of("start", error))
                await asyncio.sleep(1)
        self.is_working = True
        self._emit(NodeJoined(self.node.id, self.node.name))
        self._loops = [
            asyncio.create_task(
                self._every(self._heartbeat_interval, self._heartbeat_once, "heartbeat", again=HEARTBEAT_RETRY)
            ),
            asyncio.create_task(self._every(1.0, self._reap_once, "reap")),
            asyncio.create_task(self._every(30.0, self.pruner.step, "prune")),
            asyncio.create_task(self._every(5.0, self.expirer.step, "expire")),
            *(asyncio.create_task(self._run_actor(actor, woken)) for actor, woken in self._actors),
            *(asyncio.create_task(self._run_actor(actor, asyncio.Event())) for actor in self._pruners),
        ]

    async def _run_actor(self, actor: Actor, woken: asyncio.Event) -> None:
        """Run steps forever; wait as long as the actor asked, or until a hint."""
        while True:
            woken.clear()
            delay, began = 1.0, self._clock.monotonic()
            if self.node.is_trusted and self._store.may_work():
                try:
                    delay = await actor.step()
                except Exception as error:  # the loop survives its step
                    self._emit(StoreError.of(actor.name, error))
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await woken.wait()
                    await asyncio.sleep(began + MIN_ACTOR_INTERVAL - self._clock.monotonic())

    async def _observe(self, actor: Actor) -> None:
        while True:
            delay = 1.0
            try:
                delay = await actor.step()
            except Exception as error:  # the loop survives its step
                self._emit(StoreError.of(actor.name, error))
            await asyncio.sleep(delay)

    async def _every(
        self,
        seconds: float,
        step: Callable[[], Awaitable[object]],
        where: str,
        *,
        again: float = float("inf"),  # seconds until a failed step is repeated, if that is sooner
    ) -> None:
        pause = seconds
        while True:
            await asyncio.sleep(pause)
            try:
                await step()
                pause = seconds
            except Exception as error:  # the loop survives its step
                self._emit(StoreError.of(where, error))
                pause = min(seconds, again * (0.5 + self._clock.chance()))

    async def _heartbeat_once(self) -> None:
        try:
            if not await self.node.beat(json.dumps(self.load)):
                self._emit(NodeFenced(self.node.id))
                await self._rejoin()
        except RewindDetected as rewound:
            await self._recover(rewound)
        drift = self._clock.drift()
        if classify_drift(drift) is not DriftLevel.FINE:
            self._emit(ClockDrift(drift.total_seconds(), classify_drift(drift) is DriftLevel.UNHEALTHY))

    @property
    def load(self) -> dict[str, Any]:
        """How busy this node is, and its use of CPU and memory."""
        fraction = memory_usage.usage_fraction(self._memory_limit)
        used = {"cpu": round(self._cpu.fraction(), 3)} | ({} if fraction is None else {"memory": round(fraction, 4)})
        return {**self.runner.load, **used, **self._also_load()}

    async def _recover(self, rewound: RewindDetected) -> None:
        """Rejoin once tasks that may have been sent are marked; the reaper recovers this node's claims."""
        await self.rewinds.open(rewound)
        if await self.rewinds.step():
            await self._store.write([Step("node_dead", {"id": self.node.id, "heartbeat": self.node.beats})])
            await self._rejoin()

    async def _rejoin(self) -> None:
        """Rejoin as a new incarnation, because others declared this one dead: its results are late."""
        old, self.node = (
            self.runner,
            Node(self._store, self._clock, node_timeout=timedelta(seconds=self.node.timeout), name=self.node.name),
        )
        self.runner = self._new_runner()
        retiring = asyncio.create_task(old.stop())
        self._retiring.add(retiring)  # in the background: waiting for it would delay heartbeats
        retiring.add_done_callback(self._retiring.discard)
        await self.node.join()
        await self.runner.start()

    async def _reap_once(self) -> None:
        self.runner.overrun()
        await self.reaper.step()
        await apply_clock_change(self._store, self.node.id, self._emit)
