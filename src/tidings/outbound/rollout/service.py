"""Gradual rollout of a channel by mode and percentage of recipients.

    live      messages are sent; with a share below 100 only to a stable subset of recipients
    observe   nothing is sent: messages end as skipped and are counted
    shadow    nothing is sent; what would have been is recorded and compared with another sender's report

The mode is stored on the channel's row, so every process applies it to its next message. Each change is
recorded and can be reverted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from functools import partial
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import orjson

from ...inputs.fields import Field
from ...inputs.natural_times import parse_when
from ...inputs.pagination import page_size
from ...model import durations
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso, micros
from ...store.port import Row, Step, Store
from ..contacts import uploads
from ..contacts.contact_fields import check_printable
from ..events import event_types
from ..imports.timestamps import parse_timestamp
from ..message_serializer import error_fields
from ..message_validation import MAX_RECIPIENT_LENGTH
from .shadow import DIFFERENCE_KINDS, MAX_TIME_GAP, ShadowRecord, compare_records, content_digest

ROLLOUT_MODES = ("live", "observe", "shadow")
MAX_REASON_LENGTH = 200
PAGE = 1000
PAST = 20  # earlier changes shown
TOLERANCE = timedelta(minutes=1)
MAX_REPORTED_ROWS = 100  # invalid rows listed in the result
_MAX_REF_LENGTH = 1000

ROLLOUT_FIELDS: Mapping[str, Field] = {
    "mode": Field("string", "live, observe or shadow", "live"),
    "share": Field("integer", "percentage of recipients, 0 to 100", 10),
    "reason": Field("string", "reason for the change, stored with it", "second week"),
}


class ShadowComparison(NamedTuple):
    """The result of a comparison: counts, and the first differences."""

    counts: dict[str, int]
    differences: list[dict[str, Any]]
    more: bool


class RolloutService:
    """Rollout operations of the API, CLI and dashboard."""

    def __init__(self, store: Store, *, own: frozenset[str] = frozenset({event_types.EVENTS_CHANNEL})) -> None:
        self._store = store
        self.own = own  # internal queues

    async def all(self) -> list[Row]:
        """All channels with their mode and share."""
        rows = await self._store.read("rollout_list")
        return [_described(row) for row in rows if row["name"] not in self.own]

    async def show(self, name: str) -> Row:
        """One channel with its recent changes."""
        row = await self._find(name)
        past = await self._store.read("rollout_past", channel=name, limit=PAST)
        return {**_described(row), "past": [{**entry, "at": iso(entry["at"])} for entry in past]}

    async def set(
        self, name: str, *, mode: str | None = None, share: int | None = None, reason: str | None = None
    ) -> Row:
        """Change mode or share; omitted ones stay."""
        row = await self._find(name)
        if mode is None and share is None:
            raise Invalid("no change is given", field="mode", remedy="give a mode, a share, or both")
        if mode is not None and mode not in ROLLOUT_MODES:
            raise Invalid(f"there is no mode {mode[:60]!r}", field="mode", remedy=f"use {', '.join(ROLLOUT_MODES)}")
        if share is not None and not 0 <= share <= 100:
            raise Invalid(f"share is {share}", field="share", remedy="use 0 to 100 percent")
        check_printable(reason or "", "reason", "reason", MAX_REASON_LENGTH)
        switch = {"name": name, "mode": mode or row["mode"], "share": row["share"] if share is None else share}
        await self._store.write(
            [Step("rollout_note", {**switch, "reason": reason}), Step("rollout_set", switch, only_if=0)]
        )
        return await self.show(name)

    async def back(self, name: str) -> Row:
        """Revert the last change; raises Conflict without one."""
        await self._find(name)
        past = await self._store.read("rollout_past", channel=name, limit=1)
        if not past:
            raise Conflict(f"the rollout of {name!r} was never changed", remedy="see: tidings rollout show")
        last = past[0]
        reason = f"reverted from {last['mode']}, {last['share']} %"
        return await self.set(name, mode=last["mode_before"], share=last["share_before"], reason=reason)

    # -- the other sender's report

    async def report(self, name: str, rows: AsyncIterator[uploads.NumberedRow], *, timezone: ZoneInfo) -> Row:
        """Record what another sender sent: `to`, `at`, and `text` (`subject`, `data`) or `digest`.

        Idempotent: a row is identified by its `ref`, or by its content.
        """
        await self._find(name)
        taken = known = refused = 0
        listed: list[Row] = []
        async for chunk in uploads.read_chunks(rows, PAGE):
            good, bad = uploads.parse_chunk(chunk, partial(_reported, timezone=timezone))
            step = {"channel": name, "rows": orjson.dumps([row for _, row in good]).decode()}
            new = len((await self._store.write([Step("shadow_theirs", step)]))[0]) if good else 0
            taken, known, refused = taken + new, known + len(good) - new, refused + len(bad)
            listed += [{"line": number, **error_fields(error)} for number, error in bad]
            del listed[MAX_REPORTED_ROWS:]
        return {"taken": taken, "known": known, "refused": refused, "bad": listed}

    async def compare(
        self, name: str, *, since: int, until: int, tolerance: timedelta = TOLERANCE, limit: int = 100
    ) -> ShadowComparison:
        """Compare both sides within a period: how many agree, and the differences."""
        await self._find(name)
        if until <= since:
            raise Invalid("until is not after since", field="until", remedy="give a later one")
        room = page_size(limit)
        counts: Counter[str] = Counter()
        shown: list[dict[str, Any]] = []
        async for recipient, ours, theirs in self._recipients(name, since - MAX_TIME_GAP, until + MAX_TIME_GAP):
            counts["ours"] += sum(since <= one.at < until for one in ours)
            counts["theirs"] += sum(since <= one.at < until for one in theirs)
            for difference in compare_records(ours, theirs, tolerance)[1]:
                if since <= difference.at < until:
                    counts[difference.kind] += 1
                    if len(shown) < room:
                        shown.append(difference.described(recipient))
        unlike = sum(counts[kind] for kind in DIFFERENCE_KINDS if kind != "only_theirs")
        figures = {"ours": counts["ours"], "theirs": counts["theirs"], "same": counts["ours"] - unlike}
        found = {kind: counts[kind] for kind in DIFFERENCE_KINDS}
        return ShadowComparison({**figures, **found}, shown, sum(found.values()) > len(shown))

    async def _recipients(
        self, name: str, since: int, until: int
    ) -> AsyncIterator[tuple[str, list[ShadowRecord], list[ShadowRecord]]]:
        """The records of both sides, one recipient at a time."""
        place: dict[str, Any] = {"recipient": "", "at": 0, "id": 0}
        recipient = None
        sides: dict[str, list[ShadowRecord]] = {"ours": [], "theirs": []}
        while True:
            page = await self._store.read("shadow_page", channel=name, since=since, until=until, **place, limit=PAGE)
            for row in page:
                if row["recipient"] != recipient:
                    if recipient is not None:
                        yield recipient, sides["ours"], sides["theirs"]
                    recipient, sides = row["recipient"], {"ours": [], "theirs": []}
                sides[row["side"]].append(ShadowRecord(row["at"], row["digest"], row["ref"]))
            if len(page) < PAGE:
                break
            place = {field: page[-1][field] for field in place}
        if recipient is not None:
            yield recipient, sides["ours"], sides["theirs"]

    async def _find(self, name: str) -> Row:
        rows = await self._store.read("rollout_list")
        for row in rows:
            if row["name"] == name and name not in self.own:
                return row
        known = ", ".join(row["name"] for row in rows if row["name"] not in self.own) or "none"
        raise NotFound(f"there is no channel {name[:60]!r}", field="name", remedy=f"known channels: {known}")


def _reported(said: Mapping[str, Any], timezone: ZoneInfo) -> Row:
    """Parse one row of a report; raises Invalid."""
    to = next((said[name] for name in ("to", "address", "recipient") if said.get(name)), None)
    if not isinstance(to, str) or len(to) > MAX_RECIPIENT_LENGTH or not to.isprintable():
        raise Invalid("the recipient is missing", field="to", remedy="give the column to, address or recipient")
    at = parse_timestamp(said.get("at"), timezone=timezone)
    given = said.get("digest") or None
    if given is None and not said.get("text") and not said.get("data"):
        raise Invalid("the content is missing", field="text", remedy="give text, or digest")
    digest = str(given) if given is not None else content_digest({**said, "data": _data(said.get("data"))})
    ref = str(said.get("ref") or f"{to}|{at}|{digest}")
    for name, value in (("digest", digest), ("ref", ref)):
        if not value.isprintable() or len(value) > _MAX_REF_LENGTH:
            raise Invalid(f"{name} is too long or has control characters", field=name, remedy="shorten it")
    return {"recipient": to, "digest": digest, "at": at, "ref": ref}


def _data(value: Any) -> Any:
    """A value, decoded if it is JSON text from a table."""
    if not isinstance(value, str) or not value:
        return value
    try:
        return orjson.loads(value)
    except orjson.JSONDecodeError:
        raise Invalid("data is not JSON", field="data", remedy='write {"name": "value"}') from None


def _described(row: Row) -> Row:
    return {"channel": row["name"], "mode": row["mode"], "share": row["share"], "changed_at": iso(row["changed_at"])}


def parse_period(since: str, until: str, *, now: int, timezone: ZoneInfo) -> tuple[int, int]:
    """Parse start and end: "now", a duration ago, or ISO 8601 with offset."""
    return _ago(since, "since", now, timezone), _ago(until, "until", now, timezone)


def parse_duration(text: str, *, field: str) -> timedelta:
    """Parse a duration, which may be zero."""
    try:
        return durations.parse(text)
    except ValueError as error:
        raise Invalid(f"{field}: {error}", field=field, remedy="write 30s, 5m or 2h") from None


def _ago(text: str, field: str, now: int, timezone: ZoneInfo) -> int:
    if text == "now":
        return now
    try:
        return now - micros(durations.parse(text))
    except ValueError:
        return parse_when(text, now=now, timezone=timezone, field=field)
