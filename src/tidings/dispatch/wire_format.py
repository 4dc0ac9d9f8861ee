"""The wire format between dispatchers and transports: batches, reports and markers. Pure.

Described with examples in docs/reference/dispatch-wire.md and fixed by `tests/dispatch/vectors`. Anything
invalid raises `Unreadable` with a reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import Any, NamedTuple, TypeVar

import orjson

from ..model.message import Message
from ..model.outcome import Defer, Done, Offline, Outcome, Reject, Retry, Skip, Unknown
from ..model.task import Category

VERSION = 1
MAX_BATCH_SIZE = 25  # tasks per batch

_LONGEST_MS = 1e9
_KINDS: Mapping[type, str] = {int: "a whole number", str: "a string", dict: "an object"}
_MESSAGE_FIELDS = ("id", "tenant", "recipient", "content", "accepted_at", "attempt")

BATCH_TYPE = "tidings.batch"  # the AMQP property `type`
REPORT_TYPE = "tidings.report"
MARKER_TYPE = "tidings.marker"

T = TypeVar("T")
ClaimKey = tuple[int, int, str]  # task id, claim number and token: one attempt


class Unreadable(ValueError):
    """A body that does not follow the wire format."""


class ReturnReason(StrEnum):
    """Why a transport returns a task without having sent it."""

    REDELIVERED = "redelivered"  # it was delivered to a lost transport: it may have started
    LATE = "late"  # no free slot in time
    STOPPING = "stopping"
    EXPIRED = "expired"  # no transport accepted it in time; reported by the broker
    UNKNOWN_CHANNEL = "unknown_channel"  # this transport does not have the channel


class DispatchItem(NamedTuple):
    id: int
    claim: int
    token: str  # proof that it was dispatched; reports repeat it
    message: Message
    ask: bool = False  # the outcome of an earlier attempt is unknown: look it up before sending

    @property
    def key(self) -> ClaimKey:
        """Identifies it in reports."""
        return self.id, self.claim, self.token


class DispatchBatch(NamedTuple):
    """Up to 25 tasks of one channel. Each has its own outcome."""

    channel: str
    marks_start: bool  # report the start, and wait for the confirm, before sending
    within_ms: int  # from receipt to start
    deadline_ms: int  # of one attempt
    items: Sequence[DispatchItem]


class ReportedOutcome(NamedTuple):
    key: ClaimKey
    outcome: Outcome
    ms: float


class TransportReport(NamedTuple):
    """A transport's report: tasks about to be sent, outcomes, and tasks that were not sent."""

    channel: str
    transport: str
    started: Sequence[ClaimKey] = ()
    outcomes: Sequence[ReportedOutcome] = ()
    returned: Sequence[tuple[ClaimKey, ReturnReason]] = ()


# -- batches


def encode_batch(batch: DispatchBatch) -> bytes:
    tasks = [
        {
            "id": item.id, "claim": item.claim, "token": item.token, "ask": item.ask,
            "message": {name: getattr(item.message, name) for name in _MESSAGE_FIELDS},
        }
        for item in batch.items
    ]  # fmt: skip
    rules = {name: getattr(batch, name) for name in ("channel", "marks_start", "within_ms", "deadline_ms")}
    return orjson.dumps({"version": VERSION, **rules, "tasks": tasks})


def decode_batch(body: bytes) -> DispatchBatch:
    table = _table(body)
    try:
        channel = _checked(str, table["channel"])
        return DispatchBatch(
            channel,
            bool(table["marks_start"]),
            _checked(int, table["within_ms"]),
            _checked(int, table["deadline_ms"]),
            [_item(channel, task) for task in table["tasks"]],
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise Unreadable(f"batch without {error}") from None


def _item(channel: str, task: Mapping[str, Any]) -> DispatchItem:
    fields = task["message"]
    message = Message(
        _checked(str, fields["id"]),
        _checked(str, fields["tenant"]),
        channel,
        _checked(str, fields["recipient"]),
        _checked(dict, fields["content"]),
        _checked(int, fields["accepted_at"]),
        _checked(int, fields["attempt"]),
    )
    return DispatchItem(*_key(task), message, bool(task.get("ask")))


# -- reports


def encode_report(report: TransportReport) -> bytes:
    return orjson.dumps(
        {
            "version": VERSION,
            "channel": report.channel,
            "transport": report.transport,
            "started": [_key_fields(key) for key in report.started],
            "outcomes": [
                {**_key_fields(reported.key), "ms": round(reported.ms, 3), **encode_outcome(reported.outcome)}
                for reported in report.outcomes
            ],
            "returned": [{**_key_fields(key), "why": why} for key, why in report.returned],
        }
    )


def decode_report(body: bytes) -> TransportReport:
    table = _table(body)
    try:
        return TransportReport(
            _checked(str, table["channel"]),
            _checked(str, table["transport"]),
            [_key(entry) for entry in table.get("started", ())],
            [
                ReportedOutcome(_key(entry), decode_outcome(entry), _duration(entry.get("ms", 0)))
                for entry in table.get("outcomes", ())
            ],
            [(_key(entry), _why(entry["why"])) for entry in table.get("returned", ())],
        )
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise Unreadable(f"report without {error}") from None


def _why(word: object) -> ReturnReason:
    try:
        return ReturnReason(str(word))
    except ValueError:
        raise Unreadable(f"unknown reason {word!r}") from None


def encode_outcome(outcome: Outcome) -> dict[str, Any]:
    match outcome:
        case Done(receipt=receipt):
            return {"outcome": "done", "receipt": receipt}
        case Retry(category=category, reason=reason, after=after, whole_channel=whole):
            wait = None if after is None else round(after.total_seconds() * 1000)
            failed = {"category": category.value, "reason": reason, "after_ms": wait, "whole_channel": whole}
            return {"outcome": "retry", **failed}
        case Reject(category=category, reason=reason, whole_channel=whole, opted_out=opted_out):
            failed = {"category": category.value, "reason": reason, "whole_channel": whole}
            return {"outcome": "reject", **failed, **({"opted_out": True} if opted_out else {})}
        case Defer(until=until, why=why):
            return {"outcome": "defer", "until": until, "why": why}
        case Skip(why=why):
            return {"outcome": "skip", "why": why}
        case Offline(reason=reason, needs_person=needs_person):
            return {"outcome": "offline", "reason": reason, "needs_person": needs_person}
        case Unknown(evidence=evidence, session_failed=failed_session):
            return {"outcome": "unknown", "evidence": evidence, "session_failed": failed_session}


def decode_outcome(entry: Mapping[str, Any]) -> Outcome:
    try:
        match entry["outcome"]:
            case "done":
                return Done(None if entry.get("receipt") is None else _checked(str, entry["receipt"]))
            case "retry":
                wait = entry.get("after_ms")
                after = None if wait is None else timedelta(milliseconds=_checked(int, wait))
                whole = bool(entry.get("whole_channel"))
                return Retry(Category(entry["category"]), _checked(str, entry["reason"]), after, whole)
            case "reject":
                whole = bool(entry.get("whole_channel"))
                opted_out = bool(entry.get("opted_out"))
                return Reject(Category(entry["category"]), _checked(str, entry["reason"]), whole, opted_out)
            case "defer":
                return Defer(_checked(int, entry["until"]), _checked(str, entry["why"]))
            case "skip":
                return Skip(_checked(str, entry["why"]))
            case "offline":
                return Offline(_checked(str, entry["reason"]), bool(entry.get("needs_person")))
            case "unknown":
                return Unknown(_checked(str, entry["evidence"]), session_failed=bool(entry.get("session_failed")))
            case other:
                raise Unreadable(f"unknown outcome {other!r}")
    except Unreadable:
        raise
    except ValueError as error:
        raise Unreadable(str(error)) from None


# -- markers


def encode_marker(number: int, by: int) -> bytes:
    """Encode a marker: when it comes back, all messages before it have been consumed."""
    return orjson.dumps({"version": VERSION, "marker": number, "by": by})


def decode_marker(body: bytes) -> tuple[int, int]:
    """Decode a marker: its number, and the node that sent it."""
    table = _table(body)
    try:
        return _checked(int, table["marker"]), _checked(int, table["by"])
    except KeyError as error:
        raise Unreadable(f"marker without {error}") from None


# -- checks


def _table(body: bytes) -> Mapping[str, Any]:
    try:
        table = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"not JSON: {error}") from None
    if not isinstance(table, dict):
        raise Unreadable("not a JSON object")
    if table.get("version") != VERSION:
        raise Unreadable(f"version {table.get('version')!r} is not supported (only {VERSION})")
    return table


def _key(entry: Mapping[str, Any]) -> ClaimKey:
    return _checked(int, entry["id"]), _checked(int, entry["claim"]), _checked(str, entry["token"])


def _key_fields(key: ClaimKey) -> dict[str, Any]:
    return {"id": key[0], "claim": key[1], "token": key[2]}


def _checked(kind: type[T], value: object) -> T:
    if type(value) is not kind:
        raise Unreadable(f"{value!r} is not {_KINDS[kind]}")
    return value


def _duration(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _LONGEST_MS:
        raise Unreadable(f"{value!r} is not a duration")
    return float(value)
