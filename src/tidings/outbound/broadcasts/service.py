"""List, show, trigger, pause, resume, cancel and retry broadcasts.

Every action is one conditional statement on the broadcast's row, so repeated or concurrent calls change it
once. The feeder then moves the tasks in bounded transactions.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, invalid_cursor, page_size
from ...kernel.clock import Clock
from ...model.broadcast import BroadcastState, BroadcastTally, load_broadcast_options
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import iso
from ...store.port import Row, Step, Store
from ..message_validation import check_line
from . import recipient_results
from .progress import combined_report, read_tallies
from .request_parser import BROADCAST_FIELDS, parse_rate
from .serializer import broadcast_event, serialize_broadcast

MAX_COUNTED_AT_ONCE = 100  # broadcasts per `counts` call
MAX_REPORTED = 1000  # broadcasts of one group in a report
MAX_REASON_LENGTH = 200
CHANGES: Mapping[str, Field] = {"per_second": BROADCAST_FIELDS["per_second"]}
_LAST = "\x7f"  # sorts after every id


class BroadcastService:
    """Operations on existing broadcasts; `BroadcastCreator` creates them."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    # -- reading

    async def show(self, id_: str, *, tenant: str = "default") -> Row:
        """One broadcast with its tally, and its parts if it goes by time zone."""
        row = await self._find(id_, tenant)
        shown = serialize_broadcast(row, await self._tally(row))
        if load_broadcast_options(row["options"]).by_zone:
            parts = await self._store.read("broadcast_parts", group_id=row["group_id"])
            shown["parts"] = [
                {**{name: part[name] for name in ("timezone", "total", "taken")}, "starts_at": iso(part["starts_at"])}
                for part in parts
            ]
        return shown

    async def page(
        self,
        *,
        tenant: str = "default",
        state: str | None = None,
        xref: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> Page:
        """Broadcasts, newest first, each with its tally."""
        params = {
            "tenant": tenant,
            "before": _place(after),
            "state": recipient_results.parse_state(state, list(BroadcastState)),
            "limit": page_size(limit),
        }
        if xref is None:
            rows = await self._store.read("broadcast_page", **params)
        else:
            rows = await self._store.read("broadcast_of_xref", **params, xref=xref)
        found = await read_tallies(self._store, [row["group_id"] for row in rows])
        items = [serialize_broadcast(row, found[row["group_id"]]) for row in rows if row["group_id"] in found]
        return Page(items, rows[-1]["id"] if len(rows) == limit else None)

    async def counts(self, ids: Sequence[str], *, tenant: str = "default") -> list[Row]:
        """State and tally of several broadcasts at one instant; unknown ids are left out."""
        if not 0 < len(ids) <= MAX_COUNTED_AT_ONCE:
            raise Invalid(
                f"{len(ids)} ids are given", field="ids", remedy=f"give 1 to {MAX_COUNTED_AT_ONCE}, separated by commas"
            )
        rows: list[Row] = []
        for id_ in dict.fromkeys(ids):
            rows += await self._store.read("broadcast_find", id=id_, tenant=tenant)
        found = await read_tallies(self._store, [row["group_id"] for row in rows])
        return [
            {
                **{name: row[name] for name in ("id", "state", "xref")},
                "total": found[row["group_id"]].total,
                "counts": found[row["group_id"]].counts,
            }
            for row in rows
            if row["group_id"] in found
        ]

    async def report(self, xref: str, *, tenant: str = "default") -> Row:
        """The newest thousand broadcasts of one xref, added up."""
        params = {"tenant": tenant, "before": _LAST, "state": None, "limit": MAX_REPORTED}
        rows = await self._store.read("broadcast_of_xref", **params, xref=xref)
        if not rows:
            raise NotFound(f"no broadcast has the xref {xref[:60]!r}", field="xref", remedy="check its spelling")
        found = await read_tallies(self._store, [row["group_id"] for row in rows])
        return {"xref": xref, **combined_report(rows, found), "more": len(rows) == MAX_REPORTED}

    async def reports(self, *, tenant: str = "default", limit: int = 20, after: str | None = None) -> Page:
        """A report for each xref, by name."""
        size = page_size(limit)
        groups = await self._store.read("broadcast_xrefs", tenant=tenant, after=after or "", limit=size)
        items = [await self.report(group["xref"], tenant=tenant) for group in groups]
        return Page(items, groups[-1]["xref"] if len(groups) == size else None)

    async def recipients(
        self, id_: str, *, tenant: str = "default", state: str | None = None, limit: int = 50, after: str | None = None
    ) -> Page:
        """The recipients in snapshot order, each with its result."""
        row = await self._find(id_, tenant)
        return await recipient_results.results_page(self._store, row, state=state, limit=limit, after=after)

    async def recipient(self, id_: str, *, tenant: str = "default") -> Row:
        """One recipient by its message id, with its result and its broadcast."""
        return await recipient_results.find_recipient(self._store, id_, tenant)

    async def export(self, id_: str, *, tenant: str = "default", state: str | None = None) -> AsyncIterator[list[Row]]:
        """All recipients, page by page, without an open transaction in between."""
        row = await self._find(id_, tenant)
        await self.recipients(id_, tenant=tenant, state=state, limit=1)  # raises early for an invalid state
        return recipient_results.export_results(self._store, row, state=state)

    # -- actions

    async def trigger(self, id_: str, *, tenant: str = "default") -> Row:
        """Start a broadcast that waits for its time or for this call; no effect if it has started."""
        row = await self._find(id_, tenant)
        if row["state"] == BroadcastState.READY:
            steps = [
                Step("broadcast_start", {"group_id": row["group_id"]}),
                Step("broadcast_parts_now", {"group_id": row["group_id"]}, only_if=0),
                broadcast_event(row, await self._tally(row), BroadcastState.RUNNING, None),
            ]
            await self._move(steps)
            row = await self._find(id_, tenant)
        if row["started_at"] is None or row["state"] == BroadcastState.CANCELLED:
            raise _refused("triggered", row)
        return await self.show(id_, tenant=tenant)

    async def pause(self, id_: str, *, reason: str = "paused by hand", tenant: str = "default") -> Row:
        """Pause; attempts in flight finish normally."""
        check_line(reason, "reason", MAX_REASON_LENGTH)
        row = await self._find(id_, tenant)
        params = {"group_id": row["group_id"], "reason": reason, "passes": False}
        steps = [
            Step("broadcast_pause", params),
            broadcast_event(row, await self._tally(row), BroadcastState.PAUSED, reason),
        ]
        if not await self._move(steps) and (await self._find(id_, tenant))["state"] != BroadcastState.PAUSED:
            raise _refused("paused", await self._find(id_, tenant))
        return await self.show(id_, tenant=tenant)

    async def resume(self, id_: str, *, tenant: str = "default") -> Row:
        """Resume after a pause, a canary or the error limit; errors are counted anew."""
        for _ in range(3):  # it may change between the read and the write
            row = await self._find(id_, tenant)
            tally = await self._tally(row)
            if row["state"] != BroadcastState.PAUSED and not (row["state"] == BroadcastState.FAILED and tally.waiting):
                break
            params = _reset_errors(row, tally)
            if await self._move(
                [Step("broadcast_resume", params), broadcast_event(row, tally, BroadcastState.RUNNING, None)]
            ):
                break
        else:
            raise Conflict("the broadcast keeps changing", remedy="try again in a second")
        if (await self._find(id_, tenant))["state"] != BroadcastState.RUNNING:
            raise _refused("resumed", row)
        return await self.show(id_, tenant=tenant)

    async def cancel(self, id_: str, *, reason: str = "cancelled by hand", tenant: str = "default") -> Row:
        """Cancel waiting recipients, and request cancellation of those in flight."""
        check_line(reason, "reason", MAX_REASON_LENGTH)
        for _ in range(3):
            row = await self._find(id_, tenant)
            tally = await self._tally(row)
            is_stopped = row["state"] == BroadcastState.FAILED and tally.waiting
            if row["state"] not in _OPEN and not is_stopped:
                break
            params = {"group_id": row["group_id"], "expected": row["state"], "reason": reason}
            steps = [Step("broadcast_cancel", params), broadcast_event(row, tally, BroadcastState.CANCELLED, reason)]
            if await self._move(steps):
                break
        if (await self._find(id_, tenant))["state"] != BroadcastState.CANCELLED:
            raise _refused("cancelled", row)
        return await self.show(id_, tenant=tenant)

    async def retry(self, id_: str, *, unknown: bool = False, tenant: str = "default") -> Row:
        """Retry failed recipients with fresh attempts; uncertain ones too, if `unknown`."""
        row = await self._find(id_, tenant)
        tally = await self._tally(row)
        count = tally.errors if unknown else tally.failed
        if row["state"] not in _RETRIABLE or (row["state"] == BroadcastState.FAILED and tally.waiting):
            raise _refused("retried", row)
        if not count:
            more = "; uncertain ones are retried only with unknown" if tally.unknown else ""
            raise Conflict("none of its recipients has failed", remedy=f"there is nothing to retry{more}")
        first = (await self._store.read("group_first", group_id=row["group_id"]))[0]["first"]
        params = {"place": first - 1, "unknown": unknown, **_reset_errors(row, tally)}
        steps = [Step("broadcast_retry", params), broadcast_event(row, tally, BroadcastState.RUNNING, None)]
        if not await self._move(steps):
            raise _refused("retried", await self._find(id_, tenant))
        return {**await self.show(id_, tenant=tenant), "retrying": count}

    async def change(self, id_: str, body: object, *, tenant: str = "default") -> Row:
        """Change the rate for the next recipients; null removes the limit."""
        given = check_fields(body, CHANGES)
        if "per_second" not in given:
            raise Invalid("no change is given", field="per_second", remedy="give a rate, or null for none")
        row = await self._find(id_, tenant)
        if row["state"] not in _OPEN:
            raise _refused("changed", row)
        options = parse_rate(given, load_broadcast_options(row["options"]))
        params = {"group_id": row["group_id"], "options": options.to_json(), "version": row["version"]}
        if not await self._move([Step("broadcast_options", params)]):
            raise Conflict("another call changed the broadcast", remedy="read it again, then repeat the call")
        return await self.show(id_, tenant=tenant)

    # -- helpers

    async def _move(self, steps: Sequence[Step]) -> bool:
        """Write the steps and notify the feeder; returns whether this call made the change."""
        done = await self._store.write(steps)
        await self._store.hint()
        return bool(done[0])

    async def _find(self, id_: str, tenant: str) -> Row:
        rows = await self._store.read("broadcast_find", id=id_, tenant=tenant)
        if not rows:
            raise _missing(id_)
        return rows[0]

    async def _tally(self, row: Row) -> BroadcastTally:
        found = await read_tallies(self._store, [row["group_id"]])
        if not found:
            raise _missing(row["id"])  # rolled back between the two reads
        return found[row["group_id"]]


_OPEN = (BroadcastState.LOADING, BroadcastState.READY, BroadcastState.RUNNING, BroadcastState.PAUSED)
_RETRIABLE = (BroadcastState.RUNNING, BroadcastState.COMPLETED, BroadcastState.FAILED)


def _reset_errors(row: Row, tally: BroadcastTally) -> dict[str, Any]:
    """Parameters that reset the error limit, conditional on the state and version that were read."""
    options = replace(load_broadcast_options(row["options"]), since=(tally.sent, tally.errors))
    return {
        "group_id": row["group_id"],
        "expected": row["state"],
        "version": row["version"],
        "options": options.to_json(),
    }


def _missing(id_: str) -> NotFound:
    return NotFound(f"there is no broadcast {id_[:60]}", remedy="see: tidings broadcasts list")


def _refused(what: str, row: Row) -> Conflict:
    state = row["state"]
    reason = f" ({row['reason']})" if row["reason"] else ""
    return Conflict(
        f"the broadcast is {state}{reason} and cannot be {what}", remedy=f"see: tidings broadcasts show {row['id']}"
    )


def _place(after: str | None) -> str:
    if after is not None and (len(after) > 64 or not after.isprintable()):
        raise invalid_cursor(after)
    return _LAST if after is None else after
