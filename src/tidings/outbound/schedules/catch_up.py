"""Plan which occurrences are due, which were missed and which is next (catch-up policies). Pure.

An occurrence is late if it is over by more than a minute. Within the catch-up window `latest` makes the
newest due occurrence and `all` makes each; `skip` makes only one that is not late. The announced next
instant is kept even if the rule has changed since.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from ...inputs.timezones import parse_timezone
from ...model.time import MINUTE, iso
from ...store.port import Row
from .recurrence import RecurrenceSeries, compile_rule, excluded_dates

LATE_AFTER = MINUTE
MAX_MADE = 100  # per schedule and step; the rest follows in the next step
MAX_COUNTED = 1000  # missed occurrences counted exactly
MAX_LOGGED = 20  # missed occurrences with a log line each

SKIP, LATEST, ALL = "skip", "latest", "all"
CATCH_UP_POLICIES = (SKIP, LATEST, ALL)


class ScheduleState(NamedTuple):
    """The state of a schedule that planning needs."""

    series: RecurrenceSeries
    next_at: int  # as announced
    catch_up: str
    catch_up_window: int
    left: int | None = None  # remaining occurrences
    since: int = 0  # skipped days are reported from here: the last occurrence or change


class OccurrenceLogEntry(NamedTuple):
    """A log line of an occurrence that was not made."""

    at: int
    outcome: str
    detail: str


class OccurrencePlan(NamedTuple):
    """What to do now. `last_at` is the last instant handled, `next_at` the next, if any."""

    make: list[int]
    lines: list[OccurrenceLogEntry]
    last_at: int
    next_at: int | None


def series_of(row: Row) -> RecurrenceSeries:
    """The series of instants of a stored schedule."""
    timezone = parse_timezone(row["timezone"])
    rule = row["rule"]
    return RecurrenceSeries(
        compile_rule(rule, timezone), timezone, row["start_at"], row["end_at"], excluded_dates(rule)
    )


def announced(row: Row) -> int:
    """The next instant; that of an occurrence which waits for the previous one is `held_at`."""
    return int(row["next_at"] if row["held_at"] is None else row["held_at"])


def schedule_state_of(row: Row) -> ScheduleState:
    """The state that `catch_up` needs."""
    return ScheduleState(
        series_of(row),
        announced(row),
        row["catch_up"],
        row["catch_up_window"],
        None if row["most"] is None else max(0, row["most"] - row["fired"]),
        max(row["last_at"] or 0, row["changed_at"]),
    )


def plan_occurrences(state: ScheduleState, now: int) -> OccurrencePlan:
    """Plan what is due at `now`; the announced instant must be."""
    following = state.series.first_after(state.next_at)
    if following is None or following.at > now:  # the usual case: exactly one is due
        made, last = [state.next_at][: now - state.next_at < _allowance(state)], state.next_at
    else:
        made = _chosen(state, now)[: state.left]
        last = _last_handled(state, made, now)
        following = state.series.first_after(last)
    excluded = state.series.skipped(state.since, last, MAX_LOGGED)
    lines = [OccurrenceLogEntry(at, "skipped", "its date is excluded") for at in excluded]
    lines = [*_missed(state, made, last, now), *lines]
    return OccurrencePlan(made, lines, last, None if following is None else following.at)


def late_expiry(state: ScheduleState, at: int, now: int) -> int | None:
    """The expiry of the message of a late occurrence; None for one on time."""
    return at + state.catch_up_window if now - at > LATE_AFTER else None


def _due(state: ScheduleState, now: int, after: int) -> Iterator[int]:
    """Due instants after another one, including the announced instant."""
    if after < state.next_at <= now:
        yield state.next_at
    for firing in state.series.after(max(after, state.next_at)):
        if firing.at > now:
            return
        yield firing.at


def _chosen(state: ScheduleState, now: int) -> list[int]:
    """The instants to make, oldest first."""
    if state.catch_up == ALL:
        return list(islice(_due(state, now, now - state.catch_up_window), MAX_MADE))
    return _newest(state, now, now - _allowance(state))


def _allowance(state: ScheduleState) -> int:
    """How late an occurrence may still be made."""
    return min(state.catch_up_window, LATE_AFTER) if state.catch_up == SKIP else state.catch_up_window


def _newest(state: ScheduleState, now: int, after: int) -> list[int]:
    """The newest due instant, searched in growing windows because a rule may fire every second."""
    window = MINUTE
    while True:
        low = max(after, now - window)
        found = list(_due(state, now, low))
        if found or low == after:
            return found[-1:]
        window *= 4


def _last_handled(state: ScheduleState, made: list[int], now: int) -> int:
    """The last instant of this plan: all that is due, or where a limit ended it."""
    if made and state.catch_up == ALL and len(made) == MAX_MADE:
        return made[-1]
    if made and state.left is not None and len(made) == state.left:
        return made[-1]
    return max([state.next_at, *made, *_newest(state, now, state.next_at - 1)])


def _missed(state: ScheduleState, made: list[int], last: int, now: int) -> list[OccurrenceLogEntry]:
    """Log lines of due instants that are not made; one line if there are many."""
    if made == [last] and last == state.next_at:
        return []
    chosen = set(made)
    counted = islice(_due(state, min(now, last), state.next_at - 1), MAX_COUNTED + len(made))
    missed = [at for at in counted if at not in chosen]
    if len(missed) <= MAX_LOGGED:
        return [OccurrenceLogEntry(at, "missed", _why(state, at, made, now)) for at in missed]
    many = f"{len(missed):,}" if len(missed) < MAX_COUNTED else f"{MAX_COUNTED:,} or more"
    return [OccurrenceLogEntry(missed[-1], "missed", f"{many} were missed since {iso(missed[0])}")]


def _why(state: ScheduleState, at: int, made: list[int], now: int) -> str:
    if now - at >= state.catch_up_window:
        return "missed: later than its catch-up window"
    if made and made[-1] > at:
        return f"missed: replaced by the occurrence of {iso(made[-1])}"
    return "missed: this schedule does not catch up"
