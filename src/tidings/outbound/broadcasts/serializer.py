"""A broadcast as API fields, and its events. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from ...model.broadcast import BroadcastOptions, BroadcastState, BroadcastTally, load_broadcast_options
from ...model.time import MINUTE, SECOND, iso
from ...store.port import Row, Step

FINAL_STAGES = frozenset(
    {BroadcastState.COMPLETED, BroadcastState.FAILED, BroadcastState.CANCELLED, BroadcastState.EXPIRED}
)


def serialize_broadcast(row: Row, tally: BroadcastTally) -> Row:
    """A broadcast row as API fields, with its tally."""
    options = load_broadcast_options(row["options"])
    return {
        "id": row["id"],
        "name": row["name"],
        "state": row["state"],
        "reason": row["reason"],
        "channel": row["channel"],
        "xref": row["xref"],
        "trigger": row["starts"].upper(),
        "content": orjson.loads(row["content"]) if row["content"] else None,
        "template": row["template"],
        "template_version": row["template_version"],
        "schedule": row["schedule"],
        "options": serialize_options(options, row["retry_in"]),
        "accepted_at": iso(row["accepted_at"]),
        "scheduled_at": iso(row["scheduled_at"]),
        "frozen_at": iso(row["frozen_at"]),
        "started_at": iso(row["started_at"]),
        "paused_at": iso(row["paused_at"]),
        "ended_at": iso(row["ended_at"]),
        "rows": row["lines"],
        "duplicates": row["duplicates"],
        "refused": row["refused"],
        "total": tally.total,
        "counts": tally.counts,
        "actions": allowed_actions(row["state"], tally),
    }


def allowed_actions(state: str, tally: BroadcastTally) -> list[str]:
    """The actions allowed in this state."""
    failed = ["retry"] if tally.errors else []
    match state:
        case BroadcastState.LOADING:
            return ["upload", "freeze", "cancel"]
        case BroadcastState.READY:
            return ["trigger", "cancel"]
        case BroadcastState.RUNNING:
            return ["pause", "cancel", *failed]
        case BroadcastState.PAUSED:
            return ["resume", "cancel"]
        case BroadcastState.FAILED if tally.waiting:
            return ["resume", "cancel"]
        case BroadcastState.FAILED | BroadcastState.COMPLETED:
            return failed
    return []


def serialize_options(options: BroadcastOptions, retry_in: int | None) -> Row:
    """The options as request fields, without unset ones."""
    quiet = options.quiet_hours
    shown: dict[str, Any] = {
        "maxAttempts": options.max_attempts,
        "attemptIntervalMinutes": None if retry_in is None else retry_in / MINUTE,
        "per_second": options.per_second,
        "spread": options.spread / SECOND if options.spread else None,
        "error_limit": None if options.error_limit is None else round(options.error_limit * 100, 6),
        "canary": options.canary,
        "quiet_hours": None if quiet is None else {"from": _clock(quiet.begin), "to": _clock(quiet.end)},
        "timezone": options.timezone,
        "recipient_timezone": options.recipient_timezone or None,
        "priority": options.priority,
        "webhook": options.webhook,
        "skip_bad": options.skip_bad or None,
        "variables": options.variables,
    }
    return {name: value for name, value in shown.items() if value is not None}


def broadcast_event(
    row: Row, tally: BroadcastTally, state: str, reason: str | None, *, only_if: int | None = 0
) -> Step:
    """The outbox step of a state change; a final state also goes to the broadcast's own webhook."""
    word = {BroadcastState.RUNNING: "resumed" if row["started_at"] else "started"}.get(
        BroadcastState(state), str(state)
    )
    body = {
        "id": row["id"],
        "name": row["name"],
        "state": str(state),
        "reason": reason,
        "channel": row["channel"],
        "xref": row["xref"],
        "schedule": row["schedule"],
        "total": tally.total,
        "counts": tally.counts,
    }
    params = {
        "at": None,
        "tenant": row["tenant"],
        "type": f"broadcast.{word}",
        "subject": row["id"],
        "body": orjson.dumps(body).decode(),
        "target": load_broadcast_options(row["options"]).webhook if state in FINAL_STAGES else None,
    }
    return Step("outbox_add", params, only_if)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
