"""Any HTTP API by templates: a paged source, and a target with a rule for success.

Source: a URL per page, a path to the records in the response, and cursor pagination by `cursor` (a value of
the response, sent back as a parameter), `page` (counted until a page is empty) or `link` (the Link header).
Target: method, URL and body with placeholders: `{%name%}`, `{%key%}`, `{%type%}`.

The write strategy depends on whether a write may be repeated:

    key_header   the receiver deduplicates by our idempotency key in this header   UPSERT
    idempotent   the URL names the record, so a repeated write changes nothing   UPSERT
    find_url     existing records can be queried   SEARCH
    none         an unknown outcome is left to a person   RECONCILE
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from urllib.parse import quote, urlencode, urljoin, urlsplit

from ...wire.placeholders import DROPPED, UnresolvedPlaceholder, fill, fill_text, look_up, names
from ...wire.ssrf_guard import SsrfRules
from . import options
from .api_client import ApiClient, ApiReply
from .port import (
    Attribute,
    ConnectorError,
    ErrorKind,
    Fields,
    RecordPage,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
    invalid,
)
from .record_validation import split_invalid_records

PAGING_MODES = ("cursor", "page", "link")

_SHORT = 7  # header values up to this length are not treated as secrets

_NEXT = re.compile(r'<([^<>]{1,4096})>\s*;[^,<]*\brel="?next"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpConnectorSettings:
    """Options of both sides; `records` and `cursor` are paths into the response, such as `data.items`."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    token: str | None = None
    deadline: timedelta = timedelta(seconds=30)
    reads_per_second: float | None = None
    writes_per_second: float | None = None
    concurrency: int = 8
    # a source
    records: str = ""
    id: str = "id"
    paging: str | None = None
    cursor: str = "next_cursor"
    parameter: str | None = None
    size_parameter: str | None = None
    page_size: int = 100
    first_page: int = 1
    # a target
    method: str = "POST"
    body: Any = None
    key_header: str | None = None
    idempotent: bool = False
    find_url: str | None = None
    target_id: str = "id"
    success: Mapping[str, str] = field(default_factory=dict)
    bulk: int = 1
    bulk_in: str | None = None
    results: str = ""
    rules: SsrfRules = options.ANY_HOST  # which hosts it may call


class _HttpConnector:
    kind = "http"

    def __init__(self, settings: HttpConnectorSettings, now: Callable[[], int]) -> None:
        self._settings = settings
        secrets = [value for value in settings.headers.values() if len(value) > _SHORT]
        headers = {name.lower(): value for name, value in settings.headers.items()}
        if settings.token:
            secrets.append(settings.token)
            headers["authorization"] = f"Bearer {settings.token}"
        self._calls = ApiClient(
            "", headers=headers, deadline=settings.deadline, rules=settings.rules, hide=secrets, now=now
        )
        reads, writes = settings.reads_per_second, settings.writes_per_second
        self.limits = SystemLimits(reads, writes, concurrency=settings.concurrency, bulk=settings.bulk)

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Return None: only the records show their fields."""
        return None

    async def close(self) -> None:
        await self._calls.close()


class HttpSource(_HttpConnector):
    """Reads page by page. A cursor is the URL of the page, or its parameter."""

    async def count(self, type_: str) -> int | None:
        return None

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        url = self._address(type_, cursor)
        reply = await self._calls.read(url)
        found = reply.body if not self._settings.records else look_up(reply.body, self._settings.records)
        if not isinstance(found, list):
            where = self._settings.records or "itself"
            raise invalid(f"the response has no list at {where!r}", "records")
        ids = [look_up(one, self._settings.id) for one in found]
        records, unreadable = split_invalid_records(type_, found, ids, reply.headers.body_prefix)
        return RecordPage(records, self._following(reply, url, cursor, is_empty=not found), unreadable)

    def _address(self, type_: str, cursor: str | None) -> str:
        given = self._settings
        base = fill_text(given.url, {"type": type_}, lambda value: quote(value, safe=""))
        if given.paging == "link" and cursor is not None:
            return cursor
        query: dict[str, object] = {}
        if given.size_parameter:
            query[given.size_parameter] = given.page_size
        if given.paging == "page":
            query[given.parameter or "page"] = cursor or given.first_page
        elif given.paging == "cursor" and cursor is not None:
            query[given.parameter or "cursor"] = cursor
        if not query:
            return base
        return f"{base}{'&' if '?' in base else '?'}{urlencode(query)}"

    def _following(self, reply: ApiReply, url: str, cursor: str | None, *, is_empty: bool) -> str | None:
        match self._settings.paging:
            case "page":
                return None if is_empty else str(int(cursor or self._settings.first_page) + 1)
            case "cursor":
                found = look_up(reply.body, self._settings.cursor)
                following = None if found is None or found in ("", False) else str(found)
                if following is not None and following == cursor:
                    raise ConnectorError(ErrorKind.PERMANENT, "the next page is this one", field="cursor")
                return following
            case "link":
                return _linked(reply.headers.header("link"), url)
        return None


def _linked(value: str | None, url: str) -> str | None:
    """Return the next page of a Link header; it must have the same origin, since it gets the credentials."""
    found = _NEXT.search(value or "")
    if found is None:
        return None
    there, here = urlsplit(urljoin(url, found[1])), urlsplit(url)
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        raise ConnectorError(ErrorKind.PERMANENT, "the next page is at another address")
    return str(there.geturl())


class HttpTarget(_HttpConnector):
    """Writes one record per call, or many in one body."""

    def strategy(self, type_: str) -> WriteStrategy:
        if self._settings.key_header or self._settings.idempotent:
            return WriteStrategy.UPSERT
        return WriteStrategy.SEARCH if self._settings.find_url else WriteStrategy.RECONCILE

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        """Query `find_url`: a list, one record, or 404."""
        if self._settings.find_url is None:
            reason = "the outcome of the write cannot be determined; check the target, or set find_url"
            raise ConnectorError(ErrorKind.PERMANENT, reason, field="find_url")
        url = _url(self._settings.find_url, _values(type_, key, fields, None))
        try:
            body = (await self._calls.read(url)).body
        except ConnectorError as error:
            if error.failure is ErrorKind.NOT_FOUND:
                return []
            raise
        found = look_up(body, self._settings.results) if self._settings.results else body
        several = found if isinstance(found, list) else [] if found is None else [found]
        return [
            TargetRecord(str(look_up(one, self._settings.target_id)), one)
            for one in several
            if look_up(one, self._settings.target_id) is not None
        ]

    async def write(self, type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        values = _values(type_, key, fields, known)
        body = self._body(values)
        headers = {self._settings.key_header: key} if self._settings.key_header else {}
        reply = await self._calls.write(
            self._settings.method, _url(self._settings.url, values), body, headers=headers, any_answer=True
        )
        return self._check_success(reply.body, key)

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """Write all encodable records in one call; without individual results they share its result."""
        bodies = [_or_error(self._body, _values(type_, *record)) for record in records]
        sent = [body for body in bodies if not isinstance(body, ConnectorError)]
        if not sent:
            return [body for body in bodies if isinstance(body, ConnectorError)]
        whole = {self._settings.bulk_in: sent} if self._settings.bulk_in else sent
        url = _url(self._settings.url, {"type": type_})
        reply = await self._calls.write(self._settings.method, url, whole, any_answer=True)
        found = look_up(reply.body, self._settings.results) if self._settings.results else reply.body
        is_each = isinstance(found, list) and len(found) == len(sent)
        answers = iter(found if is_each else [reply.body] * len(sent))
        return [
            body if isinstance(body, ConnectorError) else _or_error(self._check_success, next(answers), key)
            for body, (key, _, _) in zip(bodies, records, strict=True)
        ]

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Raise ConnectorError: verification reads an HTTP target as a source."""
        raise ConnectorError(ErrorKind.PERMANENT, "an HTTP target cannot be read; use an HTTP source")
        yield  # pragma: no cover

    def _body(self, values: Mapping[str, Any]) -> Any:
        if self._settings.body is None:
            return values["fields"]
        try:
            found = fill(self._settings.body, values)
        except UnresolvedPlaceholder as missing:
            name = str(missing)
            raise invalid(f"{name} is missing, and the body needs it", name) from None
        return {} if found is DROPPED else found

    def _check_success(self, body: Any, key: str) -> TargetRecord:
        """Return the written record if the response meets the success rule, not the status alone."""
        if body is None and self._settings.success:
            reason = "the response cannot be read, so the outcome is unknown"
            raise ConnectorError(ErrorKind.AMBIGUOUS, reason, sent=True)
        for path, wanted in self._settings.success.items():
            if str(look_up(body, path)) != wanted:
                found = self._calls.redact(str(look_up(body, path)))
                raise invalid(f"the response has {path} = {found}, not {wanted}", path)
        id_ = look_up(body, self._settings.target_id)
        return TargetRecord(key if id_ is None or isinstance(id_, dict | list) else str(id_))


def _or_error(call: Callable[..., Any], *given: Any) -> Any:
    try:
        return call(*given)
    except ConnectorError as error:
        return error


def _values(type_: str, key: str, fields: Fields, known: str | None) -> dict[str, Any]:
    return {**fields, "fields": fields, "key": key, "type": type_, "target_id": known}


def _url(template: str, values: Mapping[str, Any]) -> str:
    """Fill a URL template; values are quoted, so they never add a path segment or parameter."""
    try:
        return fill_text(template, values, lambda value: quote(value, safe=""))
    except UnresolvedPlaceholder as missing:
        name = str(missing)
        raise invalid(f"{name} is missing, and the URL needs it", name) from None


def _template(value: object) -> object:
    list(names(value))
    return value


def _web_template(value: object) -> str:
    """Parse a URL template; placeholders are allowed in path and query, not in the host."""
    given = options.text(value)
    list(names(given))
    options.web_address(re.sub(r"\{%.*?%\}", "x", given))
    if "{%" in urlsplit(given).netloc:
        raise ValueError("must not have a placeholder in its host")
    return given


def check_settings(settings: HttpConnectorSettings) -> None:
    """Raise ValueError for options that contradict each other."""
    if settings.bulk > 1 and settings.key_header:
        raise ValueError("bulk", "one header cannot carry several keys", "Remove bulk or key_header")
    if settings.bulk > 1 and set(names(settings.url)) - {"type"}:
        raise ValueError("bulk", "the URL names one record", "Remove bulk, or name no record in the URL")


CONNECTOR = options.Connector(
    settings=HttpConnectorSettings,
    options={
        "url": _web_template,
        "headers": options.text_table,
        "token": options.header_value,
        "deadline": options.duration,
        "reads_per_second": options.rate,
        "writes_per_second": options.rate,
        "concurrency": options.count(1, 256),
        "records": options.text,
        "id": options.text,
        "paging": options.one_of(*PAGING_MODES),
        "cursor": options.text,
        "parameter": options.text,
        "size_parameter": options.text,
        "page_size": options.count(1, 10_000),
        "first_page": options.count(0, 1),
        "method": options.one_of("POST", "PUT", "PATCH"),
        "body": _template,
        "key_header": options.header_value,
        "idempotent": options.boolean,
        "find_url": _web_template,
        "target_id": options.text,
        "success": options.text_table,
        "bulk": options.count(1, 1_000),
        "bulk_in": options.text,
        "results": options.text,
    },
    source=HttpSource,
    target=HttpTarget,
    secrets=frozenset({"token"}),
    judge=check_settings,
    reach=options.ConnectorReach.NETWORK,
)
