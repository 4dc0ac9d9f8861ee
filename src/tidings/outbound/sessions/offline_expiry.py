"""Expire messages that waited too long for a session, before the others are sent.

The wait counts from the latest of due time, acceptance and loss of the session. A message with its own expiry
keeps it; messages of a broadcast wait as long as their broadcast. After an outage that was more than a
reconnect (stopped, failed, logged out, unreachable) nothing is expired here: the ordinary expiry applies.
"""

from __future__ import annotations

from datetime import timedelta
from typing import NamedTuple

from ...kernel.task_actions import expire_tasks
from ...model import durations
from ...model.time import micros
from ...store.port import Row, Store

PAGE = 500
MAX_PAGES = 20  # pages per call


class OfflineExpiry(NamedTuple):
    """How many expired, and whether there may be more."""

    gone: int
    more: bool


async def expire_offline(store: Store, queue: str, *, lost_at: int, wait: timedelta, now: int) -> OfflineExpiry:
    """Expire messages that waited longer than `wait`; reads nothing after a shorter outage."""
    if now - lost_at <= micros(wait):
        return OfflineExpiry(0, more=False)
    gone, pages = 0, MAX_PAGES
    for priority in range(10):
        from_due, after, is_passed_on = 0, 0, False
        while pages:
            pages -= 1
            place = {"priority": priority, "from_due": from_due, "after": after, "limit": PAGE}
            page = await store.read("waited_page", queue=queue, before=now - micros(wait), **place)
            late = [row for row in page if is_too_late(row, lost_at=lost_at, wait=micros(wait), now=now)]
            gone += await _expire(store, late, wait)
            is_passed_on = is_passed_on or any(row["ordering_key"] is not None for row in late)
            if len(page) == PAGE:
                from_due, after = page[-1]["due_at"], page[-1]["id"]
            elif is_passed_on:  # the next of an ordering key may be too late as well
                from_due, after, is_passed_on = 0, 0, False
            else:
                break
    return OfflineExpiry(gone, more=not pages)


async def _expire(store: Store, rows: list[Row], wait: timedelta) -> int:
    if not rows:
        return 0
    detail = f"its channel was not connected for over {durations.humanize(wait)}"
    return await expire_tasks(store, rows, 0, detail=detail, before="expiry_cut")


def is_too_late(row: Row, *, lost_at: int, wait: int, now: int) -> bool:
    """Whether a due message has waited too long for the session."""
    if row["own_expiry"] or row["group_id"] is not None:
        return False
    return bool(now - max(row["due_at"], row["accepted_at"], lost_at) > wait)
