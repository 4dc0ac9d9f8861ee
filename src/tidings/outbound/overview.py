"""The overview: how much waits, is due, is at work, was sent and failed; who works; what came last.

Everything is counted up to a bound and by index, so that a page that is looked at all day costs the engine
next to nothing, however much is stored.
"""

from __future__ import annotations

from dataclasses import dataclass

import orjson

from ..model.time import MINUTE, iso
from ..store.port import Row, Store
from .message_serializer import serialize_message
from .message_validation import MESSAGE_KIND
from .trend_sampler import ThroughputTrend, TrendSampler

MAX_COUNTED = 10_000  # counted up to here; more is shown as "10,000+"
MOST_DUE = 1_000  # the same for each priority of a channel
RECENT_WINDOW = 15 * MINUTE
WINDOW = 1_000


@dataclass(frozen=True, slots=True)
class MessageCounts:
    """How much there is, over all channels. `MAX_COUNTED` stands for as many or more."""

    waiting: int  # for their time, their turn or their channel
    due: int
    processing: int
    sent: int  # in the last fifteen minutes
    failed: int
    unknown: int


class Overview:
    """What a person sees first."""

    def __init__(self, store: Store, watch: TrendSampler) -> None:
        self._store = store
        self._watch = watch

    async def counts(self) -> MessageCounts:
        """How much there is now."""
        now: int = (await self._store.read("now"))[0]["now"]
        row = (await self._store.read("counts", most=MAX_COUNTED))[0]
        pending = row["heads"] + row["lined"]
        due = sum(int(queue["due"]) for queue in await self._store.read("counts_due", most=MOST_DUE))
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
        """The last quarter of an hour, up to this moment."""
        return await self._watch.trend()

    async def newest(self, *, tenant: str = "default", limit: int = 25) -> list[Row]:
        """The newest messages, whatever their state."""
        rows = await self._store.read(
            "message_newest", kind=MESSAGE_KIND, tenant=tenant, window=WINDOW, limit=limit
        )
        return [serialize_message(row) for row in rows]

    async def nodes(self) -> list[Row]:
        """Every process that works or may still hold something."""
        return [
            {
                "id": row["id"],
                "name": row["name"],
                "state": row["state"],
                "started_at": iso(row["started_at"]),
                "seen_at": iso(row["seen_at"]),
                "load": orjson.loads(row["info"]),
            }
            for row in await self._store.read("node_list")
        ]
