"""Where a schedule stands, from its row. Pure."""

from __future__ import annotations

from ...reading.zones import read_zone
from ...store.port import Row
from .planning import Standing
from .recurrence import Series, compile_rule, days_to_skip


def series_of(row: Row) -> Series:
    """The instants of a stored schedule."""
    zone = read_zone(row["zone"])
    rule = row["rule"]
    return Series(compile_rule(rule, zone), zone, row["start_at"], row["end_at"], days_to_skip(rule))


def standing_of(row: Row) -> Standing:
    """What planning needs to know of it."""
    return Standing(
        series_of(row),
        row["next_at"],
        row["missed"],
        row["grace"],
        None if row["most"] is None else max(0, row["most"] - row["fired"]),
        max(row["last_at"] or 0, row["changed_at"]),
    )
