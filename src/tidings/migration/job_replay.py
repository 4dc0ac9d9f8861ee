"""Replay: records that were set aside are opened again after a repair of data or map, and only those.

Many are opened in portions, each one transaction. The job rests meanwhile, so that none is tried before what
it waits for is open, too; if the replay dies, the job goes on by itself with those that are open, the others
are set aside as before, and a replay opens them.
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
from .reopened_batches import ReopenedBatch, failure_causes, reopen_records

PAGE = 500
LEASE = 60 * SECOND  # longer than a portion takes
REPLAY_PAUSE_REASON = "records that were set aside are being opened again"
_REPAIRS = 100  # records of one transaction

Repaired = AsyncIterator[tuple[str, str, Mapping[str, Any]]]
Tell = Callable[[int], None]  # how many are open by now


async def dead_letters(
    store: Store, view: JobView, fingerprint: str | None, type_: str | None
) -> AsyncIterator[dict[str, Any]]:
    """The records set aside, cause by cause and page by page."""
    which = {"job": view.n, "round": view.round, "type": type_, "limit": PAGE}
    async for cause in failure_causes(store, view.n, fingerprint):
        after = 0
        while rows := await store.read("job_dead_page", **which, fingerprint=cause, after=after):
            for row in rows:
                yield _dead(row)
            after = rows[-1]["seq"]


def _dead(row: Row) -> dict[str, Any]:
    return {
        "type": row["type"],
        "id": row["source_id"],
        "standing": row["state"],
        "failure": row["failure"],
        "field": row["field"],
        "reason": row["reason"],
        "fingerprint": row["fingerprint"],
        "fields": None if row["raw"] is None else orjson.loads(row["raw"]),
    }


class JobReplay:
    """One replay of one job."""

    def __init__(
        self, store: Store, clock: Clock, row: Row, view: JobView, by: str, *, tell: Tell | None = None
    ) -> None:
        self._store = store
        self._clock = clock
        self._row = row
        self._view = view
        self._by = by
        self._tell = tell
        self._version: int = row["version"]
        self._opened = 0
        self._is_held = False  # the job rests until all are open
        self._stays = False  # it was paused before, and stays so

    async def open(
        self, fingerprint: str | None, type_: str | None, job: MigrationJob | None, repaired: Repaired | None
    ) -> int:
        """Open them again; gives how many."""
        if self._view.state not in (*ENDED, JobState.RUNNING, JobState.PAUSED) or not self._view.round:
            raise Conflict(f"the migration is {self._view.state}", remedy="run it first: tidings migrate run")
        if self._row["pruning"]:
            raise Conflict(
                "the migration's records are forgotten by now", remedy="run it again: tidings migrate run"
            )
        own = job_of(self._view)
        if job is not None:
            _same_job(own, job)
        names = [one.name for one in own.types] if type_ is None else [own.type(type_).name]
        tag = None if repaired is None else f"repaired {self._clock.new_id()}"
        if repaired is not None and tag is not None:
            await self._repair(repaired, names, tag)
        return await self._open(names, fingerprint, tag, job)

    async def _repair(self, repaired: Repaired, names: list[str], tag: str) -> None:
        steps: list[Step] = []
        async for type_, id_, fields in repaired:
            if type_ not in names:
                raise Invalid(
                    f"a repaired record is of type {type_[:60]!r}", field="type", remedy=f"use {names}"
                )
            try:
                raw = orjson.dumps(plain_json(fields)).decode()
            except (ValueError, TypeError) as error:
                problem = f"the repaired record {type_} {id_[:60]} {error}"
                raise Invalid(problem, field="fields", remedy="give plain JSON") from None
            where = {"job": self._view.n, "type": type_, "source_id": id_, "raw": raw, "tag": tag}
            steps.append(Step("job_repair", where))
            noted = {"job": self._view.n, "type": type_, "source_id": id_, "who": f"by {self._by}"[:200]}
            steps.append(Step("job_repair_log", noted, only_if=len(steps) - 1))
            if len(steps) >= 2 * _REPAIRS:
                await self._store.write(steps)
                steps = []
        if steps:
            await self._store.write(steps)

    async def _open(
        self, names: list[str], fingerprint: str | None, tag: str | None, job: MigrationJob | None
    ) -> int:
        """Portion by portion; the first begins the job, the last lets it run."""
        portions = self._portions(names, fingerprint, tag)
        portion = await anext(portions, None)
        if portion is None:
            if job is not None:
                await self._store.write(self._remaps(job))
            return 0
        before = await self._begins(portion.size, job)
        while portion is not None:
            following = await anext(portions, None)
            after = self._ends(portion.size) if following is None else self._rests()
            await self._write([*before, *portion.steps, *after])
            portion = following
            before = [] if portion is None else [self._holds(portion.size)]
        await self._store.hint()
        return self._opened

    async def _portions(
        self, names: list[str], fingerprint: str | None, tag: str | None
    ) -> AsyncIterator[ReopenedBatch]:
        """What one transaction opens: a batch of one type, or small ones of several."""
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
        """All of these or none; what was opened before stays open."""
        try:
            done = await self._store.write(steps)
        except WriteConflict:
            if not self._opened:
                raise
            raise Conflict(
                f"the migration was moved by somebody else when {self._opened:,} records were open again",
                remedy="look at it, then replay the others",
            ) from None
        pairs = zip(steps, done, strict=True)
        self._opened += sum(len(rows) for step, rows in pairs if step.name == "job_reopen")
        if self._tell is not None:
            self._tell(self._opened)

    async def _begins(self, size: int, job: MigrationJob | None) -> list[Step]:
        """The job runs, if it was over, or if a replay that died has left it at rest."""
        if self._view.state in ENDED:
            refuse_during_undo(self._row, self._clock.now())
            done = (await status_of(self._store, self._view, self._clock.now())).done
            begin = {
                "n": self._view.n, "version": self._moved(), "expected": self._view.state.value,
                "state": JobState.RUNNING.value, "rounds": 0, "lookup": bool(self._row["lookup"]),
                "planned": False, "done": done - size,
            }  # fmt: skip
            steps = [Step("job_begin", begin, needed=True)]
        elif self._view.state is JobState.PAUSED and self._row["reason"] == REPLAY_PAUSE_REASON:
            steps = [job_transition({**self._row, "version": self._moved()}, JobState.RUNNING, None)]
        else:
            steps = [self._holds(size)]
            self._stays = self._view.state is JobState.PAUSED
        return steps if job is None else [*steps, *self._remaps(job)]

    def _rests(self) -> list[Step]:
        """There is more to open: it rests until then, unless it is paused anyway."""
        if self._stays or self._is_held:
            return []
        self._is_held, until = True, self._clock.now() + LEASE
        self._moved()
        halt = {"n": self._view.n, "reason": REPLAY_PAUSE_REASON, "until": until}
        return [
            Step("job_pause", halt, needed=True),
            audit_step(self._view.n, self._by, "replay begun", "in portions"),
        ]

    def _holds(self, size: int) -> Step:
        """Nobody has moved the job meanwhile; what counts as done before its beginning is less."""
        began = self._view.state in ENDED
        hold = {
            "n": self._view.n, "version": self._version, "lease": LEASE if self._is_held else None,
            "opened": size if began else 0,
        }  # fmt: skip
        return Step("job_replay_hold", hold, needed=True)

    def _ends(self, size: int) -> list[Step]:
        """All are open: the job goes on, if it rests for that."""
        told = audit_step(self._view.n, self._by, "replayed", f"{self._opened + size} records")
        if not self._is_held:
            return [told]
        held = {**self._row, "version": self._moved(), "state": JobState.PAUSED.value}
        return [job_transition(held, JobState.RUNNING, None), told]

    def _remaps(self, job: MigrationJob) -> list[Step]:
        """A repaired map."""
        remap = {
            "n": self._view.n, "version": self._moved(), "mapping_hash": job.mapping_hash,
            "definition": stored_definition(job),
        }  # fmt: skip
        audit = audit_step(self._view.n, self._by, "map repaired", job.mapping_hash)
        return [Step("job_remap", remap, needed=True), audit]

    def _moved(self) -> int:
        """The version that the next move expects; it makes the one after it."""
        self._version += 1
        return self._version - 1


def _same_job(own: MigrationJob, other: MigrationJob) -> None:
    """A repaired map is of the same systems and the same types: otherwise records would be lost."""
    for side, mine, theirs in (
        ("source", own.source, other.source),
        ("target", own.target, other.target),
    ):
        if system_identity(mine) != system_identity(theirs):
            raise Invalid(
                f"the repaired job has another {side}", field=side, remedy="create a job of its own for it"
            )
    if {one.name for one in own.types} != {one.name for one in other.types} or own.tenant != other.tenant:
        raise Invalid(
            "the repaired job has other types or another tenant", field="types", remedy="keep their names"
        )
