"""A message and its history as API fields: public states, ISO times, no kernel ids. Pure.

The public state `sent` is the kernel's `done`; `skipped` is `cancelled` without a request to cancel.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..model.errors import Invalid, TidingsError
from ..model.time import iso
from ..store.port import Row

_WORDS = {"done": "sent"}
_STATES = ("pending", "processing", "sent", "failed", "cancelled", "expired", "skipped")


def public_state(state: str | None) -> str:
    """The public name of a kernel state."""
    return _WORDS.get(str(state), str(state))


def is_skipped(row: Row) -> bool:
    """Whether it ended unsent without a request: the recipient opted out, or the channel observes."""
    return bool(row["state"] == "cancelled" and not row["cancel_requested"])


def kernel_state(state: str | None) -> str | None:
    """The kernel state of a public one; raises Invalid if unknown."""
    if state is None:
        return None
    if state not in _STATES:
        raise Invalid(f"there is no state {state!r}", field="state", remedy=f"use one of: {', '.join(_STATES)}")
    return {"sent": "done", "skipped": "cancelled"}.get(state, state)


def serialize_message(row: Row) -> Row:
    """A message row as API fields."""
    content = orjson.loads(row["content"])
    return {
        "id": row["id"],
        "state": "skipped" if is_skipped(row) else public_state(row["state"]),
        "channel": row["channel"],
        "to": row["recipient"],
        "text": content.get("text") or "",
        "subject": content.get("subject"),
        "data": content.get("data"),
        **{name: row[name] for name in ("priority", "ordering_key", "attempts", "max_attempts", "category")},
        "unknown": bool(row["unknown"]),
        "accepted_at": iso(row["accepted_at"]),
        "scheduled_at": iso(row["scheduled_at"]),
        "next_attempt_at": iso(row["due_at"]) if row["state"] == "pending" else None,
        "changed_at": iso(row["changed_at"]),
        "expires_at": iso(row["expires_at"]),
        "sent_at": iso(row["changed_at"]) if row["state"] == "done" else None,
        "failed_at": iso(row["changed_at"]) if row["state"] == "failed" else None,
        "holder": row.get("holder"),
    }


def attempt_times(row: Row, history: Sequence[Row]) -> Row:
    """First and last attempt, last error and receipt, from the history."""
    begun = [entry["at"] for entry in history if entry["state"] == "processing"]
    failed = [entry for entry in history if entry["origin"] == "processing" and entry["detail"]]
    errors = [entry for entry in failed if entry["state"] in ("pending", "failed")]
    receipts = [entry["detail"] for entry in history if entry["state"] == "done" and entry["detail"]]
    return {
        "executed_at": iso(begun[0]) if begun else None,
        "last_attempt_at": iso(begun[-1]) if begun else None,
        "error": errors[-1]["detail"] if errors and row["state"] != "done" else None,
        "receipt": receipts[-1] if receipts else None,
    }


def serialize_history_entry(entry: Row) -> Row:
    """A history row as API fields."""
    return {
        "at": iso(entry["at"]),
        "from": public_state(entry["origin"]),
        "to": public_state(entry["state"]),
        **{name: entry[name] for name in ("attempt", "node", "node_name", "category", "detail")},
    }


def error_fields(error: TidingsError) -> Row:
    """An error as fields of a report: field, problem and remedy."""
    return {"field": error.field, "problem": error.problem, "remedy": error.remedy}
