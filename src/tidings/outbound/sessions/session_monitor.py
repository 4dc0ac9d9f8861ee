"""The keeper: looks at the sessions of channels, and keeps their state on the channels' rows.

One node at a time looks at one session: whoever moves its `check_at` does, and a look that was overtaken (by
another node, or by a send that met the loss) writes nothing. Whoever dies while looking is replaced when its
lease is over. While a session is not connected no claim touches its channel, so nothing is lost or spent.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import orjson

from ...kernel.clock import Clock
from ...model.time import SECOND, iso
from ...observability.events import ChannelLoggedOut, ChannelUnreachable, Emit, TasksExpired
from ...store.port import Step, Store, WriteConflict
from ..channels.base import Channel
from ..channels.session import HasSession, Reconnects, SessionCheck, SessionStatus
from ..events.subscription_cache import SubscriptionCache
from . import reconnect_backoff
from .offline_expiry import expire_offline
from .reconnect_backoff import SessionTransition, StoredSession

TENANT = "default"  # channels belong to the whole engine; its events are told to those who listen here
LEASE = 10 * SECOND  # for one look; then another node may take it
CHECK_TIMEOUT = 8.0  # seconds within which a look must have ended, or the session counts as not answering
CHECK_INTERVAL = 1.0  # seconds between two looks at the rows
IDLE = 3600.0


class SessionMonitor:
    """An actor; one step looks at every session that is due."""

    name = "connections"

    def __init__(
        self,
        store: Store,
        clock: Clock,
        channels: Mapping[str, Channel],
        *,
        listeners: SubscriptionCache,
        emit: Emit,
    ) -> None:
        self._store = store
        self._clock = clock
        self._channels = {name: it for name, it in channels.items() if isinstance(it, HasSession)}
        self._waits = {name: channels[name].traits.reconnect_wait for name in self._channels}
        self._listeners = listeners
        self._emit = emit

    async def step(self) -> float:
        """Look at what is due; gives the seconds until the next look."""
        if not self._channels:
            return IDLE
        rows = {row["name"]: row["check_at"] for row in await self._store.read("channel_session_list")}
        due = [name for name in self._channels if rows.get(name, IDLE * SECOND) <= self._clock.now()]
        results = await asyncio.gather(*map(self._look, due), return_exceptions=True)
        for failed in results:  # after all the others have had their turn
            if isinstance(failed, BaseException):
                raise failed
        rest = min(
            (rows[name] - self._clock.now() for name in rows.keys() & self._channels.keys() - {*due}),
            default=SECOND,
        )
        return max(0.05, min(CHECK_INTERVAL, rest / SECOND))

    async def _look(self, name: str) -> None:
        """One session: take its turn, look, write down what follows."""
        taken = await self._store.write([Step("channel_session_take", {"name": name, "lease": LEASE})])
        if not taken[0]:
            return
        before, turn = reconnect_backoff.read_session(taken[0][0]), taken[0][0]["check_no"]
        if before.is_fresh_loss:
            after = reconnect_backoff.after_send_failure(before, self._clock.now())
        else:
            after = reconnect_backoff.after_check(before, await self._status(name), self._clock.now())
        if after.is_back and await self._expire(name, before):
            after = reconnect_backoff.unchanged(before, self._clock.now())
        if await self._note(name, before, after, turn):
            await self._follow(name, after)

    async def _status(self, name: str) -> SessionCheck:
        try:
            async with asyncio.timeout(CHECK_TIMEOUT):
                return await self._channels[name].status()
        except TimeoutError:
            return SessionCheck(SessionStatus.RECONNECTING, "the server does not answer")

    async def _expire(self, name: str, before: StoredSession) -> bool:
        """What waited too long ends before the rest may go; True: there is more of it, look again."""
        now = self._clock.now()
        lost_at = before.lost_at or before.since
        done = await expire_offline(self._store, name, lost_at=lost_at, wait=self._waits[name], now=now)
        if done.gone:
            self._emit(TasksExpired(done.gone))
        return done.more

    async def _note(self, name: str, before: StoredSession, after: SessionTransition, turn: int) -> bool:
        """Write it down with its event, if this look was not overtaken."""
        row = {field: getattr(after, field) for field in _FIELDS}
        note = {**row, "session_state": str(after.link), "name": name, "check_no": turn}
        steps = [Step("channel_session_note", note, needed=True)]
        if after.news is not None and self._listeners.has_subscriber(TENANT, (after.news,)):
            steps.append(_event(name, before, after, after.news))
        try:
            await self._store.write(steps)
        except WriteConflict:
            return False
        return True

    async def _follow(self, name: str, after: SessionTransition) -> None:
        """What comes after the fact: the log, a reconnect, word to the others."""
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
                    await channel.reconnect()


_FIELDS = ("why", "attempts", "told", "lost_at", "retry_at", "check_at", "is_back")


def _event(name: str, before: StoredSession, after: SessionTransition, type_: str) -> Step:
    """What subscribers are told, written with the change itself."""
    body = {
        "channel": name,
        "state": str(after.link),
        "reason": after.why,
        "failures": after.attempts,
        "lost_at": iso(after.lost_at or before.lost_at),
    }
    told = {"at": None, "tenant": TENANT, "type": type_, "subject": name, "target": None}
    return Step("outbox_add", {**told, "body": orjson.dumps(body).decode()})
