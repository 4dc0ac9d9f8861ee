"""Recipients of a broadcast with their state, attempts and provider answers; export.

Pages follow the snapshot's order, so an export holds no transaction open.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import orjson

from ...inputs.pagination import Page, invalid_cursor, page_size
from ...model.broadcast import TALLY_WORDS, BroadcastState
from ...model.errors import Invalid, NotFound
from ...model.time import iso
from ...store.port import Row, Store

RESULT_COLUMNS = (
    "address", "state", "attempts", "category", "detail", "sent_at", "changed_at", "next_attempt_at",
    "timezone",
    "contact", "variables", "id",
)  # fmt: skip
WINDOW = 20_000  # maximum recipients scanned for one page
EXPORT_PAGE = 500


async def results_page(store: Store, row: Row, *, state: str | None, limit: int, after: str | None) -> Page:
    """One page. A filter by state scans a bounded number of rows, so a page may be short before the end."""
    size, (part, task) = page_size(limit), _place(after)
    window = WINDOW if state is not None else size
    where = {"group_id": row["group_id"], "part": part, "after": task, "window": window}
    rows = await store.read(
        "broadcast_recipients",
        **where,
        state=parse_state(state, TALLY_WORDS),
        limit=size,
        untaken=_untaken(row["state"]),
    )
    items = [_entry(found) for found in rows]
    if len(rows) == size:
        return Page(items, _cursor(rows[-1]))
    floor = await store.read("broadcast_floor", **where)
    more = bool(floor) and floor[0]["seen"] >= window
    return Page(items, _cursor(floor[0]) if more else None)


async def export_results(store: Store, row: Row, *, state: str | None = None) -> AsyncIterator[list[Row]]:
    """All recipients, page by page."""
    after: str | None = None
    while True:
        found = await results_page(store, row, state=state, limit=EXPORT_PAGE, after=after)
        yield found.items
        if found.next is None:
            return
        after = found.next


async def find_recipient(store: Store, id_: str, tenant: str) -> Row:
    """One recipient by its message id; raises NotFound."""
    owner = await store.read("broadcast_of_recipient", id=id_, tenant=tenant)
    if not owner:
        raise NotFound(f"there is no recipient {id_[:60]}", remedy="see: tidings broadcasts list")
    place = {"group_id": owner[0]["group_id"], "part": owner[0]["part"], "after": owner[0]["task"] - 1}
    rows = await store.read(
        "broadcast_recipients", **place, window=1, state=None, limit=1, untaken=_untaken(owner[0]["state"])
    )
    return {**_entry(rows[0]), "broadcast": owner[0]["broadcast"]}


def result_cells(row: Row) -> Row:
    """A recipient as table cells; variables are one JSON cell, which an upload accepts again."""
    variables = row["variables"]
    return {**row, "variables": None if variables is None else orjson.dumps(variables).decode()}


def _untaken(state: str) -> str:
    """The state of recipients that were never fed: that of an ended broadcast, else waiting."""
    return state if state in (BroadcastState.CANCELLED, BroadcastState.EXPIRED) else "waiting"


def _entry(row: Row) -> dict[str, Any]:
    state = row["standing"]
    return {
        "id": row["id"],
        "address": row["recipient"],
        "state": state,
        "attempts": row["attempts"] or 0,
        "category": row["category"],
        "detail": row["detail"],
        "sent_at": iso(row["changed_at"]) if state == "sent" else None,
        "changed_at": iso(row["changed_at"]),
        "next_attempt_at": iso(row["due_at"]) if state == "waiting" else None,
        "timezone": row["timezone"],
        "contact": row["contact"],
        "variables": None if row["variables"] is None else orjson.loads(row["variables"]),
    }


def parse_state(state: str | None, known: Sequence[str]) -> str | None:
    """The state to filter by, in any case; raises Invalid if it is not among the known ones."""
    if state is not None and state.lower() not in known:
        raise Invalid(f"there is no state {state[:60]!r}", field="state", remedy=f"use one of: {', '.join(known)}")
    return None if state is None else state.lower()


def _cursor(row: Row) -> str:
    return f"{row['part']}.{row['task']}"


def _place(after: str | None) -> tuple[int, int]:
    if after is None:
        return -1, 0
    part, dot, task = after.partition(".")
    if not (dot and part.isascii() and task.isascii() and part.isdigit() and task.isdigit()) or len(after) > 24:
        raise invalid_cursor(after)
    return min(int(part), 32_767), min(int(task), (1 << 62))
