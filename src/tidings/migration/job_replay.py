"""Replay: reopens dead letters after a repair of data or map, and only those.

They are reopened in portions, one transaction each. The job is paused meanwhile, so that no record is tried
before the records it waits for are open. If the replay dies, the job resumes automatically with the reopened
records; the others stay dead letters and another replay reopens them.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import orjson

from ..kernel.clock import Clock
from ..model.errors import Conflict, Invalid
from ..model.time import SECOND
from ..store.port import Row, Step, Store, WriteConflict
from . import reopened_batches
from .job_events import audit_step
from .job_file import MigrationJob
from .job_undo import refuse_during_undo
from .jobs import ENDED, JobState, JobView, job_of, job_transition, stored_definition, system_identity
from .mapping.content_hash import plain_json
from .progress import status_of
from .reopened_batches import ReopenedBatch, reopen_records

LEASE = 60 * SECOND  # longer than one portion takes
REPLAY_PAUSE_REASON = "dead letters are being replayed"
_REPAIRS = 100  # records per transaction

RepairedRecords = AsyncIterator[tuple[str, str, Mapping[str, Any]]]
Tell = Callable[[int], None]  # called with the number of reopened records


class JobReplay:
    """One replay of one job."""

    def __init__(
        self, store: Store, clock: Clock, row: Row, view: JobView, by: str, *, tell: Tell | None = None
    ) -> None:
        self._store, self._clock, self._row, self._view = store, clock, row, view
        self._by, self._tell = by, tell
        self._version: int = row["version"]
        self._opened = 0
        self._is_held = False  # the job is paused until all are open
        self._stays = False  # it was paused before, and stays paused

    async def open(
        self, fingerprint: str | None, type_: str | None, job: MigrationJob | None, repaired: RepairedRecords | None
    ) -> int:
        """Reopen records; return how many."""
        if self._view.state not in (*ENDED, JobState.RUNNING, JobState.PAUSED) or not self._view.round:
            raise Conflict(f"the migration is {self._view.state}", remedy="run it first: tidings migrate run")
        if self._row["pruning"]:
            raise Conflict("the migration's records have been deleted", remedy="run it again")
        own = job_of(self._view)
        if job is not None:
            _check_same_job(own, job)
        names = [one.name for one in own.types] if type_ is None else [own.type(type_).name]
        tag = None if repaired is None else f"repaired {self._clock.new_id()}"
        if repaired is not None and tag is not None:
            await self._repair(repaired, names, tag)
        return await self._open(names, fingerprint, tag, job)

    async def _repair(self, repaired: RepairedRecords, names: list[str], tag: str) -> None:
        steps: list[Step] = []
        async for type_, id_, fields in repaired:
            if type_ not in names:
                raise Invalid(f"a record has the type {type_[:60]!r}", field="type", remedy=f"use {names}")
            try:
                raw = orjson.dumps(plain_json(fields)).decode()
            except (ValueError, TypeError) as error:
                problem = f"the repaired record {type_} {id_[:60]} {error}"
                raise Invalid(problem, field="fields", remedy="use JSON values only") from None
            where = {"job": self._view.n, "type": type_, "source_id": id_, "raw": raw, "tag": tag}
            steps.append(Step("job_repair", where))
            noted = {"job": self._view.n, "type": type_, "source_id": id_, "who": f"by {self._by}"[:200]}
            steps.append(Step("job_repair_log", noted, only_if=len(steps) - 1))
            if len(steps) >= 2 * _REPAIRS:
                await self._store.write(steps)
                steps = []
        if steps:
            await self._store.write(steps)

    async def _open(self, names: list[str], fingerprint: str | None, tag: str | None, job: MigrationJob | None) -> int:
        """Reopen portion by portion; the first starts the job, the last resumes it."""
        portions = self._portions(names, fingerprint, tag)
        portion = await anext(portions, None)
        if portion is None:
            if job is not None:
                await self._store.write(self._remap_steps(job))
            return 0
        before = await self._start_steps(portion.size, job)
        while portion is not None:
            following = await anext(portions, None)
            after = self._end_steps(portion.size) if following is None else self._pause_steps()
            await self._write([*before, *portion.steps, *after])
            portion = following
            before = [] if portion is None else [self._hold_step(portion.size)]
        await self._store.hint()
        return self._opened

    async def _portions(
        self, names: list[str], fingerprint: str | None, tag: str | None
    ) -> AsyncIterator[ReopenedBatch]:
        """Yield what one transaction reopens: a batch of one type, or small batches of several."""
        view, size, steps = self._view, 0, list[Step]()
        system = f"{view.tenant}/{system_identity(job_of(view).target)}/write"
        for name in names:
            async for batch in reopen_records(
                self._store, self._clock, job=view.n, type=name, round=view.round, system=system,
                fingerprint=fingerprint, tag=tag,
            ):  # fmt: skip
                if size and size + batch.size > reopened_batches.PORTION:
                    yield ReopenedBatch(size, steps)
                    size, steps = 0, []
                size, steps = size + batch.size, [*steps, *batch.steps]
        if size:
            yield ReopenedBatch(size, steps)

    async def _write(self, steps: list[Step]) -> None:
        """Write all steps or none; records reopened before stay open."""
        try:
            done = await self._store.write(steps)
        except WriteConflict:
            if not self._opened:
                raise
            problem = f"the migration changed concurrently after {self._opened:,} records were reopened"
            raise Conflict(problem, remedy="check its state, then replay the others") from None
        pairs = zip(steps, done, strict=True)
        self._opened += sum(len(rows) for step, rows in pairs if step.name == "job_reopen")
        if self._tell is not None:
            self._tell(self._opened)

    async def _start_steps(self, size: int, job: MigrationJob | None) -> list[Step]:
        """Return the steps that start the job if it has ended, or was left paused by a dead replay."""
        if self._view.state in ENDED:
            refuse_during_undo(self._row, self._clock.now())
            done = (await status_of(self._store, self._view, self._clock.now())).done
            begin = {
                "n": self._view.n, "version": self._next_version(), "expected": self._view.state.value,
                "state": JobState.RUNNING.value, "rounds": 0, "lookup": bool(self._row["lookup"]),
                "planned": False, "done": done - size,
            }  # fmt: skip
            steps = [Step("job_begin", begin, needed=True)]
        elif self._view.state is JobState.PAUSED and self._row["reason"] == REPLAY_PAUSE_REASON:
            steps = [job_transition({**self._row, "version": self._next_version()}, JobState.RUNNING, None)]
        else:
            steps = [self._hold_step(size)]
            self._stays = self._view.state is JobState.PAUSED
        return steps if job is None else [*steps, *self._remap_steps(job)]

    def _pause_steps(self) -> list[Step]:
        """Return the steps that pause the job until the rest is open, unless it is paused anyway."""
        if self._stays or self._is_held:
            return []
        self._is_held, until = True, self._clock.now() + LEASE
        self._next_version()
        halt = {"n": self._view.n, "reason": REPLAY_PAUSE_REASON, "until": until}
        return [Step("job_pause", halt, needed=True), audit_step(self._view.n, self._by, "replay begun", "in portions")]

    def _hold_step(self, size: int) -> Step:
        """Return the step that checks the job's version and extends the lease."""
        began = self._view.state in ENDED
        hold = {
            "n": self._view.n, "version": self._version, "lease": LEASE if self._is_held else None,
            "opened": size if began else 0,
        }  # fmt: skip
        return Step("job_replay_hold", hold, needed=True)

    def _end_steps(self, size: int) -> list[Step]:
        """Return the last steps: audit entry, and resume the job if the replay paused it."""
        told = audit_step(self._view.n, self._by, "replayed", f"{self._opened + size} records")
        if not self._is_held:
            return [told]
        held = {**self._row, "version": self._next_version(), "state": JobState.PAUSED.value}
        return [job_transition(held, JobState.RUNNING, None), told]

    def _remap_steps(self, job: MigrationJob) -> list[Step]:
        """Return the steps that store a repaired map."""
        remap = {
            "n": self._view.n, "version": self._next_version(), "mapping_hash": job.mapping_hash,
            "definition": stored_definition(job),
        }  # fmt: skip
        audit = audit_step(self._view.n, self._by, "map repaired", job.mapping_hash)
        return [Step("job_remap", remap, needed=True), audit]

    def _next_version(self) -> int:
        """Return the version that the next transition expects, and advance it."""
        self._version += 1
        return self._version - 1


def _check_same_job(own: MigrationJob, other: MigrationJob) -> None:
    """Reject a repaired map for other systems, types or another tenant: records would be lost."""
    for side, mine, theirs in (("source", own.source, other.source), ("target", own.target, other.target)):
        if system_identity(mine) != system_identity(theirs):
            raise Invalid(f"the repaired job has another {side}", field=side, remedy="create a separate job")
    if {one.name for one in own.types} != {one.name for one in other.types} or own.tenant != other.tenant:
        raise Invalid("the repaired job has other types or tenant", field="types", remedy="keep their names")
