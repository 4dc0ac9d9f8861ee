"""One operational day as a grid: one line per squad, 48 half hours from 0600. Pure.

c  has a crew        n  marked as "no crew"        .  not on the calendar
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import date as Date
from datetime import timedelta
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from ..domain import HALF_HOURS, CalendarCommand, CalendarDay, ShiftAction, half_hours, slot

CREWED, NO_CREW, NOTHING = "c", "n", "."
BLANK = NOTHING * HALF_HOURS
MARKS: Mapping[ShiftAction, str] = {ShiftAction.ADD: CREWED, ShiftAction.NO_CREW: NO_CREW, ShiftAction.REMOVE: NOTHING}
ACTIONS: Mapping[str, ShiftAction] = {mark: action for action, mark in MARKS.items()}

# The marks that satisfy a command: a squad that is not on the calendar has no crew either.
_FULFILS: Mapping[ShiftAction, str] = {ShiftAction.ADD: "c", ShiftAction.NO_CREW: "n.", ShiftAction.REMOVE: "."}
_LONGEST_SQUAD = 40


class SlotRun(NamedTuple):
    """Consecutive half hours with the same mark."""

    mark: str
    first: int
    last: int  # exclusive


def line(day: CalendarDay, squad: str) -> str:
    """Return a squad's day as a string of 48 marks."""
    places = [NOTHING] * HALF_HOURS
    for place in day.no_crew.get(squad, ()):
        places[place] = NO_CREW
    for place in day.crewed.get(squad, ()):
        places[place] = CREWED
    return "".join(places)


def day_of(date: str, lines: Mapping[str, str]) -> CalendarDay:
    """Build a day from the lines of its squads."""
    return CalendarDay(
        date,
        {squad: _places(text, CREWED) for squad, text in lines.items()},
        no_crew={squad: _places(text, NO_CREW) for squad, text in lines.items() if NO_CREW in text},
    )


def touched_slots(day: CalendarDay, command: CalendarCommand) -> str:
    """Return the marks of the half hours that a command covers."""
    first, last = bounds(command)
    return line(day, command.squad)[first:last]


def side_effects(day: CalendarDay, preview: CalendarDay, command: CalendarCommand) -> list[str]:
    """Return the squads whose half hours outside the command's change, too."""
    first, last = bounds(command)

    def others(there: CalendarDay, squad: str) -> str:
        marks = line(there, squad)
        return marks[:first] + marks[last:] if squad == command.squad else marks

    return [squad for squad in squads_of([day, preview], ()) if others(day, squad) != others(preview, squad)]


def bounds(command: CalendarCommand) -> tuple[int, int]:
    """Return the half hours that a command covers, as [first, last)."""
    covered = half_hours(command.start, command.end)
    return covered.start, covered.stop


def after(day: CalendarDay, command: CalendarCommand) -> CalendarDay:
    """Return the day after a command."""
    first, last = bounds(command)
    squad, old = command.squad, line(day, command.squad)
    new = old[:first] + MARKS[command.action] * (last - first) + old[last:]
    crewed = {**day.crewed, squad: _places(new, CREWED)}
    marked = {each: places for each, places in day.no_crew.items() if each != squad}
    return CalendarDay(day.date, crewed, no_crew=marked | ({squad: _places(new, NO_CREW)} if NO_CREW in new else {}))


def fulfils(action: ShiftAction, image: str) -> bool:
    """Return whether these marks satisfy the action."""
    return set(image) <= set(_FULFILS[action])


def command_problem(command: CalendarCommand, *, grid: int) -> str | None:
    """Return why a calendar with this grid (in minutes) cannot accept a command; None if it can."""
    if not command.squad.strip() or len(command.squad) > _LONGEST_SQUAD or not command.squad.isprintable():
        return "the squad name is missing or invalid"
    if read_date(command.date) is None:
        return f"the date {command.date!r} is not a date in the format YYYYMMDD"
    for name, time in (("start", command.start), ("end", command.end)):
        if not re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]", time):
            return f"the {name} {time!r} is not a time in the format HHMM"
        if int(time[2:]) % grid if grid < 60 else int(time[2:]):
            return f"the {name} {time} is not on the calendar's grid of {grid} minutes"
    if slot(command.end) <= slot(command.start) and command.end != "0600":
        return f"the end {command.end} is not after the start {command.start} within a day from 0600 to 0600"
    return None


def runs(text: str) -> list[SlotRun]:
    """Split a line into runs of the same mark."""
    found: list[SlotRun] = []
    for mark, same in groupby(text):
        first = found[-1].last if found else 0
        found.append(SlotRun(mark, first, first + len(list(same))))
    return found


def shifts(day: CalendarDay, squad: str) -> list[SlotRun]:
    """Return the runs in which a squad has a crew or is marked as "no crew"."""
    return [run for run in runs(line(day, squad)) if run.mark != NOTHING]


def gaps(day: CalendarDay) -> list[SlotRun]:
    """Return the runs in which no squad has a crew."""
    busy = frozenset[int]().union(*day.crewed.values()) if day.crewed else frozenset()
    text = "".join(CREWED if place in busy else NOTHING for place in range(HALF_HOURS))
    return [run for run in runs(text) if run.mark == NOTHING]


def undo_commands(command: CalendarCommand, image: str) -> list[CalendarCommand]:
    """Return the commands that restore the previous marks."""
    first, _ = bounds(command)
    return [
        CalendarCommand(
            ACTIONS[run.mark], command.squad, command.date, clock(first + run.first), clock(first + run.last)
        )
        for run in runs(image)
    ]


def clock(place: int) -> str:
    """Return the start of a half hour as HHMM."""
    minutes = (6 * 60 + 30 * place) % (24 * 60)
    return f"{minutes // 60:02d}{minutes % 60:02d}"


def read_date(text: str) -> Date | None:
    """Parse YYYYMMDD; None if it is not a date."""
    if len(text) != 8 or not (text.isascii() and text.isdigit()):
        return None
    try:
        return Date(int(text[:4]), int(text[4:6]), int(text[6:]))
    except ValueError:
        return None


def dates(first: Date, count: int) -> list[str]:
    """Return `count` consecutive days as YYYYMMDD."""
    return [f"{first + timedelta(days=n):%Y%m%d}" for n in range(count)]


def squads_of(days: Iterable[CalendarDay], known: Sequence[str]) -> list[str]:
    """Return all squads on these days, the known ones first."""
    others = {squad for day in days for squad in (*day.crewed, *day.no_crew)} - set(known)
    return [*known, *sorted(others)]


@lru_cache(4096)
def _places(text: str, mark: str) -> frozenset[int]:
    return frozenset([place for place, found in enumerate(text) if found == mark])
