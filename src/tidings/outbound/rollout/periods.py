"""Parse a past period such as "24h", or with full times. Pure."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from ...inputs.natural_times import parse_when
from ...model import durations
from ...model.errors import Invalid
from ...model.time import micros


def parse_period(since: str, until: str, *, now: int, timezone: ZoneInfo) -> tuple[int, int]:
    """Parse start and end: "now", a duration ago, or ISO 8601 with offset."""
    return _ago(since, "since", now, timezone), _ago(until, "until", now, timezone)


def parse_duration(text: str, *, field: str) -> timedelta:
    """Parse a duration, which may be zero."""
    try:
        return durations.parse(text)
    except ValueError as error:
        raise Invalid(f"{field}: {error}", field=field, remedy="write 30s, 5m or 2h") from None


def _ago(text: str, field: str, now: int, timezone: ZoneInfo) -> int:
    if text == "now":
        return now
    try:
        return now - micros(durations.parse(text))
    except ValueError:
        return parse_when(text, now=now, timezone=timezone, field=field)
