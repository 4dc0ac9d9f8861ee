"""The series and state of a schedule, from its row. Pure."""

from __future__ import annotations

from ...inputs.timezones import parse_timezone
from ...store.port import Row
from .catch_up import ScheduleState
from .recurrence import RecurrenceSeries, compile_rule, days_to_skip


def series_of(row: Row) -> RecurrenceSeries:
    """The series of instants of a stored schedule."""
    timezone = parse_timezone(row["timezone"])
    rule = row["rule"]
    return RecurrenceSeries(compile_rule(rule, timezone), timezone, row["start_at"], row["end_at"], days_to_skip(rule))


def schedule_state_of(row: Row) -> ScheduleState:
    """The state that `catch_up` needs."""
    return ScheduleState(
        series_of(row),
        row["next_at"],
        row["catch_up"],
        row["catch_up_window"],
        None if row["most"] is None else max(0, row["most"] - row["fired"]),
        max(row["last_at"] or 0, row["changed_at"]),
    )
