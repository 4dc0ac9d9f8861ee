"""Payloads of the simulated WAHA: messages, events, linked ids (lids) and the chat ids of phone numbers.

A session whose name starts with `gows` or `noweb` answers as that engine does, any other as WEBJS. The lid of
a number is `100` and the number; a lid that starts otherwise belongs to somebody whose number is hidden.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tidings.model.time import SECOND

if TYPE_CHECKING:
    from .group_chats import ChatMessage
    from .ledger import SandboxEntry

ME = {"id": "15550000000@c.us", "pushName": "Sandbox", "lid": "10015550000000@lid"}
_LID = "100"
_BRAZIL = re.compile(r"(55[1-9][0-9])9([0-9]{8})", re.ASCII)  # accounts of before the ninth digit lack it
_ENGINES = {"gows": "GOWS", "noweb": "NOWEB"}


def engine_of(session: str) -> str:
    """Return the engine of a session, by its name."""
    return next((engine for prefix, engine in _ENGINES.items() if session.startswith(prefix)), "WEBJS")


def environment_of(session: str = "") -> dict[str, Any]:
    """Return the version of the server, as in events and at /api/server/version."""
    place = {"browser": "/usr/bin/chromium", "platform": "linux/x64", "worker": {"id": None}}
    return {"version": "2026.7.1", "engine": engine_of(session), "tier": "PLUS", **place}


def chat_of(phone: str) -> str | None:
    """Return the chat id of a number: without the ninth digit in Brazil; None for numbers that end in 404."""
    digits = "".join(letter for letter in phone if letter.isdigit())
    if not digits or digits.endswith("404"):
        return None
    moved = _BRAZIL.fullmatch(digits)
    return f"{moved[1]}{moved[2]}@c.us" if moved else f"{digits}@c.us"


def is_known_chat(chat: str) -> bool:
    """Return whether WhatsApp has an account under exactly this chat id."""
    digits, _, server = chat.partition("@")
    return server != "c.us" or chat_of(digits) == chat


def lid_of(chat: str) -> str:
    """Return the lid of a person's chat."""
    return f"{_LID}{chat.partition('@')[0]}@lid"


def number_of(lid: str) -> dict[str, str]:
    """Return the answer about a lid; without `pn` if the number is hidden."""
    digits = lid.partition("@")[0]
    hidden = not digits.startswith(_LID)
    return {"lid": f"{digits}@lid"} if hidden else {"lid": f"{digits}@lid", "pn": f"{digits[len(_LID) :]}@c.us"}


def sent_message(entry: SandboxEntry, session: str) -> dict[str, Any]:
    """Return the message that was sent; GOWS names the recipient's lid and keeps the bare id inside."""
    bare, chat, inner = f"waha-{entry.n}", entry.to, {}
    if engine_of(session) == "GOWS":
        chat = lid_of(entry.to) if entry.to.endswith("@c.us") else entry.to
        inner = {"Info": {"ID": bare, "Chat": chat, "IsFromMe": True}}
    return _message(f"true_{chat}_{bare}", entry.at, ME["id"], entry.to, entry.text, from_me=True, data=inner)


def said_event(line: ChatMessage, session: str) -> tuple[str, dict[str, Any]]:
    """Return the event about a person's message, edit or deletion, with its payload."""
    engine, key = engine_of(session), f"SAID{line.n}"
    original = line.edits if line.edits is not None else line.deletes
    author = line.sender if line.chat.endswith(("@g.us", "@broadcast")) else ""
    name = line.name or line.sender
    data: dict[str, Any] = {"notifyName": name}
    if engine != "WEBJS":
        data = {"pushName": name} if engine == "NOWEB" else {"Info": {"ID": key, "PushName": name}}
    if line.edits is not None and engine == "WEBJS":
        key = f"SAID{original}"  # every edit carries the id of the edited message
    wrapped = f"false_{line.chat}_{key}" + (f"_{author}" if author else "")
    payload = _message(wrapped, line.at, line.chat, ME["id"], line.text, author=author, data=data)
    if line.edits is not None:
        return "message.edited", {**payload, "editedMessageId": f"SAID{original}"}
    if line.deletes is not None:
        return "message.revoked", {"revokedMessageId": f"SAID{original}", "after": payload, "_data": {}}
    quoted = {} if line.reply_to is None else {"replyTo": {"id": line.reply_to, "hasMedia": False}}
    return "message", {**payload, **quoted}


def _message(
    id_: str, at: int, sender: str, to: str, text: str, *, from_me: bool = False, author: str = "",
    data: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    return {
        "id": id_,
        "timestamp": at // SECOND,
        "from": sender,
        "fromMe": from_me,
        "source": "api" if from_me else "app",
        "to": to,
        "participant": author,
        "body": text,
        "hasMedia": False,
        "mediaUrl": "",
        "ack": 1,
        "ackName": "SERVER",
        "vCards": [],
        "_data": data,
    }
