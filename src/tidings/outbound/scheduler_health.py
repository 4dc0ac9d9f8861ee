"""Scheduler health: whether due messages are polled, the queue keeps up and the clock is right."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..kernel.clock import UNHEALTHY_DRIFT, Clock, DriftLevel, classify_drift
from ..model import durations
from ..model.time import SECOND, micros
from ..store.port import Store
from .health import HealthLimits


@dataclass(frozen=True, slots=True)
class SchedulerHealth:
    """The verdict and its inputs."""

    healthy: bool
    reasons: tuple[str, ...]
    last_poll_seconds: float | None  # ago; None: never polled
    queue_depth: int
    clock_drift_seconds: float


async def check_scheduler_health(store: Store, clock: Clock, limits: HealthLimits = HealthLimits()) -> SchedulerHealth:
    """Evaluate scheduler health. A node polls at least as often as it sends heartbeats."""
    now: int = (await store.read("now"))[0]["now"]
    seen = [row["seen_at"] for row in await store.read("node_list") if row["state"] == "live"]
    depth = sum(int(row["due"]) for row in await store.read("counts_due", most=limits.max_queue_depth + 1))
    drift = clock.drift()
    silence = now - max(seen) if seen else None
    reasons = []
    if silence is None or silence > micros(limits.max_poll_age):
        longest = durations.humanize(limits.max_poll_age)
        reasons.append(f"no process has polled for due messages in the last {longest}")
    if depth > limits.max_queue_depth:
        reasons.append(f"over {limits.max_queue_depth:,} messages are due")
    if classify_drift(drift) is DriftLevel.UNHEALTHY:
        reasons.append(f"this machine's clock is off by {durations.humanize(abs(drift))}")
    [mark] = await store.read("clock_high")
    if (back := timedelta(microseconds=mark["high"] - mark["now"])) > UNHEALTHY_DRIFT:
        reasons.append(f"the clock was set back by {durations.humanize(back)}")
    ago = None if silence is None else silence / SECOND
    return SchedulerHealth(not reasons, tuple(reasons), ago, depth, drift.total_seconds())
