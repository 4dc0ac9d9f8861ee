"""Telling: which events there are, who wants which, and what one says. Pure.

An event is a row of `outbox`, written with the change that it tells of. What is the same for ever (to whom,
on which channel, of which broadcast) is added when it is told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import orjson

from ...model.errors import Invalid
from ...model.time import iso
from ...store.port import Row

EVENTS_CHANNEL = "events"  # the built-in channel that carries them; the schema knows it by this name too
TEST_EVENT = "subscription.test"
ALL_EVENTS = "*"
MAX_PATTERNS = 50

EVENT_TYPES: Mapping[str, str] = {
    "message.sent": "it was sent",
    "message.failed": "a dead letter: it failed for good",
    "message.unknown": "a dead letter in doubt: nobody can say whether it was sent",
    "message.cancelled": "a person cancelled or discarded it",
    "message.skipped": "it was not to be sent: opted out, only observed, its broadcast cancelled",
    "message.expired": "its time ran out before it could start",
    "message.retried": "a person started a dead letter afresh",
    "message.delivered": "the provider says that the recipient has it",
    "message.read": "the provider says that the recipient has read it",
    "message.undelivered": "the provider took it and could not deliver it; it is not sent again",
    "broadcast.started": "its first messages are on their way",
    "broadcast.paused": "a person, a canary or too many errors stopped it for now",
    "broadcast.resumed": "it goes on",
    "broadcast.completed": "every recipient has its end",
    "broadcast.failed": "nobody got it, or too many errors stopped it",
    "broadcast.cancelled": "a person cancelled it",
    "broadcast.expired": "its time ran out before it could start",
    "schedule.missed": "an occurrence was missed by more than its grace",
    "schedule.refused": "what it makes could not be made this time",
    "schedule.ended": "it has fired for the last time",
    "channel.reconnecting": "its session was lost; its messages wait",
    "channel.connected": "its session is back; what waited goes out",
    "channel.logged_out": "its session needs a person: link it again by scanning its code",
    "channel.unreachable": "five reconnects in a row did not bring its session back",
    "inbox.changed": "a message that came in was edited or deleted after it had been handled",
    "inbox.failed": "a message that came in could not be handled in three tries",
    "source.failing": "a source has failed three times in a row; it goes on where it stopped",
    "source.overrun": "reading a source took over 30 minutes, and another process took over",
    "source.gap": "something that was said is missing, or was read late",
    "migration.planned": "a dry run is over; the plan waits for approval",
    "migration.started": "it reads and writes",
    "migration.paused": "a person, wrong credentials, a used-up quota or an error of the program stopped it",
    "migration.resumed": "it goes on",
    "migration.breaker_opened": "a system failed several times in a row; nobody calls it for a while",
    "migration.completed": "every record has its end",
    "migration.failed": "every record has its end, and none of them is in the target",
    "migration.cancelled": "a person cancelled it",
    "alert.raised": "the engine found something wrong with itself",
    "alert.resolved": "what was wrong no longer is",
    TEST_EVENT: "somebody asked for a test",
}
"""Every type of event, and what it tells."""

_RECEIPTS = ("delivered", "read", "undelivered")
# Where the type's word is not the state's.
_STATES = {"unknown": "failed", "retried": "pending", **dict.fromkeys(_RECEIPTS, "sent")}


def check_patterns(given: object) -> tuple[str, ...]:
    """The types that a subscription asks for: `message.sent`, `message.*`, or `*`."""
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
            raise Invalid(f"there is no event {pattern[:60]!r}", field="events", remedy=remedy)
    return tuple(dict.fromkeys(given))


def matches_patterns(patterns: Sequence[str], type_: str) -> bool:
    """Whether somebody who asked for these is told of such an event."""
    return any(
        pattern in (ALL_EVENTS, type_) or (pattern.endswith(".*") and type_.startswith(pattern[:-1]))
        for pattern in patterns
    )


def event_payload(row: Row) -> dict[str, Any]:
    """What is told: type, time, and data. The same bytes on every try, because they are kept."""
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
        "broadcast": row["broadcast"],
        "schedule": row["schedule"],
        "xref": row["xref"],
        "attempts": body.get("attempts"),
        "reason": None if word == "sent" else reason,
        "receipt": body.get("receipt") if is_receipt else reason if word == "sent" else None,
        **({"category": body.get("category")} if word == "undelivered" else {}),
    }
