"""Runs a drill from the first process to the report."""

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
from .producer import PRODUCER_LOG
from .report import PRODUCER, DrillEvidence, DrillReport, build_report
from .scratch import DrillScratch
from .workload import ATTEMPT_DEADLINE, SETTINGS_FILE, DrillOptions, PlannedKill, plan_kills, settings_file

_START = 60.0  # seconds without progress before a drill gives up, plus some leases
_LOOK = 0.05  # seconds between two polls
_END = 20.0  # seconds for a graceful shutdown


class DrillProgress(NamedTuple):
    seconds: float
    accepted: int
    arrived: int
    killed: int
    waiting: int


ProgressCallback = Callable[[DrillProgress], None] | None


async def run(course: DrillOptions, settings: Settings, place: DrillScratch, told: ProgressCallback) -> DrillReport:
    """Run a drill: start processes, kill some, wait for the rest, check the logs."""
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
        with run_receiver(place.folder / "receiver.jsonl", behavior, **_process_options(place.folder)) as port:
            exercise = DrillRun(course, own, place.folder, store, port, told)
            try:
                return await exercise.run()
            finally:
                exercise.rig.end()
    finally:
        await store.close()


class DrillRun:
    def __init__(
        self, course: DrillOptions, settings: Settings, folder: Path, store: Store, port: int, told: ProgressCallback
    ) -> None:
        self.rig = DrillHarness(folder, store, port=port)
        self._course = course
        self._lease = settings.node_timeout.total_seconds()
        self._give_up_after = _START + 4 * self._lease
        self._folder, self._store = folder, store
        self._on_progress = told
        self._chance = random.Random(course.seed)
        self._accepted = LogTail(folder / PRODUCER_LOG, b'"acked"')
        self._workers: list[DrillProcess] = []
        self._feeder: DrillProcess
        self._skew = 0.0

    async def run(self) -> DrillReport:
        """Run all phases and return the report."""
        for _ in range(self._course.workers):
            self._start_worker()
        if not await self._until(self._is_up):
            raise TemporaryError("the workers did not start", remedy="use fewer --workers, or check the load")
        self._skew = await clock_skew(self._store)
        self._feeder = self._feed()
        for kill in plan_kills(self._course.kills, self._course.messages, self._chance):
            await self._kill_planned(kill)
        if not await self._until(self._is_fed):
            raise TemporaryError("the producer makes no progress", remedy="check the load of the database")
        await self._until(self._is_idle)
        await self._stop()
        return await self._report()

    def _start_worker(self) -> None:
        log = self._folder / f"worker-{len(self.rig.senders)}.jsonl"
        worker = self.rig.start("tidings.drill.worker", {"port": self.rig.port}, log, **_process_options(self._folder))
        self._workers.append(worker)

    def _feed(self) -> DrillProcess:
        course = self._course
        wanted = {"messages": course.messages, "seconds": course.seconds, "seed": course.seed}
        options = {"plan": wanted, "skew": self._skew}
        log = self._folder / "producer.log"
        return self.rig.start("tidings.drill.producer", options, log, **_process_options(self._folder))

    async def _kill_planned(self, kill: PlannedKill) -> None:
        """Kill a process and start another in its place."""

        async def is_time() -> bool:
            return self._accepted.count() >= kill.after or not self._feeder.is_alive

        await self._until(is_time)
        if kill.is_producer and self._feeder.is_alive:
            await self.rig.kill(self._feeder, PRODUCER)
            self._feeder = self._feed()
            return
        if self._course.aimed:
            await self._until(self._is_busy)
        busy = await self._busy() if self._course.aimed else []
        victim = self._chance.choice(busy or self._killable)
        await self.rig.kill(victim)
        self._workers.remove(victim)
        self._start_worker()

    @property
    def _killable(self) -> list[DrillProcess]:
        """Workers that may be killed; on PostgreSQL one survives, to notice missed heartbeats."""
        is_spared = not self._store.sole_worker and len(self._workers) > 1
        return self._workers[1:] if is_spared else self._workers

    async def _busy(self) -> list[DrillProcess]:
        return [worker for worker in self._killable if await in_flight_messages(self._store, worker.pid)]

    async def _stop(self) -> None:
        """Ask all workers to shut down gracefully; the others are killed with the harness."""
        for worker in self._workers:
            worker.process.send_signal(signal.SIGTERM)
        await wait_until(lambda: not any(worker.is_alive for worker in self._workers), _END)

    async def _until(self, condition: Callable[[], Awaitable[bool]]) -> bool:
        """Wait until a condition holds; False after too long without progress."""
        moved, since = self._moved(), time.monotonic()
        while not await condition():
            await self._poll()
            if (now := self._moved()) != moved:
                moved, since = now, time.monotonic()
            elif time.monotonic() - since > self._give_up_after:
                return False
        return True

    async def _is_up(self) -> bool:
        """Return whether the workers have joined; on SQLite only one can."""
        wanted = 1 if self._store.sole_worker else len(self._workers)
        return sum(bool(worker.facts("node_joined")) for worker in self._workers) >= wanted

    async def _is_fed(self) -> bool:
        return not self._feeder.is_alive

    async def _is_busy(self) -> bool:
        """Return whether a kill would hit a busy worker, or no work is left."""
        return bool(await self._busy()) or (await self._is_fed() and await self._is_idle())

    async def _is_idle(self) -> bool:
        return not await count_unfinished(self._store)

    async def _poll(self) -> None:
        """Report the progress, and raise if a process has failed."""
        self.rig.has_failed()
        if self._on_progress is not None:
            seconds, waiting = time.monotonic() - self.rig.began, await count_unfinished(self._store)
            self._on_progress(DrillProgress(seconds, *self._moved(), len(self.rig.faults), waiting))
        await asyncio.sleep(_LOOK)

    def _moved(self) -> tuple[int, int]:
        """Return how many messages were accepted and how many copies have arrived."""
        return self._accepted.count(), self.rig.seen()

    async def _report(self) -> DrillReport:
        tried, copies, faults = self.rig.tried(), self.rig.copies(), self.rig.faults
        records = await read_engine_records(self._store)
        verdict = check_logs(tried, copies, faults, records, deadline=ATTEMPT_DEADLINE)
        evidence = DrillEvidence(tried, copies, faults, records, verdict, self.rig.repeated())
        seconds = time.monotonic() - self.rig.began
        return build_report(evidence, self._course, lease=self._lease, seconds=seconds)


async def clock_skew(store: Store) -> float:
    """Return the seconds by which the database's clock is ahead of this machine's, at most."""
    asked = time.time()
    rows = await store.read("now")
    return float(rows[0]["now"] / SECOND - asked)


def _process_options(folder: Path) -> dict[str, Any]:
    """Return process options: the drill's folder, a separate session (no Ctrl-C), no user settings."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(PREFIX)}
    return {"cwd": folder, "env": clean, "start_new_session": True}
