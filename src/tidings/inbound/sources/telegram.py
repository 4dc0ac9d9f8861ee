"""Telegram bots: updates polled with an offset, or by webhook with a secret token.

Telegram deletes updates below the requested offset. The offset is therefore the stored cursor, which moves in
the transaction that stores the messages. Update numbers are consecutive: a missing one is a gap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import orjson

from ..domain import IncomingKind, IncomingMessage
from .api_client import SourceApiClient
from .payload import ident, inner, items, json_object, seconds, word
from .port import SourceEntry, SourcePage, SourceUnavailable, UnverifiedWebhook, WebhookRequest, is_secret
from .settings import SourceSettings

SECRET = "x-telegram-bot-api-secret-token"
WANTED = ("message", "edited_message")
FRESH_NUMBERS = 1_000_000  # after a quiet week Telegram restarts at a random number, which is not a gap
_MEDIA = ("photo", "video", "animation", "audio", "voice", "document", "sticker", "location", "contact")
_SERVICE = ("new_chat_members", "left_chat_member", "new_chat_title", "pinned_message", "migrate_to_chat_id",
            "migrate_from_chat_id", "group_chat_created", "supergroup_chat_created",
            "delete_chat_photo", "new_chat_photo")  # fmt: skip


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
            asked["offset"] = cursor
        said = await self._api.get(f"/bot{self._settings.token}/getUpdates?{urlencode(asked)}", now=self._now())
        if said.status != 200 or said.body is None:
            raise SourceUnavailable(f"HTTP {said.status}: {said.shown}", wait=said.wait)
        updates = items(said.body, "result")
        numbers = [_number(update) for update in updates]
        heard = [
            SourceEntry(one, str(number + 1))
            for number, update in zip(numbers, updates, strict=True)
            for one in incoming(self._settings, update)
        ]
        behind = str(max(numbers) + 1) if numbers else None
        return SourcePage(heard, behind, len(updates) >= self._settings.page_size, missing_updates(cursor, numbers))

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


def missing_updates(cursor: str | None, numbers: Sequence[int]) -> list[str]:
    """Describe the update numbers missing between the stored offset and the last of these."""
    expected = int(cursor) if cursor is not None and cursor.isdigit() else None
    holes = []
    for number in numbers:
        if expected is not None and 0 < number - expected < FRESH_NUMBERS:
            first, last = expected, number - 1
            holes.append(f"update {first}" if first == last else f"updates {first} to {last}")
        expected = number + 1
    return [f"Telegram no longer has {hole}" for hole in holes]


def incoming(settings: SourceSettings, update: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse the new or edited message of an update; empty for other kinds of updates."""
    edited = inner(update, "edited_message")
    message = edited or inner(update, "message")
    number, chat = ident(message, "message_id"), ident(inner(message, "chat"), "id")
    if not number or not chat:
        return []
    sender = inner(message, "from") or inner(message, "sender_chat")
    names = (word(sender, "first_name"), word(sender, "last_name"))
    quoted = ident(inner(message, "reply_to_message"), "message_id")
    said = IncomingMessage(
        settings.name,
        f"{chat}:{number}",
        chat,
        ident(sender, "id"),
        " ".join(name for name in names if name) or word(sender, "username") or word(sender, "title"),
        word(message, "text") or word(message, "caption"),
        seconds(message, "date"),
        IncomingKind.SYSTEM if any(name in message for name in _SERVICE) else IncomingKind.MESSAGE,
        own=sender.get("is_bot") is True or ident(sender, "id") in settings.own_senders,
        reply_to=f"{chat}:{quoted}" if quoted else None,
        attachments=sum(name in message for name in _MEDIA),
        raw=update,
    )
    if not edited:
        return [said]
    at = seconds(message, "edit_date")
    return [said._replace(id=f"{said.id}/edit/{at}", kind=IncomingKind.EDIT, original=said.id, at=at or said.at)]
