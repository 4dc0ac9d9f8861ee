"""Ahead: what will go out, and when: messages, firings of schedules, broadcasts that wait for their time.

Counted and listed by index and up to a bound, however much is planned. A message that stands behind another
of its order key is counted at its own time, though it may have to wait for the one in front.
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
from .schedules.recurrence import RecurrenceSeries
from .schedules.schedule_state import series_of

MAX_MESSAGES = 300  # messages counted for each channel and priority of a span
WINDOW = 5_000  # rows looked at behind order keys, and among schedules and broadcasts
MAX_SCHEDULES = 100  # whose firings are worked out
MAX_FIRINGS = 24  # of one schedule in one span
MAX_COUNTED_FIRINGS = 500  # firings of a schedule that ends after so many
MAX_BROADCASTS = 100


class UpcomingSpan(NamedTuple):
    """What goes out from one instant to another."""

    since: int
    until: int
    messages: int
    is_all: bool  # False: there are more messages than were counted
    firings: list[Row]
    broadcasts: list[Row]


class UpcomingSpans(NamedTuple):
    """Some spans, one after the other."""

    spans: list[UpcomingSpan]
    more_schedules: bool  # more fire in this time than were worked out


class UpcomingMessages(NamedTuple):
    """Messages in the order of their time; `next` is the instant to go on from, None at the end."""

    items: list[Row]
    next: int | None


class Upcoming:
    """Reads what is planned."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def plans(self, edges: Sequence[int], *, tenant: str = "default") -> UpcomingSpans:
        """What goes out between each two neighbouring instants."""
        first, last, now = edges[0], edges[-1], self._clock.now()
        rows = await self._store.read(
            "schedule_upcoming", tenant=tenant, until=last, window=WINDOW, limit=MAX_SCHEDULES + 1
        )
        within = {"since": first, "until": last, "tenant": tenant, "window": WINDOW}
        lined = [
            row["due_at"] for row in await self._store.read("upcoming_ordered", kind=MESSAGE_KIND, **within)
        ]
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

    async def messages(
        self, since: int, until: int, *, limit: int = 100, tenant: str = "default"
    ) -> UpcomingMessages:
        """The first messages of a time, earliest first."""
        within: dict[str, Any] = {"since": since, "until": until, "tenant": tenant}
        found = await self._store.read(
            "upcoming_ordered_page", kind=MESSAGE_KIND, window=WINDOW, limit=limit + 1, **within
        )
        for queue, priority in await self._counts(since, until, tenant):
            found += await self._store.read(
                "upcoming_page", queue=queue, priority=priority, limit=limit + 1, **within
            )
        found.sort(key=lambda row: (row["due_at"], row["task"]))
        if len(found) <= limit:
            return UpcomingMessages([serialize_message(row) for row in found], None)
        last: int = found[limit]["due_at"]
        going_on = last if last > found[0]["due_at"] else last + 1  # never the same page again
        return UpcomingMessages([serialize_message(row) for row in found[:limit]], going_on)

    async def _counts(self, since: int, until: int, tenant: str) -> dict[tuple[str, int], int]:
        """How many there are, by queue and priority; those with none are left out."""
        rows = await self._store.read(
            "upcoming_counts", since=since, until=until, tenant=tenant, kind=MESSAGE_KIND, most=MAX_MESSAGES
        )
        return {(row["queue"], row["priority"]): row["n"] for row in rows if row["n"]}


def _compiled(rows: Sequence[Row]) -> Iterator[tuple[Row, RecurrenceSeries]]:
    """Schedules with their instants; one whose rule has gone bad is left out."""
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
                "makes": row["makes"],
                "channel": body.get("channel"),
                "to": body.get("to") or body.get("list"),
                "at": [iso(at) for at in times[:MAX_FIRINGS]],
                "more": len(times) > MAX_FIRINGS,
            }


def _times(row: Row, series: RecurrenceSeries, since: int, until: int) -> list[int]:
    """The instants of one schedule within a span, one more than are shown at the most."""
    following = row["next_at"]
    if row["most"] is None:
        instants = series.after(max(since, following) - 1)
    else:  # which of them are left can only be counted from the next one
        instants = islice(series.after(following - 1), min(row["most"] - row["fired"], MAX_COUNTED_FIRINGS))
    within = takewhile(lambda firing: firing.at < until, instants)
    return [firing.at for firing in islice((one for one in within if one.at >= since), MAX_FIRINGS + 1)]


def _broadcast(row: Row) -> Row:
    return {**row, "starts_at": iso(row["starts_at"])}
