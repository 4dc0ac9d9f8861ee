"""Check the sessions of channels, store their state on the channels' rows and reconnect them.

One node at a time checks a session, by a lease on `check_at`; a check that was overtaken (by another node, or
by a send that found the session lost) writes nothing. While a session is not connected no task of its channel
is claimed, so no message or attempt is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from ...kernel.clock import Clock
from ...kernel.task_actions import expire_tasks
from ...model import durations
from ...model.time import SECOND, iso, micros
from ...observability.events import ChannelLoggedOut, ChannelStopped, ChannelUnreachable, Emit, TasksExpired
from ...store.port import Row, Step, Store, WriteConflict
from ..channels.base import Channel
from ..channels.session import HasSession, Reconnects, SessionCheck, SessionStatus
from ..events.event_types import outbox_step
from ..events.subscription_cache import SubscriptionCache
from . import reconnect_backoff
from .reconnect_backoff import SessionTransition, StoredSession

TENANT = "default"  # channels belong to the whole engine, so their events go to this tenant
LEASE = 10 * SECOND  # for one check; then another node may take over
CHECK_TIMEOUT = 8.0  # seconds until a check counts as no answer
CHECK_INTERVAL = 1.0  # seconds between polls of the rows
IDLE = 3600.0
PAGE = 500  # messages that may have waited too long
MAX_PAGES = 20  # pages per call


class SessionMonitor:
    """An actor; one step checks every session that is due."""

    name = "session_monitor"

    def __init__(
        self, store: Store, clock: Clock, channels: Mapping[str, Channel], *, listeners: SubscriptionCache, emit: Emit
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = {name: it for name, it in channels.items() if isinstance(it, HasSession)}
        self._waits = {name: channels[name].traits.reconnect_wait for name in self._channels}
        self._listeners = listeners
        self._emit = emit

    async def step(self) -> float:
        """Check the sessions that are due; returns the seconds until the next step."""
        if not self._channels:
            return IDLE
        rows = {row["name"]: row["check_at"] for row in await self._store.read("channel_session_list")}
        due = [name for name in self._channels if rows.get(name, IDLE * SECOND) <= self._clock.now()]
        results = await asyncio.gather(*map(self._check, due), return_exceptions=True)
        for failed in results:  # after all checks have finished
            if isinstance(failed, BaseException):
                raise failed
        rest = min(
            (rows[name] - self._clock.now() for name in rows.keys() & self._channels.keys() - {*due}), default=SECOND
        )
        return max(0.05, min(CHECK_INTERVAL, rest / SECOND))

    async def _check(self, name: str) -> None:
        """Lease one session, check it and write the transition."""
        taken = await self._store.write([Step("channel_session_take", {"name": name, "lease": LEASE})])
        if not taken[0]:
            return
        before, turn = reconnect_backoff.read_session(taken[0][0]), taken[0][0]["check_no"]
        if before.is_fresh_loss:
            after = reconnect_backoff.after_send_failure(before, self._clock.now())
        else:
            after = reconnect_backoff.after_check(before, await self._status(name), self._clock.now())
        if after.is_back and not before.was_down and await self._expire(name, before):
            after = reconnect_backoff.unchanged(before, self._clock.now())
        if await self._write(name, before, after, turn):
            await self._follow(name, before, after)

    async def _status(self, name: str) -> SessionCheck:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                return await self._channels[name].status()
        except TimeoutError:
            return SessionCheck(SessionStatus.RECONNECTING, "the server did not answer in time", is_down=True)

    async def _expire(self, name: str, before: StoredSession) -> bool:
        """Expire messages that waited too long, before the rest is sent; True if there are more."""
        now = self._clock.now()
        lost_at = before.lost_at or before.since
        done = await expire_offline(self._store, name, lost_at=lost_at, wait=self._waits[name], now=now)
        if done.gone:
            self._emit(TasksExpired(done.gone))
        return done.more

    async def _write(self, name: str, before: StoredSession, after: SessionTransition, turn: int) -> bool:
        """Write the transition with its event; False if the check was overtaken."""
        row = {field: getattr(after, field) for field in _FIELDS}
        note = {**row, "session_state": str(after.link), "name": name, "check_no": turn}
        steps = [Step("channel_session_note", note, needed=True)]
        if after.rejected:
            steps.append(Step("queue_pause_by_engine", {"name": name, "reason": after.why}))
        if after.news is not None and self._listeners.has_subscriber(TENANT, (after.news,)):
            steps.append(_event(name, before, after, after.news))
        try:
            await self._store.write(steps)
        except WriteConflict:
            return False
        return True

    async def _follow(self, name: str, before: StoredSession, after: SessionTransition) -> None:
        """Follow up on a transition: log it, wake workers, request a reconnect."""
        if after.rejected and after.why != before.why:
            self._emit(ChannelStopped(name, "paused", after.why))
        if after.news == f"channel.{reconnect_backoff.UNREACHABLE}":
            self._emit(ChannelUnreachable(name, after.attempts, after.why))
        elif after.link is SessionStatus.LOGGED_OUT and after.news is not None:
            self._emit(ChannelLoggedOut(name, after.why))
        if after.is_back:
            await self._store.hint()
        channel = self._channels[name]
        if after.nudge and isinstance(channel, Reconnects):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_TIMEOUT):
                    await channel.reconnect(restart=after.restart)


_FIELDS = ("why", "attempts", "told", "lost_at", "retry_at", "check_at", "was_down", "restarted_at", "is_back")


def _event(name: str, before: StoredSession, after: SessionTransition, type_: str) -> Step:
    """The event of a transition, written with it."""
    body = {
        "channel": name,
        "state": str(after.link),
        "reason": after.why,
        "failures": after.attempts,
        "lost_at": iso(after.lost_at or before.lost_at),
    }
    return outbox_step(type_, name, body, tenant=TENANT)


class OfflineExpiry(NamedTuple):
    """How many expired, and whether there may be more."""

    gone: int
    more: bool


async def expire_offline(store: Store, queue: str, *, lost_at: int, wait: timedelta, now: int) -> OfflineExpiry:
    """Expire messages that waited longer than `wait`; reads nothing after a shorter outage.

    The wait counts from the latest of due time, acceptance and loss of the session. A message with its own
    expiry keeps it; messages of a broadcast wait as long as their broadcast. After an outage that was more
    than a reconnect (stopped, failed, logged out, unreachable) nothing is expired here.
    """
    if now - lost_at <= micros(wait):
        return OfflineExpiry(0, more=False)
    detail = f"its channel was not connected for over {durations.humanize(wait)}"
    gone, pages = 0, MAX_PAGES
    for priority in range(10):
        from_due, after, is_passed_on = 0, 0, False
        while pages:
            pages -= 1
            place = {"priority": priority, "from_due": from_due, "after": after, "limit": PAGE}
            page = await store.read("waited_page", queue=queue, before=now - micros(wait), **place)
            late = [row for row in page if is_too_late(row, lost_at=lost_at, wait=micros(wait), now=now)]
            if late:
                gone += await expire_tasks(store, late, 0, detail=detail, before="expiry_cut")
            is_passed_on = is_passed_on or any(row["ordering_key"] is not None for row in late)
            if len(page) == PAGE:
                from_due, after = page[-1]["due_at"], page[-1]["id"]
            elif is_passed_on:  # the next of an ordering key may be too late as well
                from_due, after, is_passed_on = 0, 0, False
            else:
                break
    return OfflineExpiry(gone, more=not pages)


def is_too_late(row: Row, *, lost_at: int, wait: int, now: int) -> bool:
    """Whether a due message has waited too long for the session."""
    if row["own_expiry"] or row["group_id"] is not None:
        return False
    return bool(now - max(row["due_at"], row["accepted_at"], lost_at) > wait)
