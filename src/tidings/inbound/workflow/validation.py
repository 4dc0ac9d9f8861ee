"""Validates requests: values, authorization, time, contradictions; no model decides what is allowed. Pure.

A finding names the slot that a new answer can correct; without one the request is refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple
from zoneinfo import ZoneInfo

from ...model.time import SECOND
from ..calendar.day_grid import read_date
from ..domain import CalendarCommand, CalendarDay, ShiftAction, Speaker, slot
from .instance import RequestSlots, request
from .settings import WorkflowSettings

FARTHEST = timedelta(days=400)


class ValidationFinding(NamedTuple):
    """Why a request is not executed as it is."""

    place: int  # the index of the request
    rule: str
    reason: str
    slot: str | None = None  # the slot that a new answer can correct
    is_needless: bool = False  # the calendar already has the requested state


def commands(wants: Sequence[RequestSlots]) -> list[CalendarCommand | None]:
    """Return a command for each complete request, and None for the others."""
    return [request(want).command for want in wants]


def validate_requests(
    wants: Sequence[RequestSlots],
    days: Mapping[str, CalendarDay],
    speaker: Speaker,
    owner: str,  # the squad that the workflow belongs to
    policy: WorkflowSettings,
    now: int,
) -> list[ValidationFinding]:
    """Return at most one finding per request: the first rule that it breaks."""
    found: list[ValidationFinding] = []
    asked = commands(wants)
    for place, (want, command) in enumerate(zip(wants, asked, strict=True)):
        if command is None:
            continue
        finding = (
            _shape(place, command, policy)
            or _authority(place, command, want, speaker, owner, policy)
            or _time(place, command, policy, now)
            or _contradiction(place, command, asked)
            or _needless(place, command, days[command.date])
        )
        if finding is not None:
            found.append(finding)
    return found


def _shape(place: int, command: CalendarCommand, policy: WorkflowSettings) -> ValidationFinding | None:
    """Check values that no calendar accepts."""
    if command.squad not in policy.squads:
        return ValidationFinding(place, "unknown_squad", f"there is no squad {command.squad}", "squad")
    if not is_day(command.date):
        return ValidationFinding(place, "no_such_date", f"{command.date} is not a valid date", "date")
    for name in ("start", "end"):
        time = getattr(command, name)
        if not re.fullmatch(r"([01][0-9]|2[0-3])[0-5][0-9]", time):
            return ValidationFinding(place, "no_such_time", f"{time} is not a time of day", name)
        if int(time[2:]) % policy.grid:
            reason = f"{time} is not on the hour{' or the half hour' if policy.grid == 30 else ''}"
            return ValidationFinding(place, "off_grid", reason, name)
    if slot(command.end) <= slot(command.start) and command.end != "0600":
        reason = f"{command.end} is not after {command.start} (a day runs from 0600 to 0600)"
        return ValidationFinding(place, "end_before_start", reason, "end")
    return None


def _authority(
    place: int, command: CalendarCommand, want: RequestSlots, speaker: Speaker, owner: str, policy: WorkflowSettings
) -> ValidationFinding | None:
    """Check authorization: members act for their squad, commanders for all squads.

    Members may also continue what a commander has requested for another squad.
    """
    if speaker.squad == command.squad or speaker.role in policy.commanders:
        return None
    namer = want["squad"]
    named_by_right = namer.squad == command.squad or namer.role in policy.commanders
    if named_by_right and speaker.squad == owner:
        return None
    reason = f"{speaker.name} of {speaker.squad or 'no squad'} may not change shifts of {command.squad}"
    return ValidationFinding(place, "no_authority", reason)


def _time(place: int, command: CalendarCommand, policy: WorkflowSettings, now: int) -> ValidationFinding | None:
    timezone = ZoneInfo(policy.timezone)
    ends = _instant(command.date, command.end, timezone, is_end=True)
    today = datetime.fromtimestamp(now / SECOND, timezone)
    if ends <= today:
        return ValidationFinding(place, "past", f"{day_in_words(command.date)} {command.end} is in the past", "date")
    if ends - today > FARTHEST:
        return ValidationFinding(place, "too_far", f"{day_in_words(command.date)} is more than a year ahead", "date")
    return None


def _instant(date: str, time: str, timezone: ZoneInfo, *, is_end: bool) -> datetime:
    day = datetime(int(date[:4]), int(date[4:6]), int(date[6:]), tzinfo=timezone)
    hours, minutes = int(time[:2]), int(time[2:])
    is_next_morning = time < "0600" or (is_end and time == "0600")
    return (day + timedelta(days=is_next_morning)).replace(hour=hours, minute=minutes)


def _contradiction(
    place: int, command: CalendarCommand, asked: Sequence[CalendarCommand | None]
) -> ValidationFinding | None:
    """Find requests for a crew and for no crew at the same time."""
    for other in asked[:place]:
        if other is None or (other.squad, other.date) != (command.squad, command.date):
            continue
        if (other.action is ShiftAction.ADD) != (command.action is ShiftAction.ADD) and other.slots & command.slots:
            reason = f"you asked for a crew and for no crew of {command.squad} at the same time"
            return ValidationFinding(place, "contradiction", reason, "action")
    return None


def _needless(place: int, command: CalendarCommand, day: CalendarDay) -> ValidationFinding | None:
    """Find requests whose result the calendar already has."""
    there = day.crewed.get(command.squad, frozenset())
    when = f"{day_in_words(command.date)} {command.start}-{command.end}"
    if command.action is ShiftAction.ADD and command.slots <= there:
        reason = f"{command.squad} already has a crew {when}"
        return ValidationFinding(place, "double_booking", reason, is_needless=True)
    if command.action is ShiftAction.NO_CREW and command.slots <= day.no_crew.get(command.squad, frozenset()):
        reason = f"{command.squad} is already marked as having no crew {when}"
        return ValidationFinding(place, "marked_already", reason, is_needless=True)
    marked = there | day.no_crew.get(command.squad, frozenset())
    if command.action is ShiftAction.REMOVE and not command.slots & marked:
        reason = f"{command.squad} has no shift to remove {when}"
        return ValidationFinding(place, "not_there", reason, is_needless=True)
    return None


def is_day(date: str) -> bool:
    """Return whether this is a valid date (YYYYMMDD)."""
    return read_date(date) is not None


def day_in_words(date: str) -> str:
    """Format a day for people: Sat 3 Jan."""
    day = datetime(int(date[:4]), int(date[4:6]), int(date[6:]))  # noqa: DTZ001 - a day has no zone
    return f"{day:%a} {day.day} {day:%b}"
