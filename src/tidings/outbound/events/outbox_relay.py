"""The messenger: makes messages of what is to be told, one for each receiver.

A page of the outbox and the messages made of it change places in one transaction: an event is told, or still
to be told, never both and never neither. Where two messengers meet, the second one's page is undone.
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
EXPIRE_AFTER = timedelta(days=3)  # longer than all tries of the policy `events`
POLL_INTERVAL = 1.0  # seconds between two looks
_MET = 0.2  # somebody else tells just now


class OutboxRelay:
    """An actor; one step tells one page."""

    name = "messenger"

    def __init__(self, store: Store, clock: Clock, listeners: SubscriptionCache) -> None:
        self._store = store
        self._clock = clock
        self._listeners = listeners

    async def step(self) -> float:
        """Learn who listens, then make messages of the oldest events."""
        await self._listeners.refresh()
        page = await self._store.read("outbox_page", limit=PAGE)
        if not page:
            return POLL_INTERVAL
        try:
            made = await self._tell(page)
        except WriteConflict:
            return _MET * (0.5 + self._clock.chance())
        if made:
            await self._store.hint()
        return 0.0 if len(page) == PAGE else POLL_INTERVAL

    async def _tell(self, page: list[Row]) -> int:
        """Swap a page for its messages; gives how many there are."""
        now = self._clock.now()
        tasks: list[NewTask] = []
        rows: list[tuple[Any, ...]] = []
        for row in page:
            content = ""
            for recipient in self._recipients(row):
                content = content or _content(row)
                tasks.append(
                    NewTask(
                        event_types.EVENTS_CHANNEL,
                        MESSAGE_KIND,
                        now,
                        row["tenant"],
                        expires_at=now + micros(EXPIRE_AFTER),
                    )
                )
                id_ = self._clock.new_id()
                rows.append(
                    (now, now, id_, row["tenant"], event_types.EVENTS_CHANNEL, recipient, content, False)
                )
        ids = orjson.dumps([row["id"] for row in page]).decode()
        taken = Step("outbox_take", {"ids": ids, "n": len(page)}, needed=True)
        await self._store.enqueue(tasks, TableRows("messages", MESSAGE_COLUMNS, rows), also=[taken])
        return len(tasks)

    def _recipients(self, row: Row) -> Iterator[str]:
        """Who is told: a subscription by its id, and the URL that the event names."""
        if row["target"] is not None:
            yield row["target"]
        if row["type"] == event_types.TEST_EVENT:
            yield row["subject"]
            return
        for listener in self._listeners.of(row["tenant"], row["type"]):
            yield listener.id


def _content(row: Row) -> str:
    told = event_types.event_payload(row)
    return orjson.dumps({"text": row["type"], "data": told}).decode()
