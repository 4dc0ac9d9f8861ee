"""Instants: whole microseconds since 1970 in UTC.

One representation from the schema to the kernel, so both databases compare, index and add times in the same
way. Datetimes are used only at the interfaces, and are always aware.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NewType

Instant = NewType("Instant", int)

SECOND = 1_000_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def instant(moment: datetime) -> Instant:
    """Convert an aware datetime to an instant; raises ValueError for a naive one."""
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone")
    return Instant((moment - _EPOCH) // timedelta(microseconds=1))


def moment(at: int) -> datetime:
    """Convert an instant to an aware UTC datetime."""
    return _EPOCH + timedelta(microseconds=at)


def micros(length: timedelta) -> int:
    """Convert a duration to whole microseconds."""
    return length // timedelta(microseconds=1)


def iso(at: int | None) -> str | None:
    """Format an instant as ISO 8601 with its time zone; None stays None."""
    if at is None:
        return None
    return moment(at).isoformat(timespec="milliseconds").replace("+00:00", "Z")
