"""MigrationService: the operations of the API, the CLI and the dashboard, one method each."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.errors import Conflict, Invalid, NotFound
from ..model.time import DAY
from ..store.port import IdempotencyRecord, Row, Step, Store, WriteConflict
from . import serializers
from .connector_pool import ConnectorPool
from .connectors.port import ConnectorError
from .crosswalk import StoredJobRecords
from .dead_letters import causes_of, dead_letters
from .job_events import audit_step, event_step
from .job_file import MigrationJob
from .job_replay import JobReplay, RepairedRecords
from .job_undo import JobUndo, UndoneRecord, UndoOutcome, refuse_during_undo, require_erase
from .jobs import (
    ENDED,
    WORKING,
    BatchState,
    FailureCause,
    JobState,
    JobStatus,
    JobView,
    PlannedAction,
    PlanReport,
    changed_concurrently,
    create_job_steps,
    job_of,
    job_transition,
    job_view,
    new_job_view,
)
from .mapping.lint import LintFinding
from .progress import plan_report_of, status_of
from .record_states import FINAL_STATES, RecordState
from .verification import verify
from .verification_report import RecordDifference, VerificationReport

IDEMPOTENCY_KEY_RETENTION = DAY
_LOG = 200  # lines shown of a record's log or the audit trail
_NEWEST = 1 << 62


class CreatedJob(NamedTuple):
    """A new job; or, if its idempotency key was used before, the stored digest and answer."""

    job: JobView
    earlier: Row | None = None


class MigrationService:
    """Jobs of all tenants. With `tenant`, jobs of others do not exist. `by` goes into the audit trail."""

    def __init__(self, store: Store, clock: Clock, connections: ConnectorPool) -> None:
        self._store, self._clock, self._connections = store, clock, connections

    async def create(self, job: MigrationJob, *, by: str) -> JobView:
        """Store a job parsed by `job_file`; nothing runs yet."""
        return (await self.create_once(job, None, by=by)).job

    async def create_once(self, job: MigrationJob, once: IdempotencyRecord | None, *, by: str) -> CreatedJob:
        """Create a job under an idempotency key: job, audit entry, key and answer in one transaction."""
        self._connections.allowed.check(job)
        id_, now = self._clock.new_id(), self._clock.now()
        steps = [*create_job_steps(id_, job, now), Step("job_audit_first", {"id": id_, "actor": by[:200]})]
        view = new_job_view(id_, job, now)
        if once is not None:
            answer = orjson.dumps(serializers.job(view)).decode()
            once = once._replace(answer=answer, expires_at=now + IDEMPOTENCY_KEY_RETENTION)
        done = await self._store.enqueue([], once=once, also=steps)
        return CreatedJob(view, done.earlier)

    async def find(self, id: str, *, tenant: str | None = None) -> JobView:
        """Return one job; raises NotFound."""
        return job_view(await self._row(id, tenant))

    async def page(
        self, *, tenant: str | None = None, state: JobState | None = None, before: int | None = None, limit: int = 50
    ) -> list[JobView]:
        """Return jobs, newest first; `before` is the `n` of the last job of the previous page."""
        rows = await self._store.read(
            "job_page", tenant=tenant, state=None if state is None else state.value,
            before=before or _NEWEST, limit=limit,
        )  # fmt: skip
        return [job_view(row) for row in rows]

    async def lint(self, id: str, *, tenant: str | None = None) -> list[LintFinding]:
        """Check the map against both systems: lost fields, wrong types, missing options."""
        row = await self._row(id, tenant)
        async with self._connections.use(row["n"], row["version"]) as opened:
            return await opened.lint()

    async def plan(self, id: str, *, by: str, lookup: bool = True, tenant: str | None = None) -> JobView:
        """Start a dry run; with `lookup`, the target is queried for existing records. Ends in state planned."""
        row = await self._row(id, tenant)
        self._expect(row, "planned", {JobState.NEW, JobState.PLANNED, JobState.APPROVED, *ENDED})
        return await self._begin(row, by, JobState.PLANNING, lookup=lookup, planned=False, anew=True)

    async def plan_report(self, id: str, *, tenant: str | None = None) -> PlanReport:
        """Return what a run would do: counts, causes, calls, time, and whether the quota suffices."""
        row = await self._row(id, tenant)
        view = job_view(row)
        async with self._connections.use(row["n"], row["version"]) as opened:
            return await plan_report_of(self._store, view, opened, self._clock.now(), lookup=bool(row["lookup"]))

    async def plan_page(
        self,
        id: str,
        *,
        type: str | None = None,
        action: PlannedAction | None = None,
        after: int = 0,
        limit: int = 100,
        tenant: str | None = None,
    ) -> list[Row]:
        """Planned records: seq, type, source_id, action, changes, reason; `after` is the last `seq`."""
        word = None if action is None else action.value
        rows = await self._records(id, tenant, type=type, state=None, action=word, after=after, limit=limit)
        return [{**row, "changes": orjson.loads(row["changes"] or "[]")} for row in rows]

    async def approve(self, id: str, *, by: str, tenant: str | None = None) -> JobView:
        row = await self._row(id, tenant)
        self._expect(row, "approved", {JobState.PLANNED})
        return await self._move(row, by, "approved", JobState.APPROVED)

    async def run(self, id: str, *, by: str, tenant: str | None = None) -> JobView:
        """Start the approved plan, or without a plan a run over everything in the source.

        An ended job starts again: the source is read anew, and only changes are written.
        """
        row = await self._row(id, tenant)
        if row["state"] == JobState.PLANNED:
            problem = "the migration has a plan that is not approved"
            raise Conflict(problem, remedy=f"approve it: tidings migrate approve {id}")
        self._expect(row, "run", {JobState.NEW, JobState.APPROVED, *ENDED})
        is_planned = row["state"] == JobState.APPROVED
        return await self._begin(
            row, by, JobState.RUNNING, lookup=bool(row["lookup"]), planned=is_planned, anew=not is_planned
        )

    async def pause(self, id: str, *, by: str, reason: str = "manual", tenant: str | None = None) -> JobView:
        """Pause reading and writing until the job is resumed."""
        row = await self._row(id, tenant)
        self._expect(row, "paused", set(WORKING))
        halt = Step("job_pause", {"n": row["n"], "reason": reason[:500], "until": None}, needed=True)
        tell = event_step(row, "migration.paused", reason)
        return await self._write(row, [halt, audit_step(row["n"], by, "paused", reason), tell])

    async def resume(self, id: str, *, by: str, tenant: str | None = None) -> JobView:
        row = await self._row(id, tenant)
        self._expect(row, "resumed", {JobState.PAUSED})
        steps = [
            job_transition(row, JobState(row["resume_state"]), None),
            Step("job_type_wake", {"job": row["n"]}),
            audit_step(row["n"], by, "resumed"),
            event_step(row, "migration.resumed", None),
        ]
        return await self._write(row, steps)

    async def cancel(self, id: str, *, by: str, reason: str = "manual", tenant: str | None = None) -> JobView:
        """Cancel the job for good; written records stay, open ones stay open."""
        row = await self._row(id, tenant)
        self._expect(row, "cancelled", set(JobState) - ENDED)
        return await self._move(row, by, "cancelled", JobState.CANCELLED, reason, event="migration.cancelled")

    async def _begin(self, row: Row, by: str, state: JobState, *, lookup: bool, planned: bool, anew: bool) -> JobView:
        if row["state"] in ENDED:
            refuse_during_undo(row, self._clock.now())
        begin = {
            "n": row["n"], "version": row["version"], "expected": row["state"], "state": state.value,
            "rounds": int(anew), "lookup": lookup, "planned": planned,
            "done": 0 if anew else await self._final(row),
        }  # fmt: skip
        steps = [
            Step("job_begin", begin, needed=True),
            Step("job_type_reset" if anew else "job_type_recut", {"job": row["n"]}),
            audit_step(row["n"], by, state.value),
        ]
        if state is JobState.RUNNING:
            steps.append(event_step(row, "migration.started", None))
        return await self._write(row, steps)

    async def _final(self, row: Row) -> int:
        status = await status_of(self._store, job_view(row), self._clock.now())
        return sum(n for state, n in status.counts.items() if state in FINAL_STATES)

    async def _move(
        self, row: Row, by: str, what: str, state: JobState, reason: str = "", *, event: str | None = None
    ) -> JobView:
        steps = [job_transition(row, state, reason or None), audit_step(row["n"], by, what, reason)]
        if event is not None:
            steps.append(event_step(row, event, reason or None))
        return await self._write(row, steps)

    async def _write(self, row: Row, steps: list[Step]) -> JobView:
        try:
            await self._store.write(steps)
        except WriteConflict:
            raise changed_concurrently() from None
        await self._store.hint()
        return await self.find(row["id"])

    async def status(self, id: str, *, tenant: str | None = None) -> JobStatus:
        return await status_of(self._store, await self.find(id, tenant=tenant), self._clock.now())

    async def summary(self, view: JobView) -> JobStatus:
        """Return the status of a job in a list, without batches, open links and idle systems."""
        return await status_of(self._store, view, self._clock.now(), is_summary=True)

    async def records(
        self,
        id: str,
        *,
        type: str | None = None,
        state: RecordState | None = None,
        after: int = 0,
        limit: int = 100,
        tenant: str | None = None,
    ) -> list[Row]:
        """Return records: seq, type, source_id, state, target_id, failure, field, reason, changed_at."""
        word = None if state is None else state.value
        return await self._records(id, tenant, type=type, state=word, action=None, after=after, limit=limit)

    async def record(self, id: str, type: str, source_id: str, *, tenant: str | None = None) -> Row:
        """Return one record with its source fields (`raw`) and its `log` of every attempt."""
        row = await self._row(id, tenant)
        found = await self._store.read("job_record_find", job=row["n"], type=type, source_id=source_id)
        if not found:
            problem = f"the migration has no {type[:60]} {source_id[:60]!r}"
            raise NotFound(problem, remedy="list them: tidings migrate records")
        log = await self._store.read("job_log_of", record=found[0]["seq"], limit=_LOG)
        raw = found[0]["raw"]
        return {**found[0], "raw": None if raw is None else orjson.loads(raw), "log": log}

    async def batches(
        self,
        id: str,
        *,
        state: BatchState | None = None,
        is_open: bool = False,
        before: str | None = None,
        limit: int = 100,
        tenant: str | None = None,
    ) -> list[Row]:
        """Return batches, newest first: id, type, phase, state, size, failures, written, unchanged, reason, times."""
        row = await self._row(id, tenant)
        which = {"state": state, "open": is_open, "before": before, "limit": limit}
        return await self._store.read("job_batch_page", job=row["n"], round=row["round"], **which)

    async def dead(self, id: str, *, tenant: str | None = None) -> list[FailureCause]:
        """Return dead letters by cause, the most frequent first."""
        return await causes_of(self._store, await self.find(id, tenant=tenant))

    async def export(
        self, id: str, *, fingerprint: str | None = None, type: str | None = None, tenant: str | None = None
    ) -> AsyncIterator[dict[str, Any]]:
        """Yield dead letters: type, id, state, failure, field, reason, fields (of the source)."""
        async for one in dead_letters(self._store, await self.find(id, tenant=tenant), fingerprint, type):
            yield one

    async def replay(
        self,
        id: str,
        *,
        by: str,
        fingerprint: str | None = None,
        type: str | None = None,
        job: MigrationJob | None = None,
        repaired: RepairedRecords | None = None,
        tell: Callable[[int], None] | None = None,
        tenant: str | None = None,
    ) -> int:
        """Reopen dead letters, and only those; return how many records.

        `job` brings a repaired map, `repaired` repaired records (type, id, fields). `tell` is called after
        each portion with the number of reopened records.
        """
        row = await self._row(id, tenant)
        if job is not None:
            job = self._connections.allowed.checked(job, job_of(job_view(row)))
        replay = JobReplay(self._store, self._clock, row, job_view(row), by, tell=tell)
        try:
            return await replay.open(fingerprint, type, job, repaired)
        except WriteConflict:
            raise changed_concurrently() from None

    async def verify(
        self, id: str, *, tell: Callable[[RecordDifference], None] | None = None, tenant: str | None = None
    ) -> VerificationReport:
        """Compare every source record with the target."""
        row = await self._row(id, tenant)
        async with self._connections.use(row["n"], row["version"]) as opened:
            ledger = StoredJobRecords(self._store, opened.crosswalk, row["n"], row["round"])
            try:
                return await verify(opened.job, opened.source, opened.target, opened.mapper, ledger, tell=tell)
            except ConnectorError as error:
                raise Conflict(f"verification failed: {error.reason}", remedy="fix it, then retry") from None

    async def check_undo(self, id: str, *, tenant: str | None = None) -> None:
        """Raise Conflict unless the job has ended with records, no undo runs, and the target can delete."""
        row = await self._undoable(id, tenant)
        async with self._connections.use(row["n"], row["version"]) as opened:
            require_erase(opened.target)

    async def undo(
        self,
        id: str,
        *,
        by: str,
        dry_run: bool,
        tell: Callable[[UndoneRecord], None],
        most: int | None = None,
        tenant: str | None = None,
    ) -> Counter[UndoOutcome]:
        """Delete from the target what the job created and nobody has changed since; return the outcomes.

        A dry run only reports the outcome of each record, of the first `most` if given.
        """
        row = await self._undoable(id, tenant)
        async with self._connections.use(row["n"], row["version"]) as opened:
            undo = JobUndo(self._store, self._clock, row, opened, tell=tell, most=most if dry_run else None)
            return await undo.work(by=by, dry_run=dry_run)

    async def _undoable(self, id_: str, tenant: str | None) -> Row:
        row = await self._row(id_, tenant)
        self._expect(row, "undone", set(ENDED))
        if row["pruning"]:
            raise Conflict("the migration's records have been deleted", remedy="nothing can be undone")
        refuse_during_undo(row, self._clock.now())
        return row

    async def crosswalk(
        self,
        id: str,
        type: str,
        *,
        source_id: str | None = None,
        target_id: str | None = None,
        tenant: str | None = None,
    ) -> list[Row]:
        """Return crosswalk rows: source_id, target_id, hash, job, changed_at."""
        if (source_id is None) == (target_id is None):
            raise Invalid("give one id", field="source_id", remedy="use source_id or target_id")
        row = await self._row(id, tenant)
        return await self._store.read(
            "crosswalk_find", pair=row["pair"], type=type, source_id=source_id, target_id=target_id, limit=100
        )

    async def audit(self, id: str, *, tenant: str | None = None) -> list[Row]:
        """Return the audit trail: at, who, what, detail."""
        row = await self._row(id, tenant)
        return await self._store.read("job_audit_page", job=row["n"], limit=_LOG)

    async def _row(self, id_: str, tenant: str | None) -> Row:
        rows = await self._store.read("job_find", id=id_)
        if not rows or (tenant is not None and rows[0]["tenant"] != tenant):
            raise NotFound(f"unknown migration {id_[:60]!r}", remedy="list them: tidings migrate list")
        return rows[0]

    async def _records(self, id_: str, tenant: str | None, **where: Any) -> list[Row]:
        row = await self._row(id_, tenant)
        return await self._store.read("job_record_page", job=row["n"], round=row["round"], **where)

    @staticmethod
    def _expect(row: Row, what: str, states: set[JobState]) -> None:
        if JobState(row["state"]) not in states:
            known = ", ".join(sorted(states))
            raise Conflict(f"the migration is {row['state']}", remedy=f"it can be {what} when it is: {known}")
