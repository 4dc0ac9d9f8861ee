"""GroupMe groups: polled with `after_id`, which leaves no gaps, or by the callback of a bot.

Ids are increasing numbers in strings. Deletions arrive as system messages. Edits appear only in the list, so
the poller periodically reads the newest page again, which also finds missed messages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode

from ..domain import IncomingKind, IncomingMessage
from .api_client import SourceApiClient
from .payload import ident, inner, items, json_object, seconds, word
from .port import SourceEntry, SourcePage, SourceUnavailable, UnverifiedWebhook, WebhookRequest, is_secret
from .settings import SourceSettings

THROTTLED_FOR = timedelta(seconds=60)  # GroupMe sends no Retry-After
MOST_BACK = 100  # pages of the first poll
_THROTTLED = (420, 429)


class GroupMeSource:
    """One group."""

    def __init__(self, settings: SourceSettings, *, now: Callable[[], int]) -> None:
        self._settings = settings
        self._now = now
        self._api = SourceApiClient(settings)

    async def read(self, cursor: str | None, *, since: int) -> SourcePage:
        """Read the page after the cursor; without one, all pages back to `since`."""
        if cursor is None:
            return await self._first_look(since)
        found = await self._list(after_id=cursor)
        entries = self._entries(found)
        return SourcePage(entries, more=len(found) >= self._settings.page_size, holes=_nameless(found))

    async def look_back(self) -> Sequence[IncomingMessage]:
        """Read the newest page with its edits."""
        messages: list[IncomingMessage] = []
        for message in reversed(await self._list()):
            messages += [one for one in (self._incoming(message), self._edit(message)) if one is not None]
        return messages

    def is_behind(self, id_: str, cursor: str) -> bool:
        """Return whether the id is at or before the cursor; ids increase."""
        return id_.isdigit() and cursor.isdigit() and int(id_) <= int(cursor)

    def called(self, call: WebhookRequest) -> list[IncomingMessage]:
        """Parse a bot's callback; GroupMe does not sign, so the URL contains a secret."""
        if not is_secret(call.query.get("key", ""), self._settings):
            raise UnverifiedWebhook("the URL has no valid key")
        return incoming(self._settings, json_object(call.body, "GroupMe"))

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()

    async def _first_look(self, since: int) -> SourcePage:
        """Read backward, page by page, until a message is older than the source."""
        found: list[Mapping[str, Any]] = []
        for _ in range(MOST_BACK):
            page = await self._list(**({"before_id": ident(found[-1], "id")} if found else {}))
            found += page
            if len(page) < self._settings.page_size or seconds(page[-1], "created_at") < since:
                break
        entries = self._entries(found[::-1])
        return SourcePage(entries, more=bool(entries), holes=_nameless(found))

    async def _list(self, **query: str) -> list[Mapping[str, Any]]:
        asked = urlencode({"limit": self._settings.page_size, "acceptFiles": 1, **query})
        path = f"/groups/{quote(self._settings.group or '', safe='')}/messages?{asked}"
        said = await self._api.get(path, headers={"x-access-token": self._settings.token or ""}, now=self._now())
        if said.status == 304:
            return []
        if said.status in _THROTTLED:
            raise SourceUnavailable(f"HTTP {said.status}: {said.shown}", wait=said.wait or THROTTLED_FOR)
        if said.status != 200 or said.body is None:
            raise SourceUnavailable(f"HTTP {said.status}: {said.shown}", wait=said.wait)
        return items(inner(said.body, "response"), "messages")

    def _entries(self, found: Sequence[Mapping[str, Any]]) -> list[SourceEntry]:
        entries = [(self._incoming(message), ident(message, "id")) for message in found]
        return [SourceEntry(one, id_) for one, id_ in entries if one is not None]

    def _incoming(self, message: Mapping[str, Any]) -> IncomingMessage | None:
        return next(iter(incoming(self._settings, message)), None)

    def _edit(self, message: Mapping[str, Any]) -> IncomingMessage | None:
        edited, said = seconds(message, "updated_at"), self._incoming(message)
        if said is None or said.kind is not IncomingKind.MESSAGE or edited <= said.at:
            return None
        return said._replace(
            id=f"{said.id}/edit/{word(message, 'updated_at')}", kind=IncomingKind.EDIT, original=said.id, at=edited
        )


def incoming(settings: SourceSettings, message: Mapping[str, Any]) -> list[IncomingMessage]:
    """Parse one message of a list or callback; empty if it has no id."""
    id_ = ident(message, "id")
    if not id_:
        return []
    sender, by = ident(message, "sender_id") or ident(message, "user_id"), word(message, "sender_type")
    event, attached = inner(message, "event"), items(message, "attachments")
    kind, original, at = IncomingKind.MESSAGE, None, seconds(message, "created_at")
    if message.get("system") is True or by in ("system", "service"):
        kind = IncomingKind.SYSTEM
        if word(event, "type") == "message.deleted":
            kind, original = IncomingKind.DELETE, ident(inner(event, "data"), "message_id") or None
            sender = ""  # GroupMe does not say who deleted it
    replies = [ident(one, "reply_id") for one in attached if word(one, "type") == "reply"]
    return [
        IncomingMessage(
            settings.name,
            id_,
            ident(message, "group_id") or settings.group or "",
            sender,
            word(message, "name"),
            word(message, "text"),
            at,
            kind,
            own=by == "bot" or sender in settings.own_senders,
            reply_to=replies[0] if replies else None,
            attachments=len(attached) - len(replies),
            raw=message,
            original=original,
            key=ident(message, "source_guid") or None,
        )
    ]


def _nameless(found: Sequence[Mapping[str, Any]]) -> list[str]:
    return ["GroupMe listed a message without an id"] if any(not ident(one, "id") for one in found) else []
