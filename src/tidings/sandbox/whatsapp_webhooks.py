"""Bodies of the webhooks that Meta sends for WhatsApp: messages of people, and statuses.

Every person has a business-scoped user id. A person whose sender is such an id hides the phone number: `from`
and `wa_id` are missing then.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from tidings.model.time import SECOND

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


def message(
    n: int,
    at: int,
    person: str,
    text: str,
    *,
    group: str | None = None,
    edits: int | None = None,
    deletes: int | None = None,
    reply_to: str | None = None,
    becomes: str | None = None,
) -> dict[str, object]:
    """Return a person's message, edit, deletion or change of number; of a group if it names one."""
    own: dict[str, object] = {**sender(person), "id": wamid(n), "timestamp": str(at // SECOND)}
    body = {"type": "text", "text": {"body": text}}
    if group is not None:
        own["group_id"] = group
    if reply_to is not None:
        own["context"] = {"id": reply_to}
    if becomes is not None:
        kind = "user_changed_user_id" if is_user_id(becomes) else "user_changed_number"
        change: dict[str, object] = {"body": f"User changed from {person} to {becomes}", "type": kind}
        change |= {"user_id": user_id_of(becomes)} | ({} if is_user_id(becomes) else {"wa_id": becomes.lstrip("+")})
        return own | {"type": "system", "system": change}
    if edits is not None:
        return own | {"type": "edit", "edit": {"original_message_id": wamid(edits), "message": body}}
    if deletes is not None:
        return own | {"type": "revoke", "revoke": {"original_message_id": wamid(deletes)}}
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
