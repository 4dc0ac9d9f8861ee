"""The bulletin: how a broadcast is shown to people, and what is told to others of it. Pure."""

from __future__ import annotations

from typing import Any

import orjson

from ...model.broadcast import Options, Stage, Tally, options_of
from ...model.time import MINUTE, SECOND, iso
from ...store.port import Row, Step

FINAL = frozenset({Stage.COMPLETED, Stage.FAILED, Stage.CANCELLED, Stage.EXPIRED})


def described(row: Row, tally: Tally) -> Row:
    """A broadcast as people see it: words instead of codes, ISO times, the exact tally."""
    options = options_of(row["options"])
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
        "options": shown_options(options, row["retry_in"]),
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
        "actions": actions(row["state"], tally),
    }


def actions(state: str, tally: Tally) -> list[str]:
    """What a person may ask of a broadcast in this state."""
    failed = ["retry"] if tally.errors else []
    match state:
        case Stage.LOADING:
            return ["upload", "freeze", "cancel"]
        case Stage.NEW:
            return ["trigger", "cancel"]
        case Stage.PENDING:
            return ["pause", "cancel", *failed]
        case Stage.PAUSED:
            return ["resume", "cancel"]
        case Stage.FAILED if tally.waiting:
            return ["resume", "cancel"]
        case Stage.FAILED | Stage.COMPLETED:
            return failed
    return []


def shown_options(options: Options, retry_in: int | None) -> Row:
    """Options in the words of a request; only those that say something."""
    quiet = options.quiet
    shown: dict[str, Any] = {
        "maxAttempts": options.max_tries,
        "attemptIntervalMinutes": None if retry_in is None else retry_in / MINUTE,
        "per_second": options.per_second,
        "spread": options.spread / SECOND if options.spread else None,
        "error_limit": None if options.error_limit is None else round(options.error_limit * 100, 6),
        "canary": options.canary,
        "quiet": None if quiet is None else {"from": _clock(quiet.begin), "to": _clock(quiet.end)},
        "zone": options.zone,
        "own_zone": options.own_zone or None,
        "priority": options.priority,
        "webhook": options.webhook,
        "skip_bad": options.skip_bad or None,
        "variables": options.variables,
    }
    return {name: value for name, value in shown.items() if value is not None}


def telling(row: Row, tally: Tally, state: str, reason: str | None, *, only_if: int | None = 0) -> Step:
    """The event of a broadcast's move, to be written with it; its end also goes to its own webhook."""
    word = {Stage.PENDING: "resumed" if row["started_at"] else "started"}.get(Stage(state), str(state))
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
        "target": options_of(row["options"]).webhook if state in FINAL else None,
    }
    return Step("outbox_add", params, only_if)


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
