"""Summary of all drills of a run: one object, for the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tidings.drill.checker import DrillVerdict, percentile

from .rig import SCALE

OUTCOMES = ("passed", "failed", "error", "skipped")
_SUMS = (
    "messages",
    "delivered",
    "lost",
    "unexpected",
    "early",
    "duplicates_explained",
    "duplicates_unexplained",
    "overlap",
    "unflagged",
    "held",
    "kills",
)


def summary(ended: Mapping[str, int], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Tests by how they ended, and what their drills counted together; what was skipped was not shown."""
    sums = {name: sum(int(row.get(name, 0)) for row in rows) for name in _SUMS}
    return {
        "ok": not ended["failed"] and not ended["error"] and bool(ended["passed"]),
        **ended,
        "scale": SCALE,
        "drills": len(rows),
        **sums,
        "slowest": max((float(row.get("late_p100", 0)) for row in rows), default=0.0),
    }


def verdict_counts(verdict: DrillVerdict) -> dict[str, float]:
    """Every class of a verdict as a number."""
    names = ("lost", "unexpected", "early", "explained", "unexplained", "overlap", "unflagged", "misrecorded", "held")
    shown = {name: f"duplicates_{name}" for name in ("explained", "unexplained")}
    return {
        "delivered": verdict.delivered,
        **{shown.get(name, name): len(getattr(verdict, name)) for name in names},
        **{f"late_p{share}": round(percentile(verdict.lateness, share / 100), 2) for share in (50, 99, 100)},
    }
