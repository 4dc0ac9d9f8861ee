"""The log of sent messages with recipient, time and receipt, and its export."""

from __future__ import annotations

from collections.abc import AsyncIterator

import orjson

from ..inputs.pagination import Page, decode_position, page_size
from ..model.time import iso
from ..store.port import Row, Store

SENT_LOG_COLUMNS = (
    "id",
    "sent_at",
    "channel",
    "to",
    "text",
    "attempts",
    "receipt",
    "unknown",
    "accepted_at",
    "scheduled_at",
)
WINDOW = 20_000  # maximum tasks scanned for one page
EXPORT_PAGE = 500


class SentLog:
    """Reads sent messages, newest first by acceptance time."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def page(
        self,
        *,
        tenant: str = "default",
        channel: str | None = None,
        to: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """One page; it scans a bounded number of rows, so it may be short before the end."""
        size, before = page_size(limit), await self._below(decode_position(after))
        if before is None:
            return Page([], None)
        floor = before - WINDOW
        rows = await self._store.read(
            "sent_page", tenant=tenant, channel=channel, recipient=to, before=before, floor=floor, limit=size
        )
        items = [_entry(row) for row in rows]
        if len(rows) == size:
            return Page(items, str(rows[-1]["task"]))
        further = await self._below(floor)
        return Page(items, None if further is None else str(further))

    async def _below(self, before: int) -> int | None:
        """Just above the newest task below a position; skips ranges that were pruned."""
        newest: int | None = (await self._store.read("sent_below", before=before))[0]["newest"]
        return None if newest is None else newest + 1

    async def export(
        self, *, tenant: str = "default", channel: str | None = None, to: str | None = None
    ) -> AsyncIterator[list[Row]]:
        """The whole log page by page, without an open transaction in between."""
        after: str | None = None
        while True:
            page = await self.page(tenant=tenant, channel=channel, to=to, limit=EXPORT_PAGE, after=after)
            yield page.items
            if page.next is None:
                return
            after = page.next


def _entry(row: Row) -> Row:
    content = orjson.loads(row["content"])
    return {
        "id": row["id"],
        "sent_at": iso(row["sent_at"]),
        "channel": row["channel"],
        "to": row["recipient"],
        "text": content.get("text") or "",
        "attempts": row["attempts"],
        "receipt": row["receipt"],
        "unknown": bool(row["unknown"]),
        "accepted_at": iso(row["accepted_at"]),
        "scheduled_at": iso(row["scheduled_at"]),
    }
