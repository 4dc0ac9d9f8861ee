"""What all drills of a run come to: one object, for the last line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

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
