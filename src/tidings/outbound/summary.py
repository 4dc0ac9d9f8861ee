"""One snapshot of the engine for `tidings top`: counts, rate, nodes, channels, failures and alerts.

Bounded and indexed like the overview.
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
    """The engine at one instant."""

    at: str
    counts: dict[str, int]
    sent_per_minute: float
    success: float | None  # of attempts in the last fifteen minutes; None without any
    lag_s: float  # age of the oldest due message
    nodes: list[Row]
    channels: list[Row]
    failures: list[Row]
    alerts: list[Row]

    def plainly(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


async def read_summary(service: OutboundService) -> EngineSummary:
    """Read one snapshot."""
    trend = await service.overview.trend()
    return EngineSummary(
        at=iso(trend.now) or "",
        counts=asdict(await service.overview.counts()),
        sent_per_minute=round(trend.rate, 1),
        success=trend.success,
        lag_s=round(trend.samples[-1].lag, 1),
        nodes=await service.overview.nodes(),
        channels=await service.channels.all(),
        failures=(await service.dead.page(limit=MAX_FAILURES)).items,
        alerts=(await service.alerts.page(limit=MAX_ALERTS)).items,
    )
