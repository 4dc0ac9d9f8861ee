"""Planning: which occurrences of a schedule are to be made now, which were missed, and which is next. Pure.

An occurrence is late when its instant is over by more than a minute (a tick takes milliseconds, so somebody
was away). `latest` makes the newest one that is due, `all` each of them, both within the window; `skip` makes
only one that is not late. The instant that was announced as the next is kept, whatever the rule says since.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ...model.time import MINUTE, iso
from .recurrence import RecurrenceSeries

LATE_AFTER = MINUTE
MAX_MADE = 100  # of one schedule in one step; the rest comes in the next
MAX_COUNTED = 1000  # missed ones that are counted one by one
MAX_LOGGED = 20  # and that get a line each in the log

SKIP, LATEST, ALL = "skip", "latest", "all"
CATCH_UP_POLICIES = (SKIP, LATEST, ALL)


class ScheduleState(NamedTuple):
    """What planning needs to know of a schedule."""

    series: RecurrenceSeries
    next_at: int  # the announced one
    catch_up: str
    catch_up_window: int
    left: int | None = None  # how many may still be made
    since: int = 0  # from where days to skip are told: the last occurrence, or the last change


class OccurrenceLogEntry(NamedTuple):
    """One line of the log that is written without making anything."""

    at: int
    outcome: str
    detail: str


class OccurrencePlan(NamedTuple):
    """What to do now. `last_at` is the last instant that was dealt with; `next_at` the next, if any."""

    make: list[int]
    lines: list[OccurrenceLogEntry]
    last_at: int
    next_at: int | None


def plan_occurrences(standing: ScheduleState, now: int) -> OccurrencePlan:
    """Judge what is due at `now`; the announced instant is."""
    following = standing.series.first_after(standing.next_at)
    if following is None or following.at > now:  # nearly always: one is due, and nobody was away for long
        made, last = [standing.next_at][: now - standing.next_at < _allowance(standing)], standing.next_at
    else:
        made = _chosen(standing, now)[: standing.left]
        last = _last_dealt_with(standing, made, now)
        following = standing.series.first_after(last)
    lines = [*_missed(standing, made, last, now), *_left_out(standing, last)]
    return OccurrencePlan(made, lines, last, None if following is None else following.at)


def late_expiry(standing: ScheduleState, at: int, now: int) -> int | None:
    """Until when the message of a late occurrence may go out; None for one on time."""
    return at + standing.catch_up_window if now - at > LATE_AFTER else None


def _due(standing: ScheduleState, now: int, after: int) -> Iterator[int]:
    """Instants that are due, after a place, the announced one among them."""
    if after < standing.next_at <= now:
        yield standing.next_at
    for firing in standing.series.after(max(after, standing.next_at)):
        if firing.at > now:
            return
        yield firing.at


def _chosen(standing: ScheduleState, now: int) -> list[int]:
    """The instants to make, oldest first."""
    if standing.catch_up == ALL:
        return list(islice(_due(standing, now, now - standing.catch_up_window), MAX_MADE))
    return _newest(standing, now, now - _allowance(standing))


def _allowance(standing: ScheduleState) -> int:
    """How late one may be and still be made."""
    return (
        min(standing.catch_up_window, LATE_AFTER) if standing.catch_up == SKIP else standing.catch_up_window
    )


def _newest(standing: ScheduleState, now: int, after: int) -> list[int]:
    """The newest due one, looked for in ever wider windows: there may be one for each second of a day."""
    window = MINUTE
    while True:
        low = max(after, now - window)
        found = list(_due(standing, now, low))
        if found or low == after:
            return found[-1:]
        window *= 4


def _last_dealt_with(standing: ScheduleState, made: list[int], now: int) -> int:
    """Up to where this plan goes: all that is due, or as far as it was cut short."""
    if made and standing.catch_up == ALL and len(made) == MAX_MADE:
        return made[-1]
    if made and standing.left is not None and len(made) == standing.left:
        return made[-1]
    return max([standing.next_at, *made, *_newest(standing, now, standing.next_at - 1)])


def _missed(standing: ScheduleState, made: list[int], last: int, now: int) -> list[OccurrenceLogEntry]:
    """Those that are due and not made; many of them in one line."""
    if made == [last] and last == standing.next_at:
        return []
    chosen = set(made)
    counted = islice(_due(standing, min(now, last), standing.next_at - 1), MAX_COUNTED + len(made))
    missed = [at for at in counted if at not in chosen]
    if len(missed) <= MAX_LOGGED:
        return [OccurrenceLogEntry(at, "missed", _why(standing, at, made, now)) for at in missed]
    many = f"{len(missed):,}" if len(missed) < MAX_COUNTED else f"{MAX_COUNTED:,} or more"
    return [OccurrenceLogEntry(missed[-1], "missed", f"{many} were missed since {iso(missed[0])}")]


def _why(standing: ScheduleState, at: int, made: list[int], now: int) -> str:
    if now - at >= standing.catch_up_window:
        return "it was missed by more than its catch-up window"
    if made and made[-1] > at:
        return f"it was missed, and the one of {iso(made[-1])} stands for it"
    return "it was missed, and this schedule makes up for none"


def _left_out(standing: ScheduleState, last: int) -> list[OccurrenceLogEntry]:
    """Days to skip that have gone by since the last occurrence."""
    return [
        OccurrenceLogEntry(at, "skipped", "its day is one to skip")
        for at in standing.series.skipped(standing.since, last, MAX_LOGGED)
    ]
