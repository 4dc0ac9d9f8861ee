"""Harness for migrations: a store, a manual clock, files, and a target with scripted failures."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.worker import Worker
from tidings.migration import batch_handler
from tidings.migration.batch_handler import BatchHandler
from tidings.migration.batch_scheduler import BatchScheduler
from tidings.migration.connector_pool import ConnectorPool
from tidings.migration.connectors import registry
from tidings.migration.connectors.port import (
    Attribute,
    ConnectorError,
    Fields,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
)
from tidings.migration.extractor import Extractor
from tidings.migration.job_file import MigrationJob, read_job
from tidings.migration.job_permissions import JobPermissions
from tidings.migration.jobs import WORKING, JobView
from tidings.migration.service import MigrationService
from tidings.model.outcome import Outcome
from tidings.model.task import Task
from tidings.observability.events import Event
from tidings.store.port import Step, Store

Fault = Callable[[str, str, Fields], ConnectorError | None]  # before anything is written
Lost = Callable[[str, str, Fields], ConnectorError | None]  # after it


class Books:
    """A target in memory: what it holds, and how it fails."""

    kind = "books"

    def __init__(
        self, strategy: WriteStrategy = WriteStrategy.UPSERT, limits: SystemLimits = SystemLimits(concurrency=4)
    ) -> None:
        self.limits = limits
        self.strategies: dict[str, WriteStrategy] = {}
        self.default = strategy
        self.rows: dict[str, dict[str, dict[str, Any]]] = {}  # by type and id
        self.keys: dict[tuple[str, str], str] = {}
        self.known: Sequence[Attribute] | None = None
        self.writes = self.finds = self.erased = 0
        self.fault: Fault = lambda *_: None
        self.lose: Lost = lambda *_: None
        self.blind: ConnectorError | None = None  # what a look is answered with

    def strategy(self, type_: str) -> WriteStrategy:
        return self.strategies.get(type_, self.default)

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        return self.known

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        self.finds += 1
        if self.blind is not None:
            raise self.blind
        rows = self.rows.get(type_, {})
        if self.strategy(type_) is WriteStrategy.RECONCILE:
            return [TargetRecord(id_, row) for id_, row in rows.items() if row == dict(fields)]
        found = self.keys.get((type_, key))
        return [] if found is None else [TargetRecord(found, rows[found])]

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        self.writes += 1
        trouble = self.fault(type_, key, fields)
        if trouble is not None:
            raise trouble
        rows = self.rows.setdefault(type_, {})
        is_keyed = self.strategy(type_) is WriteStrategy.UPSERT
        id_ = known or (self.keys.get((type_, key)) if is_keyed else None) or f"t{self.writes}"
        rows[id_] = {**rows.get(id_, {}), **fields}
        self.keys.setdefault((type_, key), id_)
        trouble = self.lose(type_, key, fields)
        if trouble is not None:
            raise trouble
        return TargetRecord(id_)

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        results: list[TargetRecord | ConnectorError] = []
        for record in records:
            try:
                results.append(await self.write(type_, *record))
            except ConnectorError as trouble:
                results.append(trouble)
        return results

    async def erase(self, type_: str, id_: str) -> None:
        self.erased += 1
        trouble = self.fault(type_, id_, {})
        if trouble is not None:
            raise trouble
        self.rows[type_].pop(id_, None)
        self.keys = {name: of for name, of in self.keys.items() if (name[0], of) != (type_, id_)}

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        keys = {id_: key for (of, key), id_ in self.keys.items() if of == type_}
        for id_, row in self.rows.get(type_, {}).items():
            yield keys.get(id_, ""), TargetRecord(id_, row)

    async def close(self) -> None:
        """Nothing to close."""

    def content(self, type_: str) -> list[dict[str, Any]]:
        """What it holds, in an order of its own."""
        return sorted(self.rows.get(type_, {}).values(), key=lambda row: json.dumps(row, sort_keys=True))


class Killed(BaseException):
    """The process is gone."""


class Crash:
    """A crash point that ends the process at a given pass; from then on nothing of it does anything."""

    def __init__(self, name: str, passes: int) -> None:
        self.name, self.left = name, passes

    @property
    def is_over(self) -> bool:
        """Whether it has happened."""
        return self.left <= 0

    def __call__(self, name: str) -> None:
        if name == self.name or self.is_over:
            self.left -= 1
        if self.is_over:
            raise Killed(name)


class KillableHandler:
    """Handles batches until the process is killed; from then on nothing of it does anything."""

    listens = False

    def __init__(self, handler: BatchHandler, killed: asyncio.Future[str]) -> None:
        self.load, self.effects, self._run, self._killed = handler.load, handler.effects, handler.run, killed

    async def run(self, task: Task, content: Any) -> Outcome:
        try:
            return await self._run(task, content)
        except Killed as error:
            if not self._killed.done():
                self._killed.set_result(str(error))
            await asyncio.Event().wait()
            raise


class Moving:
    """One node that moves records from files into the books."""

    def __init__(self, store: Store, clock: ManualClock, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.store, self.clock, self.folder = store, clock, folder / "source"
        self.folder.mkdir(exist_ok=True)
        self.books = Books()
        self.slept: list[float] = []
        self.events: list[Event] = []  # what the node has emitted, for logs
        self.quarantine_after, self.at_once = 100, 4
        patch.setattr(registry, "target", lambda *_, **__: self.books)
        self.start()

    def start(self) -> None:
        """A new process, as after a crash: nothing of the old one but the database."""
        self.connections = ConnectorPool(
            self.store, self.clock, environ={}, folder=self.folder, allowed=JobPermissions()
        )
        self.migrations = MigrationService(self.store, self.clock, self.connections)
        self.extractor = Extractor(self.store, self.clock, self.connections, sleep=self._sleep)
        self.scheduler = BatchScheduler(self.store, self.clock)
        lanes = {batch_handler.QUEUE: replace(batch_handler.lane(), concurrency=self.at_once)}
        self.handler = BatchHandler(
            self.store, self.clock, self.connections, emit=self.events.append, sleep=self._sleep
        )
        self._killed = asyncio.get_running_loop().create_future()
        self.worker = Worker(
            self.store,
            self.clock,
            lanes,
            {batch_handler.KIND: KillableHandler(self.handler, self._killed)},
            emit=self.events.append,
            quarantine_after=self.quarantine_after,
        )
        self._joined = False

    async def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.clock.advance(seconds)

    def give(self, type_: str, rows: Iterable[Mapping[str, Any] | str]) -> None:
        """What the source has."""
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        (self.folder / f"{type_}.ndjson").write_text("".join(f"{line}\n" for line in lines))

    def job(self, types: Mapping[str, Any], **more: Any) -> MigrationJob:
        """A job from the files into the books."""
        sides = {
            "source": {"kind": "ndjson", "path": str(self.folder)},
            "target": {"kind": "ndjson", "path": str(self.folder.parent / "target")},
        }
        return read_job({"name": "move", "types": types, **{**sides, **more}}, is_local=True)

    async def create(self, types: Mapping[str, Any], **more: Any) -> str:
        """A new job's id."""
        return (await self.migrations.create(self.job(types, **more), by="test")).id

    async def run(self, types: Mapping[str, Any], **more: Any) -> str:
        """A new job, run until it rests; its id."""
        id_ = await self.create(types, **more)
        await self.migrations.run(id_, by="anna")
        await self.drive(id_)
        return id_

    async def step(self) -> bool:
        """One round of all that a node does; False: nothing was claimed. When killed, nothing is settled."""
        if not self._joined:
            await self.worker.node.join()
            await self.store.write(batch_handler.lane().join())
            self._joined = True
        await self.extractor.step()
        await self.scheduler.step()
        await self.worker.node.beat()
        running = asyncio.create_task(self.worker.runner.step())
        await asyncio.wait({running, self._killed}, return_when=asyncio.FIRST_COMPLETED)
        if self._killed.done():
            running.cancel()
            self.worker.runner._executor.cut_off()  # so that the event loop can end
            await asyncio.gather(running, return_exceptions=True)
            raise Killed(self._killed.result())
        return bool((await running).claimed)

    async def drive(self, id_: str, *, rounds: int = 400, may_go_on: bool = False) -> JobView:
        """Until the job rests; time passes when nothing can be done. A crash ends it at once."""
        for _ in range(rounds):
            view = await self.migrations.find(id_)
            if view.state not in WORKING:
                return view
            try:
                worked = await self.step()
            except Killed:
                return view
            if not worked:
                due = await self.store.next_due([batch_handler.QUEUE])
                self.clock.advance_to(max(due.at or 0, self.clock.now() + 300_000))
        if may_go_on:
            return view
        raise AssertionError(f"it does not come to an end: {await self.migrations.status(id_)}")

    async def bury(self) -> None:
        """The node died: another one takes over what it held."""
        dead = self.worker.node.id
        self.start()
        await self.worker.node.join()
        await self.store.write(batch_handler.lane().join())
        self._joined = True
        rows = await self.store.read("node_list")
        for row in rows:
            if row["id"] == dead:
                await self.store.write([_dead(row)])
        await self.worker.reaper.step()


def _dead(row: Mapping[str, Any]) -> Any:
    return Step("node_dead", {"id": row["id"], "heartbeat": row["heartbeat"]})


def losing(share: float, seed: int = 1) -> Lost:
    """A target that does what it is asked and loses some of its answers."""
    from tidings.migration.connectors.port import ErrorKind

    chance = random.Random(seed)

    def lose(_type: str, _key: str, _fields: Fields) -> ConnectorError | None:
        if chance.random() < share:
            return ConnectorError(ErrorKind.TIMEOUT, "no answer in time", sent=True)
        return None

    return lose
