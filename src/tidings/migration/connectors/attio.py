"""Attio as a target: records of any object, list entries, notes, tasks, meetings and files.

    people, companies, ...   upserted by a unique attribute: repeating a write changes nothing
    lists/<list>             entries, upserted by their parent record
    notes, tasks, meetings   no key: created once, and compared by content when the outcome is unknown
    files                    the same: compared by parent, name and size, also before the upload

Attio stores a note's time, so a note with `created_at` is looked up before it is written; so is a meeting. Others
are always created: two notes with the same text may both be intended.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, BinaryIO, Final
from urllib.parse import quote, urlencode

from ...wire.ssrf_guard import SsrfRules
from ..mapping.content_hash import canonical_json
from .api_client import ApiClient
from .attio_items import ITEMS, MAX_FILE, AttioItem, canonical_file
from .attio_values import attribute_of, canonical_value, explain, first_text, linked, plain
from .options import ANY_HOST, Connector, ConnectorReach, base_url, duration, header_value, rate, text_table
from .port import (
    Attribute,
    ConnectorError,
    ErrorKind,
    Fields,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
    invalid,
    parse_attributes,
)

URL = "https://api.attio.com"
LISTS: Final = "lists/"
FILES: Final = "files"
KEYS: Mapping[str, str] = {"people": "email_addresses", "companies": "domains"}
REFERENCES: Mapping[str, str] = {
    "company": "companies",
    "associated_company": "companies",
    "associated_people": "people",
    "associated_deals": "deals",
    "team": "people",
}
"""The object that a built-in reference of Attio points to."""

ENTRY_FIELDS = parse_attributes("parent_object! parent_record_id:reference!")

_RECORDS = 500  # of a page


@dataclass(frozen=True, slots=True)
class AttioSettings:
    """`keys` names the unique attribute per object, `references` the target object per custom reference."""

    key: str
    url: str = URL
    keys: Mapping[str, str] = field(default_factory=dict)
    references: Mapping[str, str] = field(default_factory=dict)
    reads_per_second: float = 100.0
    writes_per_second: float = 25.0
    uploads_per_second: float = 0.9  # Attio allows one
    deadline: timedelta = timedelta(seconds=30)
    rules: SsrfRules = ANY_HOST


class AttioTarget:
    """Writes one record at a time: Attio has no bulk call."""

    kind = "attio"

    def __init__(self, settings: AttioSettings, now: Callable[[], int]) -> None:
        self._keys = {**KEYS, **settings.keys}
        self._references = {**REFERENCES, **settings.references}
        self.uploads_per_second = settings.uploads_per_second
        self.limits = SystemLimits(settings.reads_per_second, settings.writes_per_second, concurrency=8)
        self._known: dict[str, Mapping[str, Attribute]] = {}
        self._kinds: dict[str, Mapping[str, str]] = {}  # Attio's own types of the attributes
        self._members: Mapping[str, str] | None = None  # ids by address
        self._objects: Mapping[str, str] | None = None  # slugs by id
        self._calls = ApiClient(
            f"{settings.url}/v2",
            headers={"authorization": f"Bearer {settings.key}"},
            deadline=settings.deadline,
            rules=settings.rules,
            hide=[settings.key],
            now=now,
            explain=explain,
        )

    def strategy(self, type_: str) -> WriteStrategy:
        """Return UPSERT for records and entries; notes, tasks, meetings and files have no key."""
        return WriteStrategy.RECONCILE if type_ in ITEMS else WriteStrategy.UPSERT

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the attributes of an object or list, with the options of selects."""
        if type_ in ITEMS:
            return ITEMS[type_].attributes
        found = list((await self._attributes(type_)).values())
        return [*ENTRY_FIELDS, *found] if type_.startswith(LISTS) else found

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        """Find records by key, notes by parent and content, entries by parent."""
        if type_ in ITEMS:
            needs_parent = type_ in ("notes", FILES) or fields.get(_PARENT[1])
            item, parent = ITEMS[type_], _parent(fields) if needs_parent else {}
            return [_found(item, one) async for one in self._items(item, parent) if item.same(one, fields)]
        if type_.startswith(LISTS):
            return await self._entries_of(type_, fields)
        attribute = self._key(type_)
        wanted = first_text(fields.get(attribute)) or key
        body = {"filter": {attribute: wanted}, "limit": _RECORDS, "offset": 0}
        found = _data((await self._calls.read(f"{_object(type_)}/query", body)).body)
        attributes = await self._attributes(type_)
        return [_written(one, attributes) for one in found]

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        """Upsert a record, or create a note, task or meeting."""
        if type_ in ITEMS:
            return await self._write_item(type_, fields, known)
        if type_.startswith(LISTS):
            return await self._write_entry(type_, fields, known)
        attribute = self._key(type_)
        values = fields if attribute in fields else {**fields, attribute: key}
        values = await self._linked(type_, values)
        path = (
            f"{_object(type_)}/{quote(known, safe='')}"
            if known
            else f"{_object(type_)}?{urlencode({'matching_attribute': attribute})}"
        )
        reply = await self._calls.write("PUT", path, {"data": {"values": values}})
        return TargetRecord(_made(reply.body, "record_id"))

    def file_limit(self, type_: str) -> int | None:
        return MAX_FILE if type_ == FILES else None

    async def upload(self, type_: str, fields: Fields, file: BinaryIO) -> TargetRecord:
        """Upload a file to its parent record."""
        _parent(fields)
        item = ITEMS[type_]
        reply = await self._calls.upload(f"/{item.path}/upload", item.written(fields), fields["name"], file)
        return TargetRecord(_made(reply.body, item.id))

    async def erase(self, type_: str, id_: str) -> None:
        place = f"/{type_}" if type_ in ITEMS else _object(type_)
        if type_.startswith(LISTS):
            place = f"{_list(type_)}/entries"
        try:
            await self._calls.write("DELETE", f"{place}/{quote(id_, safe='')}", None, any_answer=True)
        except ConnectorError as error:
            if error.failure is not ErrorKind.NOT_FOUND:
                raise

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Yield everything page by page, oldest first; without a key, a hash of the content is the key."""
        if type_ in ITEMS:
            item = ITEMS[type_]
            async for one in self._files() if type_ == FILES else self._items(item, {}):
                held = _found(item, one)
                yield hashlib.sha256(canonical_json(held.fields).encode()).hexdigest()[:32], held
            return
        async for key, written in self._records(type_):
            yield key, written

    async def _records(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Yield the records of an object, or the entries of a list, with their keys."""
        attributes, is_list = await self._attributes(type_), type_.startswith(LISTS)
        path, offset = (f"{_list(type_)}/entries" if is_list else _object(type_)), 0
        while True:
            sorts = [{"attribute": "created_at", "direction": "asc"}]
            body = {"limit": _RECORDS, "offset": offset, "sorts": sorts}
            found = _data((await self._calls.read(f"{path}/query", body)).body)
            for one in found:
                written = _entry(one, attributes) if is_list else _written(one, attributes)
                yield _key_of(written, None if is_list else self._keys.get(type_)), written
            offset += len(found)
            if len(found) < _RECORDS:
                return

    async def close(self) -> None:
        await self._calls.close()

    async def canonical(self, type_: str, fields: Fields) -> Fields:
        """Return fields as Attio returns them: whole names and locations, members by id."""
        if type_ in ITEMS:
            return canonical_file(fields) if type_ == FILES else fields
        await self._attributes(type_)
        kinds = self._kinds[type_]
        return {name: await self._canonical(name, kinds.get(name, ""), value) for name, value in fields.items()}

    async def _canonical(self, name: str, kind: str, value: Any) -> Any:
        if kind != "actor-reference" or not isinstance(value, str):
            return canonical_value(kind, value)
        if self._members is None:
            rows = _data((await self._calls.read("/workspace_members")).body)
            self._members = {str(one.get("email_address")).lower(): _id(one, "workspace_member_id") for one in rows}
        id_ = self._members.get(value.lower(), value)
        if id_ not in self._members.values():
            raise invalid(f"Attio has no workspace member {value[:100]!r}: use an email address of a member", name)
        return {"referenced_actor_type": "workspace-member", "referenced_actor_id": id_}

    async def _write_item(self, type_: str, fields: Fields, known: str | None) -> TargetRecord:
        item = ITEMS[type_]
        if known is not None and item.changed is None:
            raise ConnectorError(
                ErrorKind.PERMANENT, f"Tidings cannot change {type_} in Attio; delete it and run again"
            )
        if known is not None and item.changed is not None:
            path, body = f"/{type_}/{quote(known, safe='')}", {"data": item.changed(fields)}
            return TargetRecord(_made((await self._calls.write("PATCH", path, body)).body, item.id))
        if item.looked_up_by is not None and fields.get(item.looked_up_by) is not None:
            there = await self.find(type_, "", fields)
            if there:
                return there[0]
        reply = await self._calls.write("POST", f"/{type_}", {"data": item.written(fields)})
        return TargetRecord(_made(reply.body, item.id))

    async def _write_entry(self, type_: str, fields: Fields, known: str | None) -> TargetRecord:
        own = {name: value for name, value in fields.items() if name not in _PARENT}
        values = await self._linked(type_, own)
        path, data = f"{_list(type_)}/entries", {**_parent(fields), "entry_values": values}
        if known:
            path, data = f"{path}/{quote(known, safe='')}", {"entry_values": values}
        reply = await self._calls.write("PUT", path, {"data": data})
        return TargetRecord(_made(reply.body, "entry_id"))

    async def _linked(self, type_: str, values: Fields) -> Fields:
        """Return values with references in Attio's form: the id with its object."""
        if not any(name in self._references for name in values):
            return values
        known = await self._attributes(type_)
        links = {
            name: linked(value, self._references[name])
            for name, value in values.items()
            if name in self._references and name in known and known[name].type == "reference"
        }
        return {**values, **links}

    async def _items(self, item: AttioItem, parent: Mapping[str, str]) -> AsyncIterator[Mapping[str, Any]]:
        """Yield everything of one kind, or that of one record, page by page: by offset or by cursor."""
        query: dict[str, object] = {
            name: parent[of] for name, of in zip(item.parent, _PARENT, strict=True) if of in parent
        }
        query["limit"] = item.page
        offset = 0
        while True:
            body = (await self._calls.read(f"/{item.path}?{urlencode(query)}")).body
            found = _data(body)
            for one in found:
                yield {**one, "parent_object": await self._linked_object(one)} if item.path == "tasks" else one
            offset += len(found)
            paging = body.get("pagination")
            query["cursor" if paging else "offset"] = paging.get("next_cursor") if paging else offset
            if len(found) < item.page or (paging and not paging.get("next_cursor")):
                return

    async def _files(self) -> AsyncIterator[Mapping[str, Any]]:
        """Yield the files of all records: Attio lists those of one record at a time."""
        for object_ in [str(one.get("api_slug")) for one in _data((await self._calls.read("/objects")).body)]:
            async for _, record in self._records(object_):
                await asyncio.sleep(1 / (self.limits.reads_per_second or 1))
                async for one in self._items(ITEMS[FILES], dict(zip(_PARENT, (object_, record.id), strict=True))):
                    if one.get("file_type") == "file":
                        yield one

    async def _linked_object(self, task: Mapping[str, Any]) -> str | None:
        """Return the slug of the object that a task is linked to; the task has its id."""
        if self._objects is None:
            rows = _data((await self._calls.read("/objects")).body)
            self._objects = {_id(one, "object_id"): str(one.get("api_slug")) for one in rows}
        link: Mapping[str, Any] = next(iter(task.get("linked_records") or ()), {})
        return self._objects.get(link.get("target_object_id", ""))

    async def _entries_of(self, type_: str, fields: Fields) -> Sequence[TargetRecord]:
        parent = _parent(fields)
        record = quote(parent["parent_record_id"], safe="")
        found = _data((await self._calls.read(f"{_object(parent['parent_object'])}/{record}/entries?limit=1000")).body)
        list_ = type_.removeprefix(LISTS)
        return [
            TargetRecord(str(one.get("entry_id")))
            for one in found
            if list_ in (one.get("list_api_slug"), one.get("list_id"))
        ]

    async def _attributes(self, type_: str) -> Mapping[str, Attribute]:
        """Return the attributes of a type, read once."""
        if type_ not in self._known:
            base = _list(type_) if type_.startswith(LISTS) else f"/objects/{quote(type_, safe='')}"
            found = _data((await self._calls.read(f"{base}/attributes?limit=500")).body)
            made = {}
            for one in found:
                options = await self._options(base, one)
                made[str(one.get("api_slug"))] = attribute_of(one, options)
            self._kinds[type_] = {str(one.get("api_slug")): str(one.get("type")) for one in found}
            self._known[type_] = made
        return self._known[type_]

    async def _options(self, base: str, attribute: Mapping[str, Any]) -> Sequence[str]:
        kind = {"select": "options", "status": "statuses"}.get(str(attribute.get("type")))
        if kind is None:
            return ()
        slug = quote(str(attribute.get("api_slug")), safe="")
        found = _data((await self._calls.read(f"{base}/attributes/{slug}/{kind}")).body)
        return tuple(str(one.get("title")) for one in found if not one.get("is_archived"))

    def _key(self, type_: str) -> str:
        found = self._keys.get(type_)
        if found is None:
            reason = f"Attio's {type_!r} needs a unique attribute: name it in `keys` of the target"
            raise invalid(reason, "keys")
        return found


_PARENT = ("parent_object", "parent_record_id")


def _object(type_: str) -> str:
    return f"/objects/{quote(type_, safe='')}/records"


def _list(type_: str) -> str:
    return f"/lists/{quote(type_.removeprefix(LISTS), safe='')}"


def _parent(fields: Fields) -> dict[str, str]:
    for name in _PARENT:
        if not isinstance(fields.get(name), str) or not fields[name]:
            raise invalid(f"{name} is missing: the parent record", name)
    return {name: fields[name] for name in _PARENT}


def _data(body: Any) -> list[Mapping[str, Any]]:
    found = body.get("data") if isinstance(body, dict) else None
    if not isinstance(found, list):
        raise ConnectorError(ErrorKind.TEMPORARY, "the response has no list of data")
    return [one for one in found if isinstance(one, dict)]


def _made(body: Any, name: str) -> str:
    """Return the id of the written record; without it the outcome is ambiguous."""
    found = body.get("data") if isinstance(body, dict) else None
    try:
        return _id(found if isinstance(found, dict) else {}, name)
    except ConnectorError as error:
        raise ConnectorError(ErrorKind.AMBIGUOUS, error.reason, sent=True) from None


def _id(one: Mapping[str, Any], name: str) -> str:
    found = one.get("id")
    named = found.get(name) if isinstance(found, dict) else None
    if not isinstance(named, str):
        raise ConnectorError(ErrorKind.TEMPORARY, f"the response has no {name}")
    return named


def _written(one: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> TargetRecord:
    return TargetRecord(_id(one, "record_id"), plain(one.get("values"), attributes))


def _entry(one: Mapping[str, Any], attributes: Mapping[str, Attribute]) -> TargetRecord:
    parent = {name: one.get(name) for name in _PARENT}
    return TargetRecord(_id(one, "entry_id"), {**parent, **plain(one.get("entry_values"), attributes)})


def _found(item: AttioItem, one: Mapping[str, Any]) -> TargetRecord:
    return TargetRecord(_id(one, item.id), item.read(one))


def _key_of(written: TargetRecord, attribute: str | None) -> str:
    """Return the key a record was upserted by; without one, its id."""
    fields = written.fields or {}
    return first_text(fields.get(attribute or "parent_record_id")) or written.id


CONNECTOR = Connector(
    settings=AttioSettings,
    options={
        "key": header_value,
        "url": base_url,
        "keys": text_table,
        "references": text_table,
        "reads_per_second": rate,
        "writes_per_second": rate,
        "uploads_per_second": rate,
        "deadline": duration,
    },
    target=AttioTarget,
    secrets=frozenset({"key"}),
    reach=ConnectorReach.NETWORK,
)
