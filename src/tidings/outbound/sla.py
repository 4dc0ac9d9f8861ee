"""The SLA report: the share of messages sent within 60 seconds of their due time, by day (UTC) and channel.

It reads daily tallies, which are written with the results of attempts, so its cost does not depend on the
number of messages. After a retry, the time counts from the message's original due time.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from ..model.errors import Invalid
from ..model.time import DAY, iso
from ..store.port import Store

TARGET_SECONDS = 60
MAX_DAYS = 400
_MAX_ROWS = 20_000
COLUMNS = ("day", "channel", "sent", "on_time", "share")


class DailyDelivery(NamedTuple):
    """Messages of one channel on one day: all that were sent, and those within the target."""

    day: str
    channel: str
    sent: int
    on_time: int
    share: float


async def sla_report(
    store: Store, *, days: int, channel: str | None = None, without: Collection[str] = ()
) -> list[DailyDelivery]:
    """Return the last days, newest first, without the queues `without`. Raises Invalid."""
    if not 1 <= days <= MAX_DAYS:
        raise Invalid(f"days is {days}", remedy=f"use 1 to {MAX_DAYS}", field="days")
    now: int = (await store.read("now"))[0]["now"]
    since = now // DAY * DAY - (days - 1) * DAY
    rows = await store.read("daily_deliveries_page", since=since, channel=channel, limit=_MAX_ROWS)
    found = [(str(iso(row["day"]))[:10], row["queue"], int(row["sent"]), int(row["late"])) for row in rows]
    return [
        DailyDelivery(day, queue, sent, sent - late, round((sent - late) / sent, 5))
        for day, queue, sent, late in found
        if sent and queue not in without
    ]
