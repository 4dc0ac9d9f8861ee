"""Jobs, records and plans as JSON values for the API, the dashboard and `--json`; times in ISO 8601. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import orjson

from ..model.durations import humanize
from ..model.time import SECOND, iso
from ..store.port import Row
from .jobs import ENDED, WORKING, FailureCause, JobState, JobStatus, JobView, PlanReport, TypeStatus, job_of
from .mapping.lint import LintFinding
from .mapping.mapped_record import HIDDEN
from .record_states import RecordState

if TYPE_CHECKING:
    from .job_undo import UndoneRecord

JsonObject = dict[str, Any]
Word = TypeVar("Word", bound=StrEnum)

DEAD_LETTER_STATES = (RecordState.REJECTED, RecordState.FAILED, RecordState.CONFLICT)
_TIMES = ("at", "made_at", "changed_at", "due_at", "claimed_at")
_JSON = ("changes", "mapped", "attempts")


def job(view: JobView) -> JsonObject:
    return {
        "id": view.id,
        "name": view.name,
        "tenant": view.tenant,
        "state": str(view.state),
        "reason": view.reason,
        "blocked_until": iso(view.blocked_until) if view.state is JobState.PAUSED else None,
        "round": view.round,
        "source": view.definition["source"]["kind"],
        "target": view.definition["target"]["kind"],
        "mapping_hash": view.mapping_hash,
        "created_at": iso(view.created_at),
        "changed_at": iso(view.changed_at),
        "started_at": iso(view.started_at),
        "ended_at": iso(view.ended_at),
        "pruned_at": iso(view.pruned_at),
        "actions": allowed_actions(view.state, has_records=view.pruned_at is None),
    }


def status(found: JobStatus) -> JsonObject:
    """One job with its progress by type and state, and the current problem."""
    return {
        **job(found.job),
        "read": found.read,
        "expected": expected_records(found),
        "done": found.done,
        "quarantined": dead_letter_count(found.counts),
        "per_second": round(found.per_second, 2),
        "seconds_left": None if found.seconds_left is None else round(found.seconds_left, 1),
        "left": format_duration(found.seconds_left) if found.seconds_left and found.job.state in WORKING else None,
        "problem": found.problem,
        "undo": None if found.undo is None else found.undo._asdict(),
        "counts": _counted(found.counts),
        "types": [type_(one) for one in found.types],
        "batches": _counted(found.batches),
        "systems": [{**asdict(one), "blocked_until": iso(one.blocked_until)} for one in found.systems],
        "definition": found.job.definition,
    }


def type_(one: TypeStatus) -> JsonObject:
    return {
        "type": one.type,
        "wave": one.wave,
        "is_read": one.is_read,
        "expected": one.expected,
        "read": one.read,
        "done": one.done,
        "quarantined": dead_letter_count(one.counts),
        "counts": _counted(one.counts),
        "links_open": one.links_open,
        "note": one.note,
    }


def expected_records(found: JobStatus) -> int:
    """Return how many records are expected, as far as known."""
    return sum(max(one.read, 0 if one.is_read else one.expected or 0) for one in found.types)


def dead_letter_count(counts: Mapping[RecordState, int]) -> int:
    """Return how many records need a person."""
    return sum(counts.get(state, 0) for state in DEAD_LETTER_STATES)


def allowed_actions(state: JobState, *, has_records: bool = True) -> list[str]:
    """Return the actions that are allowed in a state."""
    if state in WORKING:
        return ["pause", "cancel"]
    if state in ENDED:
        return ["plan", "run", *(["replay", "undo"] if has_records else []), "verify"]
    return {
        JobState.PAUSED: ["resume", "cancel"],
        JobState.PLANNED: ["approve", "plan", "cancel"],
        JobState.APPROVED: ["run", "plan", "cancel"],
    }.get(state, ["plan", "run", "cancel"])


def cause(one: FailureCause) -> JsonObject:
    return {**asdict(one), "state": str(one.state)}


def plan(report: PlanReport) -> JsonObject:
    return {
        "job": job(report.job),
        "actions": {name: _counted(found) for name, found in report.actions.items()},
        "causes": [cause(one) for one in report.causes],
        "notes": list(report.notes),
        "calls": report.reads + report.writes,
        "reads": report.reads,
        "writes": report.writes,
        "seconds": report.seconds,
        "length": None if report.seconds is None else format_duration(report.seconds),
        "fits_this_month": report.fits_this_month,
    }


def finding(one: LintFinding) -> JsonObject:
    return {**one._asdict(), "level": str(one.level)}


def undone_record(one: UndoneRecord) -> JsonObject:
    return {**one._asdict(), "result": str(one.result)}


def batch(found: Row) -> JsonObject:
    """One batch, with the number of its current, next or last attempt."""
    plain = row(found)
    return {**plain, "attempt": plain.pop("failures") + 1, "seconds": round(plain.pop("spent") / SECOND, 3)}


def row(found: Row) -> JsonObject:
    """A record, or a line of a log or of the audit trail: times and stored JSON as values."""
    return {name: _plain(name, value) for name, value in found.items()}


def record(found: Row, view: JobView) -> JsonObject:
    """One record with its log; fields that the map marks as secret are hidden (the export has them)."""
    plain = row(found)
    secret = [rule for rule in job_of(view).type(found["type"]).fields if rule.secret]
    there = {name for rule in secret for path in rule.reads for name in (path, path.partition(".")[0])}
    here = {rule.name for rule in secret}
    hidden = {"raw": there, "mapped": here}
    return {**plain, **{part: _hidden(plain[part], names) for part, names in hidden.items() if part in plain}}


def _hidden(fields: Any, names: set[str]) -> Any:
    if not isinstance(fields, dict):
        return fields
    return {name: HIDDEN if name in names else value for name, value in fields.items()}


def format_duration(seconds: float) -> str:
    """Format a duration roughly."""
    return " ".join(humanize(timedelta(seconds=max(1, round(seconds)))).split()[:4])


def _plain(name: str, value: Any) -> Any:
    if isinstance(value, list):
        return [row(one) if isinstance(one, dict) else one for one in value]
    if name in _TIMES and isinstance(value, int):
        return iso(value) if value else None
    if name in _JSON and isinstance(value, str):
        return orjson.loads(value)
    return value


def _counted(counts: Mapping[Word, int]) -> dict[str, int]:
    """Return the nonzero counts in the order of the enum."""
    words = list(type(next(iter(counts)))) if counts else []
    return {str(word): counts[word] for word in words if counts.get(word)}
