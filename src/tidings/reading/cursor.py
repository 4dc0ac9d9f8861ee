"""Cursors: where a page of a list begins, and how long it may be. Opaque to callers, checked here."""

from __future__ import annotations

from ..model.errors import Invalid

NEWEST = 1 << 62  # before everything
LARGEST = 1000


def place(after: str | None) -> int:
    """The place that the `next` of the page before stands for; the newest without one."""
    if after is None:
        return NEWEST
    if not after.isascii() or not after.isdigit() or len(after) > 18:
        remedy = "use the `next` of the page before"
        raise Invalid(f"{after[:40]!r} is not a place in a list", field="after", remedy=remedy)
    return int(after)


def page_size(limit: int) -> int:
    """A length that one page may have."""
    if not 1 <= limit <= LARGEST:
        raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {LARGEST}")
    return limit
