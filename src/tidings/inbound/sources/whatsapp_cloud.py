"""WhatsApp Cloud: parses messages from the callbacks of a channel; one callback may contain many."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..domain import IncomingKind, IncomingMessage
from .payload import ident, inner, items, seconds, word
from .settings import SourceSettings

_MEDIA = ("image", "video", "audio", "document", "sticker", "location", "contacts")
_NOT_SAID = ("system", "reaction", "unsupported")


def incoming(settings: SourceSettings, payload: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse all messages of a callback; delivery statuses are ignored."""
    heard: list[IncomingMessage] = []
    for entry in items(payload, "entry"):
        for change in items(entry, "changes"):
            value = inner(change, "value")
            names = {ident(one, "wa_id"): word(inner(one, "profile"), "name") for one in items(value, "contacts")}
            heard += [_one(settings, message, names) for message in items(value, "messages") if ident(message, "id")]
    return heard


def _one(settings: SourceSettings, message: Mapping[str, Any], names: Mapping[str, str]) -> IncomingMessage:
    sender, kind = ident(message, "from"), word(message, "type")
    return IncomingMessage(
        settings.name,
        ident(message, "id"),
        ident(message, "group_id") or sender,
        sender,
        names.get(sender, ""),
        _words(message, kind),
        seconds(message, "timestamp"),
        IncomingKind.SYSTEM if kind in _NOT_SAID else IncomingKind.MESSAGE,
        own=sender in settings.own_senders,
        reply_to=ident(inner(message, "context"), "id") or None,
        attachments=int(kind in _MEDIA),
        raw=message,
    )


def _words(message: Mapping[str, Any], kind: str) -> str:
    """Return the text, the caption, or the label of the pressed button."""
    reply = inner(message, "interactive")
    return (
        word(inner(message, "text"), "body")
        or word(inner(message, kind), "caption")
        or word(inner(message, "button"), "text")
        or word(inner(reply, "button_reply"), "title")
        or word(inner(reply, "list_reply"), "title")
    )
