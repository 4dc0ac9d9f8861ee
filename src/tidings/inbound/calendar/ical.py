"""Shifts as an iCalendar feed (RFC 5545). Pure.

An event's UID consists of calendar, squad, day and start, so a shift with a new end stays the same event. A
night shift belongs to the day on which it starts. Times are in UTC, so clients need no time zone data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from ...inputs.timezones import resolve_wall_time
from ...model.time import moment
from ..domain import CalendarDay
from .day_grid import CREWED, SlotRun, clock, read_date, shifts

_WIDTH = 75  # octets per line, without the line break


def feed(name: str, days: Sequence[CalendarDay], squads: Sequence[str], *, timezone: ZoneInfo, now: int) -> str:
    """Return the feed of all shifts with a crew."""
    stamp = f"{moment(now):%Y%m%dT%H%M%SZ}"
    lines = [
        "BEGIN:VCALENDAR",
        "VERSION:2.0",
        "PRODID:-//Tidings//Shift calendar//EN",
        "CALSCALE:GREGORIAN",
        "METHOD:PUBLISH",
        f"X-WR-CALNAME:{escaped(name if len(squads) != 1 else f'{name}, squad {squads[0]}')}",
        "REFRESH-INTERVAL;VALUE=DURATION:PT15M",
    ]
    for day in days:
        for squad in squads:
            for run in shifts(day, squad):
                if run.mark == CREWED:
                    lines += _event(name, day, squad, run, timezone, stamp)
    lines.append("END:VCALENDAR")
    return "".join(f"{folded}\r\n" for line in lines for folded in fold(line))


def _event(name: str, day: CalendarDay, squad: str, run: SlotRun, timezone: ZoneInfo, stamp: str) -> list[str]:
    start, end = _at(day.date, run.first, timezone), _at(day.date, run.last, timezone)
    return [
        "BEGIN:VEVENT",
        f"UID:{escaped(f'{day.date}-{clock(run.first)}-{squad}@{name}.tidings')}",
        f"DTSTAMP:{stamp}",
        f"DTSTART:{start:%Y%m%dT%H%M%SZ}",
        f"DTEND:{end:%Y%m%dT%H%M%SZ}",
        f"SUMMARY:{escaped(f'Squad {squad} {clock(run.first)}-{clock(run.last)}')}",
        "TRANSP:OPAQUE",
        "END:VEVENT",
    ]


def _at(date: str, place: int, timezone: ZoneInfo) -> datetime:
    """Return the start of a half hour of an operational day."""
    day = read_date(date)
    assert day is not None
    wall = datetime(day.year, day.month, day.day, 6, tzinfo=UTC) + timedelta(minutes=30 * place)
    return moment(resolve_wall_time(wall.replace(tzinfo=None), timezone).at)


def escaped(text: str) -> str:
    """Escape a text value: commas, semicolons, backslashes and line breaks."""
    text = text.replace("\\", "\\\\").replace(";", "\\;").replace(",", "\\,")
    return text.replace("\r\n", "\\n").replace("\n", "\\n").replace("\r", "\\n")


def fold(line: str) -> Iterator[str]:
    """Fold a line into pieces of at most 75 octets; continuation lines begin with a space."""
    piece, room = "", _WIDTH
    for character in line:
        size = len(character.encode())
        if size > room:
            yield piece
            piece, room = " ", _WIDTH - 1
        piece, room = piece + character, room - size
    yield piece
