"""Nesting: how deep the objects that a caller sends may go, so that nothing further down need fear it."""

from __future__ import annotations

from ...model.errors import Invalid

MAX_DEPTH = 50  # objects within objects


def check_depth(data: object, field: str = "data") -> None:
    """Refuse what is nested too deeply."""
    if data is not None and _depth(data) > MAX_DEPTH:
        raise Invalid(f"{field} is nested too deeply", field=field, remedy=f"use at most {MAX_DEPTH} levels")


def _depth(value: object) -> int:
    """How many levels there are, as far as it matters; no recursion, for callers choose the depth."""
    level: list[object] = [value]
    for depth in range(MAX_DEPTH + 2):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return depth
    return MAX_DEPTH + 1
