"""The series and state of a schedule, from its row. Pure."""

from __future__ import annotations

from ...inputs.timezones import parse_timezone
from ...store.port import Row
from .catch_up import ScheduleState
from .recurrence import RecurrenceSeries, compile_rule, excluded_dates


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
