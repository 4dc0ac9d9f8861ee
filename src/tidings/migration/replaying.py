"""Replay: records that were set aside are opened again after a repair of data or map, and only those."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

import orjson

from ..kernel.clock import Clock
from ..model.errors import Invalid, Refused
from ..store.port import Row, Step, Store
from .jobfile import Job
from .jobs import OVER, JobState, JobView, identity, job_of
from .mapping.hashing import plain
from .opening import reopening
from .progress import status_of
from .telling import audited
from .undoing import refuse_while_undone

PAGE = 500
_REPAIRS = 100  # records of one transaction

Repaired = AsyncIterator[tuple[str, str, Mapping[str, Any]]]


async def dead_pages(
    store: Store, view: JobView, fingerprint: str | None, type_: str | None
) -> AsyncIterator[dict[str, Any]]:
    """The records set aside, page by page."""
    after = 0
    while True:
        page = await store.read(
            "job_dead_page", job=view.n, round=view.round, fingerprint=fingerprint, type=type_,
            after=after, limit=PAGE,
        )  # fmt: skip
        for row in page:
            yield {
                "type": row["type"],
                "id": row["source_id"],
                "standing": row["state"],
                "failure": row["failure"],
                "field": row["field"],
                "reason": row["reason"],
                "fingerprint": row["fingerprint"],
                "fields": None if row["raw"] is None else orjson.loads(row["raw"]),
            }
        if len(page) < PAGE:
            return
        after = page[-1]["seq"]


class Replay:
    """One replay of one job."""

    def __init__(self, store: Store, clock: Clock, row: Row, view: JobView, by: str) -> None:
        self._store = store
        self._clock = clock
        self._row = row
        self._view = view
        self._by = by

    async def open(
        self, fingerprint: str | None, type_: str | None, job: Job | None, repaired: Repaired | None
    ) -> int:
        """Open them again; gives how many."""
        if self._view.state not in (*OVER, JobState.RUNNING, JobState.PAUSED) or not self._view.round:
            raise Refused(f"the migration is {self._view.state}", remedy="run it first: tidings migrate run")
        if self._row["forgets"]:
            raise Refused(
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
                raw = orjson.dumps(plain(fields)).decode()
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

    async def _open(self, names: list[str], fingerprint: str | None, tag: str | None, job: Job | None) -> int:
        """All in one transaction: the job goes on, with batches of exactly these records."""
        view, opened, opens = self._view, 0, list[Step]()
        system = f"{view.tenant}/{identity(job_of(view).target)}/write"
        for name in names:
            where: dict[str, Any] = {"job": view.n, "type": name, "round": view.round, "system": system}
            async for portion in reopening(
                self._store, self._clock, **where, fingerprint=fingerprint, tag=tag
            ):
                opened += portion.size
                opens += portion.steps
        begins = await self._begins(opened) if opened else []
        steps = [*begins, *self._remaps(job, len(begins))]
        if opened:
            steps += [*opens, audited(view.n, self._by, "replayed", f"{opened} records")]
        if steps:
            await self._store.write(steps)
            await self._store.hint()
        return opened

    async def _begins(self, opened: int) -> list[Step]:
        """The job runs again, if it was over."""
        if self._view.state not in OVER:
            return []
        refuse_while_undone(self._row, self._clock.now())
        done = (await status_of(self._store, self._view, self._clock.now())).done
        begin = {
            "n": self._view.n, "version": self._row["version"], "expected": self._view.state.value,
            "state": JobState.RUNNING.value, "rounds": 0, "looks": bool(self._row["looks"]), "planned": False,
            "done": done - opened,
        }  # fmt: skip
        return [Step("job_begin", begin, needed=True)]

    def _remaps(self, job: Job | None, moved: int) -> list[Step]:
        """A repaired map; the job's row has been `moved` so often since it was read."""
        if job is None:
            return []
        remap = {
            "n": self._view.n, "version": self._row["version"] + moved, "mapping_hash": job.mapping_hash,
            "definition": orjson.dumps(job.definition).decode(),
        }  # fmt: skip
        audit = audited(self._view.n, self._by, "map repaired", job.mapping_hash)
        return [Step("job_remap", remap, needed=True), audit]


def _same_job(own: Job, other: Job) -> None:
    """A repaired map is of the same systems and the same types: otherwise records would be lost."""
    for side, mine, theirs in (
        ("source", own.source, other.source),
        ("target", own.target, other.target),
    ):
        if identity(mine) != identity(theirs):
            raise Invalid(
                f"the repaired job has another {side}", field=side, remedy="create a job of its own for it"
            )
    if {one.name for one in own.types} != {one.name for one in other.types} or own.tenant != other.tenant:
        raise Invalid(
            "the repaired job has other types or another tenant", field="types", remedy="keep their names"
        )
