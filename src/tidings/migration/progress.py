"""Status of a job and its plan report: counts derived from rows, at a nearly constant cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import orjson

from ..model.time import SECOND, iso
from ..store.port import Row, Store
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, Quota, Record, SupportsCallEstimate, SupportsQuota, WriteStrategy
from .dead_letters import causes_of
from .dry_run import estimate_calls
from .jobs import (
    ENDED,
    WORKING,
    BatchState,
    JobState,
    JobStatus,
    JobView,
    PlannedAction,
    PlanReport,
    SystemStatus,
    TypeStatus,
    UndoProgress,
    job_of,
    system_identity,
)
from .mapping.rules import TypeMap
from .rate_limits import month_of
from .record_states import FINAL_STATES, RecordState

SAMPLE = 500  # records whose links the plan report counts


async def status_of(store: Store, view: JobView, now: int, *, is_summary: bool = False) -> JobStatus:
    """Return the status of a job.

    A summary, for a list, is without batches and open links, and has systems only while the job works.
    """
    rows = await store.read("job_type_list", job=view.n)
    states: Sequence[Row] = ()
    links: dict[str, int] = {}
    if not is_summary:
        states = await store.read("job_batch_states", job=view.n, round=view.round)
        links = {row["type"]: (await store.read("job_links", job=view.n, type=row["type"]))[0]["n"] for row in rows}
    systems = [] if is_summary and view.state not in WORKING else await _systems(store, view, now)
    quarantined = await store.read("job_counts", job=view.n, round=view.round)
    is_plan = view.state in (JobState.PLANNING, JobState.PLANNED, JobState.APPROVED)
    types = [_type(row, quarantined, links.get(row["type"], 0), is_plan=is_plan) for row in rows]
    counts: Counter[RecordState] = Counter()
    for one in types:
        counts.update(one.counts)
    read, done = sum(one.read for one in types), sum(one.done for one in types)
    speed = _speed(view, done, now)
    return JobStatus(
        view,
        types,
        {BatchState(row["state"]): row["n"] for row in states},
        systems,
        read,
        done,
        dict(counts),
        speed,
        _left(view, types, done, speed),
        _problem(view, rows, systems, now),
        await _undo(store, view, counts, now),
    )


async def _undo(store: Store, view: JobView, counts: Mapping[RecordState, int], now: int) -> UndoProgress | None:
    if view.state not in ENDED or view.blocked_until is None:
        return None
    deleted = (await store.read("job_undone", job=view.n))[0]["n"]
    return UndoProgress(view.blocked_until > now, deleted, counts.get(RecordState.WRITTEN, 0))


def _type(row: Row, quarantined: Sequence[Row], links: int, *, is_plan: bool) -> TypeStatus:
    counts = _counts(row, quarantined, is_plan=is_plan)
    ended = FINAL_STATES | {RecordState.READY, RecordState.WAITING} if is_plan else FINAL_STATES
    return TypeStatus(
        row["type"],
        row["wave"],
        bool(row["is_read"]),
        row["expected"],
        row["extracted"],
        counts,
        sum(count for state, count in counts.items() if state in ended),
        links,
        row["problem"] or row["note"],
    )


def _counts(row: Row, quarantined: Sequence[Row], *, is_plan: bool) -> dict[RecordState, int]:
    if row["counts"] is not None:  # its records are deleted, or about to be
        return {RecordState(state): int(n) for state, n in orjson.loads(row["counts"]).items()}
    counts = {RecordState(one["state"]): int(one["n"]) for one in quarantined if one["type"] == row["type"]}
    counts |= {RecordState.WRITTEN: int(row["written"]), RecordState.UNCHANGED: int(row["unchanged"])}
    counts[RecordState.READY] = int(row["planned"]) if is_plan else 0
    counts[RecordState.EXTRACTED] = max(0, row["extracted"] - sum(counts.values()))
    return {state: count for state, count in counts.items() if count}


async def _systems(store: Store, view: JobView, now: int) -> list[SystemStatus]:
    job = job_of(view)
    names = [
        f"{view.tenant}/{system_identity(job.source)}/read",
        *(f"{view.tenant}/{system_identity(job.target)}/{what}" for what in ("read", "write")),
    ]
    found = []
    for name in dict.fromkeys(names):
        for row in await store.read("job_system_find", system=name):
            until = row["blocked_until"] if row["blocked_until"] > now else None
            used = row["used"] if row["month"] == month_of(now) else 0
            reason = row["reason"] if until else None
            found.append(SystemStatus(name, row["concurrency"], until, reason, used))
    return found


def _speed(view: JobView, done: int, now: int) -> float:
    if view.started_at is None:
        return 0.0
    seconds = ((view.ended_at or now) - view.started_at) / SECOND
    return max(0, done - view.done_before) / seconds if seconds > 0 else 0.0


def _left(view: JobView, types: Sequence[TypeStatus], done: int, speed: float) -> float | None:
    if view.state in ENDED or view.state is JobState.PLANNED:
        return 0.0
    total = sum(max(one.read, 0 if one.is_read else one.expected or 0) for one in types)
    if speed <= 0 or not all(one.is_read or one.expected is not None for one in types):
        return None
    return max(0.0, (total - done) / speed)


def _problem(view: JobView, rows: Sequence[Row], systems: Sequence[SystemStatus], now: int) -> str | None:
    if view.state not in WORKING:
        return None
    for system in systems:
        if system.blocked_until is not None:
            return f"{system.name}: {system.reason or 'throttled'}, until {iso(system.blocked_until)}"
    return next((str(row["problem"]) for row in rows if row["problem"]), None)


async def plan_report_of(store: Store, view: JobView, opened: OpenedJob, now: int, *, lookup: bool) -> PlanReport:
    """Return what a run would do, and whether it fits into the monthly quota."""
    findings = await opened.lint()
    actions: dict[str, dict[PlannedAction, int]] = {one.name: {} for one in opened.job.types}
    for row in await store.read("job_plan_counts", job=view.n, round=view.round):
        if row["action"] is not None:
            actions[row["type"]][PlannedAction(row["action"])] = row["n"]
    for row in await store.read("job_counts", job=view.n, round=view.round):
        counts = actions[row["type"]]
        if row["state"] == RecordState.REJECTED:  # includes unreadable records
            counts[PlannedAction.REJECTED] = row["n"]
    reads, writes = _calls(opened, actions, lookup=lookup)
    rows = await store.read("job_type_list", job=view.n)
    fits, notes = await _budget(store, opened, reads, writes, {row["type"]: row["extracted"] for row in rows}, now)
    notes += [str(row["note"]) for row in rows if row["note"]]
    notes += [note for one in opened.job.types for note in await _relations(store, view, opened, one)]
    paced = ((reads, opened.target.limits.reads_per_second), (writes, opened.limits.writes_per_second))
    seconds = [calls / per_second for calls, per_second in paced if per_second is not None]
    return PlanReport(
        view,
        actions,
        await causes_of(store, view),
        [*notes, *map(str, findings)],
        reads,
        writes,
        max(seconds, default=None),
        fits,
    )


async def _relations(store: Store, view: JobView, opened: OpenedJob, type_: TypeMap) -> list[str]:
    """Return how many of the first records have a link, for each relation of a type."""
    fields = [rule.name for rule in type_.fields if rule.reference is not None]
    if not fields:
        return []
    rows = await store.read("job_record_sample", job=view.n, round=view.round, type=type_.name, limit=SAMPLE)
    records = [Record(type_.name, row["source_id"], orjson.loads(row["raw"])) for row in rows]
    linked = Counter(field for one in records for field in {link[0] for link in opened.mapper.links(one)})
    return [
        f"{'' if linked[field] or not rows else 'warning: '}{type_.name}.{field}: "
        f"{linked[field]:,} of {'the first ' if len(rows) == SAMPLE else ''}{len(rows):,} records have a link"
        for field in fields
    ]


def _calls(opened: OpenedJob, actions: Mapping[str, Mapping[PlannedAction, int]], *, lookup: bool) -> tuple[int, int]:
    calls = [(0, 0)]
    for name, counts in actions.items():
        strategy = opened.target.strategy(opened.job.type(name).target)
        strategy = WriteStrategy.SEARCH if opened.file_limit(name) else strategy  # looked up before the upload
        calls.append(estimate_calls(counts, strategy, opened.limits.bulk, lookup=lookup))
    reads, writes = zip(*calls, strict=True)
    return sum(reads), sum(writes)


async def _budget(
    store: Store, opened: OpenedJob, reads: int, writes: int, read: Mapping[str, int], now: int
) -> tuple[bool | None, list[str]]:
    """Check the calls against the monthly quota: writes by our own count, all calls by the target's. None: no quota."""
    needs: list[tuple[int, int]] = []  # calls needed, calls left
    allowed = opened.limits.per_month
    if allowed is not None:
        rows = await store.read("job_system_find", system=opened.writes.name)
        needs.append((writes, allowed - (rows[0]["used"] if rows and rows[0]["month"] == month_of(now) else 0)))
    there, notes = await _quota(opened.target, "target")
    if there.remaining is not None:
        needs.append((reads + writes, there.remaining))
    here, more = await _quota(opened.source, "source")
    notes += more
    if isinstance(opened.source, SupportsCallEstimate):
        cost = {name: opened.source.calls_to_read(opened.job.type(name).source, n) for name, n in read.items()}
        parts = ", ".join(f"{name} {n:,}" for name, n in cost.items())
        notes.append(
            f"reading the source once takes {sum(cost.values()):,} calls ({parts}); verification reads it again"
        )
    if here.remaining is not None:
        notes.append(f"the source allows {here.remaining:,} more calls this month")
    for calls, left in needs:
        if calls > left:
            return False, [*notes, f"it exceeds the monthly quota: {calls:,} calls needed, {max(0, left):,} left"]
    return True if needs else None, notes


async def _quota(system: object, side: str) -> tuple[Quota, list[str]]:
    """Return the monthly quota of a system; without an answer, a note says why it is unknown."""
    if isinstance(system, SupportsQuota):
        try:
            return await system.quota(), []
        except ConnectorError as error:
            return Quota(None, None, None), [f"the monthly quota of the {side} is unknown: {error.reason}"]
    return Quota(None, None, None), []
