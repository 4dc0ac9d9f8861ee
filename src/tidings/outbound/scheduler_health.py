"""The scheduler's pulse: whether somebody looks for due messages, keeps up, and knows the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..kernel.clock import UNHEALTHY_DRIFT, Clock, DriftLevel, classify_drift
from ..model import durations
from ..model.time import MINUTE, SECOND
from ..store.port import Store

MAX_SILENCE = 2 * MINUTE
MAX_QUEUE_DEPTH = 10_000  # due messages over this say that nobody keeps up
_MOST = MAX_QUEUE_DEPTH + 1  # counted for each priority of a channel


@dataclass(frozen=True, slots=True)
class SchedulerHealth:
    """The verdict and what it was judged by."""

    healthy: bool
    reasons: tuple[str, ...]
    last_poll_seconds: float | None  # ago; None: nobody ever looked
    queue_depth: int
    clock_drift_seconds: float


async def check_scheduler_health(store: Store, clock: Clock) -> SchedulerHealth:
    """Ask the database and judge. A node that beats looks for work at least as often."""
    now: int = (await store.read("now"))[0]["now"]
    seen = [row["seen_at"] for row in await store.read("node_list") if row["state"] == "live"]
    depth = sum(int(row["due"]) for row in await store.read("counts_due", most=_MOST))
    drift = clock.drift()
    silence = now - max(seen) if seen else None
    reasons = []
    if silence is None or silence > MAX_SILENCE:
        reasons.append("nobody has looked for due messages in the last 2 min")
    if depth > MAX_QUEUE_DEPTH:
        reasons.append(f"over {MAX_QUEUE_DEPTH:,} messages are due")
    if classify_drift(drift) is DriftLevel.UNHEALTHY:
        reasons.append(f"this machine's clock is off by {durations.humanize(abs(drift))}")
    [mark] = await store.read("clock_high")
    if (back := timedelta(microseconds=mark["high"] - mark["now"])) > UNHEALTHY_DRIFT:
        reasons.append(f"the clock was set back by {durations.humanize(back)}")
    ago = None if silence is None else silence / SECOND
    return SchedulerHealth(not reasons, tuple(reasons), ago, depth, drift.total_seconds())
