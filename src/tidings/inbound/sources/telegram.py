"""Telegram bots: updates polled with an offset, or by webhook with a secret token.

Telegram deletes updates below the requested offset. The offset is therefore in the stored cursor, which moves
in the transaction that stores the messages. Update numbers are consecutive, and a missing one is a gap, unless
no update came for a week: Telegram then continues with a random number. So the cursor is OFFSET@TIME.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from ...model.time import SECOND
from ..domain import IncomingKind, IncomingMessage
from .api_client import SourceApiClient
from .payload import ident, inner, items, json_object, seconds, word
from .port import SourceEntry, SourcePage, SourceUnavailable, UnverifiedWebhook, WebhookRequest, is_secret
from .settings import SourceSettings

SECRET = "x-telegram-bot-api-secret-token"
WANTED = ("message", "edited_message")
FRESH_NUMBERS = 1_000_000  # a larger step is a new start, not a gap
QUIET_WEEK = 7 * 24 * 3600 - 3600  # seconds without updates after which numbers start anew, with a margin
_MEDIA = ("photo", "live_photo", "video", "video_note", "animation", "audio", "voice", "document", "sticker",
          "location", "contact", "poll", "dice", "checklist", "story", "game", "paid_media")  # fmt: skip
_RICH_TEXTS = ("summary", "text", "alternative_text", "expression", "caption", "credit")
_RICH_LISTS = ("blocks", "items", "cells")


class TelegramSource:
    """One bot."""

    def __init__(self, settings: SourceSettings, *, now: Callable[[], int]) -> None:
        self._settings = settings
        self._now = now
        self._api = SourceApiClient(settings)

    async def read(self, cursor: str | None, *, since: int) -> SourcePage:
        """Read the updates from the stored offset."""
        asked: dict[str, Any] = {
            "limit": self._settings.page_size,
            "timeout": 0,
            "allowed_updates": orjson.dumps(WANTED).decode(),
        }
        if cursor is not None:
            asked["offset"] = cursor.partition("@")[0]
        said = await self._api.get(f"/bot{self._settings.token}/getUpdates?{urlencode(asked)}", now=self._now())
        if said.status != 200 or said.body is None:
            raise SourceUnavailable(f"HTTP {said.status}: {said.shown}", wait=said.wait)
        updates = items(said.body, "result")
        numbers = [(_number(update), _time(update)) for update in updates]
        entries = [
            SourceEntry(one, f"{number + 1}@{at}")
            for (number, at), update in zip(numbers, updates, strict=True)
            for one in incoming(self._settings, update)
        ]
        behind = "{}@{}".format(*max((number + 1, at) for number, at in numbers)) if numbers else None
        return SourcePage(entries, behind, len(updates) >= self._settings.page_size, missing_updates(cursor, numbers))

    async def look_back(self) -> Sequence[IncomingMessage]:
        """Return nothing: edits arrive as updates, and gaps show in their numbers."""
        return ()

    def is_behind(self, id_: str, cursor: str) -> bool:
        """Return False: `look_back` returns no messages."""
        return False

    def called(self, call: WebhookRequest) -> list[IncomingMessage]:
        """Verify and parse the update of a webhook."""
        if not is_secret(call.headers.get(SECRET, ""), self._settings):
            raise UnverifiedWebhook(f"the header {SECRET} is missing or wrong")
        return incoming(self._settings, json_object(call.body, "Telegram"))

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()


def _number(update: Mapping[str, Any]) -> int:
    found = update.get("update_id")
    if not isinstance(found, int):
        raise SourceUnavailable("Telegram sent an update without a number")
    return found


def _time(update: Mapping[str, Any]) -> int:
    """Return the time of an update in seconds."""
    edited = inner(update, "edited_message")
    return (seconds(edited, "edit_date") or seconds(edited or inner(update, "message"), "date")) // SECOND


def missing_updates(cursor: str | None, numbers: Sequence[tuple[int, int]]) -> list[str]:
    """Describe the updates missing between the stored cursor and the last of these numbers and times."""
    offset, _, time = (cursor or "").partition("@")
    expected, before = int(offset) if offset.isdigit() else None, int(time) if time.isdigit() else None
    holes = []
    for number, at in numbers:
        is_new_start = before is not None and at - before >= QUIET_WEEK
        if expected is not None and 0 < number - expected < FRESH_NUMBERS and not is_new_start:
            first, last = expected, number - 1
            holes.append(f"update {first}" if first == last else f"updates {first} to {last}")
        expected, before = number + 1, at
    return [f"Telegram no longer has {hole}" for hole in holes]


def plain_text(rich: object) -> str:
    """Return the text of a rich message, of a part of one, or of a list of inline parts."""
    if isinstance(rich, str):
        return rich
    if isinstance(rich, list):
        return "".join(plain_text(one) for one in rich)
    if not isinstance(rich, dict):
        return ""
    parts = [plain_text(rich.get(name)) for name in _RICH_TEXTS]
    parts += [plain_text(one) for name in _RICH_LISTS for one in rich.get(name) or ()]
    return "\n".join(part for part in parts if part)


def _message_number(message: Mapping[str, Any]) -> str:
    """Return the number of a message; ephemeral ones all have 0, and their own numbers are reused."""
    number = ident(message, "message_id")
    if number != "0":
        return number
    return f"ephemeral-{ident(message, 'ephemeral_message_id')}-{ident(message, 'date')}"


def incoming(settings: SourceSettings, update: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse the new or edited message of an update; empty for other kinds of updates."""
    edited = inner(update, "edited_message")
    message = edited or inner(update, "message")
    number, chat = _message_number(message), ident(inner(message, "chat"), "id")
    if not number or not chat:
        return []
    sender = inner(message, "sender_chat") or inner(message, "from")  # 'from' is then a service bot of Telegram
    names = (word(sender, "first_name"), word(sender, "last_name"))
    text = word(message, "text") or word(message, "caption") or plain_text(message.get("rich_message"))
    attached = sum(name in message for name in _MEDIA)
    quoted = ident(inner(message, "reply_to_message"), "message_id")
    said = IncomingMessage(
        settings.name,
        f"{chat}:{number}",
        chat,
        ident(sender, "id"),
        " ".join(name for name in names if name) or word(sender, "username") or word(sender, "title"),
        text,
        seconds(message, "date"),
        IncomingKind.MESSAGE if text or attached else IncomingKind.SYSTEM,  # service messages have neither
        own=sender.get("is_bot") is True or ident(sender, "id") in settings.own_senders,
        reply_to=f"{chat}:{quoted}" if quoted else None,
        attachments=attached,
        raw=update,
    )
    if not edited:
        return [said]
    at = seconds(message, "edit_date")
    return [said._replace(id=f"{said.id}/edit/{at}", kind=IncomingKind.EDIT, original=said.id, at=at or said.at)]
