"""Cursors: where a page of a list begins, and how long it may be. Opaque to callers, checked here."""

from __future__ import annotations

import base64
from collections.abc import Sequence

import orjson

from ..model.errors import Invalid

NEWEST = 1 << 62  # before everything
LARGEST = 1000


def place(after: str | None) -> int:
    """The place that the `next` of the page before stands for; the newest without one."""
    if after is None:
        return NEWEST
    if not after.isascii() or not after.isdigit() or len(after) > 18:
        raise misplaced(after)
    return int(after)


def encoded(*parts: str) -> str:
    """The `next` of a page whose last row has these keys."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decoded(after: str | None, count: int) -> Sequence[str]:
    """The keys that `encoded` was given; as many empty texts without a page before."""
    if after is None:
        return [""] * count
    try:
        parts = orjson.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        is_good = len(parts) == count and all(isinstance(part, str) and part.isprintable() for part in parts)
    except (ValueError, TypeError):
        is_good = False
    if not is_good:
        raise misplaced(after)
    return list(parts)


def misplaced(after: str) -> Invalid:
    """What is told when `after` was not made here."""
    problem = f"{after[:40]!r} is not a place in a list"
    return Invalid(problem, field="after", remedy="use the `next` of the page before")


def page_size(limit: int) -> int:
    """A length that one page may have."""
    if not 1 <= limit <= LARGEST:
        raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {LARGEST}")
    return limit
