"""Bodies of the webhooks that Meta sends for WhatsApp: messages of people, and statuses.

Every person has a business-scoped user id. A person whose sender is such an id hides the phone number: `from`
and `wa_id` are missing then.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidings.model.time import SECOND

if TYPE_CHECKING:
    from .group_chats import ChatMessage

NUMBER_ID = "106540352242922"  # of messages to no particular number
USER_ID = re.compile(r"[A-Z]{2}\.(ENT\.)?[A-Za-z0-9]{1,128}", re.ASCII)


def is_user_id(text: str) -> bool:
    """Return whether it is a business-scoped user id."""
    return USER_ID.fullmatch(text) is not None


def user_id_of(person: str) -> str:
    """Return the user id of a phone number; always the same."""
    if is_user_id(person):
        return person
    return f"US.{int.from_bytes(hashlib.sha256(person.lstrip('+').encode()).digest()[:8])}"


def contact(person: str, name: str = "") -> dict[str, object]:
    """Return a person as webhooks describe them."""
    if is_user_id(person):
        return {"profile": {"name": name or person, "username": "@sandbox"}, "user_id": person}
    return {"profile": {"name": name or person}, "wa_id": person.lstrip("+"), "user_id": user_id_of(person)}


def sender(person: str) -> dict[str, str]:
    """Return the fields that name the sender of a message."""
    number = {} if is_user_id(person) else {"from": person.lstrip("+")}
    return {**number, "from_user_id": user_id_of(person)}


def wamid(n: int) -> str:
    """Return the id of a message of a person."""
    return f"wamid.said.{n}"


def message(line: ChatMessage) -> dict[str, object]:
    """Return a person's message, edit, deletion or new number; a chat other than the sender is a group."""
    own: dict[str, object] = {**sender(line.sender), "id": wamid(line.n), "timestamp": str(line.at // SECOND)}
    body = {"type": "text", "text": {"body": line.text}}
    if line.chat.lstrip("+") != line.sender.lstrip("+"):
        own["group_id"] = line.chat
    if line.reply_to is not None:
        own["context"] = {"id": line.reply_to}
    if (new := line.becomes) is not None:
        kind = "user_changed_user_id" if is_user_id(new) else "user_changed_number"
        change: dict[str, object] = {"body": f"User changed from {line.sender} to {new}", "type": kind}
        change |= {"user_id": user_id_of(new)} | ({} if is_user_id(new) else {"wa_id": new.lstrip("+")})
        return own | {"type": "system", "system": change}
    if line.edits is not None:
        return own | {"type": "edit", "edit": {"original_message_id": wamid(line.edits), "message": body}}
    if line.deletes is not None:
        return own | {"type": "revoke", "revoke": {"original_message_id": wamid(line.deletes)}}
    return own | body


def webhook(account: str, people: list[dict[str, object]], **content: object) -> dict[str, object]:
    """Return a webhook to one of our numbers."""
    number = account if account.isdigit() else NUMBER_ID
    metadata = {"display_phone_number": f"1555{number[-7:]:0>7}", "phone_number_id": number}
    value: Mapping[str, object] = {
        "messaging_product": "whatsapp", "metadata": metadata, "contacts": people, **content
    }  # fmt: skip
    entry = {"id": "102290129340398", "changes": [{"field": "messages", "value": value}]}
    return {"object": "whatsapp_business_account", "entry": [entry]}
