"""Planning: which occurrences of a schedule are to be made now, which were missed, and which is next. Pure.

An occurrence is late when its instant is over by more than a minute (a tick takes milliseconds, so somebody
was away). `latest` makes the newest one that is due, `all` each of them, both within the grace; `skip` makes
only one that is not late. The instant that was announced as the next is kept, whatever the rule says since.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ...model.time import MINUTE, iso
from .recurrence import Series

ON_TIME = MINUTE
MOST_MADE = 100  # of one schedule in one step; the rest comes in the next
MOST_COUNTED = 1000  # missed ones that are counted one by one
MOST_TOLD = 20  # and that get a line each in the log

SKIP, LATEST, ALL = "skip", "latest", "all"
POLICIES = (SKIP, LATEST, ALL)


class Standing(NamedTuple):
    """What planning needs to know of a schedule."""

    series: Series
    next_at: int  # the announced one
    missed: str
    grace: int
    left: int | None = None  # how many may still be made
    since: int = 0  # from where days to skip are told: the last occurrence, or the last change


class Line(NamedTuple):
    """One line of the log that is written without making anything."""

    at: int
    outcome: str
    detail: str


class Plan(NamedTuple):
    """What to do now. `last_at` is the last instant that was dealt with; `next_at` the next, if any."""

    make: list[int]
    lines: list[Line]
    last_at: int
    next_at: int | None


def plan(standing: Standing, now: int) -> Plan:
    """Judge what is due at `now`; the announced instant is."""
    following = standing.series.first_after(standing.next_at)
    if following is None or following.at > now:  # nearly always: one is due, and nobody was away for long
        made, last = [standing.next_at][: now - standing.next_at < _allowance(standing)], standing.next_at
    else:
        made = _chosen(standing, now)[: standing.left]
        last = _last_dealt_with(standing, made, now)
        following = standing.series.first_after(last)
    lines = [*_missed(standing, made, last, now), *_left_out(standing, last)]
    return Plan(made, lines, last, None if following is None else following.at)


def expiry(standing: Standing, at: int, now: int) -> int | None:
    """Until when the message of a late occurrence may go out; None for one on time."""
    return at + standing.grace if now - at > ON_TIME else None


def _due(standing: Standing, now: int, after: int) -> Iterator[int]:
    """Instants that are due, after a place, the announced one among them."""
    if after < standing.next_at <= now:
        yield standing.next_at
    for firing in standing.series.after(max(after, standing.next_at)):
        if firing.at > now:
            return
        yield firing.at


def _chosen(standing: Standing, now: int) -> list[int]:
    """The instants to make, oldest first."""
    if standing.missed == ALL:
        return list(islice(_due(standing, now, now - standing.grace), MOST_MADE))
    return _newest(standing, now, now - _allowance(standing))


def _allowance(standing: Standing) -> int:
    """How late one may be and still be made."""
    return min(standing.grace, ON_TIME) if standing.missed == SKIP else standing.grace


def _newest(standing: Standing, now: int, after: int) -> list[int]:
    """The newest due one, looked for in ever wider windows: there may be one for each second of a day."""
    window = MINUTE
    while True:
        low = max(after, now - window)
        found = list(_due(standing, now, low))
        if found or low == after:
            return found[-1:]
        window *= 4


def _last_dealt_with(standing: Standing, made: list[int], now: int) -> int:
    """Up to where this plan goes: all that is due, or as far as it was cut short."""
    if made and standing.missed == ALL and len(made) == MOST_MADE:
        return made[-1]
    if made and standing.left is not None and len(made) == standing.left:
        return made[-1]
    return max([standing.next_at, *made, *_newest(standing, now, standing.next_at - 1)])


def _missed(standing: Standing, made: list[int], last: int, now: int) -> list[Line]:
    """Those that are due and not made; many of them in one line."""
    if made == [last] and last == standing.next_at:
        return []
    chosen = set(made)
    counted = islice(_due(standing, min(now, last), standing.next_at - 1), MOST_COUNTED + len(made))
    missed = [at for at in counted if at not in chosen]
    if len(missed) <= MOST_TOLD:
        return [Line(at, "missed", _why(standing, at, made, now)) for at in missed]
    many = f"{len(missed):,}" if len(missed) < MOST_COUNTED else f"{MOST_COUNTED:,} or more"
    return [Line(missed[-1], "missed", f"{many} were missed since {iso(missed[0])}")]


def _why(standing: Standing, at: int, made: list[int], now: int) -> str:
    if now - at >= standing.grace:
        return "it was missed by more than its grace"
    if made and made[-1] > at:
        return f"it was missed, and the one of {iso(made[-1])} stands for it"
    return "it was missed, and this schedule makes up for none"


def _left_out(standing: Standing, last: int) -> list[Line]:
    """Days to skip that have gone by since the last occurrence."""
    return [
        Line(at, "skipped", "its day is one to skip")
        for at in standing.series.skipped(standing.since, last, MOST_TOLD)
    ]
