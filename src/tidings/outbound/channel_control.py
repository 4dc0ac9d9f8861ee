"""List channels with their state; pause and resume them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import timedelta

from ..kernel import breaker
from ..kernel.lanes import Lane
from ..model.time import SECOND, iso
from ..store.port import Row, Step, Store
from . import channel_probes, destination_breakers
from .channel_probes import ProbeResult
from .channels import signing_secrets
from .channels.base import Channel, unknown_channel
from .message_validation import check_line
from .sessions import qr_codes

MAX_REASON_LENGTH = 200


class ChannelControl:
    """Channels with their local configuration and the state that all processes share."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel],
        lanes: Mapping[str, Lane],
        callback: Callable[[str], str | None] = lambda _name: None,  # the callback URL
    ) -> None:
        self._store = store
        self._channels = channels
        self._lanes = lanes
        self._callback = callback

    async def all(self) -> list[Row]:
        """All channels that any process has registered, by name, without internal queues."""
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
            {**self._described(row, now, busy=row["name"] in busy), "destinations": waiting.get(row["name"], [])}
            for row in rows
        ]

    async def one(self, name: str) -> Row:
        """One channel; raises NotFound."""
        for row in await self._queues():
            if row["name"] == name:
                return row
        raise unknown_channel(name, self._channels)

    async def pause(self, name: str, *, reason: str = "paused by hand") -> Row:
        """Pause the channel; attempts in flight finish normally."""
        check_line(reason, "reason", MAX_REASON_LENGTH)
        await self._store.write([Step("queue_pause", {"name": name, "reason": reason})])
        return await self.one(name)

    async def resume(self, name: str) -> Row:
        """Resume the channel: clears a pause, a throttle and open breakers, including destinations."""
        which = {"name": name}
        await self._store.write([Step("queue_resume", which), Step("destination_clear", which)])
        await self._store.hint()
        return await self.one(name)

    async def probe_channel(self, name: str) -> ProbeResult:
        """Test the channel's account without sending anything."""
        return await channel_probes.probe_channel(self._channels, name)

    async def endpoint_secrets(self, name: str, to: str, *, tenant: str = "default") -> Row:
        """The signing secrets of one receiver of this tenant, newest first."""
        return dict(signing_secrets.endpoint_secrets(self._channels, name, to, tenant=tenant))

    async def scan(self, name: str) -> qr_codes.SessionQrCode:
        """The current session status, and the QR code to link a phone if one is needed."""
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
            **{name: row[name] for name in ("mode", "share", "on_unknown")},
            "why_on_unknown": traits.why_on_unknown if traits is not None else None,
            "per_second": SECOND / row["interval"] if row["interval"] else None,
            "per_recipient_s": _seconds(traits.per_recipient) if traits is not None else None,
            "reconnect_wait_s": _seconds(traits.reconnect_wait) if traits and row["session_state"] else None,
            "deadline_s": row["deadline"] / SECOND,
            "policy": traits.policy if traits is not None else None,
            "callback": self._callback(row["name"]),
        }


def _state(row: Row, *, blocked: bool, busy: bool) -> str:
    """The state as one word; `pausing` until nothing is in flight."""
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
