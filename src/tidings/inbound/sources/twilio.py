"""Twilio: parses an SMS or WhatsApp message from the callback of a channel.

The form has no time, so the arrival counts. WhatsApp users who hide their number have a user id in `From`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..domain import IncomingMessage
from .payload import ident, word
from .settings import SourceSettings


def incoming(settings: SourceSettings, payload: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse the message of a callback; empty if it has no id or sender."""
    id_, media = ident(payload, "MessageSid") or ident(payload, "SmsSid"), word(payload, "NumMedia")
    user_id = ident(payload, "ExternalUserId").removeprefix("whatsapp:")
    sender = ident(payload, "From").removeprefix("whatsapp:") or user_id
    if not id_ or not sender:
        return []
    return [
        IncomingMessage(
            settings.name,
            id_,
            sender,
            sender,
            word(payload, "ProfileName"),
            word(payload, "Body"),
            0,
            own=sender in settings.own_senders,
            reply_to=ident(payload, "OriginalRepliedMessageSid") or None,
            attachments=int(media) if media.isascii() and media.isdigit() and len(media) < 4 else 0,
            raw=payload,
            user_id=user_id or None,
        )
    ]
