"""A message as people see it: words instead of codes, ISO times, no kernel ids. Pure.

Domain words on top of the kernel's: `done` is `sent`, and what ended without anybody's wish is `skipped`.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ..model.errors import Invalid
from ..model.time import iso
from ..store.port import Row

_WORDS = {"done": "sent"}
_STATES = ("pending", "processing", "sent", "failed", "cancelled", "expired", "skipped")


def public_state(state: str | None) -> str:
    """The domain's word for a state of the kernel."""
    return _WORDS.get(str(state), str(state))


def is_skipped(row: Row) -> bool:
    """It ended without having been sent, and nobody asked for that: opted out, or only observed."""
    return bool(row["state"] == "cancelled" and not row["cancel_requested"])


def kernel_state(state: str | None) -> str | None:
    """The kernel's word for a state that people name; raises Invalid for one that there is not."""
    if state is None:
        return None
    if state not in _STATES:
        raise Invalid(
            f"there is no state {state!r}", field="state", remedy=f"use one of: {', '.join(_STATES)}"
        )
    return {"sent": "done", "skipped": "cancelled"}.get(state, state)


def serialize_message(row: Row) -> Row:
    """A message as people see it: words instead of codes, ISO times, no kernel ids."""
    content = orjson.loads(row["content"])
    return {
        "id": row["id"],
        "state": "skipped" if is_skipped(row) else public_state(row["state"]),
        "channel": row["channel"],
        "to": row["recipient"],
        "text": content.get("text") or "",
        "subject": content.get("subject"),
        "data": content.get("data"),
        "priority": row["priority"],
        "ordering_key": row["ordering_key"],
        "attempts": row["attempts"],
        "max_attempts": row["max_attempts"],
        "category": row["category"],
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
    """What only the history knows: first and last attempt, the last error, the receipt."""
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
    """One line of the history."""
    return {
        "at": iso(entry["at"]),
        "from": public_state(entry["origin"]),
        "to": public_state(entry["state"]),
        "attempt": entry["attempt"],
        "node": entry["node"],
        "node_name": entry["node_name"],
        "category": entry["category"],
        "detail": entry["detail"],
    }
