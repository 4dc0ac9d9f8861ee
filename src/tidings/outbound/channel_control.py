"""The board of channels: how each one stands, and the two switches a person has (pause, resume)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from ..kernel import breaker
from ..kernel.lanes import Lane
from ..model.errors import Invalid, NotFound
from ..model.time import SECOND, iso
from ..store.port import Row, Step, Store
from . import channel_probes, destination_breakers
from .channel_probes import ProbeResult
from .channels import signing_secrets
from .channels.base import Channel
from .events import event_types
from .sessions import qr_codes

LONGEST_REASON = 200


class ChannelControl:
    """Channels as people see them: what is configured here, and what all processes share."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        lanes: Mapping[str, Lane],
        callback: Callable[[str], str | None] = lambda _name: None,  # where its provider is to call
    ) -> None:
        self._store = store
        self._channels = channels
        self._lanes = lanes
        self._callback = callback

    async def all(self) -> list[Row]:
        """Every channel that any process has made known, by name; not the queues of the engine itself."""
        return [row for row in await self._queues() if row["kind"] != "engine"]

    async def _queues(self) -> list[Row]:
        now: int = (await self._store.read("now"))[0]["now"]
        rows = await self._store.read("queue_list")
        busy: set[str] = set()
        if any(row["paused"] for row in rows):
            busy = {row["queue"] for row in await self._store.read("queue_busy")}
        waiting: dict[str, list[Row]] = {}
        for one in await self._store.read("destination_list"):
            waiting.setdefault(one["queue"], []).append(destination_breakers.serialize_destination(one, now))
        return [
            {
                **self._described(row, now, busy=row["name"] in busy),
                "destinations": waiting.get(row["name"], []),
            }
            for row in rows
        ]

    async def one(self, name: str) -> Row:
        """One channel."""
        for row in await self._queues():
            if row["name"] == name:
                return row
        known = ", ".join(sorted(self._channels.keys() - {event_types.EVENTS_CHANNEL})) or "none"
        raise NotFound(f"there is no channel {name!r}", field="name", remedy=f"configured channels: {known}")

    async def pause(self, name: str, *, reason: str = "paused by hand") -> Row:
        """Start nothing more on it; what is being sent at this moment ends as it would."""
        if not reason.strip() or len(reason) > LONGEST_REASON or not reason.isprintable():
            remedy = f"use 1 to {LONGEST_REASON} printable characters, or leave it out"
            raise Invalid(
                "the reason is empty, too long or has control characters", field="reason", remedy=remedy
            )
        await self._store.write([Step("queue_pause", {"name": name, "reason": reason})])
        return await self.one(name)

    async def resume(self, name: str) -> Row:
        """Start again: lifts a pause, a parking and an open breaker, those of its destinations among them."""
        which = {"name": name}
        await self._store.write([Step("queue_resume", which), Step("destination_clear", which)])
        await self._store.hint()
        return await self.one(name)

    async def probe_channel(self, name: str) -> ProbeResult:
        """Whether its account works, found out without sending anything."""
        return await channel_probes.probe_channel(self._channels, name)

    async def endpoint_secrets(self, name: str, to: str, *, tenant: str = "default") -> Row:
        """The secrets with which one receiver of this tenant verifies what it gets, newest first."""
        return dict(signing_secrets.endpoint_secrets(self._channels, name, to, tenant=tenant))

    async def scan(self, name: str) -> qr_codes.SessionQrCode:
        """How its session stands at this moment, and the code that links a phone to it, if it wants one."""
        return await qr_codes.read_qr_code(self._channels, name)

    def _described(self, row: Row, now: int, *, busy: bool) -> Row:
        channel, lane = self._channels.get(row["name"]), self._lanes.get(row["name"])
        blocked = row["blocked_until"] is not None and row["blocked_until"] > now
        traits = channel.traits if channel is not None else None
        return {
            "name": row["name"],
            "kind": channel.kind if channel is not None else "engine" if lane is not None else None,
            "state": _state(row, blocked=blocked, busy=busy),
            "paused": bool(row["paused"]),
            "pause_reason": row["pause_reason"],
            "blocked_until": iso(row["blocked_until"]) if blocked else None,
            "block_reason": row["block_reason"] if blocked else None,
            "session_state": row["session_state"],
            "session_reason": row["session_reason"],
            "session_since": iso(row["session_since"]),
            "reconnects": row["reconnects"],
            "breaker": _breaker(row, lane, now),
            "consecutive_failures": row["failures"],
            "mode": row["mode"],
            "share": row["share"],
            "on_unknown": row["on_unknown"],
            "why_on_unknown": traits.why_on_unknown if traits is not None else None,
            "per_second": SECOND / row["interval"] if row["interval"] else None,
            "per_recipient_s": _seconds(traits.per_recipient) if traits is not None else None,
            "reconnect_wait_s": _seconds(traits.reconnect_wait) if traits and row["session_state"] else None,
            "deadline_s": row["deadline"] / SECOND,
            "policy": traits.policy if traits is not None else None,
            "callback": self._callback(row["name"]),
        }


def _state(row: Row, *, blocked: bool, busy: bool) -> str:
    """One word: whether it sends, and if not, what it waits for; `pausing` until nothing is in flight."""
    if row["paused"]:
        return "pausing" if busy else "paused"
    if row["session_state"] not in (None, "connected"):
        return str(row["session_state"])
    if not blocked:
        return "open"
    return "throttled" if row["opened_at"] is None else "breaker_open"


def _seconds(length: timedelta | None) -> float | None:
    return None if length is None else length.total_seconds()


def _breaker(row: Row, lane: Lane | None, now: int) -> str:
    rule = lane.breaker if lane is not None else breaker.BreakerRule()
    return str(breaker.state(row["opened_at"], probing=row["probe_at"] is not None, now=now, rule=rule))
