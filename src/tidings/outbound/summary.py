"""A glance at everything: what is due, how fast it goes, how well, who works, what stands still, what failed.

Counted up to bounds and by index like the overview; one look costs a handful of small statements.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from ..model.time import iso
from ..store.port import Row
from .service import OutboundService

MAX_FAILURES = 5
MAX_ALERTS = 5


@dataclass(frozen=True, slots=True)
class EngineSummary:
    """How it stands at one moment."""

    at: str
    counts: dict[str, int]
    sent_per_minute: float
    success: float | None  # of the attempts of the last quarter of an hour; None without any
    lag_s: float  # how long the oldest due message waits
    nodes: list[Row]
    channels: list[Row]
    failures: list[Row]
    alerts: list[Row]

    def plainly(self) -> dict[str, Any]:
        """For programs."""
        return asdict(self)


async def read_summary(desk: OutboundService) -> EngineSummary:
    """Look once."""
    trend = await desk.overview.trend()
    return EngineSummary(
        at=iso(trend.now) or "",
        counts=asdict(await desk.overview.counts()),
        sent_per_minute=round(trend.rate, 1),
        success=trend.success,
        lag_s=round(trend.samples[-1].lag, 1),
        nodes=await desk.overview.nodes(),
        channels=await desk.channels.all(),
        failures=(await desk.dead.page(limit=MAX_FAILURES)).items,
        alerts=(await desk.alerts.page(limit=MAX_ALERTS)).items,
    )
