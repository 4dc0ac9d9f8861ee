"""Affinity as a source: organizations, persons, opportunities, lists, list entries, notes, activities and files.

Its API has two versions, which share keys and quotas, and neither has everything: version 1 returns relations,
version 2 returns custom fields and activities. Records are those of version 1 with the custom fields of version 2.

A list of persons has their current organizations. All organizations of a person, and the persons of an
organization, are only in the answer for that one record: `relations = "all"` makes one call per record. Calls are
limited per minute (a short wait) and per month (QUOTA, which pauses the job until the month ends). The content of a
file is downloaded when it is written to the target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, BinaryIO, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from ...wire.ssrf_guard import SsrfRules
from .affinity_records import (
    ACTIVITIES,
    MONTH,
    activity,
    attributes_of,
    explain,
    field_attribute,
    with_columns,
    with_field_values,
    with_note_text,
)
from .api_client import ApiClient
from .options import (
    ANY_HOST,
    Connector,
    ConnectorReach,
    base_url,
    boolean,
    count,
    duration,
    header_value,
    one_of,
    rate,
    text_list,
)
from .port import Attribute, ConnectorError, ErrorKind, Quota, RecordPage, SystemLimits, invalid
from .record_validation import split_invalid_records

URL = "https://api.affinity.co"
API_VERSION: Final = "2026-07-15"  # of version 2; the first that says which fields are hidden
PER_SECOND = 15.0  # 900 a minute
ENTRIES: Final = "list_entries"
FILES: Final = "files"
TYPES: Mapping[str, str] = {
    "organizations": "companies",
    "persons": "persons",
    "opportunities": "opportunities",
    "lists": "lists",
    ENTRIES: "list-entries",
    "notes": "notes",
    "activities": "activities",
    FILES: "entity-files",
}
"""Type names, which are those of version 1, and the names in version 2."""

FIELD_TYPES = ("enriched", "global", "list", "relationship-intelligence")
_ALSO = {"companies": "organizations"}
_ENTITIES = ("persons", "organizations")
_FILE_PARENTS = {"persons": "person_id", "organizations": "organization_id", "opportunities": "opportunity_id"}
_ROWS = {"activities": "reminders", FILES: "entity_files"}  # where version 1 has another name for the records
_DEALS = 8  # the type of lists that have opportunities
_PAGE, _PAGE_2 = 500, 100  # records of a page, by version


@dataclass(frozen=True, slots=True)
class AffinitySettings:
    """`field_types` are the custom fields to read; `relations` says how much of the relations (see above)."""

    key: str
    url: str = URL
    custom_fields: bool = True
    relations: str = "current"
    field_types: Sequence[str] = ("global", "list")
    page_size: int | None = None
    reads_per_second: float = PER_SECOND
    per_month: int | None = None
    deadline: timedelta = timedelta(seconds=60)
    rules: SsrfRules = ANY_HOST


class AffinitySource:
    """Reads pages in Affinity's own order."""

    kind = "affinity"

    def __init__(self, settings: AffinitySettings, now: Callable[[], int]) -> None:
        self._settings = settings
        self._alone = settings.relations == "all"
        self.limits = SystemLimits(
            reads_per_second=settings.reads_per_second, per_month=settings.per_month, concurrency=4
        )
        self._calls = ApiClient(
            settings.url,
            headers={"authorization": f"Bearer {settings.key}", "x-affinity-api-version": API_VERSION},
            deadline=settings.deadline,
            rules=settings.rules,
            hide=[settings.key],
            now=now,
            explain=explain,
        )

    async def attributes(self, type_: str) -> Sequence[Attribute]:
        """Return the built-in fields, and the custom ones if they are read."""
        name, part = _named(type_)
        found = attributes_of(name, part, alone=self._alone)
        has_columns = name in (ENTRIES, "opportunities")
        if not self._settings.custom_fields or not (has_columns or name in _ENTITIES):
            return found
        kinds = None if name == ENTRIES else (_DEALS,)
        lists = [part] if part else await self._lists(kinds) if has_columns else [None]
        seen = {one.name for one in found}
        for list_ in lists:
            path: str | None = f"/v2/{TYPES[name] if list_ is None else f'lists/{list_}'}/fields?limit={_PAGE_2}"
            while path is not None:
                body = (await self._calls.read(path)).body
                rows = [one for one in _rows(body, "data") if one.get("type") in self._field_types(name)]
                found += [field_attribute(one) for one in rows if one.get("id") not in seen]
                seen |= {str(one.get("id")) for one in rows}
                path = self._next(body)
        return found

    async def count(self, type_: str) -> int | None:
        return None

    def calls_to_read(self, type_: str, records: int) -> int:
        name, _ = _named(type_)
        total = max(1, -(-records // self._size(name)))
        total += records if (name in _ENTITIES and self._alone) or name == FILES else 0
        if self._settings.custom_fields:
            total += -(-records // _PAGE_2) if name in _ENTITIES else records if name == "opportunities" else 0
        return total

    async def quota(self) -> Quota:
        """Return the monthly quota of both versions; this call is not counted."""
        body = (await self._calls.read("/rate-limit")).body
        found = body.get("rate") if isinstance(body, dict) else None
        month = found.get("org_monthly") if isinstance(found, dict) else None
        month = month if isinstance(month, dict) else {}
        limit, left, reset = (_whole(month.get(name)) for name in ("limit", "remaining", "reset"))
        return Quota(limit, left, None if reset is None else timedelta(seconds=min(reset, MONTH)))

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        name, part = _named(type_)
        if name in (ENTRIES, "activities"):
            return await self._parts(type_, name, part, cursor)
        return await self._first(type_, f"/{TYPES[name] if name == FILES else name}", cursor)

    def has_file(self, type_: str) -> bool:
        return _named(type_)[0] == FILES

    async def download(self, type_: str, id_: str, file: BinaryIO, limit: int) -> None:
        """Download a file; Affinity redirects to its storage."""
        await self._calls.download(f"/{TYPES[FILES]}/download/{quote(id_, safe='')}", file, limit)

    async def close(self) -> None:
        await self._calls.close()

    def _field_types(self, name: str) -> Sequence[str]:
        """Return the field types of an endpoint: only entries have columns of a list."""
        return [one for one in self._settings.field_types if one != "list" or name in (ENTRIES, "opportunities")]

    def _size(self, name: str) -> int:
        by_one = self._alone and name in _ENTITIES
        small = by_one or (self._settings.custom_fields and name in (ENTRIES, "opportunities"))
        most = _PAGE_2 if small else _PAGE
        return min(self._settings.page_size or most, most)

    async def _first(self, type_: str, path: str, cursor: str | None) -> RecordPage:
        """Read a page of version 1. Lists come all at once."""
        name, part = _named(type_)
        query: dict[str, object] = {"page_size": self._size(name)}
        query |= {"with_current_organizations": "true"} if name == "persons" else {}
        query |= {"page_token": cursor} if cursor else {}
        reply = await self._calls.read(path if name == "lists" else f"{path}?{urlencode(query)}")
        body, calls, notes = reply.body, 1, set[str]()
        rows = list(body if isinstance(body, list) else _rows(body, _ROWS.get(name, name)))
        token = body.get("next_page_token") if isinstance(body, dict) else None
        is_one = not (self._settings.custom_fields or self._alone)
        raw = reply.headers.body_prefix if is_one else b"\x00"  # more responses follow: check every text
        if name == "persons" and rows and not any("current_organization_ids" in one for one in rows):
            reason = "the persons have no current_organization_ids: Affinity ignored with_current_organizations"
            raise ConnectorError(ErrorKind.PERMANENT, f'{reason}. Set relations = "all"')
        if name == FILES and part is not None:
            rows = [one for one in rows if one.get(_FILE_PARENTS[part]) is not None]
        if name == "notes":
            rows, more = await self._with_subjects(rows)
            rows, calls = [with_note_text(one) for one in rows], calls + more
        if name in _ENTITIES and self._alone:
            rows, calls = await self._each(rows, partial(self._one, name)), calls + len(rows)
        if name == "opportunities" and self._settings.custom_fields:
            rows, calls = await self._each(rows, partial(self._columns, notes)), calls + len(rows)
        if name in _ENTITIES and self._settings.custom_fields:
            calls += await self._add_fields(name, rows, notes)
        return _page(type_, rows, token or None, raw, calls, notes)

    async def _each(self, rows: Sequence[Any], work: Callable[[Any], Awaitable[Any]]) -> list[Any]:
        """Return the results for all rows, a few at a time."""
        size = self.limits.concurrency
        parts = [rows[start : start + size] for start in range(0, len(rows), size)]
        return [found for part in parts for found in await asyncio.gather(*map(work, part))]

    async def _columns(self, notes: set[str], row: Mapping[str, Any]) -> dict[str, Any]:
        """Return an opportunity with the columns of its list, which only its entry has."""
        entry = next(iter(row.get("list_entries") or ()), None)
        if entry is None:
            return dict(row)  # its list is hidden from this key
        path = f"/v2/lists/{entry.get('list_id')}/list-entries/{entry.get('id')}"
        body = (await self._calls.read(f"{path}?{urlencode(self._asked('opportunities'))}")).body
        held = body.get("entity") if isinstance(body, dict) else None
        return with_field_values(dict(row), held.get("fields") if isinstance(held, dict) else None, notes)

    async def _one(self, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Return a record as the answer for it alone has it: with all its relations."""
        query = "?with_current_organizations=true" if name == "persons" else ""
        found = (await self._calls.read(f"/{name}/{quote(str(row.get('id')), safe='')}{query}")).body
        if not isinstance(found, dict):
            raise ConnectorError(ErrorKind.TEMPORARY, "the response is not a record")
        return {name: value for name, value in found.items() if name != "list_entries"}

    async def _with_subjects(self, rows: Sequence[Any]) -> tuple[list[dict[str, Any]], int]:
        """Return notes, replies with the subjects of the note they answer, and the calls that took."""
        known, before = {one.get("id"): one for one in rows}, len(rows)
        found = []
        for one in rows:
            parent = one.get("parent_id")
            if parent is not None and parent not in known:
                known[parent] = (await self._calls.read(f"/notes/{quote(str(parent), safe='')}")).body
            names = ("person_ids", "organization_ids", "opportunity_ids")
            own = {} if parent is None else {name: known[parent].get(name) for name in names}
            found.append({**one, **own})
        return found, len(known) - before

    async def _add_fields(self, name: str, rows: list[dict[str, Any]], notes: set[str]) -> int:
        """Add the custom fields of version 2 to records of version 1; return the calls that took."""
        starts = range(0, len(rows), _PAGE_2)
        for start in starts:
            part = {one.get("id"): one for one in rows[start : start + _PAGE_2]}
            query = [("limit", _PAGE_2), *(("ids", one) for one in part), *self._asked(name)]
            for found in _rows((await self._calls.read(f"/v2/{TYPES[name]}?{urlencode(query)}")).body, "data"):
                if found.get("id") in part:
                    with_field_values(part[found["id"]], found.get("fields"), notes)
        return len(starts)

    async def _second(self, type_: str, path: str) -> RecordPage:
        """Read a page of version 2; its cursor is the path of the next page."""
        reply, is_entry, notes = await self._calls.read(path), _named(type_)[0] == ENTRIES, set[str]()
        rows = [with_columns(one, notes) if is_entry else one for one in _rows(reply.body, "data")]
        return _page(type_, rows, self._next(reply.body), reply.headers.body_prefix, 1, notes)

    async def _parts(self, type_: str, name: str, only: str | None, cursor: str | None) -> RecordPage:
        """Read entries list by list, activities kind by kind. The cursor is "<part> <cursor within it>"."""
        current, _, inner = (cursor or "").partition(" ")
        current = current or only or await self._part_after(name, None) or ""
        if not current:
            return RecordPage([], None)
        if name == "activities":
            found = await self._activities(type_, current, inner)
        elif not self._settings.custom_fields:
            found = await self._first(type_, f"/lists/{quote(current, safe='')}/list-entries", inner)
        else:
            query = urlencode([("limit", self._size(ENTRIES)), *self._asked(ENTRIES)])
            found = await self._second(type_, inner or f"/v2/lists/{quote(current, safe='')}/list-entries?{query}")
        if found.cursor is not None:
            return found._replace(cursor=f"{current} {found.cursor}")
        after = None if only else await self._part_after(name, current)
        return found._replace(cursor=None if after is None else f"{after} ")

    async def _part_after(self, name: str, current: str | None) -> str | None:
        if name == "activities":
            return next(iter(ACTIVITIES[0 if current is None else ACTIVITIES.index(current) + 1 :]), None)
        return next((one for one in await self._lists() if current is None or int(one) > int(current)), None)

    async def _activities(self, type_: str, kind: str, inner: str) -> RecordPage:
        """Read activities of one kind: reminders from version 1, the others from version 2."""
        if kind == "reminders":
            found = await self._first(type_, "/reminders", inner)
        else:
            found = await self._second(type_, inner or f"/v2/{kind}?limit={min(self._size(ENTRIES), _PAGE_2)}")
        notes = set(found.notes)
        records = [
            one._replace(id=f"{kind}/{one.id}", fields=activity(kind, one.fields, notes)) for one in found.records
        ]
        return found._replace(records=records, notes=sorted(notes))

    async def _lists(self, kinds: Container[object] | None = None) -> list[str]:
        """Return the ids of all lists, or of lists of these types, in order."""
        found = (await self.page("lists", None)).records
        return [str(id_) for id_ in sorted(int(one.id) for one in found if not kinds or one.fields["type"] in kinds)]

    def _asked(self, name: str) -> list[tuple[str, object]]:
        return [("fieldTypes", one) for one in self._field_types(name)]

    def _next(self, body: Any) -> str | None:
        """Return the path of the next page; the key is only sent to the configured address."""
        paging = body.get("pagination") if isinstance(body, dict) else None
        url = paging.get("nextUrl") if isinstance(paging, dict) else None
        if url is None:
            return None
        if not isinstance(url, str) or not url.startswith(f"{self._settings.url}/v2/"):
            raise ConnectorError(ErrorKind.PERMANENT, "the next page is at another address")
        parts = urlsplit(url)
        if not parse_qs(parts.query):
            raise ConnectorError(ErrorKind.PERMANENT, "the next page has no cursor")
        return url.removeprefix(self._settings.url)


def _named(type_: str) -> tuple[str, str | None]:
    """Split a type from its part: "list_entries", "list_entries/450", "activities/meetings", "files/persons"."""
    name, _, part = type_.partition("/")
    name = _ALSO.get(name, name)
    known = {ENTRIES: part.isdigit(), "activities": part in ACTIVITIES, FILES: part in _FILE_PARENTS}
    if name not in TYPES or (part and not known.get(name, False)):
        kinds = f"activities/ and one of {', '.join(ACTIVITIES)}, files/ and one of {', '.join(_FILE_PARENTS)}"
        raise invalid(f"unknown type {type_!r} of Affinity; known: {', '.join(TYPES)}, {kinds}", field="type")
    return name, part or None


def _rows(body: Any, name: str) -> Sequence[Any]:
    """Return the records of a response; null means none."""
    if not isinstance(body, dict) or name not in body:
        raise ConnectorError(ErrorKind.TEMPORARY, f"the response has no {name!r}")
    found = body[name]
    return found if isinstance(found, list) else []


def _page(type_: str, rows: Sequence[Any], cursor: str | None, raw: bytes, calls: int, notes: set[str]) -> RecordPage:
    ids = [one.get("id") if isinstance(one, dict) else None for one in rows]
    records, unreadable = split_invalid_records(type_, rows, ids, raw)
    return RecordPage(records, cursor, unreadable, calls, sorted(notes))


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _field_types(value: object) -> Sequence[str]:
    """Types of custom fields."""
    found = text_list(value)
    if not {*found} <= {*FIELD_TYPES}:
        raise ValueError(f"must be a list of {', '.join(FIELD_TYPES)}")
    return found


CONNECTOR = Connector(
    settings=AffinitySettings,
    options={
        "key": header_value,
        "url": base_url,
        "custom_fields": boolean,
        "relations": one_of("current", "all"),
        "field_types": _field_types,
        "page_size": count(1, 500),
        "reads_per_second": rate,
        "per_month": count(1, 1_000_000_000),
        "deadline": duration,
    },
    source=AffinitySource,
    secrets=frozenset({"key"}),
    reach=ConnectorReach.NETWORK,
)
