"""The event types, their patterns and payloads. Pure.

An event is a row of `outbox`, written in the transaction of its change. Immutable fields of a message
(recipient, channel, broadcast) are added when the event is relayed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import orjson

from ...model.errors import Invalid
from ...model.time import iso
from ...store.port import Row, Step

EVENTS_CHANNEL = "events"  # the built-in channel of events; the schema uses the name too
TEST_EVENT = "subscription.test"
ALL_EVENTS = "*"
MAX_PATTERNS = 50

EVENT_TYPES: Mapping[str, str] = {
    "message.sent": "the message was sent",
    "message.failed": "the message failed permanently and is a dead letter",
    "message.unknown": "the message is an uncertain dead letter: it may or may not have been sent",
    "message.cancelled": "a person cancelled or discarded the message",
    "message.skipped": "the message was not sent: opt-out, observe mode, or its broadcast was cancelled",
    "message.expired": "the message expired before it could be sent",
    "message.retried": "a person retried a dead letter",
    "message.delivered": "the provider reports delivery to the recipient",
    "message.read": "the provider reports that the recipient has read it",
    "message.undelivered": "the provider accepted the message but could not deliver it; it is not resent",
    "broadcast.started": "the broadcast has started",
    "broadcast.paused": "a person, the canary or the error limit paused it",
    "broadcast.resumed": "the broadcast was resumed",
    "broadcast.completed": "all recipients have a final state",
    "broadcast.failed": "no recipient was reached, or the error limit stopped it",
    "broadcast.cancelled": "a person cancelled the broadcast",
    "broadcast.expired": "the broadcast expired before it could start",
    "schedule.missed": "an occurrence was missed by more than its catch-up window",
    "schedule.refused": "the message or broadcast of an occurrence could not be created",
    "schedule.ended": "the schedule has fired for the last time",
    "channel.reconnecting": "the channel's session has been lost for 15 seconds; its messages wait",
    "channel.connected": "the session is back; waiting messages are sent",
    "channel.logged_out": "the session was logged out; scan the QR code to link it again",
    "channel.unreachable": "five reconnects in a row failed",
    "inbox.changed": "an inbound message was edited or deleted after it had been handled",
    "inbox.identity_changed": "a person has a new number or user id on a platform",
    "inbox.failed": "an inbound message could not be handled in three attempts",
    "source.failing": "a source has failed three times in a row; it will continue where it stopped",
    "source.overrun": "polling a source took over 30 minutes, and another process took over",
    "source.gap": "inbound messages are missing, or were read late",
    "migration.planned": "the dry run is done; the plan waits for approval",
    "migration.started": "the migration has started",
    "migration.paused": "a person, wrong credentials, an exhausted quota or an internal error paused it",
    "migration.resumed": "the migration was resumed",
    "migration.breaker_opened": "a system failed several times in a row; its calls are paused for a while",
    "migration.completed": "all records have a final state",
    "migration.failed": "all records have a final state, and none is in the target",
    "migration.cancelled": "a person cancelled the migration",
    "alert.raised": "an alert rule found a problem",
    "alert.resolved": "the problem of an alert is resolved",
    TEST_EVENT: "a test event was requested",
}
"""All event types with their descriptions."""

_RECEIPTS = ("delivered", "read", "undelivered")
# Types whose name is not the message state.
_STATES = {"unknown": "failed", "retried": "pending", **dict.fromkeys(_RECEIPTS, "sent")}


def check_patterns(given: object) -> tuple[str, ...]:
    """Check the patterns of a subscription: `message.sent`, `message.*`, or `*`; raises Invalid."""
    if (
        not isinstance(given, list)
        or not 0 < len(given) <= MAX_PATTERNS
        or not all(isinstance(entry, str) for entry in given)
    ):
        raise Invalid(
            "events is not a list of types",
            field="events",
            remedy=f'give 1 to {MAX_PATTERNS}, such as ["message.*", "broadcast.completed"]',
        )
    known = [ALL_EVENTS, *dict.fromkeys(f"{name.partition('.')[0]}.*" for name in EVENT_TYPES), *EVENT_TYPES]
    for pattern in given:
        if pattern not in known:
            close = get_close_matches(pattern, known, 1)
            remedy = f"did you mean {close[0]!r}?" if close else f"use one of: {', '.join(known)}"
            raise Invalid(f"unknown event {pattern[:60]!r}", field="events", remedy=remedy)
    return tuple(dict.fromkeys(given))


def matches_patterns(patterns: Sequence[str], type_: str) -> bool:
    """Whether an event type matches one of the patterns."""
    return any(
        pattern in (ALL_EVENTS, type_) or (pattern.endswith(".*") and type_.startswith(pattern[:-1]))
        for pattern in patterns
    )


def outbox_step(type_: str, subject: str, body: Mapping[str, Any], *, tenant: str, target: str | None = None) -> Step:
    """The step that writes an event to the outbox, in the transaction of its change."""
    params = {"at": None, "tenant": tenant, "type": type_, "subject": subject, "target": target}
    return Step("outbox_add", {**params, "body": orjson.dumps(body).decode()})


def event_payload(row: Row) -> dict[str, Any]:
    """The payload: type, timestamp and data. It is stored, so every attempt sends the same bytes."""
    body = orjson.loads(row["body"])
    is_message = row["type"].startswith("message.")
    data = _of_message(row, body) if is_message else body
    return {"type": row["type"], "timestamp": iso(row["at"]), "data": data}


def _of_message(row: Row, body: Mapping[str, Any]) -> dict[str, Any]:
    word = row["type"].partition(".")[2]
    is_receipt = word in _RECEIPTS
    reason = body.get("reason") or (None if is_receipt else row["detail"])
    return {
        "id": row["subject"],
        "state": _STATES.get(word, word),
        "unknown": word == "unknown",
        "channel": row["channel"],
        "to": row["recipient"],
        **{name: row[name] for name in ("broadcast", "schedule", "xref")},
        "attempts": body.get("attempts"),
        "reason": None if word == "sent" else reason,
        "receipt": body.get("receipt") if is_receipt else reason if word == "sent" else None,
        **({"category": body.get("category")} if word == "undelivered" else {}),
    }
