"""The generic source: a POST with a webhook signature (Standard Webhooks) and one or more messages."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import orjson

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid
from ...model.time import SECOND, instant
from ...wire.webhook_signatures import BadSignature, parse_secret, verify
from ..domain import IncomingKind, IncomingMessage
from .payload import LONGEST_ID
from .port import UnverifiedWebhook, WebhookRequest
from .settings import SourceSettings

MOST = 1000  # messages per request
LONGEST_NAME = 200

FIELDS: Mapping[str, Field] = {
    "id": Field("string", "unique id; duplicates are dropped", "m-1", required=True),
    "conversation": Field("string", "group or chat", "crew", required=True),
    "sender": Field("string", "id of the sender", "u7", required=True),
    "name": Field("string", "display name of the sender", "Ann"),
    "text": Field("string", "message text", "hello"),
    "at": Field("string", "time of the message with a UTC offset; default: now", "2026-01-03T21:08:00Z"),
    "kind": Field("string", "message, edit, delete or system; default: message", "message"),
    "original": Field("string", "id of the message that an edit or delete refers to", "m-0"),
    "reply_to": Field("string", "id of the quoted message", "m-0"),
    "attachments": Field("integer", "number of attachments", 0),
    "bot": Field("boolean", "whether the sender is a bot", False),
}


class WebhookSource:
    """One signed webhook."""

    def __init__(self, settings: SourceSettings, *, now: Callable[[], int]) -> None:
        self._settings = settings
        self._now = now
        self._keys = [parse_secret(secret) for secret in settings.secrets]

    def called(self, call: WebhookRequest) -> list[IncomingMessage]:
        """Verify and parse one request; raises UnverifiedWebhook or Invalid."""
        now = self._now()
        try:
            verify(self._keys, call.headers, call.body, now=now // SECOND)
        except BadSignature as error:
            raise UnverifiedWebhook(str(error)) from None
        return incoming(self._settings, call.body, now=now)


def incoming(settings: SourceSettings, body: bytes, *, now: int) -> list[IncomingMessage]:
    """Parse one object or {"messages": [...]}; raises Invalid if any message is invalid."""
    try:
        found = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Invalid(
            f"the body is not JSON: {error.msg} at character {error.pos}", remedy="send one JSON object"
        ) from None
    many = found.get("messages") if isinstance(found, dict) and "messages" in found else [found]
    if not isinstance(many, list) or not 0 < len(many) <= MOST:
        raise Invalid("messages is not a list of allowed length", field="messages", remedy=f"send 1 to {MOST} messages")
    return [_one(settings, check_fields(one, FIELDS), now) for one in many]


def _one(settings: SourceSettings, given: dict[str, Any], now: int) -> IncomingMessage:
    for name in ("id", "conversation", "sender", "original", "reply_to"):
        value = given.get(name)
        if value is not None and (not value.strip() or len(value) > LONGEST_ID or not value.isprintable()):
            remedy = f"use 1 to {LONGEST_ID} printable characters"
            raise Invalid(f"{name} is invalid", field=name, remedy=remedy)
    kind = given.get("kind") or IncomingKind.MESSAGE
    if kind not in list(IncomingKind):
        remedy = f"use one of: {', '.join(IncomingKind)}"
        raise Invalid(f"unknown kind {kind[:20]!r}", field="kind", remedy=remedy)
    if kind in (IncomingKind.EDIT, IncomingKind.DELETE) and not given.get("original"):
        raise Invalid(f"{kind} requires original", field="original", remedy=FIELDS["original"].about)
    return IncomingMessage(
        settings.name,
        given["id"],
        given["conversation"],
        given["sender"],
        (given.get("name") or "")[:LONGEST_NAME],
        given.get("text") or "",
        _time(given.get("at"), now),
        IncomingKind(kind),
        own=given.get("bot") is True or given["sender"] in settings.own_senders,
        reply_to=given.get("reply_to"),
        attachments=max(0, given.get("attachments") or 0),
        raw=given,
        original=given.get("original"),
    )


def _time(said: str | None, now: int) -> int:
    if said is None:
        return now
    try:
        return instant(datetime.fromisoformat(said))
    except (ValueError, OverflowError):
        raise Invalid(
            f"invalid time {said[:40]!r}", field="at", remedy="use ISO 8601 with a UTC offset: 2026-01-03T21:08:00Z"
        ) from None
