"""Cursor pagination: the pages of all lists, opaque cursors and the limits of a page size."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from ..model.errors import Invalid

NEWEST = 1 << 62  # before everything
MAX_PAGE_SIZE = 1000


class Page(NamedTuple):
    """One page of a list; `next` is the cursor of the following page, None at the end."""

    items: list[dict[str, Any]]
    next: str | None


def decode_position(after: str | None) -> int:
    """The place that the `next` of the page before stands for; the newest without one."""
    if after is None:
        return NEWEST
    if not after.isascii() or not after.isdigit() or len(after) > 18:
        raise invalid_cursor(after)
    return int(after)


def encode_cursor(*parts: str) -> str:
    """The `next` of a page whose last row has these keys."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decode_cursor(after: str | None, count: int) -> Sequence[str]:
    """The keys that `encode_cursor` was given; as many empty texts without a page before."""
    if after is None:
        return [""] * count
    try:
        parts = orjson.loads(base64.urlsafe_b64decode(after + "=" * (-len(after) % 4)))
        is_good = len(parts) == count and all(isinstance(part, str) and part.isprintable() for part in parts)
    except (ValueError, TypeError):
        is_good = False
    if not is_good:
        raise invalid_cursor(after)
    return list(parts)


def invalid_cursor(after: str) -> Invalid:
    """What is told when `after` was not made here."""
    problem = f"{after[:40]!r} is not a place in a list"
    return Invalid(problem, field="after", remedy="use the `next` of the page before")


def page_size(limit: int) -> int:
    """A length that one page may have."""
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {MAX_PAGE_SIZE}")
    return limit
