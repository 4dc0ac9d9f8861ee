"""Jobs, their types and batches as the database has them: states, rows, and how far a job is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import orjson

from ..store.port import Row, Step
from .connectors.port import FINAL_STATES, RecordState
from .credentials import is_reference
from .job_file import MigrationJob, SystemConfig, read_job
from .mapping.content_hash import content_digest


class JobState(StrEnum):
    """Where a job stands.

    new ─▶ planning ─▶ planned ─▶ approved ─▶ running ─▶ completed | failed
    new ─▶ running: without a plan. paused: from planning and running, and back. cancelled: from everywhere.
    """

    NEW = "new"
    PLANNING = "planning"  # reads and maps everything, writes nothing
    PLANNED = "planned"
    APPROVED = "approved"
    RUNNING = "running"
    PAUSED = "paused"  # by a person, or because somebody must look, or until an instant
    CANCELLED = "cancelled"
    COMPLETED = "completed"  # every record has its end
    FAILED = "failed"  # every record has its end, and none of them is in the target


WORKING = frozenset({JobState.PLANNING, JobState.RUNNING})
ENDED = frozenset({JobState.CANCELLED, JobState.COMPLETED, JobState.FAILED})


class BatchState(StrEnum):
    """Where a batch stands."""

    PENDING = "pending"
    PROCESSING = "processing"
    RETRYING = "retrying"
    COMPLETED = "completed"
    FAILED = "failed"
    FAILED_FINAL = "failed_final"


class PlannedAction(StrEnum):
    """What a plan says about a record."""

    CREATE = "create"
    UPDATE = "update"
    WRITE = "write"  # one of the two: the target cannot be asked
    UNCHANGED = "unchanged"
    REJECTED = "rejected"
    SKIPPED = "skipped"
    UNRESOLVED = "unresolved"  # a link whose other end is neither there nor to come
    CONFLICT = "conflict"


@dataclass(frozen=True, slots=True)
class JobView:
    """A job, for people and programs."""

    id: str
    n: int  # its number within the database
    tenant: str
    name: str
    state: JobState
    reason: str | None  # why it is paused, failed, or not as asked
    blocked_until: int | None  # it goes on by itself then
    round: int  # how often it was begun
    mapping_hash: str
    created_at: int
    changed_at: int
    started_at: int | None
    ended_at: int | None
    done_before: int  # records that had their end before it began last
    pruned_at: int | None  # since then its records and logs are gone; its counts and its audit trail stay
    definition: Mapping[str, Any]
    is_local: bool  # it came from a file on the command line


@dataclass(frozen=True, slots=True)
class TypeStatus:
    """One record type of a job."""

    type: str
    wave: int
    is_read: bool  # the source has no more
    expected: int | None  # as the source said before it was read
    read: int  # records that are here
    counts: Mapping[RecordState, int]  # of these, by where they stand; those not looked at yet are EXTRACTED
    links_open: int  # written without a link that was not there
    note: str | None  # what was noticed about the source

    @property
    def done(self) -> int:
        """Records that have their end."""
        return sum(count for standing, count in self.counts.items() if standing in FINAL_STATES)


@dataclass(frozen=True, slots=True)
class SystemStatus:
    """A source or target as all nodes see it."""

    name: str
    concurrency: float  # calls at once that it bears at present
    blocked_until: int | None
    reason: str | None
    used_this_month: int


@dataclass(frozen=True, slots=True)
class JobStatus:
    """How far a job is."""

    job: JobView
    types: Sequence[TypeStatus]
    batches: Mapping[BatchState, int]
    systems: Sequence[SystemStatus]
    read: int
    done: int
    counts: Mapping[RecordState, int]
    per_second: float  # records ended per second of work, since it began
    seconds_left: float | None  # None: nobody can say
    problem: str | None  # what holds it up at the moment


@dataclass(frozen=True, slots=True)
class FailureCause:
    """Records of a job that were set aside for one reason."""

    fingerprint: str
    standing: RecordState
    type: str
    failure: str | None
    field: str | None
    count: int
    example: str  # the source id of one of them
    reason: str  # what was said about it


@dataclass(frozen=True, slots=True)
class PlanReport:
    """What a run would do."""

    job: JobView
    actions: Mapping[str, Mapping[PlannedAction, int]]  # by type
    causes: Sequence[FailureCause]
    notes: Sequence[str]  # lint, what the source showed, what will not fit
    calls: int
    seconds: float | None  # under the limit per second; None: there is none
    fits_this_month: bool | None  # None: nobody counts


def new_job_view(id_: str, job: MigrationJob, now: int) -> JobView:
    """A job that was made just now; its number is not known yet."""
    return JobView(
        id_, 0, job.tenant, job.name, JobState.NEW, None, None, 0, job.mapping_hash, now, now, None, None, 0,
        None, job.definition, job.is_local,
    )  # fmt: skip


def create_job_steps(id_: str, job: MigrationJob, now: int) -> list[Step]:
    """A new job with its types; its pair of systems is the one that earlier jobs had, too."""
    pair = {
        "tenant": job.tenant,
        "source": system_identity(job.source),
        "target": system_identity(job.target),
    }
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
    """The job as it is stored; `local` is no key of a job file, so no caller can write it."""
    return orjson.dumps({**job.definition, "local": True} if job.is_local else job.definition).decode()


def job_view(row: Row) -> JobView:
    """A row of `jobs`."""
    definition = orjson.loads(row["definition"])
    is_local = definition.pop("local", False) is True
    return JobView(
        row["id"],
        row["n"],
        row["tenant"],
        row["name"],
        JobState(row["state"]),
        row["reason"],
        row["blocked_until"],
        row["round"],
        row["mapping_hash"],
        row["created_at"],
        row["changed_at"],
        row["started_at"],
        row["ended_at"],
        row["done_before"],
        row["pruned_at"],
        definition,
        is_local,
    )


def job_of(view: JobView) -> MigrationJob:
    """What was written in its file; it was checked when it came, and hooks were allowed or refused then."""
    return read_job(view.definition, is_local=view.is_local)


def job_transition(row: Row, state: JobState, reason: str | None) -> Step:
    """Another state of a job, if it is still as it was looked at."""
    params = {
        "n": row["n"], "version": row["version"], "expected": row["state"], "state": state.value,
        "resume_state": None, "reason": reason, "blocked_until": None,
        "is_over": state in ENDED,
    }  # fmt: skip
    return Step("job_move", params, needed=True)


def system_identity(system: SystemConfig) -> str:
    """What a system is called in the crosswalk and by the limiter: the same for the same system and account.

    Its place and the references of its credentials, unless the job gives it a `name`.
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
