"""Periods that have passed, as people name them: "24h" for how long ago, or a time in full. Pure."""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from ...inputs.natural_times import parse_when
from ...model import durations
from ...model.errors import Invalid
from ...model.time import micros


def parse_period(since: str, until: str, *, now: int, timezone: ZoneInfo) -> tuple[int, int]:
    """Beginning and end; each is "now", a length of time ago, or ISO 8601 with its zone."""
    return _ago(since, "since", now, timezone), _ago(until, "until", now, timezone)


def parse_duration(text: str, *, field: str) -> timedelta:
    """A length of time, which may be nothing."""
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
