"""The scheduler's pulse: whether somebody looks for due messages, keeps up, and knows the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from ..kernel.clock import UNHEALTHY_DRIFT, Clock, Drift, judge_drift
from ..model import durations
from ..model.time import MINUTE, SECOND
from ..store.port import Store

SILENT = 2 * MINUTE
DEEP = 10_000  # due messages over this say that nobody keeps up
_MOST = DEEP + 1  # counted for each priority of a channel


@dataclass(frozen=True, slots=True)
class Pulse:
    """The verdict and what it was judged by."""

    healthy: bool
    reasons: tuple[str, ...]
    last_poll_seconds: float | None  # ago; None: nobody ever looked
    queue_depth: int
    clock_drift_seconds: float


async def pulse(store: Store, clock: Clock) -> Pulse:
    """Ask the database and judge. A node that beats looks for work at least as often."""
    now: int = (await store.read("now"))[0]["now"]
    seen = [row["seen_at"] for row in await store.read("node_list") if row["state"] == "live"]
    depth = sum(int(row["due"]) for row in await store.read("counts_due", most=_MOST))
    drift = clock.drift()
    silence = now - max(seen) if seen else None
    reasons = []
    if silence is None or silence > SILENT:
        reasons.append("nobody has looked for due messages in the last 2 min")
    if depth > DEEP:
        reasons.append(f"over {DEEP:,} messages are due")
    if judge_drift(drift) is Drift.UNHEALTHY:
        reasons.append(f"this machine's clock is off by {durations.spell(abs(drift))}")
    [mark] = await store.read("clock_high")
    if (back := timedelta(microseconds=mark["high"] - mark["now"])) > UNHEALTHY_DRIFT:
        reasons.append(f"the clock was set back by {durations.spell(back)}")
    ago = None if silence is None else silence / SECOND
    return Pulse(not reasons, tuple(reasons), ago, depth, drift.total_seconds())
