"""Limit the nesting depth of JSON from callers."""

from __future__ import annotations

from ...model.errors import Invalid

MAX_DEPTH = 50  # levels of objects and lists


def check_depth(data: object, field: str = "data") -> None:
    """Raise Invalid if the data is nested too deeply."""
    if data is not None and _depth(data) > MAX_DEPTH:
        raise Invalid(f"{field} is nested too deeply", field=field, remedy=f"use at most {MAX_DEPTH} levels")


def _depth(value: object) -> int:
    """The nesting depth, up to the limit; without recursion, because callers choose the depth."""
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
