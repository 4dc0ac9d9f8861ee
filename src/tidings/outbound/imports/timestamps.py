"""Parse timestamps of other systems: epoch seconds to microseconds, or ISO 8601. Pure.

A time without offset is read in the given time zone and refused without one.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from typing import Any
from zoneinfo import ZoneInfo

from ...inputs.timezones import resolve_wall_time
from ...model.errors import Invalid
from ...model.time import SECOND, Instant, instant

UNITS = {"s": SECOND, "ms": 1000, "us": 1}
TIMESTAMP_FORMATS = ("auto", *UNITS, "iso")
_NUMBER = re.compile(r"[+-]?\d{1,19}(\.\d{1,9})?")
_EARLIEST, _LATEST = instant(datetime(1980, 1, 1, tzinfo=UTC)), instant(datetime(2200, 1, 1, tzinfo=UTC))


def parse_timestamp(value: Any, *, form: str = "auto", timezone: ZoneInfo | None = None, field: str = "at") -> Instant:
    """Parse a timestamp; raises Invalid."""
    if isinstance(value, str):
        value = value.strip()
        if form != "iso" and _NUMBER.fullmatch(value):
            value = float(value) if "." in value else int(value)
    if isinstance(value, bool) or value in (None, ""):
        raise Invalid("the time is empty", field=field, remedy="exclude such rows, or give them a time")
    if isinstance(value, int | float):
        return _counted(value, form, field)
    at = _written(value, timezone, field)
    if not _EARLIEST <= at <= _LATEST:
        raise Invalid(f"{str(value)[:60]} is not between 1980 and 2200", field=field, remedy="correct the row")
    return at


def _counted(value: float, form: str, field: str) -> Instant:
    """An epoch number; `auto` takes the first unit that gives a year from 1980 to 2200."""
    if form == "iso":
        raise Invalid(f"{value!r} is a number", field=field, remedy="use --time s, ms or us")
    for unit in [form] if form in UNITS else UNITS:
        at = round(value * UNITS[unit])
        if _EARLIEST <= at <= _LATEST:
            return Instant(at)
    remedy = "use s, ms or us since 1970, and give the unit with --time"
    raise Invalid(f"{value!r} is not a time between 1980 and 2200", field=field, remedy=remedy)


def _written(value: Any, timezone: ZoneInfo | None, field: str) -> Instant:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise Invalid(
                f"{value[:60]!r} is not a time", field=field, remedy="use ISO 8601, or a number since 1970"
            ) from None
    if type(value) is date:
        value = datetime(value.year, value.month, value.day)  # noqa: DTZ001  (its zone follows)
    if not isinstance(value, datetime):
        raise Invalid(f"{str(value)[:60]!r} is not a time", field=field, remedy="use ISO 8601, or a number")
    if value.tzinfo is None:
        if timezone is None:
            raise Invalid(f"{value.isoformat()} has no time zone", field=field, remedy="give one with --timezone")
        return resolve_wall_time(value, timezone).at
    return instant(value)
