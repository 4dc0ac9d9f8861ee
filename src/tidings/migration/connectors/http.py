"""Any HTTP API, by templates: a paged source, and a target with a rule of what counts as success.

Source: a URL per page, a path to the records in the answer, and one of three ways to the next page: `cursor`
(a value of the answer, given back as a parameter), `page` (counted, until a page is empty) or `link` (the
header of that name). Target: method, URL and body with placeholders: `{%name%}`, `{%key%}`, `{%type%}`.

Whether a write may be sent again decides everything else:

    key_header   the receiver removes duplicates by our key in this header   UPSERT
    idempotent   the URL names the record, so the same again changes nothing   UPSERT
    find_url     what is there can be asked for   SEARCH
    none         in doubt nobody can tell, and a person decides   RECONCILE
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
)
from .record_validation import split_invalid_records

PAGING_MODES = ("cursor", "page", "link")

_SHORT = 7  # a header's value up to here is no secret

_NEXT = re.compile(r'<([^<>]{1,4096})>\s*;[^,<]*\brel="?next"?', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class HttpConnectorSettings:
    """Options of both; `records` and `cursor` are paths into the answer, such as `data.items`."""

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
    rules: SsrfRules = options.ANY_HOST  # what it may call


def _calls(settings: HttpConnectorSettings, now: Callable[[], int]) -> ApiClient:
    secrets = [value for value in settings.headers.values() if len(value) > _SHORT]
    secrets += [settings.token] if settings.token else []
    headers = {name.lower(): value for name, value in settings.headers.items()}
    if settings.token:
        headers["authorization"] = f"Bearer {settings.token}"
    return ApiClient(
        "", headers=headers, deadline=settings.deadline, rules=settings.rules, hide=secrets, now=now
    )


class _HttpConnector:
    kind = "http"

    def __init__(self, settings: HttpConnectorSettings, now: Callable[[], int]) -> None:
        self._settings = settings
        self._calls = _calls(settings, now)
        reads, writes = settings.reads_per_second, settings.writes_per_second
        self.limits = SystemLimits(reads, writes, concurrency=settings.concurrency, bulk=settings.bulk)

    async def close(self) -> None:
        """Close all connections."""
        await self._calls.close()


class HttpSource(_HttpConnector):
    """Reads page by page. A cursor is the URL of the page, or what stands for it."""

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """Only the records show them."""
        return None

    async def count(self, type_: str) -> int | None:
        """Nobody knows before reading."""
        return None

    async def page(self, type_: str, cursor: str | None) -> RecordPage:
        """The next records."""
        url = self._address(type_, cursor)
        reply = await self._calls.read(url)
        found = reply.body if not self._settings.records else look_up(reply.body, self._settings.records)
        if not isinstance(found, list):
            where = self._settings.records or "itself"
            raise ConnectorError(
                ErrorKind.VALIDATION, f"the answer has no list at {where!r}", field="records"
            )
        ids = [look_up(one, self._settings.id) for one in found]
        records, spoiled = split_invalid_records(type_, found, ids, reply.headers.body_prefix)
        return RecordPage(records, self._following(reply, url, cursor, is_empty=not found), spoiled)

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
                    raise ConnectorError(
                        ErrorKind.PERMANENT, "the next page is said to be this one", field="cursor"
                    )
                return following
            case "link":
                return _linked(reply.headers.header("link"), url)
        return None


def _linked(value: str | None, url: str) -> str | None:
    """The next page of a link header, if it is at the same address: the credentials go nowhere else."""
    found = _NEXT.search(value or "")
    if found is None:
        return None
    there, here = urlsplit(urljoin(url, found[1])), urlsplit(url)
    if (there.scheme, there.netloc) != (here.scheme, here.netloc):
        raise ConnectorError(ErrorKind.PERMANENT, "the next page is said to be at another address")
    return str(there.geturl())


class HttpTarget(_HttpConnector):
    """Writes one record a call, or many in one body."""

    def strategy(self, type_: str) -> WriteStrategy:
        """As the options promise."""
        if self._settings.key_header or self._settings.idempotent:
            return WriteStrategy.UPSERT
        return WriteStrategy.SEARCH if self._settings.find_url else WriteStrategy.RECONCILE

    async def attributes(self, type_: str) -> Sequence[Attribute] | None:
        """It does not say."""
        return None

    async def find(self, type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        """Ask by `find_url`: a list, or one record, or 404."""
        if self._settings.find_url is None:
            reason = "nobody can tell whether it was written; look there, or give the target a find_url"
            raise ConnectorError(ErrorKind.PERMANENT, reason, field="find_url")
        url = _url(self._settings.find_url, _values(type_, key, fields, None))
        try:
            body = (await self._calls.read(url)).body
        except ConnectorError as trouble:
            if trouble.failure is ErrorKind.NOT_FOUND:
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
        """One call."""
        values = _values(type_, key, fields, known)
        body = self._body(values)
        headers = {self._settings.key_header: key} if self._settings.key_header else {}
        reply = await self._calls.write(
            self._settings.method, _url(self._settings.url, values), body, headers=headers, any_answer=True
        )
        return self._judged(reply.body, key)

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        """One call for all that can be written down; without answers of their own they share its fate."""
        bodies = [self._written_down(type_, *record) for record in records]
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
            body if isinstance(body, ConnectorError) else self._answered(next(answers), key)
            for body, (key, _, _) in zip(bodies, records, strict=True)
        ]

    async def read_all(self, type_: str) -> AsyncIterator[tuple[str, TargetRecord]]:
        """Not by this connector: read it as a source."""
        raise ConnectorError(
            ErrorKind.PERMANENT, "an HTTP target cannot be read; verify it with an HTTP source"
        )
        yield  # pragma: no cover

    def _body(self, values: Mapping[str, Any]) -> Any:
        if self._settings.body is None:
            return values["fields"]
        try:
            found = fill(self._settings.body, values)
        except UnresolvedPlaceholder as missing:
            name = str(missing)
            raise ConnectorError(
                ErrorKind.VALIDATION, f"{name} is missing, and the body needs it", field=name
            ) from None
        return {} if found is DROPPED else found

    def _written_down(self, type_: str, key: str, fields: Fields, known: str | None) -> Any:
        try:
            return self._body(_values(type_, key, fields, known))
        except ConnectorError as trouble:
            return trouble

    def _answered(self, body: Any, key: str) -> TargetRecord | ConnectorError:
        try:
            return self._judged(body, key)
        except ConnectorError as trouble:
            return trouble

    def _judged(self, body: Any, key: str) -> TargetRecord:
        """Success is what the rule says, not the status alone."""
        if body is None and self._settings.success:
            raise ConnectorError(ErrorKind.AMBIGUOUS, "the answer cannot be read, so nobody knows", sent=True)
        for path, wanted in self._settings.success.items():
            if str(look_up(body, path)) != wanted:
                said = self._calls.shown(str(look_up(body, path)))
                raise ConnectorError(
                    ErrorKind.VALIDATION, f"the answer says {path} = {said}, not {wanted}", field=path
                )
        id_ = look_up(body, self._settings.target_id)
        return TargetRecord(key if id_ is None or isinstance(id_, dict | list) else str(id_))


def _values(type_: str, key: str, fields: Fields, known: str | None) -> dict[str, Any]:
    return {**fields, "fields": fields, "key": key, "type": type_, "target_id": known}


def _url(template: str, values: Mapping[str, Any]) -> str:
    """A value never adds a step or a parameter to the address."""
    try:
        return fill_text(template, values, lambda value: quote(value, safe=""))
    except UnresolvedPlaceholder as missing:
        name = str(missing)
        raise ConnectorError(
            ErrorKind.VALIDATION, f"{name} is missing, and the URL needs it", field=name
        ) from None


def _template(value: object) -> object:
    list(names(value))
    return value


def _web_template(value: object) -> str:
    """A URL whose host is certain: placeholders stand in its path or query."""
    given = options.text(value)
    list(names(given))
    options.web_address(re.sub(r"\{%.*?%\}", "x", given))
    if "{%" in urlsplit(given).netloc:
        raise ValueError("it must have no placeholder in its host")
    return given


def check_settings(settings: HttpConnectorSettings) -> None:
    """Options that do not fit together."""
    if settings.bulk > 1 and settings.key_header:
        raise ValueError("bulk", "one header cannot name many records", "Leave out bulk or key_header")
    if settings.bulk > 1 and set(names(settings.url)) - {"type"}:
        raise ValueError("bulk", "the URL names one record", "Leave out bulk, or name no record in the URL")


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
