"""Affinity as a source: organizations, persons, opportunities, lists, list entries and notes.

Versions 1 and 2 of its API share keys and quotas; version 2 also returns custom fields. Calls are limited per
minute (a short wait) and per month (QUOTA, which pauses the job until the month ends). Affinity derives mail,
meetings and scores itself, so they are not records.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from ...wire.ssrf_guard import SsrfRules
from .api_client import ApiClient, ApiRefusal, ApiReply
from .options import (
    ANY_HOST,
    Connector,
    ConnectorReach,
    base_url,
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
PER_SECOND = 15.0  # 900 a minute
ENTRIES: Final = "list_entries"
TYPES: Mapping[str, str] = {
    "organizations": "companies",
    "persons": "persons",
    "opportunities": "opportunities",
    "lists": "lists",
    ENTRIES: "list-entries",
    "notes": "notes",
}
"""Type names, which are those of version 1, and the names in version 2."""

_ALSO = {"companies": "organizations"}
_MONTH = 31 * 86_400

_BUILT_IN: Mapping[str, Sequence[Attribute]] = {
    "persons": [
        Attribute("first_name", "text"),
        Attribute("last_name", "text"),
        Attribute("primary_email", "email"),
        Attribute("emails", "email", many=True),
        Attribute("organization_ids", "reference", many=True),
        Attribute("type", "number"),
    ],
    "organizations": [
        Attribute("name", "text", required=True),
        Attribute("domain", "text"),
        Attribute("domains", "text", many=True),
        Attribute("global", "boolean"),
        Attribute("person_ids", "reference", many=True),
    ],
    "notes": [
        Attribute("content", "text", required=True),
        Attribute("person_ids", "reference", many=True),
        Attribute("organization_ids", "reference", many=True),
        Attribute("opportunity_ids", "reference", many=True),
        Attribute("parent_id", "reference"),
        Attribute("creator_id", "reference"),
        Attribute("type", "number"),
        Attribute("created_at", "time"),
        Attribute("updated_at", "time"),
    ],
}


@dataclass(frozen=True, slots=True)
class AffinitySettings:
    """`field_types` are the custom fields that version 2 returns with each record."""

    key: str
    url: str = URL
    version: str = "1"
    field_types: Sequence[str] = ("global",)
    page_size: int | None = None
    reads_per_second: float = PER_SECOND
    per_month: int | None = None
    deadline: timedelta = timedelta(seconds=60)
    rules: SsrfRules = ANY_HOST


def explain(refusal: ApiRefusal) -> ConnectorError:
    """Map Affinity's error to ours. Only a header tells an exhausted month from a short rate limit."""
    message, field, code = _error_of(refusal.body)
    if refusal.status == 429:
        if refusal.answer.header("x-ratelimit-limit-org-remaining") == "0":
            reset = _seconds(refusal.answer.header("x-ratelimit-limit-org-reset"))
            reason = "the monthly quota is used up"
            return refusal.to_error(ErrorKind.QUOTA, said=reason, code=code, wait=reset)
        wait = _seconds(refusal.answer.header("x-ratelimit-limit-user-reset"))
        return refusal.to_error(said=message, code=code, wait=refusal.wait or wait)
    return refusal.to_error(said=message, field=field, code=code)


def _error_of(body: Any) -> tuple[str, object, object]:
    """Return message, field and code of an error, in any of its shapes."""
    found = body
    if isinstance(found, dict):
        found = found.get("errors") or found.get("message")
    if isinstance(found, list):
        found = found[0] if found else None
    if isinstance(found, dict):
        return str(found.get("message") or ""), found.get("param"), found.get("code")
    return (found if isinstance(found, str) else ""), None, None


def _seconds(value: str | None) -> timedelta | None:
    if value is None or not value.isascii() or not value.isdigit():
        return None
    return timedelta(seconds=min(int(value[:12]), _MONTH))


class AffinitySource:
    """Reads pages in Affinity's own order."""

    kind = "affinity"

    def __init__(self, settings: AffinitySettings, now: Callable[[], int]) -> None:
        self._settings = settings
        self.limits = SystemLimits(
            reads_per_second=settings.reads_per_second, per_month=settings.per_month, concurrency=4
        )
        is_first = settings.version == "1"
        basic = b64encode(f":{settings.key}".encode()).decode()
        self._calls = ApiClient(
            settings.url,
            headers={"authorization": f"Basic {basic}" if is_first else f"Bearer {settings.key}"},
            deadline=settings.deadline,
            rules=settings.rules,
            hide=[settings.key, basic],
            now=now,
            explain=explain,
        )

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return the built-in fields; with version 2 also the custom ones."""
        name, _ = _named(type_)
        if self._settings.version == "1" or name not in ("persons", "organizations"):
            return _BUILT_IN.get(name)
        found: list[Attribute] = list(_BUILT_IN[name])
        path: str | None = f"/v2/{TYPES[name]}/fields?limit=100"
        while path is not None:
            body = (await self._calls.read(path)).body
            found += [_attribute(one) for one in _rows(body, "data")]
            path = self._next(body)
        return found

    async def count(self, type_: str) -> int | None:
        """Return None: Affinity does not count."""
        return None

    async def quota(self) -> Quota:
        """Return the monthly quota; this call is not counted."""
        prefix = "" if self._settings.version == "1" else "/v2"
        body = (await self._calls.read(f"{prefix}/rate-limit")).body
        found = body.get("rate", body) if isinstance(body, dict) else {}
        month = found.get("org_monthly") or found.get("orgMonthly") or {}
        limit, left, reset = (_whole(month.get(name)) for name in ("limit", "remaining", "reset"))
        return Quota(limit, left, None if reset is None else timedelta(seconds=min(reset, _MONTH)))

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        """Return the next records."""
        name, list_ = _named(type_)
        if name == ENTRIES:
            return await self._entries(type_, list_, cursor)
        if self._settings.version == "1":
            return await self._first(type_, name, f"/{name}", cursor)
        return await self._second(type_, cursor or self._start(name))

    async def close(self) -> None:
        """Close all connections."""
        await self._calls.close()

    async def _first(self, type_: str, name: str, path: str, cursor: str | None) -> RecordPage:
        """Read a page of version 1. Lists come all at once."""
        query: dict[str, object] = {"page_size": self._settings.page_size or 500}
        if cursor:
            query["page_token"] = cursor
        reply = await self._calls.read(path if name == "lists" else f"{path}?{urlencode(query)}")
        body = reply.body
        rows = body if isinstance(body, list) else _rows(body, name)
        token = body.get("next_page_token") if isinstance(body, dict) else None
        return _page(type_, rows, token or None, reply)

    async def _second(self, type_: str, path: str) -> RecordPage:
        """Read a page of version 2; its cursor is the path of the next page."""
        reply = await self._calls.read(path)
        return _page(type_, _rows(reply.body, "data"), self._next(reply.body), reply)

    async def _entries(self, type_: str, list_: str | None, cursor: str | None) -> RecordPage:
        """Read entries list by list, ordered by list id. The cursor is "<list> <cursor within it>"."""
        current, _, inner = (cursor or "").partition(" ")
        if not current:
            current = list_ or await self._list_after(0) or ""
            if not current:
                return RecordPage([], None)
        if self._settings.version == "1":
            found = await self._first(type_, ENTRIES, f"/lists/{quote(current, safe='')}/list-entries", inner)
        else:
            start = self._start(f"lists/{quote(current, safe='')}/list-entries")
            found = await self._second(type_, inner or start)
        if found.cursor is not None:
            return found._replace(cursor=f"{current} {found.cursor}")
        after = None if list_ else await self._list_after(int(current))
        return found._replace(cursor=None if after is None else f"{after} ")

    async def _list_after(self, id_: int) -> str | None:
        cursor, ids = None, []
        while True:
            found = await self.page("lists", cursor)
            ids += [int(one.id) for one in found.records if int(one.id) > id_]
            cursor = found.cursor
            if cursor is None:
                return str(min(ids)) if ids else None

    def _start(self, name: str) -> str:
        query: list[tuple[str, object]] = [("limit", min(self._settings.page_size or 100, 100))]
        if name in ("persons", "organizations") or name.startswith("lists/"):
            query += [("fieldTypes", one) for one in self._settings.field_types]
        return f"/v2/{TYPES.get(name, name)}?{urlencode(query)}"

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
    """Split a type from the id of one list: "list_entries" or "list_entries/450"."""
    name, _, list_ = type_.partition("/")
    name = _ALSO.get(name, name)
    if name not in TYPES or (list_ and (name != ENTRIES or not list_.isdigit())):
        raise invalid(f"unknown type {type_!r} of Affinity; known: {', '.join(TYPES)}", field="type")
    return name, list_ or None


def _rows(body: Any, name: str) -> Sequence[Any]:
    """Return the records of a response; null means none."""
    if not isinstance(body, dict) or name not in body:
        raise ConnectorError(ErrorKind.TEMPORARY, f"the response has no {name!r}")
    found = body[name]
    return found if isinstance(found, list) else []


def _page(type_: str, rows: Sequence[Any], cursor: str | None, reply: ApiReply) -> RecordPage:
    ids = [one.get("id") if isinstance(one, dict) else None for one in rows]
    records, unreadable = split_invalid_records(type_, rows, ids, reply.headers.body_prefix)
    return RecordPage(records, cursor, unreadable)


def _attribute(one: Any) -> Attribute:
    kinds = {"number": "number", "datetime": "time", "dropdown": "select", "ranked-dropdown": "select"}
    kinds |= {"person": "reference", "company": "reference", "location": "json"}
    kind = str(one.get("valueType") or one.get("type") or "text")
    return Attribute(str(one.get("id")), kinds.get(kind.removesuffix("-multi"), "text"), many=kind.endswith("-multi"))


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


CONNECTOR = Connector(
    settings=AffinitySettings,
    options={
        "key": header_value,
        "url": base_url,
        "version": one_of("1", "2"),
        "field_types": text_list,
        "page_size": count(1, 500),
        "reads_per_second": rate,
        "per_month": count(1, 1_000_000_000),
        "deadline": duration,
    },
    source=AffinitySource,
    secrets=frozenset({"key"}),
    reach=ConnectorReach.NETWORK,
)
