"""Counts for the dashboard: waiting, due, in flight, sent and failed messages; nodes; the newest messages.

All counts are indexed and bounded, so an open dashboard costs little however much is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from ..model.time import MINUTE, iso
from ..store.port import Row, Store
from .message_serializer import serialize_message
from .message_validation import MESSAGE_KIND
from .trend_sampler import ThroughputTrend, TrendSampler

MAX_COUNTED = 10_000  # more is shown as "10,000+"
MAX_DUE = 1_000  # per priority of a channel
RECENT_WINDOW = 15 * MINUTE
WINDOW = 1_000


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """Message counts over all channels. `MAX_COUNTED` means that many or more."""

    waiting: int  # for a due time, an ordering key or a channel
    due: int
    processing: int
    sent: int  # in the last fifteen minutes
    failed: int
    unknown: int


class Overview:
    """The data of the dashboard's overview."""

    def __init__(self, store: Store, watch: TrendSampler) -> None:
        self._store = store
        self._watch = watch

    async def counts(self) -> MessageCounts:
        """The current counts."""
        now: int = (await self._store.read("now"))[0]["now"]
        row = (await self._store.read("counts", most=MAX_COUNTED))[0]
        pending = row["heads"] + row["lined"]
        due = sum(int(queue["due"]) for queue in await self._store.read("counts_due", most=MAX_DUE))
        sums = await self._store.read("attempt_tally_sums", since=now - RECENT_WINDOW)
        return MessageCounts(
            waiting=min(MAX_COUNTED, pending) if pending >= MAX_COUNTED else max(0, pending - due),
            due=min(due, MAX_COUNTED),
            processing=row["processing"],
            sent=sum(int(entry["n"]) for entry in sums if entry["outcome"] == "done"),
            failed=row["dead"] if row["dead"] >= MAX_COUNTED else row["dead"] - row["unknown"],
            unknown=row["unknown"],
        )

    async def trend(self) -> ThroughputTrend:
        """The throughput of the last fifteen minutes."""
        return await self._watch.trend()

    async def newest(self, *, tenant: str = "default", limit: int = 25) -> list[Row]:
        """The newest messages in any state."""
        rows = await self._store.read("message_newest", kind=MESSAGE_KIND, tenant=tenant, window=WINDOW, limit=limit)
        return [serialize_message(row) for row in rows]

    async def nodes(self) -> list[Row]:
        """All nodes that work or may still hold tasks."""
        return [
            {
                **{name: row[name] for name in ("id", "name", "state")},
                "started_at": iso(row["started_at"]),
                "seen_at": iso(row["seen_at"]),
                "load": orjson.loads(row["info"]),
            }
            for row in await self._store.read("node_list")
        ]
