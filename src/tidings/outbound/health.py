"""Health status from the attempts of all processes in the last fifteen minutes.

Down: no process is working. Degraded: less than 90 % of attempts succeed or one error category exceeds 10 %
(from ten attempts on), a process cannot use RabbitMQ, or the clock is off by more than ten seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any

import orjson

from ..kernel.clock import Clock, DriftLevel, classify_drift
from ..model import durations
from ..model.task import Category
from ..model.time import MINUTE, micros
from ..store.port import Row, Store
from .events import event_types

HEALTH_WINDOW = 15 * MINUTE
MIN_ATTEMPTS = 10  # minimum for a meaningful rate
NOT_ATTEMPTS = frozenset({"deferred", "released", "skipped", "offline"} | {"late", "again", "persistent", "sent_late"})
"""Tallies that are not outcomes of attempts."""


@dataclass(frozen=True, slots=True)
class HealthLimits:
    """When health is degraded, and the scheduler unhealthy."""

    min_success_rate: float = 0.9
    max_error_rate: float = 0.1
    max_queue_depth: int = 10_000  # more due messages mean that the workers do not keep up
    max_poll_age: timedelta = timedelta(minutes=2)


class HealthStatus(StrEnum):
    """The status that a monitor reads."""

    UP = "up"
    DEGRADED = "degraded"
    DOWN = "down"


@dataclass(frozen=True, slots=True)
class HealthReport:
    """The status and the values it was derived from."""

    status: HealthStatus
    reasons: tuple[str, ...]
    total_processed: int
    success_rate: float | None  # None: nothing was processed
    avg_processing_time_ms: float | None
    error_rate_by_category: dict[str, float]


async def check_health(
    store: Store, clock: Clock, *, node_timeout: timedelta, limits: HealthLimits = HealthLimits()
) -> HealthReport:
    """Read the tallies and evaluate them."""
    now: int = (await store.read("now"))[0]["now"]
    nodes = await store.read("node_list")
    sums = await store.read("attempt_tally_sums", since=now - HEALTH_WINDOW)
    counted = [row for row in sums if row["queue"] != event_types.EVENTS_CHANNEL]
    alive = sum(node["state"] == "live" and now - node["seen_at"] <= 2 * micros(node_timeout) for node in nodes)
    cut_off = len(node_problems(nodes))
    live = sum(node["state"] == "live" for node in nodes)
    problems = [f"{cut_off} of {live} processes cannot use RabbitMQ"] if cut_off else []
    return evaluate_health(counted, alive=alive, drift=clock.drift(), troubles=problems, limits=limits)


def node_problems(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Broker problems reported by live processes."""
    said = [(node["name"], orjson.loads(node["info"]).get("broker")) for node in nodes if node["state"] == "live"]
    return [f"{name}: {broker}" for name, broker in said if broker not in (None, "connected")]


def evaluate_health(
    tallies: Sequence[Row],
    *,
    alive: int,
    drift: timedelta,
    troubles: Sequence[str] = (),
    limits: HealthLimits = HealthLimits(),
) -> HealthReport:
    """The report, from values alone (pure)."""
    total = succeeded = spent = 0
    errors: Counter[str] = Counter()
    for row in tallies:
        what, _, category = str(row["outcome"]).partition(":")
        if what in NOT_ATTEMPTS:
            continue
        count = int(row["n"])
        total += count
        spent += int(row["ms"])
        succeeded += count if what == "done" else 0
        if category:
            errors[category] += count
    rates = {str(category): errors[category] / total if total else 0.0 for category in Category}
    rate = succeeded / total if total else None
    degraded = [*troubles, *_shares(total, rate, rates, limits)]
    if classify_drift(drift) is DriftLevel.UNHEALTHY:
        degraded.append(f"this machine's clock is off by {durations.humanize(abs(drift))}")
    reasons = [*([] if alive else ["no process is working"]), *degraded]
    status = HealthStatus.DOWN if not alive else HealthStatus.DEGRADED if degraded else HealthStatus.UP
    return HealthReport(status, tuple(reasons), total, rate, spent / total if total else None, rates)


def _shares(total: int, success: float | None, errors: dict[str, float], limits: HealthLimits) -> list[str]:
    if total < MIN_ATTEMPTS or success is None:
        return []
    low = [f"only {success:.0%} of {total:,} attempts succeeded"] if success < limits.min_success_rate else []
    high = [
        f"{share:.0%} of attempts ended in a {name} error"
        for name, share in errors.items()
        if share > limits.max_error_rate
    ]
    return low + high
