"""States and views of jobs, types and batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from ..model.errors import Conflict
from ..store.port import Row, Step
from .credentials import is_reference
from .job_file import MigrationJob, SystemConfig, read_job
from .mapping.content_hash import content_digest
from .record_states import RecordState


class JobState(StrEnum):
    """The state of a job.

    new ─▶ planning ─▶ planned ─▶ approved ─▶ running ─▶ completed | failed
    new ─▶ running: without a plan. paused: from planning and running, and back. cancelled: from everywhere.
    """

    NEW = "new"
    PLANNING = "planning"  # reads and maps everything, writes nothing
    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    PAUSED = "paused"  # by a person, by an error, or until an instant
    CANCELLED = "cancelled"
    COMPLETED = "completed"  # every record is final
    FAILED = "failed"  # every record is final, and none is in the target


WORKING = frozenset({JobState.PLANNING, JobState.RUNNING})
ENDED = frozenset({JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED})


class BatchState(StrEnum):
    """The state of a batch.

    pending ─▶ processing ─▶ completed | failed ─▶ retrying ─▶ completed | failed_final
    A batch that is released (its turn is over, its job is paused) returns to pending, or to failed after a failure.
    """

    PENDING = "pending"
    PROCESSING = "processing"  # the first attempt is running
    COMPLETED = "completed"  # every record is final, and none has used up its attempts
    FAILED = "failed"  # an attempt failed, or some of its records; a retry follows
    RETRYING = "retrying"  # a later attempt is running
    FAILED_FINAL = "failed_final"  # every record is final, and some have used up their attempts


class PlannedAction(StrEnum):
    """What a plan says about a record."""

    CREATE = "create"
    UPDATE = "update"
    WRITE = "write"  # create or update: the target cannot be queried
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    UNRESOLVED = "unresolved"  # a link whose record is neither in the target nor planned
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class JobView:
    """A job as people and programs see it."""

    id: str
    n: int  # its row number
    tenant: str
    name: str
    state: JobState
    reason: str | None  # why it is paused or failed
    blocked_until: int | None  # when it resumes automatically
    round: int  # how often it was started
    mapping_hash: str
    created_at: int
    changed_at: int
    started_at: int | None
    ended_at: int | None
    done_before: int  # final records before its last start
    pruned_at: int | None  # when its records and logs were deleted; counts and audit trail stay
    definition: Mapping[str, Any]
    is_local: bool  # from a file on the command line


_COLUMNS = {one.name for one in fields(JobView)} - {"state", "definition", "is_local"}


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """One record type of a job."""

    type: str
    wave: int
    is_read: bool  # the source is fully read
    expected: int | None  # as the source counted before reading
    read: int  # records read so far
    counts: Mapping[RecordState, int]  # by state; unprocessed ones are EXTRACTED, in a plan planned ones are READY
    done: int  # records in a final state; in a plan, also planned ones
    links_open: int  # written without a link that was missing
    note: str | None  # a note about the source


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """A source or target as all nodes see it."""

    name: str
    concurrency: float  # its current adaptive limit
    blocked_until: int | None
    reason: str | None
    used_this_month: int


class UndoProgress(NamedTuple):
    """An undo that has not ended."""

    is_running: bool  # False: its process died; undo again to continue
    deleted: int
    left: int  # written records that are still in the target


@dataclass(frozen=True, slots=True)
class JobStatus:
    """The progress of a job."""

    job: JobView
    types: Sequence[TypeStatus]
    batches: Mapping[BatchState, int]
    systems: Sequence[SystemStatus]
    read: int
    done: int
    counts: Mapping[RecordState, int]
    per_second: float  # records finished per second of work
    seconds_left: float | None  # None: unknown
    problem: str | None  # what delays it now
    undo: UndoProgress | None


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Dead letters of a job with one cause."""

    fingerprint: str
    state: RecordState
    type: str
    failure: str | None
    field: str | None
    count: int
    example: str  # the source id of one of them
    reason: str  # the error of that one


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a run would do."""

    job: JobView
    actions: Mapping[str, Mapping[PlannedAction, int]]  # by type
    causes: Sequence[FailureCause]
    notes: Sequence[str]  # lint findings, notes about the source, quota
    reads: int  # of the target: each record is looked up again before it is written
    writes: int
    seconds: float | None  # the least, at the rate limits; None: unlimited
    fits_this_month: bool | None  # None: no quota


def new_job_view(id_: str, job: MigrationJob, now: int) -> JobView:
    """Return the view of a new job; its number is not known yet."""
    return JobView(
        id_, 0, job.tenant, job.name, JobState.NEW, None, None, 0, job.mapping_hash, now, now, None, None, 0,
        None, job.definition, job.is_local,
    )  # fmt: skip


def create_job_steps(id_: str, job: MigrationJob, now: int) -> list[Step]:
    """Return the steps that create a job with its types; a known pair of systems is reused."""
    pair = {"tenant": job.tenant, "source": system_identity(job.source), "target": system_identity(job.target)}
    text, hash_ = stored_definition(job), job.mapping_hash
    made = {"id": id_, "name": job.name, "mapping_hash": hash_, "definition": text, "at": now}
    waves = {name: wave for wave, names in enumerate(job.waves) for name in names}
    types = [{"id": id_, "type": one.name, "wave": waves[one.name]} for one in job.types]
    return [
        Step("job_pair_add", pair),
        Step("job_add", {**pair, **made}, needed=True),
        *(Step("job_type_add", one) for one in types),
    ]


def stored_definition(job: MigrationJob) -> str:
    """Return the job as stored; `local` is not a key of a job file, so no caller can set it."""
    return orjson.dumps({**job.definition, "local": True} if job.is_local else job.definition).decode()


def job_view(row: Row) -> JobView:
    """Return the view of a row of `jobs`."""
    definition = orjson.loads(row["definition"])
    is_local = definition.pop("local", False) is True
    columns = {name: row[name] for name in _COLUMNS}
    return JobView(**columns, state=JobState(row["state"]), definition=definition, is_local=is_local)


def job_of(view: JobView) -> MigrationJob:
    """Parse the stored definition; it was validated, and hooks were allowed or rejected, at creation."""
    return read_job(view.definition, is_local=view.is_local)


def job_transition(row: Row, state: JobState, reason: str | None) -> Step:
    """Return the step that changes a job's state if its row is unchanged."""
    params = {
        "n": row["n"], "version": row["version"], "expected": row["state"], "state": state.value,
        "resume_state": None, "reason": reason, "blocked_until": None,
        "is_over": state in ENDED,
    }  # fmt: skip
    return Step("job_move", params, needed=True)


def changed_concurrently() -> Conflict:
    """Return the error for a job that changed between reading and writing it."""
    return Conflict("the migration changed concurrently", remedy="check its state, then try again")


def system_identity(system: SystemConfig) -> str:
    """Return the name of a system in the crosswalk and the rate limiter: the same for the same account.

    The job's `name` for it, or a hash of its place and the references of its credentials.
    """
    if system.name is not None:
        return system.name
    place = [str(system.options[key]) for key in ("url", "path") if key in system.options]
    account = [
        value
        for _, value in sorted(system.options.items())
        if isinstance(value, str) and is_reference(value) and value not in place
    ]
    if not place and not account:
        return system.kind
    return f"{system.kind}:{content_digest([place, account])[:12]}"
