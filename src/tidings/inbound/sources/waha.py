"""WhatsApp sessions through WAHA: parses messages from the callbacks of a channel.

An id is `false_CHAT_KEY` or, in a group, `false_CHAT_KEY_PARTICIPANT`; edits and deletions contain only the
key, so the key identifies a message. Some engines repeat the key in every edit, so an edit has the id of its
event. Status posts (`status@broadcast`) are not messages to us.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..domain import IncomingKind, IncomingMessage
from .payload import ident, inner, seconds, word
from .settings import SourceSettings


def incoming(settings: SourceSettings, payload: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse the message of one event; empty for other events."""
    event, message = word(payload, "event"), inner(payload, "payload")
    match event:
        case "message" | "message.any":
            said = _said(settings, message, payload)
            return [] if said is None else [said]
        case "message.edited":
            said, original = _said(settings, message, payload), key_of(ident(message, "editedMessageId"))
            if said is None or not original:
                return []
            id_ = f"{original}/edit/{ident(payload, 'id') or said.id}"
            return [said._replace(id=id_, kind=IncomingKind.EDIT, original=original)]
        case "message.revoked":
            after = inner(message, "after") or inner(message, "before")
            original = key_of(ident(message, "revokedMessageId") or ident(inner(message, "before"), "id"))
            said = _said(settings, after, payload)
            if said is None or not original:
                return []
            return [said._replace(id=f"{original}/delete", kind=IncomingKind.DELETE, original=original, text="")]
    return []


def key_of(id_: str) -> str:
    """Return the part of an id that all events about one message share."""
    parts = id_.split("_")
    return parts[2] if len(parts) >= 3 else id_


def _said(settings: SourceSettings, message: Mapping[str, Any], payload: Mapping[str, Any]) -> IncomingMessage | None:
    key, ours = key_of(ident(message, "id")), message.get("fromMe") is True
    chat = ident(message, "to") if ours else ident(message, "from")
    if not key or chat.endswith("@broadcast"):
        return None
    sender = ident(message, "participant") or ident(message, "from")
    quoted = key_of(ident(inner(message, "replyTo"), "id"))
    return IncomingMessage(
        settings.name,
        key,
        chat,
        sender,
        _name(inner(message, "_data")) or sender.partition("@")[0],
        word(message, "body"),
        seconds(message, "timestamp"),
        own=ours or sender in settings.own_senders,
        reply_to=quoted or None,
        attachments=int(message.get("hasMedia") is True),
        raw=payload,
        user_id=sender if sender.endswith("@lid") else None,
        account=ident(payload, "session") or None,
    )


def _name(data: Mapping[str, Any]) -> str:
    """Return the sender's name from an engine's raw message: WEBJS, NOWEB or GOWS."""
    return word(data, "notifyName") or word(data, "pushName") or word(inner(data, "Info"), "PushName")
