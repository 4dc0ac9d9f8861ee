"""Filters of the schedule list and of actions on many schedules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...inputs.fields import Field, check_fields
from ...inputs.pagination import Page, invalid_cursor, page_size
from ...inputs.timezones import parse_timezone
from ...model.errors import Invalid
from ...store.port import Store

STATES = ("active", "paused", "ended")
WINDOW = 20_000  # maximum schedules scanned for one page
FILTER_FIELDS: Mapping[str, Field] = {
    "state": Field("string", f"{', '.join(STATES)}", "active"),
    "channel": Field("string", "channel of the message or broadcast", "phone"),
    "to": Field("string", "recipient of the message", "ada"),
    "timezone": Field("string", "time zone of the rule", "Europe/Berlin"),
    "name": Field("string", "part of the name", "round"),
    "tag": Field("string", "one of its tags", "reminders"),
}
SELECTION_FIELDS: Mapping[str, Field] = {
    **FILTER_FIELDS,
    "all": Field("boolean", "select every schedule, instead of a filter", False),
    "dry_run": Field("boolean", "only count the schedules", False),
}
_NEWEST = "~"  # sorts after every id


def parse_filter(given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the values of a filter; an empty one means no filter."""
    wanted = {name: given.get(name) or None for name in FILTER_FIELDS}
    state = wanted["state"]
    if state is not None and state not in STATES:
        raise Invalid(f"there is no state {state[:40]!r}", field="state", remedy=f"use {', '.join(STATES)}")
    if wanted["timezone"] is not None:
        wanted["timezone"] = parse_timezone(wanted["timezone"]).key
    return wanted


def parse_selection(body: object) -> tuple[dict[str, Any], bool]:
    """Parse the schedules of an action, and whether it is a dry run; a filter or `all` is required."""
    given = check_fields(body, SELECTION_FIELDS)
    wanted = parse_filter(given)
    if bool(given.get("all")) == any(value is not None for value in wanted.values()):
        problem = "a filter and `all` are both given" if given.get("all") else "no filter is given"
        raise Invalid(problem, field="all", remedy=f'give one of {", ".join(FILTER_FIELDS)}, or "all": true')
    return wanted, bool(given.get("dry_run"))


async def find_schedules(
    store: Store, wanted: Mapping[str, Any], *, limit: int, after: str | None, tenant: str
) -> Page:
    """One page, newest first. A filter scans a bounded number of rows, so a page may be short before the end."""
    size = page_size(limit)
    window = WINDOW if any(value is not None for value in wanted.values()) else size
    where = {"tenant": tenant, "before": _before(after), "window": window}
    filters = {"title" if name == "name" else name: value for name, value in wanted.items()}
    rows = await store.read("schedule_page", **where, **filters, limit=size)
    if len(rows) == size:
        return Page(rows, rows[-1]["id"])
    floor = (await store.read("schedule_floor", **where))[0]
    return Page(rows, floor["floor"] if floor["seen"] >= window else None)


def _before(after: str | None) -> str:
    if after is None:
        return _NEWEST
    if not after.isprintable() or not after.isascii() or len(after) > 64:
        raise invalid_cursor(after)
    return after
