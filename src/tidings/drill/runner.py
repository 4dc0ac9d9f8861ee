"""A drill from its first process to its report."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from ..app import open_store
from ..config import PREFIX, Settings, load
from ..kernel.clock import SystemClock
from ..model.errors import TemporaryError
from ..model.time import SECOND
from ..store.port import Store
from .checker import check_logs
from .engine_records import count_unfinished, in_flight_messages, read_engine_records
from .harness import DrillHarness, DrillProcess, run_receiver, wait_until
from .json_log import LogTail
from .producer_process import PRODUCER_LOG
from .report import PRODUCER, DrillEvidence, DrillReport, build_report
from .scratch import DrillScratch
from .workload import ATTEMPT_DEADLINE, SETTINGS_FILE, DrillOptions, PlannedKill, plan_kills, settings_file

_START = 60.0  # seconds without any movement that are still no standstill, besides some leases
_LOOK = 0.05  # seconds between two looks
_END = 20.0  # seconds that a worker may take to stop in order


class DrillProgress(NamedTuple):
    """How far it is."""

    seconds: float
    accepted: int
    arrived: int
    killed: int
    waiting: int


ProgressCallback = Callable[[DrillProgress], None] | None


async def run(
    course: DrillOptions, settings: Settings, place: DrillScratch, told: ProgressCallback
) -> DrillReport:
    """Work, kill, wait, judge."""
    file = place.folder / SETTINGS_FILE
    file.touch(mode=0o600)
    file.write_text(settings_file(settings, place.database, course.on_unknown))
    for name in (PRODUCER_LOG, "receiver.jsonl"):
        (place.folder / name).touch()
    own = load(file, environ={})
    store = open_store(own, SystemClock())
    await store.open()
    behavior = {"delay": course.delay, "seed": course.seed}
    try:
        with run_receiver(place.folder / "receiver.jsonl", behavior, **_surroundings(place.folder)) as port:
            exercise = DrillRun(course, own, place.folder, store, port, told)
            try:
                return await exercise.run()
            finally:
                exercise.rig.end()
    finally:
        await store.close()


class DrillRun:
    """One drill under way."""

    def __init__(
        self,
        course: DrillOptions,
        settings: Settings,
        folder: Path,
        store: Store,
        port: int,
        told: ProgressCallback,
    ) -> None:
        self.rig = DrillHarness(folder, store, port=port, deadline=ATTEMPT_DEADLINE)
        self._course = course
        self._lease = settings.node_timeout.total_seconds()
        self._patience = _START + 4 * self._lease
        self._folder = folder
        self._store = store
        self._told = told
        self._chance = random.Random(course.seed)
        self._accepted = LogTail(folder / PRODUCER_LOG, b'"acked"')
        self._workers: list[DrillProcess] = []
        self._feeder: DrillProcess
        self._skew = 0.0

    async def run(self) -> DrillReport:
        """All of it."""
        for _ in range(self._course.workers):
            self._hire()
        if not await self._until(self._is_up):
            raise TemporaryError(
                "the workers did not come up", remedy="give fewer --workers, or look at the load"
            )
        self._skew = await clock_skew(self._store)
        self._feeder = self._feed()
        for blow in plan_kills(self._course.kills, self._course.messages, self._chance):
            await self._strike(blow)
        if not await self._until(self._is_fed):
            raise TemporaryError("the producer gets no further", remedy="look at the load of the database")
        await self._until(self._is_idle)
        await self._stop()
        return await self._judged()

    # -- processes

    def _hire(self) -> None:
        log = self._folder / f"worker-{len(self.rig.senders)}.jsonl"
        worker = self.rig.start(
            "tidings.drill.worker", {"port": self.rig.port}, log, **_surroundings(self._folder)
        )
        self._workers.append(worker)

    def _feed(self) -> DrillProcess:
        course = self._course
        wanted = {"messages": course.messages, "seconds": course.seconds, "seed": course.seed}
        options = {"plan": wanted, "skew": self._skew}
        log = self._folder / "producer.log"
        return self.rig.start("tidings.drill.producer_process", options, log, **_surroundings(self._folder))

    async def _strike(self, blow: PlannedKill) -> None:
        """Kill somebody and start another in its place."""

        async def is_time() -> bool:
            return self._accepted.count() >= blow.after or not self._feeder.is_alive

        await self._until(is_time)
        if blow.is_producer and self._feeder.is_alive:
            await self.rig.kill(self._feeder, PRODUCER)
            self._feeder = self._feed()
            return
        if self._course.aimed:
            await self._until(self._is_busy)
        victim = await self._victim()
        await self.rig.kill(victim)
        self._workers.remove(victim)
        self._hire()

    async def _victim(self) -> DrillProcess:
        """One that has something in hand, if there is one; or anybody."""
        busy = await self._busy() if self._course.aimed else []
        return self._chance.choice(busy or self._mortal)

    @property
    def _mortal(self) -> list[DrillProcess]:
        """On PostgreSQL the first is spared: somebody has to be there who saw the others' last heartbeat."""
        is_spared = not self._store.sole_worker and len(self._workers) > 1
        return self._workers[1:] if is_spared else self._workers

    async def _busy(self) -> list[DrillProcess]:
        return [worker for worker in self._mortal if await in_flight_messages(self._store, worker.pid)]

    async def _stop(self) -> None:
        """Ask everybody to stop in order; whoever does not is ended with the rig."""
        for worker in self._workers:
            worker.process.send_signal(signal.SIGTERM)
        await wait_until(lambda: not any(worker.is_alive for worker in self._workers), _END)

    # -- time

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Wait until something holds; False when nothing has moved for too long."""
        moved, since = self._moved(), time.monotonic()
        while not await condition():
            await self._look()
            if (now := self._moved()) != moved:
                moved, since = now, time.monotonic()
            elif time.monotonic() - since > self._patience:
                return False
        return True

    async def _is_up(self) -> bool:
        """Whether those who may work do; on one SQLite file that is one."""
        wanted = 1 if self._store.sole_worker else len(self._workers)
        return sum(bool(worker.facts("node_joined")) for worker in self._workers) >= wanted

    async def _is_fed(self) -> bool:
        return not self._feeder.is_alive

    async def _is_busy(self) -> bool:
        """Whether a kill would hit somebody at work, or nothing is left to be worked on."""
        return bool(await self._busy()) or (await self._is_fed() and await self._is_idle())

    async def _is_idle(self) -> bool:
        return not await count_unfinished(self._store)

    async def _look(self) -> None:
        """Say how far it is, and stop if a process has ended by an error of its own."""
        self.rig.has_failed()
        if self._told is not None:
            seconds, waiting = time.monotonic() - self.rig.began, await count_unfinished(self._store)
            self._told(DrillProgress(seconds, *self._moved(), len(self.rig.faults), waiting))
        await asyncio.sleep(_LOOK)

    def _moved(self) -> tuple[int, int]:
        """What has been accepted and what has arrived."""
        return self._accepted.count(), self.rig.seen()

    # -- the end

    async def _judged(self) -> DrillReport:
        tried, copies, faults = self.rig.tried(), self.rig.copies(), self.rig.faults
        said = await read_engine_records(self._store)
        verdict = check_logs(tried, copies, faults, said, deadline=ATTEMPT_DEADLINE)
        evidence = DrillEvidence(tried, copies, faults, said, verdict, self.rig.repeated())
        return build_report(
            evidence, self._course, lease=self._lease, seconds=time.monotonic() - self.rig.began
        )


async def clock_skew(store: Store) -> float:
    """Seconds by which the database's clock is ahead of this machine's, at the most."""
    asked = time.time()
    rows = await store.read("now")
    return float(rows[0]["now"] / SECOND - asked)


def _surroundings(folder: Path) -> dict[str, Any]:
    """In the drill's folder, deaf to Ctrl-C, and without anything that the user has set."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {"cwd": folder, "env": clean, "start_new_session": True}
