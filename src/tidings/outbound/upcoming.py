"""Upcoming messages, schedule occurrences and broadcasts of a period.

Counts and lists are indexed and bounded, however much is planned. A message that waits behind another of its
ordering key is counted at its own due time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise, takewhile
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.errors import CallerError
from ..model.time import iso
from ..store.port import Row, Store
from .message_serializer import serialize_message
from .message_validation import MESSAGE_KIND
from .schedules.catch_up import series_of
from .schedules.recurrence import RecurrenceSeries

MAX_MESSAGES = 300  # messages counted per channel and priority of a span
WINDOW = 5_000  # rows scanned behind ordering keys, and of schedules and broadcasts
MAX_SCHEDULES = 100  # schedules whose firings are computed
MAX_FIRINGS = 24  # of one schedule in one span
MAX_COUNTED_FIRINGS = 500  # firings of a schedule with an occurrence limit
MAX_BROADCASTS = 100


class UpcomingSpan(NamedTuple):
    """What is due between two instants."""

    since: int
    until: int
    messages: int
    is_all: bool  # False: there are more messages than were counted
    firings: list[Row]
    broadcasts: list[Row]


class UpcomingSpans(NamedTuple):
    """Consecutive spans."""

    spans: list[UpcomingSpan]
    more_schedules: bool  # more schedules fire in this period than were computed


class UpcomingMessages(NamedTuple):
    """Messages by due time; `next` is the instant to continue from, None at the end."""

    items: list[Row]
    next: int | None


class Upcoming:
    """Reads planned messages, occurrences and broadcasts."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def plans(self, edges: Sequence[int], *, tenant: str = "default") -> UpcomingSpans:
        """What is due between each two neighboring instants."""
        first, last, now = edges[0], edges[-1], self._clock.now()
        rows = await self._store.read(
            "schedule_upcoming", tenant=tenant, until=last, window=WINDOW, limit=MAX_SCHEDULES + 1
        )
        within = {"since": first, "until": last, "tenant": tenant, "window": WINDOW}
        lined = [row["due_at"] for row in await self._store.read("upcoming_ordered", kind=MESSAGE_KIND, **within)]
        broadcasts = await self._store.read("broadcast_upcoming", limit=MAX_BROADCASTS, **within)
        planned = list(_compiled(rows[:MAX_SCHEDULES]))
        spans = []
        for since, until in pairwise(edges):
            counts = await self._counts(since, until, tenant)
            behind = sum(since <= at < until for at in lined)
            spans.append(
                UpcomingSpan(
                    since,
                    until,
                    sum(counts.values()) + behind,
                    max(counts.values(), default=0) < MAX_MESSAGES,
                    list(_firings(planned, max(since, now), until)),
                    [_broadcast(row) for row in broadcasts if since <= row["starts_at"] < until],
                )
            )
        return UpcomingSpans(spans, len(rows) > MAX_SCHEDULES)

    async def messages(self, since: int, until: int, *, limit: int = 100, tenant: str = "default") -> UpcomingMessages:
        """The first messages of a period, earliest first."""
        within: dict[str, Any] = {"since": since, "until": until, "tenant": tenant}
        found = await self._store.read(
            "upcoming_ordered_page", kind=MESSAGE_KIND, window=WINDOW, limit=limit + 1, **within
        )
        for queue, priority in await self._counts(since, until, tenant):
            found += await self._store.read("upcoming_page", queue=queue, priority=priority, limit=limit + 1, **within)
        found.sort(key=lambda row: (row["due_at"], row["task"]))
        if len(found) <= limit:
            return UpcomingMessages([serialize_message(row) for row in found], None)
        last: int = found[limit]["due_at"]
        continue_at = last if last > found[0]["due_at"] else last + 1  # never the same page again
        return UpcomingMessages([serialize_message(row) for row in found[:limit]], continue_at)

    async def _counts(self, since: int, until: int, tenant: str) -> dict[tuple[str, int], int]:
        """Message counts by queue and priority, without empty ones."""
        rows = await self._store.read(
            "upcoming_counts", since=since, until=until, tenant=tenant, kind=MESSAGE_KIND, most=MAX_MESSAGES
        )
        return {(row["queue"], row["priority"]): row["n"] for row in rows if row["n"]}


def _compiled(rows: Sequence[Row]) -> Iterator[tuple[Row, RecurrenceSeries]]:
    """Schedules with their series; those with an invalid rule are left out."""
    for row in rows:
        try:
            yield row, series_of(row)
        except CallerError:
            continue


def _firings(planned: Sequence[tuple[Row, RecurrenceSeries]], since: int, until: int) -> Iterator[Row]:
    """When each of these schedules fires within a span."""
    for row, series in planned:
        times = _times(row, series, since, until)
        if times:
            body = orjson.loads(row["body"])
            yield {
                "schedule": row["id"],
                "name": row["name"],
                "creates": row["creates"],
                "channel": body.get("channel"),
                "to": body.get("to") or body.get("list"),
                "at": [iso(at) for at in times[:MAX_FIRINGS]],
                "more": len(times) > MAX_FIRINGS,
            }


def _times(row: Row, series: RecurrenceSeries, since: int, until: int) -> list[int]:
    """The instants of one schedule within a span, at most one more than are shown."""
    following = row["next_at"]
    if row["most"] is None:
        instants = series.after(max(since, following) - 1)
    else:  # the remaining ones must be counted from the next
        instants = islice(series.after(following - 1), min(row["most"] - row["fired"], MAX_COUNTED_FIRINGS))
    within = takewhile(lambda firing: firing.at < until, instants)
    return [firing.at for firing in islice((one for one in within if one.at >= since), MAX_FIRINGS + 1)]


def _broadcast(row: Row) -> Row:
    return {**row, "starts_at": iso(row["starts_at"])}
