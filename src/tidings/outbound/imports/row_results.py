"""What a write-back writes for a row, and when to look at it again. Pure."""

from __future__ import annotations

from typing import NamedTuple

from ...model.task import TaskState
from ...model.time import SECOND, moment
from ...store.external_tables.port import ColumnValue
from ...store.port import Row
from .settings import ImportSettings
from .timestamps import UNITS

MAX_ERROR_LENGTH = 500
_FINAL = {
    TaskState.DONE: "sent",
    TaskState.FAILED: "failed",
    TaskState.CANCELLED: "cancelled",
    TaskState.EXPIRED: "expired",
}
_FINAL_BROADCASTS = {"completed": "failed", "failed": "failed", "cancelled": "cancelled", "expired": "expired"}


class RowResult(NamedTuple):
    """The state of a row, and when to look at it again; None: when something changes it."""

    state: str
    sent_at: int | None = None
    error: str | None = None
    check_at: int | None = None


def row_result(row: Row, now: int) -> RowResult:
    """The result of an imported row, from its message, schedule or broadcast."""
    if row["kind"] == "schedule":
        is_over = row["schedule"] in (None, "ended")
        again = None if is_over else min(now + 300 * SECOND, (row["next_at"] or now) + 2 * SECOND)
        return RowResult("cancelled" if is_over else "imported", row["last_at"], row["problem"], again)
    state = row["state"]
    if state in _FINAL:
        word = "unknown" if row["unknown"] and state == TaskState.FAILED else _FINAL[state]
        if word == "sent":
            return RowResult(word, row["changed_at"])
        return RowResult(word, error=(row["detail"] or word)[:MAX_ERROR_LENGTH])
    if state is None and row["kind"] == "message":  # removed by the retention
        return RowResult(row["written"] or "expired")
    if state is None and row["broadcast"] in (None, *_FINAL_BROADCASTS):
        word = _FINAL_BROADCASTS.get(row["broadcast"], "cancelled")
        return RowResult(word, error=row["reason"] or "the recipient was not accepted")
    due = row["due_at"] or row["scheduled_at"] or now
    waited = max(0, now - due)
    return RowResult("imported", check_at=max(due, now + min(60 * SECOND, max(SECOND, waited // 4))))


def updated_columns(result: RowResult, settings: ImportSettings) -> dict[str, ColumnValue]:
    """The columns to set; a state whose word is empty leaves the status as it is."""
    unit = UNITS.get(settings.request.time)
    sent = result.sent_at
    values: dict[str, ColumnValue] = {
        "status": settings.words.get(result.state, result.state) or None,
        "sent_at": None if sent is None else moment(sent) if unit is None else sent // unit,
        "error": result.error,
    }
    return {
        column: values[field]
        for field, column in settings.write_back.items()
        if values[field] is not None or (field == "error" and result.state != "imported")
    }
