"""The outbox relay: turns outbox rows into one message per subscriber.

Rows are deleted in the transaction that writes their messages, so no event is lost or doubled. If two relays
take the same page, the second transaction is rolled back.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import orjson

from ...kernel.clock import Clock
from ...model.task import NewTask
from ...model.time import micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..message_validation import MESSAGE_COLUMNS, MESSAGE_KIND
from . import event_types
from .subscription_cache import SubscriptionCache

PAGE = 500
EXPIRE_AFTER = timedelta(days=3)  # longer than all attempts of the policy `events`
POLL_INTERVAL = 1.0  # seconds
_CONFLICT_DELAY = 0.2  # seconds after a conflict with another relay


class OutboxRelay:
    """An actor; one step relays one page."""

    name = "outbox_relay"

    def __init__(self, store: Store, clock: Clock, listeners: SubscriptionCache) -> None:
        self._store = store
        self._clock = clock
        self._listeners = listeners

    async def step(self) -> float:
        """Refresh the subscriptions, then relay the oldest events."""
        await self._listeners.refresh()
        page = await self._store.read("outbox_page", limit=PAGE)
        if not page:
            return POLL_INTERVAL
        try:
            made = await self._relay(page)
        except WriteConflict:
            return _CONFLICT_DELAY * (0.5 + self._clock.chance())
        if made:
            await self._store.hint()
        return 0.0 if len(page) == PAGE else POLL_INTERVAL

    async def _relay(self, page: list[Row]) -> int:
        """Replace a page by its messages; returns their number."""
        now, channel = self._clock.now(), event_types.EVENTS_CHANNEL
        expires_at = now + micros(EXPIRE_AFTER)
        tasks: list[NewTask] = []
        rows: list[tuple[Any, ...]] = []
        for row in page:
            content = ""
            for recipient in self._recipients(row):
                content = content or _content(row)
                tasks.append(NewTask(channel, MESSAGE_KIND, now, row["tenant"], expires_at=expires_at))
                rows.append((now, now, self._clock.new_id(), row["tenant"], channel, recipient, content, False))
        ids = orjson.dumps([row["id"] for row in page]).decode()
        taken = Step("outbox_take", {"ids": ids, "n": len(page)}, needed=True)
        await self._store.enqueue(tasks, TableRows("messages", MESSAGE_COLUMNS, rows), also=[taken])
        return len(tasks)

    def _recipients(self, row: Row) -> Iterator[str]:
        """The event's own target URL, and the ids of matching subscriptions."""
        if row["target"] is not None:
            yield row["target"]
        if row["type"] == event_types.TEST_EVENT:
            yield row["subject"]
            return
        for subscription in self._listeners.of(row["tenant"], row["type"]):
            yield subscription.id


def _content(row: Row) -> str:
    return orjson.dumps({"text": row["type"], "data": event_types.event_payload(row)}).decode()
