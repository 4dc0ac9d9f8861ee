"""Resolves hours on days to windows of operational days on the grid, or to a warning.

An operational day runs from 0600 to 0600; a longer window is split there. Nothing is guessed: ambiguous times
and times off the grid stay open, with a warning.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta
from typing import NamedTuple

from .shift_words import GRID, Hours, Shift, hhmm
from .statements import DayHours
from .tokens import ClockFormat, ClockSpan, ClockTime, DayMention, LocalMoment

_DAY = 24 * 60
_BOUNDARY = 6 * 60
_EVENING = 18 * 60
_LONGEST_DAYS = 31
_LONGEST_NIGHT = 14 * 60  # "1800-0800" is valid; "1800-1200" may be reversed
_UNDER_WAY = 180  # "today 6-6", sent at eight, is the day shift that has begun


class ShiftWindow(NamedTuple):
    """Hours of one operational day; None: not stated or not understood."""

    date: date | None
    start: str | None
    end: str | None


class ResolvedWindows(NamedTuple):
    """Windows with warnings."""

    windows: Sequence[ShiftWindow]
    warnings: Sequence[str]


class _Timing(NamedTuple):
    """Resolved hours; `until` is the day of the end, if stated."""

    hours: Hours
    until: DayMention | None = None
    by_night: bool = False


def resolve_windows(pair: DayHours, now: LocalMoment) -> ResolvedWindows:
    """Return all windows of days and hours."""
    warnings: list[str] = []
    windows: list[ShiftWindow] = []
    for day in pair.days or (None,):
        for timing in _timings(pair, day, now, warnings):
            windows.extend(_placed(day, timing, now, warnings))
    return ResolvedWindows(tuple(dict.fromkeys(windows)), tuple(dict.fromkeys(warnings)))


def is_past(day: date, end: int | None, now: LocalMoment) -> bool:
    """Return whether this operational day, or its hours up to `end`, is in the past."""
    behind = (now.operational - day).days
    return behind > 0 or (behind == 0 and end is not None and _end_offset(end) <= _offset(now.minute))


def _timings(pair: DayHours, day: DayMention | None, now: LocalMoment, warnings: list[str]) -> list[_Timing]:
    spans = _halves_joined([slot for slot in pair.slots if isinstance(slot, ClockSpan)])
    shifts = [slot for slot in pair.slots if isinstance(slot, Shift)]
    implied = day.implied if day else None
    if implied and len(pair.days) > 1 and spans and not any(_could_lie_in(span, implied) for span in spans):
        return [_Timing(implied.hours)]
    if implied and len(pair.days) > 1 and shifts and not any(_begins_in(shift, implied) for shift in shifts):
        return [_Timing(implied.hours)]
    if not spans:
        named = shifts or ([implied] if implied else [])
        return [_Timing(shift.hours, by_night=shift.name == "night") for shift in named] or [_Timing(Hours(None, None))]
    context = shifts[-1] if shifts else implied
    timings: list[_Timing] = []
    for span in spans:
        inside = next((shift for shift in shifts if _could_lie_in(span, shift)), context)
        previous = timings[-1].hours if timings else None
        timings.append(_timing(span, inside, previous, day, now, warnings))
    apart = [s for s in shifts if not any(_could_lie_in(span, s) for span in spans) and len(shifts) > 1]
    return [*timings, *(_Timing(shift.hours) for shift in apart)]


def _halves_joined(spans: Sequence[ClockSpan]) -> list[ClockSpan]:
    """Join a start and an end: "until 0200, starting 1800" is one window."""
    starts = [span for span in spans if span.start and not span.end]
    ends = [span for span in spans if span.end and not span.start]
    if len(starts) == len(ends) == 1 and len(spans) == 2:
        return [ClockSpan(starts[0].start, ends[0].end, ends[0].until)]
    return list(spans)


def _begins_in(shift: Shift, whole: Shift) -> bool:
    """Return whether a shift begins within another: in "tonight and tomorrow during the day", it does not."""
    start, first, last = shift.hours.start, *whole.hours
    if start is None or first is None or last is None:
        return False
    return (start - first) % _DAY < ((last - first) % _DAY or _DAY)


def _could_lie_in(span: ClockSpan, shift: Shift) -> bool:
    """Return whether the span may lie in the shift, whose word then only names the part of the day."""
    if span.start is None or span.end is None:
        return True
    start, end = shift.hours
    if start is None or end is None:
        return False
    length = (end - start) % _DAY or _DAY
    starts = [span.start.at] if span.start.form is ClockFormat.EXACT else [span.start.at, span.start.at + 720]
    return any((at - start) % _DAY < length for at in starts)


def _timing(
    span: ClockSpan,
    shift: Shift | None,
    previous: Hours | None,
    day: DayMention | None,
    now: LocalMoment,
    warnings: list[str],
) -> _Timing:
    by_night = shift is not None and shift.name == "night"
    start, end = _clock_pair(span, shift, day, now)
    if span.follows:
        start = previous.end if previous else None
    if shift and start is None and (end is not None or span.follows):
        start = shift.hours.start
    if shift and end is None and start is not None:
        end = shift.hours.end
    said = [clock.written for clock in (span.start, span.end) if clock]
    if any(at is not None and at % GRID for at in (start, end)):
        warnings.append(f"{' to '.join(said)} is not on the hour or half hour; which whole or half hours?")
        return _Timing(Hours(None, None), None, by_night)
    if (span.start and start is None) or (span.end and end is None):
        warnings.append(f"{' to '.join(said)} could be in the morning or in the evening; please write HHMM")
    elif _runs_backwards(start, end, span):
        warnings.append(f"{hhmm(start or 0)} to {hhmm(end or 0)} ends before it begins; which hours?")
        return _Timing(Hours(None, None), None, by_night)
    return _Timing(Hours(start, end), span.until, by_night)


def _runs_backwards(start: int | None, end: int | None, span: ClockSpan) -> bool:
    """Return whether the end precedes or equals the start, or is later than any night shift."""
    if start is None or end is None or span.until:
        return False
    if start == end:
        return start != _BOUNDARY
    is_long = (end - start) % _DAY > _LONGEST_NIGHT
    return _BOUNDARY < end < start and (start < _EVENING or is_long)


def _clock_pair(
    span: ClockSpan, shift: Shift | None, day: DayMention | None, now: LocalMoment
) -> tuple[int | None, int | None]:
    """Resolve the clock times of a span; an ambiguous hour by the other time or the shift, or not at all."""
    start, end = span.start, span.end
    if start and end:
        start, end = _softened(start, end), _softened(end, start)
        if _is_24h(start) or _is_24h(end):
            return _as_24h(start), _as_24h(end)
        if start.form is ClockFormat.BARE and end.form is ClockFormat.EXACT:
            late = (end.at // 720) * 720
            same = start.at + late
            return (same if start.at < end.at - late else (same + 720) % _DAY), end.at
        first = start.at if start.form is ClockFormat.EXACT else _bare_start(start, end, shift, day, now)
        if first is None or end.form is ClockFormat.EXACT:
            return first, end.at if end.form is ClockFormat.EXACT else None
        return first, first_after(end.at, first)
    if start:
        return (start.at if start.form is ClockFormat.EXACT else _bare_start(start, None, shift, day, now)), None
    if end:
        return None, (end.at if end.form is ClockFormat.EXACT else _bare_end(end, shift, day, now))
    return None, None


def _softened(clock: ClockTime, other: ClockTime) -> ClockTime:
    """Treat "10:30" in "6:30 to 10:30" as ambiguous, although alone it is a 24-hour time."""
    is_short = ":" in clock.written and 600 <= clock.at < 780
    return (
        clock._replace(at=clock.at % 720, form=ClockFormat.BARE)
        if is_short and other.form is ClockFormat.BARE
        else clock
    )


def _is_24h(clock: ClockTime) -> bool:
    return (
        clock.form is ClockFormat.EXACT
        and (clock.digits or clock.written[:1].isdigit())
        and not clock.written.rstrip("m").endswith(("a", "p"))
    )


def _as_24h(clock: ClockTime) -> int:
    """Read an ambiguous time as 24-hour time: "7:30-15:30" and "9 to 1500" begin in the morning."""
    return clock.at + 720 if clock.form is ClockFormat.BARE and clock.written.startswith("12") else clock.at


def _bare_start(
    start: ClockTime, end: ClockTime | None, shift: Shift | None, day: DayMention | None, now: LocalMoment
) -> int | None:
    """Resolve an ambiguous start by its part of the day; None if it could be morning or evening."""
    early, late = start.at, start.at + 720
    if shift and shift.hours.start is not None and shift.hours.end is not None:
        length = (shift.hours.end - shift.hours.start) % _DAY or _DAY
        inside = [at for at in (early, late) if (at - shift.hours.start) % _DAY < length]
        if len(inside) == 1:
            return inside[0]
        if len(inside) == 2 and length < _DAY:
            return min(inside, key=lambda at: (at - (shift.hours.start or 0)) % _DAY)
    if end is None:
        return None
    if day and day.written == "today" and start.at == end.at:
        return early if now.minute < early + _UNDER_WAY else None
    if day and day.date == now.today and early <= now.minute < late:
        return late
    hour = start.at // 60
    if hour in {0, *range(1, 6)}:
        return late
    return early if end.at < start.at or end.at == 0 else None  # "9 to 5" is a workday; "7 to 9" is ambiguous


def _bare_end(end: ClockTime, shift: Shift | None, day: DayMention | None, now: LocalMoment) -> int | None:
    """Resolve an ambiguous end as the first such hour after the shift's start, and after now if today."""
    if shift is None or shift.hours.start is None:
        return None
    first = first_after(end.at, shift.hours.start)
    if day and day.date == now.operational and _offset(first) <= _offset(now.minute) and _end_offset(first) < _DAY:
        return (first + 720) % _DAY
    return first


def first_after(at: int, start: int) -> int:
    """Return the first time after `start` at which a 12-hour clock shows `at`."""
    return (start + ((at - start) % 720 or 720)) % _DAY


def _placed(day: DayMention | None, timing: _Timing, now: LocalMoment, warnings: list[str]) -> list[ShiftWindow]:
    start, end = timing.hours
    if day is None:
        return [ShiftWindow(None, *_written(timing.hours))]
    if day.rolls and is_past(day.date, end if start is not None and _ends_in(start, end) else None, now):
        day = day._replace(date=day.date + timedelta(days=7))
    if start is None or end is None:
        if is_past(day.date, None, now):
            warnings.append(_gone(day.date))
            return [ShiftWindow(None, *_written(timing.hours))]
        return [ShiftWindow(day.date, *_written(timing.hours))]
    until = timing.until.date if timing.until else None
    windows = cut(day.date, start, end, until=until, by_night=timing.by_night)
    if not windows or len(windows) > _LONGEST_DAYS:
        warnings.append(f"{day.written} {hhmm(start)} to {hhmm(end)} ends before it begins; which hours?")
        return [ShiftWindow(day.date, None, None)]
    if start < _BOUNDARY and not timing.by_night and not day.implied and len(windows) == 1:
        morning = day.date + timedelta(days=1)
        warnings.append(f"I read {hhmm(start)} to {hhmm(end)} as the night of {day.date:%A}, early on {morning:%A}")
    if is_past(windows[-1][0], windows[-1][2], now):
        warnings.append(f"{hhmm(start)} to {hhmm(end)}: {_gone(windows[-1][0])}")
        return [ShiftWindow(None, *_written(timing.hours))]
    return [ShiftWindow(on, hhmm(first), hhmm(last)) for on, first, last in windows if not is_past(on, last, now)]


def cut(
    day: date, start: int, end: int, *, until: date | None = None, by_night: bool = False
) -> list[tuple[date, int, int]]:
    """Split a window at every 0600.

    The early hours belong to the night of the stated day. Only a window that continues after 0600, or has a
    stated end day, begins in the early hours of the calendar day.
    """
    is_early = start < _BOUNDARY and (until is not None or (start < _BOUNDARY < end and not by_night))
    on, at = (day - timedelta(days=1) if is_early else day), _offset(start)
    length = (end - start) % _DAY or _DAY if until is None else (until - on).days * _DAY + end - _BOUNDARY - at
    if not 0 < length <= _LONGEST_DAYS * _DAY:
        return []
    pieces: list[tuple[date, int, int]] = []
    while length > 0:
        step = min(length, _DAY - at)
        pieces.append((on, (at + _BOUNDARY) % _DAY, (at + step + _BOUNDARY) % _DAY))
        on, at, length = on + timedelta(days=1), 0, length - step
    return pieces


def _ends_in(start: int, end: int | None) -> bool:
    """Return whether the window ends within the operational day in which it starts."""
    return end is not None and _offset(start) < _end_offset(end)


def _written(hours: Hours) -> tuple[str | None, str | None]:
    return tuple(None if at is None else hhmm(at) for at in hours)  # type: ignore[return-value]


def _offset(at: int) -> int:
    """Return the minutes since 0600."""
    return (at - _BOUNDARY) % _DAY


def _end_offset(at: int) -> int:
    return _offset(at) or _DAY


def _gone(day: date) -> str:
    return f"{day:%A} {day.day} {day:%B} is over; which day?"
