"""A broadcast as API fields, and its events. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from ...model.broadcast import BroadcastOptions, BroadcastState, BroadcastTally, load_broadcast_options
from ...model.time import MINUTE, SECOND, iso
from ...store.port import Row, Step
from ..events.event_types import outbox_step

FINAL_STAGES = frozenset(
    {BroadcastState.COMPLETED, BroadcastState.FAILED, BroadcastState.CANCELLED, BroadcastState.EXPIRED}
)
_TIMES = ("accepted_at", "scheduled_at", "frozen_at", "started_at", "paused_at", "ended_at")


def serialize_broadcast(row: Row, tally: BroadcastTally) -> Row:
    """A broadcast row as API fields, with its tally."""
    options = load_broadcast_options(row["options"])
    return {
        **{name: row[name] for name in ("id", "name", "state", "reason", "channel", "xref")},
        "trigger": row["starts"].upper(),
        "content": orjson.loads(row["content"]) if row["content"] else None,
        **{name: row[name] for name in ("template", "template_version", "schedule")},
        "options": serialize_options(options, row["retry_in"]),
        **{name: iso(row[name]) for name in _TIMES},
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


def broadcast_event(row: Row, tally: BroadcastTally, state: str, reason: str | None) -> Step:
    """The outbox step after the step of a state change; a final state also goes to the broadcast's own webhook."""
    word = {BroadcastState.RUNNING: "resumed" if row["started_at"] else "started"}.get(
        BroadcastState(state), str(state)
    )
    body = {
        "id": row["id"],
        "name": row["name"],
        "state": str(state),
        "reason": reason,
        **{name: row[name] for name in ("channel", "xref", "schedule")},
        "total": tally.total,
        "counts": tally.counts,
    }
    target = load_broadcast_options(row["options"]).webhook if state in FINAL_STAGES else None
    step = outbox_step(f"broadcast.{word}", row["id"], body, tenant=row["tenant"], target=target)
    return step._replace(only_if=0)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
