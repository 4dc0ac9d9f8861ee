"""The wire format between dispatchers and transports: parcels out, reports and markers back. Pure.

Told in full, with examples, in docs/reference/dispatch-wire.md; `tests/dispatch/vectors` holds it. What
cannot be read raises `Unreadable` with a reason and is never guessed at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from ..model.message import Message
from ..model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown
from ..model.task import Category

VERSION = 1
MAX_BATCH_SIZE = 25  # tasks in one parcel

_LONGEST_MS = 1e9

BATCH_TYPE = "tidings.parcel"  # AMQP's property `type`
REPORT_TYPE = "tidings.report"
MARKER_TYPE = "tidings.marker"

ClaimKey = tuple[int, int, str]  # a task, its claim and its token: one attempt, once


class Unreadable(ValueError):
    """Not what this page describes."""


class ReturnReason(StrEnum):
    """Why a transport gives a task back without having sent it."""

    REDELIVERED = "redelivered"  # it had been given to somebody who is gone: whether he began is not known
    LATE = "late"  # it waited for a free slot for too long
    STOPPING = "stopping"
    EXPIRED = "expired"  # nobody took it in time; told by the broker
    STRANGE = "strange"  # this transport does not have the channel


class DispatchItem(NamedTuple):
    """One task of a parcel."""

    id: int
    claim: int
    token: str  # proof that it was dispatched; its reports repeat it
    message: Message
    ask: bool = False  # an earlier attempt is in doubt: look it up before sending

    @property
    def key(self) -> ClaimKey:
        """What a report names it by."""
        return self.id, self.claim, self.token


class DispatchBatch(NamedTuple):
    """Up to 25 tasks of one channel. Each has an outcome of its own."""

    channel: str
    marks_start: bool  # report the start, and have it confirmed, before sending
    within_ms: int  # from receipt to start, at the most
    deadline_ms: int  # for one attempt, overall
    items: Sequence[DispatchItem]


class ReportedOutcome(NamedTuple):
    """What came of one attempt."""

    key: ClaimKey
    outcome: Outcome
    ms: float


class TransportReport(NamedTuple):
    """What a transport says: what it is about to send, what came of what it sent, what it did not send."""

    channel: str
    transport: str
    started: Sequence[ClaimKey] = ()
    outcomes: Sequence[ReportedOutcome] = ()
    returned: Sequence[tuple[ClaimKey, ReturnReason]] = ()


# -- parcels


def encode_batch(parcel: DispatchBatch) -> bytes:
    """The body of a delivery."""
    return orjson.dumps(
        {
            "version": VERSION,
            "channel": parcel.channel,
            "marks_start": parcel.marks_start,
            "within_ms": parcel.within_ms,
            "deadline_ms": parcel.deadline_ms,
            "tasks": [
                {
                    "id": item.id,
                    "claim": item.claim,
                    "token": item.token,
                    "ask": item.ask,
                    "message": {
                        "id": item.message.id,
                        "tenant": item.message.tenant,
                        "recipient": item.message.recipient,
                        "content": item.message.content,
                        "accepted_at": item.message.accepted_at,
                        "attempt": item.message.attempt,
                    },
                }
                for item in parcel.items
            ],
        }
    )


def decode_batch(body: bytes) -> DispatchBatch:
    """What a delivery says."""
    table = _table(body)
    try:
        channel = _text(table["channel"])
        return DispatchBatch(
            channel,
            bool(table["marks_start"]),
            _whole(table["within_ms"]),
            _whole(table["deadline_ms"]),
            [_item(channel, task) for task in table["tasks"]],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"a parcel without {error}") from None


def _item(channel: str, task: Mapping[str, Any]) -> DispatchItem:
    said = task["message"]
    message = Message(
        _text(said["id"]),
        _text(said["tenant"]),
        channel,
        _text(said["recipient"]),
        _content(said["content"]),
        _whole(said["accepted_at"]),
        _whole(said["attempt"]),
    )
    return DispatchItem(*_key(task), message, bool(task.get("ask")))


# -- reports


def encode_report(report: TransportReport) -> bytes:
    """The body of a report."""
    return orjson.dumps(
        {
            "version": VERSION,
            "channel": report.channel,
            "transport": report.transport,
            "started": [_named(key) for key in report.started],
            "outcomes": [
                {**_named(told.key), "ms": round(told.ms, 3), **encode_outcome(told.outcome)}
                for told in report.outcomes
            ],
            "returned": [{**_named(key), "why": why} for key, why in report.returned],
        }
    )


def decode_report(body: bytes) -> TransportReport:
    """What a report says."""
    table = _table(body)
    try:
        return TransportReport(
            _text(table["channel"]),
            _text(table["transport"]),
            [_key(entry) for entry in table.get("started", ())],
            [
                ReportedOutcome(_key(entry), decode_outcome(entry), _duration(entry.get("ms", 0)))
                for entry in table.get("outcomes", ())
            ],
            [(_key(entry), _why(entry["why"])) for entry in table.get("returned", ())],
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(f"a report without {error}") from None


def _why(said: object) -> ReturnReason:
    try:
        return ReturnReason(str(said))
    except ValueError:
        raise Unreadable(f"a reason {said!r}") from None


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    """An outcome in words."""
    match outcome:
        case Done(receipt=receipt):
            return {"outcome": "done", "receipt": receipt}
        case Retry(category=category, reason=reason, after=after, whole_channel=whole):
            wait = None if after is None else round(after.total_seconds() * 1000)
            return {
                "outcome": "retry",
                "category": category.value,
                "reason": reason,
                "after_ms": wait,
                "whole_channel": whole,
            }
        case Reject(category=category, reason=reason, whole_channel=whole):
            return {
                "outcome": "reject",
                "category": category.value,
                "reason": reason,
                "whole_channel": whole,
            }
        case Defer(until=until, why=why):
            return {"outcome": "defer", "until": until, "why": why}
        case Skip(why=why):
            return {"outcome": "skip", "why": why}
        case Offline(reason=reason, needs_person=needs_person):
            return {"outcome": "offline", "reason": reason, "needs_person": needs_person}
        case Unknown(evidence=evidence):
            return {"outcome": "unknown", "evidence": evidence}


def decode_outcome(entry: Mapping[str, Any]) -> Outcome:
    """The outcome that these words say."""
    try:
        match entry["outcome"]:
            case "done":
                return Done(None if entry.get("receipt") is None else _text(entry["receipt"]))
            case "retry":
                wait = entry.get("after_ms")
                after = None if wait is None else timedelta(milliseconds=_whole(wait))
                whole = bool(entry.get("whole_channel"))
                return Retry(Category(entry["category"]), _text(entry["reason"]), after, whole)
            case "reject":
                whole = bool(entry.get("whole_channel"))
                return Reject(Category(entry["category"]), _text(entry["reason"]), whole)
            case "defer":
                return Defer(_whole(entry["until"]), _text(entry["why"]))
            case "skip":
                return Skip(_text(entry["why"]))
            case "offline":
                return Offline(_text(entry["reason"]), bool(entry.get("needs_person")))
            case "unknown":
                return Unknown(_text(entry["evidence"]))
            case other:
                raise Unreadable(f"an outcome {other!r}")
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(str(error)) from None


# -- markers


def encode_marker(number: int, by: int) -> bytes:
    """A marker: whoever gets it back has read everything before it."""
    return orjson.dumps({"version": VERSION, "marker": number, "by": by})


def decode_marker(body: bytes) -> tuple[int, int]:
    """Its number, and the node that sent it."""
    table = _table(body)
    try:
        return _whole(table["marker"]), _whole(table["by"])
    except KeyError as error:
        raise Unreadable(f"a marker without {error}") from None


# -- small change


def _table(body: bytes) -> Mapping[str, Any]:
    try:
        table = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from None
    if not isinstance(table, dict):
        raise Unreadable("not a table")
    if table.get("version") != VERSION:
        raise Unreadable(f"version {table.get('version')!r}, and only {VERSION} is known here")
    return table


def _key(entry: Mapping[str, Any]) -> ClaimKey:
    return _whole(entry["id"]), _whole(entry["claim"]), _text(entry["token"])


def _named(key: ClaimKey) -> dict[str, Any]:
    return {"id": key[0], "claim": key[1], "token": key[2]}


def _whole(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise Unreadable(f"{value!r} is not a whole number")
    return value


def _duration(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST_MS:
        raise Unreadable(f"{value!r} is not a duration")
    return float(value)


def _content(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Unreadable(f"{value!r} is not a content")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise Unreadable(f"{value!r} is not a text")
    return value
