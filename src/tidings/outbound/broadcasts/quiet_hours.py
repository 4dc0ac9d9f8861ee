"""Quiet hours and local start times on the recipient's clock (pure).

Quiet hours delay a recipient's message until they end in its time zone, across daylight-saving changes.
"""

from __future__ import annotations

from datetime import timedelta
from zoneinfo import ZoneInfo

from ...inputs.timezones import resolve_wall_time, wall_time
from ...model.broadcast import BroadcastOptions, QuietHours, TimezonePart
from ...model.time import SECOND


def timezone_of(part: TimezonePart, options: BroadcastOptions) -> str:
    """The time zone of a part; the broadcast's own for recipients without one."""
    return part.timezone or options.timezone


def opens_at(part: TimezonePart, options: BroadcastOptions, now: int) -> int:
    """When the next recipient of a part may be sent to: the part's start, or the end of its quiet hours."""
    at = max(now, part.starts_at or 0)
    if options.quiet_hours is None:
        return at
    return quiet_until(options.quiet_hours, timezone_of(part, options), at) or at


def local_start(scheduled_at: int, timezone: str | None, options: BroadcastOptions) -> int:
    """The instant at which clocks in `timezone` show the scheduled wall-clock time of the broadcast."""
    if not options.recipient_timezone or timezone is None:
        return scheduled_at
    there = wall_time(scheduled_at, ZoneInfo(options.timezone))
    return resolve_wall_time(there, ZoneInfo(timezone)).at


def quiet_until(quiet: QuietHours, timezone: str, at: int) -> int | None:
    """The end of the quiet hours that contain an instant; None if it is not in quiet hours."""
    there = wall_time(at, ZoneInfo(timezone))
    minute = there.hour * 60 + there.minute
    over_midnight = quiet.begin > quiet.end
    is_quiet = (minute >= quiet.begin or minute < quiet.end) if over_midnight else (
        quiet.begin <= minute < quiet.end
    )  # fmt: skip
    if not is_quiet:
        return None
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    days = 1 if over_midnight and minute >= quiet.begin else 0
    end = resolve_wall_time(midnight + timedelta(days=days, minutes=quiet.end), ZoneInfo(timezone)).at
    return max(end, at + SECOND)


def quiet_from(quiet: QuietHours, timezone: str, at: int) -> int:
    """When the next quiet hours begin."""
    there = wall_time(at, ZoneInfo(timezone))
    midnight = there.replace(hour=0, minute=0, second=0, microsecond=0)
    begins = [
        resolve_wall_time(midnight + timedelta(days=day, minutes=quiet.begin), ZoneInfo(timezone)).at for day in (0, 1)
    ]
    return next((begin for begin in begins if begin > at), begins[-1])
