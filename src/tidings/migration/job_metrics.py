"""Counts of migrations for the metrics endpoint, read from a bounded number of rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from ..model.time import MINUTE, SECOND
from ..store.port import Store
from .jobs import WORKING
from .rate_limits import month_of

JOBS = 50  # the newest; older ones have ended
SYSTEMS = 100


@dataclass(frozen=True, slots=True)
class MigrationMetrics:
    """All metrics by their labels."""

    jobs: Counter[tuple[str, ...]] = field(default_factory=Counter)  # tenant, state
    records: Counter[tuple[str, ...]] = field(default_factory=Counter)  # tenant, state
    errors: Counter[tuple[str, ...]] = field(default_factory=Counter)  # tenant, kind of error
    per_minute: dict[tuple[str, ...], float] = field(default_factory=dict)  # tenant
    seconds: dict[tuple[str, ...], float] = field(default_factory=dict)  # tenant: of its newest ended job
    calls: dict[tuple[str, ...], float] = field(default_factory=dict)  # system: in this month
    concurrency: dict[tuple[str, ...], float] = field(default_factory=dict)  # system
    throttled: dict[tuple[str, ...], float] = field(default_factory=dict)  # system: 1 while it is throttled


async def read_metrics(store: Store) -> MigrationMetrics:
    found = MigrationMetrics()
    for row in await store.read("job_figures", limit=JOBS):
        tenant, state = row["tenant"], row["state"]
        found.jobs[tenant, state] += 1
        found.records[tenant, "written"] += row["written"]
        found.records[tenant, "unchanged"] += row["unchanged"]
        if state in WORKING and row["started_at"] is not None:
            minutes = max(row["now"] - row["started_at"], SECOND) / MINUTE
            ended = row["written"] + row["unchanged"] + row["quarantined"] - row["done_before"]
            found.per_minute[(tenant,)] = found.per_minute.get((tenant,), 0.0) + max(0, ended) / minutes
        if row["started_at"] is not None and row["ended_at"] is not None:
            found.seconds.setdefault((tenant,), (row["ended_at"] - row["started_at"]) / SECOND)
    for row in await store.read("job_figures_quarantined", limit=JOBS):
        found.records[row["tenant"], row["state"]] += row["n"]
        found.errors[row["tenant"], row["failure"] or "none"] += row["n"]
    for row in await store.read("job_figures_systems", limit=SYSTEMS):
        system = (row["name"],)
        found.calls[system] = float(row["used"] if row["month"] == month_of(row["now"]) else 0)
        found.concurrency[system] = float(row["concurrency"])
        found.throttled[system] = float(row["blocked_until"] > row["now"])
    return found
