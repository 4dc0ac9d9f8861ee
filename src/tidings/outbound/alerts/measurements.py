"""Read the values that the alert rules compare, with a few bounded, indexed statements.

The values are the same in every process, except the free space under a SQLite file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

import orjson

from ...model import durations
from ...model.time import DAY, MINUTE, SECOND, iso, micros
from ...store.port import Row, Store
from ..events import event_types
from ..health import NOT_ATTEMPTS
from .alert_changes import Measurement
from .rules import LATE_AFTER, MIN_ATTEMPTS, WINDOW, AlertThresholds, build_rules

MAX_SUBJECTS = 50  # subjects of one rule
MeasurementsByName = dict[str, list[Measurement]]


class AttemptCounts(NamedTuple):
    """Outcomes of attempts in the window."""

    total: int = 0
    done: int = 0
    failed: int = 0
    again: int = 0  # second and later attempts
    late: int = 0  # first attempts that started late
    persistent: int = 0  # third and later attempts with a temporary error


class AlertMeasurements:
    """Reads all measurements, counting only as far as the thresholds need."""

    def __init__(self, store: Store, *, place: Path | None = None, limits: AlertThresholds = AlertThresholds()) -> None:
        self._store = store
        self._place = place  # the folder of a database file
        self._limits = limits
        self.rules = build_rules(limits)

    async def read(self) -> MeasurementsByName:
        """All current measurements by name."""
        store = self._store
        now: int = (await store.read("now"))[0]["now"]
        since = (now - micros(WINDOW)) // MINUTE * MINUTE
        seen_at = (await store.read("node_last_seen"))[0]["seen_at"]
        overdue = await store.read("counts_overdue", before=now - micros(LATE_AFTER), most=self._limits.overdue + 1)
        due = await store.read("counts_due", most=self._limits.queue_deep + 1)
        return {
            "silent_seconds": _silent(seen_at, now),
            "overdue": _count(overdue, "overdue", f"are overdue by over {durations.humanize(LATE_AFTER)}"),
            "due": _count(due, "due", "are due and have not started"),
            **shares(count_attempts(await store.read("attempt_tally_sums", since=since))),
            "memory_share": memory(await store.read("node_list")),
            "stopped_channels": stopped(await store.read("queue_list")),
            "missed_runs": await self._missed_runs(now),
            "stalled_jobs": await self._stalled_jobs(now),
            "database_full": self._room(),
            "rewinds": rewinds(await store.read("rewind_recent", since=now - DAY, limit=1)),
        }

    def free(self) -> int | None:
        """Free bytes under a database file; None for a database server."""
        try:
            return None if self._place is None else shutil.disk_usage(self._place).free
        except OSError:
            return None

    async def _missed_runs(self, now: int) -> list[Measurement]:
        late = await self._store.read("schedule_overdue", before=now - micros(WINDOW), limit=MAX_SUBJECTS)
        refused = await self._store.read("schedule_problems", since=now - DAY, limit=MAX_SUBJECTS)
        missed = await self._store.read("schedule_missed", since=now - DAY, limit=MAX_SUBJECTS)
        said = [
            *((row, f"should have fired at {iso(row['next_at'])}") for row in late),
            *((row, f"could not create its message or broadcast: {row['problem']}") for row in refused),
            *((row, f"did not fire at {iso(row['at'])}: {row['detail']}") for row in missed),
        ]
        found = {
            row["id"]: Measurement(1, f"the schedule {row['name']!r} {what}"[:500], row["id"], row["tenant"])
            for row, what in reversed(said)
        }
        return list(found.values())

    async def _stalled_jobs(self, now: int) -> list[Measurement]:
        since = now - micros(self._limits.job_stalled)
        rows = await self._store.read("job_stalled", before=since, until=now, limit=MAX_SUBJECTS)
        said = f"has made no progress for {durations.humanize(self._limits.job_stalled)} or more"
        return [Measurement(1, f"the job {row['name']!r} {said}", row["id"], row["tenant"]) for row in rows]

    def _room(self) -> list[Measurement]:
        free = self.free()
        if free is None or free >= self._limits.database_full:
            return []
        return [Measurement(1, f"only {free >> 20:,} MiB are free under {self._place}")]


def count_attempts(rows: Sequence[Row]) -> AttemptCounts:
    """Sum the outcomes of attempts, without those of webhook events."""
    sums = dict.fromkeys(AttemptCounts._fields, 0)
    for row in rows:
        what, n = str(row["outcome"]).partition(":")[0], int(row["n"])
        if row["queue"] == event_types.EVENTS_CHANNEL:
            continue
        if what in ("late", "again", "persistent"):
            sums[what] += n
        elif what not in NOT_ATTEMPTS:
            sums["total"] += n
            sums["done"] += n if what == "done" else 0
            sums["failed"] += n if what == "failed" else 0
    return AttemptCounts(**sums)


def shares(found: AttemptCounts) -> MeasurementsByName:
    """Error rates of attempts, first attempts and final results; none below MIN_ATTEMPTS."""
    firsts, ends = found.total - found.again, found.done + found.failed
    within = f"in the last {durations.humanize(WINDOW)}"
    return {
        "late_share": _share(
            found.late, firsts, f"started over {durations.humanize(LATE_AFTER)} late {within}", "messages"
        ),
        "error_share": _share(found.total - found.done, found.total, f"ended in an error {within}"),
        "failure_share": _share(found.failed, ends, f"failed permanently {within}", "messages"),
        "persistent": [
            Measurement(found.persistent, f"{found.persistent:,} attempts had a temporary error for the third time")
        ]
        if found.persistent
        else [],
    }


def memory(nodes: Sequence[Row]) -> list[Measurement]:
    """The memory share of each live node, from its last heartbeat."""
    loads: Mapping[str, object] = {
        row["name"]: orjson.loads(row["info"]).get("memory") for row in nodes if row["state"] == "live"
    }
    return [
        Measurement(share, f"the process {name} uses {share:.0%} of its memory limit", name)
        for name, share in loads.items()
        if isinstance(share, int | float)
    ]


def rewinds(rows: Sequence[Row]) -> list[Measurement]:
    """The newest rewind of the database within a day."""
    said = "it was restored to its state of about {}; {:,} tasks may have been sent already and are uncertain"
    return [Measurement(1, said.format(iso(row["survived_at"]), row["unknown"])) for row in rows]


def stopped(queues: Sequence[Row]) -> list[Measurement]:
    """Channels that send nothing although no person paused them."""
    readings = []
    for row in queues:
        if row["paused_by_engine"]:
            why = f"was paused by the engine: {row['pause_reason']}"
        elif row["session_state"] not in (None, "connected"):
            why = f"is {str(row['session_state']).replace('_', ' ')}: {row['session_reason']}"
        elif row["opened_at"] is not None:
            why = f"has an open breaker: {row['failures']} failures in a row"
        else:
            continue
        readings.append(Measurement(1, f"the channel {row['name']!r} {why}"[:500], row["name"]))
    return readings[:MAX_SUBJECTS]


def _silent(seen_at: int | None, now: int) -> list[Measurement]:
    if seen_at is None:
        return []  # no process has ever worked
    seconds = (now - seen_at) / SECOND
    length = durations.humanize(timedelta(seconds=max(0.0, seconds)))
    return [Measurement(seconds, f"no process has polled for due messages for {length}")]


def _count(rows: Sequence[Row], column: str, what: str) -> list[Measurement]:
    count = sum(int(row[column]) for row in rows)
    return [Measurement(count, f"{count:,} messages or more {what}")]


def _share(part: int, whole: int, what: str, of: str = "attempts") -> list[Measurement]:
    if whole < MIN_ATTEMPTS:
        return []
    return [Measurement(part / whole, f"{part / whole:.1%} of {whole:,} {of} {what}")]
