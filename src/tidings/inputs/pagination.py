"""Cursor pagination: the shared Page, opaque cursors and page sizes."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import orjson

from ..model.errors import Invalid

NEWEST = 1 << 62  # above every position
MAX_PAGE_SIZE = 1000


class Page(NamedTuple):
    """One page of a list; `next` is the cursor of the following page, None at the end."""

    items: list[dict[str, Any]]
    next: str | None


def decode_position(after: str | None) -> int:
    """Decode a numeric cursor; without one, start with the newest."""
    if after is None:
        return NEWEST
    if not after.isascii() or not after.isdigit() or len(after) > 18:
        raise invalid_cursor(after)
    return int(after)


def encode_cursor(*parts: str) -> str:
    """Encode the keys of the last row of a page."""
    return base64.urlsafe_b64encode(orjson.dumps(parts)).decode().rstrip("=")


def decode_cursor(after: str | None, count: int) -> Sequence[str]:
    """Decode a cursor into `count` keys; without one, return empty strings."""
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
    """Return the error for an invalid cursor."""
    problem = f"invalid cursor {after[:40]!r}"
    return Invalid(problem, field="after", remedy="use `next` of the previous page")


def page_size(limit: int) -> int:
    """Return the limit, or raise Invalid."""
    if not 1 <= limit <= MAX_PAGE_SIZE:
        raise Invalid(f"limit is {limit}", field="limit", remedy=f"use 1 to {MAX_PAGE_SIZE}")
    return limit
