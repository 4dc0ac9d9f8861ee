"""Small pure arithmetic on samples."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(samples: Sequence[float], share: float) -> float:
    """The smallest sample that is not below `share` of all (nearest rank, so p99 of 100 is the 99th)."""
    ordered = sorted(samples)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(samples: Sequence[float], digits: int = 2) -> dict[str, float]:
    """p50, p95, p99 and the largest, rounded."""
    shares = {"p50": 0.5, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: round(percentile(samples, share), digits) for name, share in shares.items()}
