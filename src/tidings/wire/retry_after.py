"""Parses the Retry-After header. Pure.

The value is bounded: never negative, at most one day. An invalid value is ignored, so that the retry policy's
own delay applies.
"""

from __future__ import annotations

import re
from datetime import UTC, timedelta
from email.utils import parsedate_to_datetime

from ..model.time import instant

MAX_RETRY_AFTER = timedelta(hours=24)

_SECONDS = re.compile(r"\d{1,32}(?:\.\d{0,9})?", re.ASCII)
_LONGEST_DATE = 64  # an HTTP date has 29 characters


def retry_after(value: str | None, *, now: int) -> timedelta | None:
    """Return the requested wait, from seconds (whole or fractional) or an HTTP date."""
    if value is None:
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return timedelta(seconds=min(float(value), MAX_RETRY_AFTER.total_seconds()))
    return _until(value, now)


def _until(value: str, now: int) -> timedelta | None:
    if not value or len(value) > _LONGEST_DATE:
        return None
    try:
        date = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    if date.tzinfo is None:  # "-0000" means UTC in RFC 5322
        date = date.replace(tzinfo=UTC)
    wait = timedelta(microseconds=instant(date) - now)
    return min(max(wait, timedelta()), MAX_RETRY_AFTER)
