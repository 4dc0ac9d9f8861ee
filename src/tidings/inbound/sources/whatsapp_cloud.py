"""WhatsApp Cloud: parses messages from the callbacks of a channel; one callback may contain many.

People have the addresses that the channel sends to: a phone number in E.164 format or, if they hide it, a
business-scoped user id. `from` is missing then.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..domain import IncomingKind, IncomingMessage
from .payload import ident, inner, items, seconds, word
from .settings import SourceSettings

_MEDIA = ("image", "video", "audio", "document", "sticker", "location", "contacts")
_NOT_SAID = ("system", "reaction", "unsupported", "errors", "unknown")


def incoming(settings: SourceSettings, payload: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse all messages of a callback; delivery statuses are ignored."""
    values = [inner(change, "value") for entry in items(payload, "entry") for change in items(entry, "changes")]
    return [
        _one(settings, message, value)
        for value in values
        for message in items(value, "messages")
        if ident(message, "id")
    ]


def _one(settings: SourceSettings, message: Mapping[str, Any], value: Mapping[str, Any]) -> IncomingMessage:
    kind, contact = word(message, "type"), _contact(message, value)
    user_id = ident(message, "from_user_id") or ident(contact, "user_id")
    # Without any id, the message has a sender of its own: two people never share one.
    sender = _address(ident(message, "from")) or user_id or f"message:{ident(message, 'id')}"
    said = IncomingMessage(
        settings.name,
        ident(message, "id"),
        ident(message, "group_id") or sender,
        sender,
        word(inner(contact, "profile"), "name") or word(inner(contact, "profile"), "username"),
        _words(message, kind),
        seconds(message, "timestamp"),
        IncomingKind.SYSTEM if kind in _NOT_SAID else IncomingKind.MESSAGE,
        own=sender in settings.own_senders,
        reply_to=ident(inner(message, "context"), "id") or None,
        attachments=int(kind in _MEDIA),
        raw=message,
        user_id=user_id or None,
        account=ident(inner(value, "metadata"), "phone_number_id") or None,
    )
    match kind:
        case "edit":
            new = inner(message, "edit", "message")
            text, original = _words(new, word(new, "type")), ident(inner(message, "edit"), "original_message_id")
            return said._replace(kind=IncomingKind.EDIT, original=original, text=text) if original else _not_said(said)
        case "revoke":
            original = ident(inner(message, "revoke"), "original_message_id")
            return said._replace(kind=IncomingKind.DELETE, original=original) if original else _not_said(said)
        case "system":
            return _changed_identity(said, inner(message, "system"))
    return said


def _changed_identity(said: IncomingMessage, system: Mapping[str, Any]) -> IncomingMessage:
    """A new number or user id: the message comes from the new address and names the former one."""
    if word(system, "type") not in ("user_changed_number", "customer_changed_number", "user_changed_user_id"):
        return said
    number = _address(ident(system, "wa_id") or ident(system, "new_wa_id"))
    user_id = ident(system, "user_id") or None
    former = _address(ident(system, "customer")) or said.sender
    address = number or (former if former.startswith("+") else user_id or former)
    return said._replace(sender=address, conversation=address, user_id=user_id, formerly=former)


def _not_said(said: IncomingMessage) -> IncomingMessage:
    return said._replace(kind=IncomingKind.SYSTEM)


def _contact(message: Mapping[str, Any], value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the contact of a message's sender; the only contact, if the message does not name it."""
    contacts, names = items(value, "contacts"), {ident(message, "from"), ident(message, "from_user_id")} - {""}
    named = [one for one in contacts if {ident(one, "wa_id"), ident(one, "user_id")} & names]
    return next(iter(named), contacts[0] if len(contacts) == 1 and not names else {})


def _address(id_: str) -> str:
    """Return a phone number as the channel writes it; other ids stay as they are."""
    return f"+{id_}" if id_.isascii() and id_.isdigit() else id_


def _words(message: Mapping[str, Any], kind: str) -> str:
    """Return the text, the caption, the label of the pressed button, or the answers to a flow."""
    reply = inner(message, "interactive")
    return (
        word(inner(message, "text"), "body")
        or word(inner(message, kind), "caption")
        or word(inner(message, "button"), "text")
        or word(inner(reply, "button_reply"), "title")
        or word(inner(reply, "list_reply"), "title")
        or word(inner(reply, "nfm_reply"), "response_json")
        or word(inner(message, "system"), "body")
        or word(inner(message, "reaction"), "emoji")
    )
