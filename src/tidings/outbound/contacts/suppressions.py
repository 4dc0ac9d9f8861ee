"""The suppression list: opt-outs by address, on one channel or on all.

It is checked right before each send, so an opt-out also stops messages accepted before it. Email addresses
are case-insensitive. Opt-outs by a person's own word or a provider's answer have evidence; START ends those.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import orjson

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, decode_cursor, encode_cursor, page_size
from ...kernel.clock import Clock
from ...model.errors import NotFound
from ...model.task import Task, Transition
from ...model.time import iso
from ...store.port import Row, Step, Store
from ..idempotency import KEEP_KEYS, CreateResult, create_once, find_replay, optional_key
from .contact_fields import check_printable, normalize_address, unknown_channel

ALL_CHANNELS = ""  # the channel value of an opt-out from all channels
DEFAULT_REASON = "opted out"
MAX_REASON_LENGTH = 200

SUPPRESSION_FIELDS: Mapping[str, Field] = {
    "address": Field("string", "address to suppress", "ada", required=True),
    "channel": Field("string", "channel (default: all channels)", "phone"),
    "reason": Field("string", "reason, shown with skipped messages", "asked by phone"),
}


class OptOut(NamedTuple):
    """A suppressed address."""

    address: str
    channel: str = ALL_CHANNELS
    reason: str = DEFAULT_REASON


class SuppressionService:
    """Opt-out operations of the API, CLI and dashboard."""

    def __init__(self, store: Store, clock: Clock, channels: Collection[str]) -> None:
        self._store = store
        self._clock = clock
        self.channels = tuple(channels)

    async def create(self, body: object, *, key: str | None = None, tenant: str = "default") -> CreateResult:
        """Opt out an address; returns the existing opt-out unchanged if there is one."""
        now = self._clock.now()
        keyed = partial(optional_key, "suppressions", key, body, tenant=tenant, until=now + KEEP_KEYS)
        if (found := await find_replay(self._store, keyed(None))) is not None:
            return found
        out = read_opt_out(body, self.channels)
        answer = serialize_opt_out(await self._find(out, tenant) or {**out._asdict(), "at": now})
        return await create_once(self._store, [_step([out], tenant)], answer, keyed(answer))

    async def keep(self, outs: Sequence[OptOut], *, tenant: str = "default") -> list[bool]:
        """Opt out many in one transaction; returns whether each is new."""
        rows = (await self._store.write([_step(outs, tenant)]))[0] if outs else []
        new = {(row["address"], row["channel"]) for row in rows}
        is_new: list[bool] = []
        for out in outs:
            is_new.append((out.address, out.channel) in new)
            new.discard((out.address, out.channel))
        return is_new

    async def remove(self, address: str, channel: str | None = None, *, tenant: str = "default") -> None:
        """Remove an opt-out; raises NotFound, naming the channels it exists on."""
        place = {"address": normalize_address(address), "channel": channel or ALL_CHANNELS, "tenant": tenant}
        if (await self._store.write([Step("suppression_drop", place)]))[0]:
            return
        rows = await self._store.read("suppression_find", address=place["address"], tenant=tenant)
        if not rows:
            raise NotFound(f"{address[:60]!r} has not opted out", remedy="check the address")
        where = ", ".join(row["channel"] or "all channels (give none)" for row in rows)
        raise NotFound(
            f"{address[:60]!r} has not opted out on {channel or 'all channels'}",
            field="channel",
            remedy=f"it has opted out on: {where}",
        )

    async def page(
        self, *, address: str | None = None, limit: int = 50, after: str | None = None, tenant: str = "default"
    ) -> Page:
        """Opt-outs by address, or those of one address."""
        page_size(limit)
        if address is not None:
            rows = await self._store.read("suppression_find", address=normalize_address(address), tenant=tenant)
            return Page([serialize_opt_out(row) for row in rows], None)
        last, channel = decode_cursor(after, 2)
        rows = await self._store.read("suppression_page", address=last, channel=channel, tenant=tenant, limit=limit)
        more = encode_cursor(rows[-1]["address"], rows[-1]["channel"]) if len(rows) == limit else None
        return Page([serialize_opt_out(row) for row in rows], more)

    async def _find(self, out: OptOut, tenant: str) -> Row | None:
        rows = await self._store.read("suppression_find", address=out.address, tenant=tenant)
        return next((row for row in rows if row["channel"] == out.channel), None)


def read_opt_out(body: object, channels: Collection[str]) -> OptOut:
    """Parse an opt-out; raises Invalid."""
    given = check_fields(body, SUPPRESSION_FIELDS)
    channel, reason = (given.get("channel") or "").strip(), (given.get("reason") or "").strip()
    if channel and channel not in channels:
        raise unknown_channel(channel, channels, "channel")
    check_printable(reason, "reason", "reason", MAX_REASON_LENGTH)
    return OptOut(normalize_address(given["address"]), channel, reason or DEFAULT_REASON)


def serialize_opt_out(row: Mapping[str, Any]) -> Row:
    """An opt-out as API fields; the channel is null for all channels."""
    return {
        "address": row["address"],
        "channel": row["channel"] or None,
        "reason": row["reason"],
        "at": iso(row["at"]),
        "evidence": row.get("evidence"),
    }


def _step(outs: Sequence[OptOut], tenant: str) -> Step:
    rows = orjson.dumps([out._asdict() for out in outs]).decode()
    return Step("suppression_add", {"rows": rows, "tenant": tenant})


def opt_out_steps(moves: Sequence[tuple[Task, Transition]]) -> list[Step]:
    """Suppress the recipients who opted out with their provider, with its answer as evidence."""
    found = [{"task": move.id, "detail": move.detail} for _, move in moves if move.opted_out]
    return [Step("suppression_reported", {"rows": orjson.dumps(found).decode()})] if found else []
