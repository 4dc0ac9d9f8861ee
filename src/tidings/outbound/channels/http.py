"""Any HTTP API, by a request template: URL, headers and body with placeholders, and what counts as success.

The SSRF guard applies as for webhooks, and the host is fixed by the operator: placeholders fill only paths,
queries, headers and bodies. One message is one call, because each message has its own outcome. Whether the
API removes duplicates is unknown, so an uncertain message is held.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Annotated, Any, ClassVar, cast
from urllib.parse import parse_qsl, quote, quote_plus, urlencode, urlsplit
from xml.sax.saxutils import escape as xml_escape

import orjson

from ...model.errors import Invalid, TooLarge
from ...model.message import Message
from ...model.outcome import Done, Outcome, Reject, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...wire.http_client import HttpClient, HttpResponse, MaybeSent, NotSent, resolve_host
from ...wire.placeholders import DROPPED, Escape, as_text, fill, fill_text, look_up, names
from ...wire.placeholders import UnresolvedPlaceholder as Missing
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, Resolve, SsrfGuard, SsrfRules, UnresolvedHost, check_url, has_dot_segments
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind, ports, size, text
from .provider_api import ProviderReply, masked, outcome_by_status

METHODS = ("POST", "PUT", "PATCH", "GET")
MAX_TEXT = 65_536

_SAFE_TO_REPEAT = frozenset({"PUT", "GET"})
_KNOWN = ("address", "message.content", "message.subject", "message.id", "message.attempt")
_FIELD = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,100}", re.ASCII)
_WORDS = frozenset({*Category, "account"})
_SHORT = 6  # shorter values occur in other texts by chance


@dataclass(frozen=True, slots=True)
class HttpSettings(BaseChannelSettings):
    """Settings: the request template, and how its response is read."""

    url: str = field(repr=False)
    method: Annotated[str, _method] = "POST"
    headers: Annotated[Mapping[str, str], _headers] = field(default_factory=dict, repr=False)
    body: Annotated[object, _body] = field(default=None, repr=False)
    secrets: Annotated[Mapping[str, str], _table] = field(default_factory=dict, repr=False)
    success: Annotated[frozenset[int], _statuses] | None = None  # None = any 2xx
    success_path: str | None = None
    success_equals: Annotated[object, lambda value: value] = True
    receipt_path: str | None = None
    error_path: str | None = None
    errors: Annotated[Mapping[str, str], _words] = field(default_factory=dict)
    not_sent: Annotated[frozenset[int], _statuses] = frozenset()
    address_prefix: str = ""
    strip_non_numeric: bool = False
    allow_private: bool = False
    allow_http: bool = False
    ports: Annotated[frozenset[int], ports] | None = None
    max_response_size: Annotated[int, size] = 65_536
    deadline: timedelta = field(default=timedelta(seconds=10), kw_only=True)

    @property
    def rules(self) -> SsrfRules:
        """The SSRF rules of this channel."""
        return SsrfRules(self.allow_private, self.allow_http, self.ports)

    @property
    def content_type(self) -> str:
        """The content type in lowercase; a table is JSON unless a header says otherwise."""
        for name, value in self.headers.items():
            if name.lower() == "content-type":
                return value.lower()
        return "text/plain; charset=utf-8" if isinstance(self.body, str) else "application/json"

    @property
    def hidden(self) -> Sequence[str]:
        """Values to mask: secrets, and constants in headers and in the URL's query."""
        constants = [word for value in self.headers.values() for word in (value, *value.split())]
        constants += [value for _, value in parse_qsl(urlsplit(self.url).query)]
        found = {*self.secrets.values(), *(one for one in constants if "{%" not in one)}
        return sorted((one for one in found if len(one) >= _SHORT), key=len, reverse=True)


class HttpChannel(NoLookup):
    """Sends templated requests; `now` returns the current instant."""

    kind: ClassVar[str] = "http"
    no_lookup = "the API cannot be asked about earlier messages"

    def __init__(self, settings: HttpSettings, *, now: Callable[[], int], look_up: Resolve | None = None) -> None:
        self.traits = traits_of(
            settings, OnUnknown.HOLD, "it is unknown whether the API removes duplicates", max_text=MAX_TEXT
        )
        self._settings = settings
        self._hide = settings.hidden
        self._now = now
        third = settings.deadline / 3
        self._guard = SsrfGuard(settings.rules, look_up or partial(resolve_host, within=third))
        self._http = HttpClient(connect_within=third, linger=self.traits.linger)

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Fill the template once; raises Invalid before the message is accepted."""
        said = str(content.get("text") or "")
        if len(said) > MAX_TEXT:
            raise TooLarge(f"The text has {len(said)} characters", remedy=f"Shorten it to {MAX_TEXT}", field="text")
        make_request(Message("check", "", "", recipient, content, 0), self._settings)

    async def send(self, message: Message) -> Outcome:
        """Make one request."""
        try:
            answer = await self._ask(message)
        except (Invalid, TooLarge) as error:
            return Reject(Category.VALIDATION, error.problem)
        except ForbiddenUrl as error:
            return Reject(Category.VALIDATION, f"not called: {error}")
        except TypeError as error:  # from orjson
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        except (UnresolvedHost, NotSent) as error:
            return Retry(Category.TEMPORARY, f"not sent: {error}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request was sent: {error}")
        return outcome_of(answer, self._settings, now=self._now(), hide=self._hide)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    async def _ask(self, message: Message) -> HttpResponse:
        request = make_request(message, self._settings)
        target = check_url(request.url, self._settings.rules)
        began = time.monotonic()
        origin = f"{target.scheme}://{target.host}:{target.port}/"  # URLs that differ by message share one DNS lookup
        admitted = self._guard.known(origin) or await self._guard.admit(origin)
        left = self._settings.deadline - timedelta(seconds=time.monotonic() - began)
        return await self._http.request(
            self._settings.method,
            target.url,
            headers=request.headers,
            body=request.body,
            deadline=left,
            pinned=admitted.pin(message.attempt),
            max_response_size=self._settings.max_response_size,
        )


@dataclass(frozen=True, slots=True)
class FilledRequest:
    """A filled request."""

    url: str
    headers: Mapping[str, str]
    body: bytes | None


def make_request(message: Message, settings: HttpSettings) -> FilledRequest:
    """The request for one message; raises Invalid for a placeholder without a value."""
    values = _values(message, settings)
    try:
        url = fill_text(settings.url, values, partial(quote, safe=""))
        if has_dot_segments(url) and not has_dot_segments(settings.url):
            remedy = "Do not use . or .. as a path segment"
            raise Invalid("A value would change the path of the URL", remedy=remedy, field="to")
        return FilledRequest(url=url, headers=_filled_headers(settings, values), body=_filled_body(settings, values))
    except Missing as error:
        name = str(error).removeprefix("message.meta.")
        wanted = f"data.{name}" if str(error).startswith("message.meta.") else str(error)
        remedy = f"Give {wanted} with the message; the channel's request needs it"
        raise Invalid(f"{wanted} is missing", remedy=remedy, field=wanted) from error


def _values(message: Message, settings: HttpSettings) -> Mapping[str, Any]:
    address = message.recipient.strip()
    if not address or not address.isprintable():
        remedy = "Give the recipient's address"
        raise Invalid("The recipient is empty or has a control character", remedy=remedy, field="to")
    if settings.strip_non_numeric:
        address = "".join(letter for letter in address if letter.isascii() and letter.isdigit())
        if not address:
            raise Invalid("The recipient has no digits", remedy="Give a number", field="to")
    subject = message.content.get("subject")
    return {
        "address": f"{settings.address_prefix}{address}",
        "message": {
            "content": message.text,
            "subject": subject,
            "id": message.id,
            "attempt": message.attempt,
            "meta": {"subject": subject, **(message.content.get("data") or {})},
        },
        "secrets": settings.secrets,
    }


def _filled_headers(settings: HttpSettings, values: Mapping[str, Any]) -> Mapping[str, str]:
    filled = {name: fill(template, values) for name, template in settings.headers.items()}
    found = {name: as_text(value) for name, value in filled.items() if value is not DROPPED}
    for name, value in found.items():
        if not value.isascii() or not value.isprintable():
            remedy = "Use printable ASCII in what fills a header"
            raise Invalid(f"The header {name} cannot hold this value", remedy=remedy, field="data")
    if settings.body is not None and not any(name.lower() == "content-type" for name in found):
        found["content-type"] = settings.content_type
    return found


def _filled_body(settings: HttpSettings, values: Mapping[str, Any]) -> bytes | None:
    template, kind = settings.body, settings.content_type
    if template is None:
        return None
    if isinstance(template, str):
        return fill_text(template, values, _escape(kind)).encode(errors="replace")
    filled = fill(template, values)
    if "x-www-form-urlencoded" in kind:
        return urlencode({key: as_text(value) for key, value in filled.items()}).encode()
    return orjson.dumps(filled)


def _escape(content_type: str) -> Escape:
    """The escape function of a content type, which prevents injection."""
    if "xml" in content_type:
        return partial(xml_escape, entities={'"': "&quot;", "'": "&apos;"})
    if "x-www-form-urlencoded" in content_type:
        return quote_plus
    if "json" in content_type:
        return lambda value: orjson.dumps(value).decode()[1:-1]
    return str


def outcome_of(answer: HttpResponse, settings: HttpSettings, *, now: int, hide: Sequence[str]) -> Outcome:
    """The outcome of a response: by configured errors, then success rules, then status."""
    status, read = answer.status, _read(answer.body_prefix)
    wait = retry_after(answer.header("retry-after"), now=now)
    error = look_up(read, settings.error_path) if settings.error_path else None
    said = masked(as_text(error), hide) if error is not None else answer.shown(hide=hide)
    reason = f"HTTP {status}: {said}" if said else f"HTTP {status}"
    named = None if error is None else settings.errors.get(as_text(error).lower())
    if named is not None:
        return by_word(named, reason, wait)
    taken = 200 <= status < 300 if settings.success is None else status in settings.success
    if not taken:
        certain = settings.method in _SAFE_TO_REPEAT or status in settings.not_sent
        return outcome_by_status(ProviderReply(status, None, said, wait, read is not None), reason, certain=certain)
    if settings.success_path is None:
        return Done(receipt=_receipt(read, settings, hide))
    if read is None:
        return Unknown(f"HTTP {status}, but the response is unreadable: {said}")
    if look_up(read, settings.success_path) == settings.success_equals:
        return Done(receipt=_receipt(read, settings, hide))
    return Retry(Category.TEMPORARY, reason, after=wait)


def by_word(word: str, reason: str, wait: timedelta | None) -> Outcome:
    """The outcome of a configured error."""
    if word == "account":
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    category = Category(word)
    if category in (Category.PERMANENT, Category.VALIDATION):
        return Reject(category, reason)
    return Retry(category, reason, after=wait, whole_channel=category is Category.THROTTLING)


def _read(body: bytes) -> object:
    """The JSON of a response; None if it is anything else or truncated."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return None


def _receipt(read: object, settings: HttpSettings, hide: Sequence[str]) -> str | None:
    found = look_up(read, settings.receipt_path) if settings.receipt_path else None
    return None if found is None or isinstance(found, dict | list) else masked(as_text(found), hide)


# -- options


def _method(value: object) -> str:
    if not isinstance(value, str) or value.upper() not in METHODS:
        raise ValueError(f"must be one of {', '.join(METHODS)}")
    return value.upper()


def _table(value: object) -> Mapping[str, str]:
    """A table of strings; a string is parsed as JSON."""
    found = _read(value.encode()) if isinstance(value, str) else value
    if not isinstance(found, dict) or not all(isinstance(one, str) for one in found.values()):
        raise ValueError("must be a table of strings")
    return found


def _headers(value: object) -> Mapping[str, str]:
    found = _table(value)
    if not all(_FIELD.fullmatch(name) for name in found):
        raise ValueError("has an invalid header name")
    if len({name.lower() for name in found}) < len(found) or any(
        name.lower() in ("host", "content-length", "transfer-encoding", "connection") for name in found
    ):
        raise ValueError("has a duplicate header, or one that is set automatically")
    if not all(one.isascii() and one.isprintable() for one in found.values()):
        raise ValueError("has a value that is not printable ASCII")
    return found


def _body(value: object) -> object:
    """A table or list, sent as JSON or a form; or a string, which is parsed as JSON if possible."""
    if isinstance(value, str):
        found = _read(value.encode())
        return found if isinstance(found, dict | list) else text(value)
    if not isinstance(value, dict | list):
        raise ValueError("must be a table, a list or a string")
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise ValueError("has a value that JSON does not support") from error
    return value


def _statuses(value: object) -> frozenset[int]:
    given = value if isinstance(value, list | tuple) else [value]
    if not given or not all(type(one) is int and 100 <= one <= 599 for one in given):
        raise ValueError("must be a list of HTTP statuses, such as [200, 202]")
    return frozenset(cast(Sequence[int], given))


def _words(value: object) -> Mapping[str, str]:
    found = _table(value)
    if not set(found.values()) <= _WORDS:
        raise ValueError(f"each error must be one of {', '.join(sorted(_WORDS))}")
    return {name.lower(): word for name, word in found.items()}


def _judge(settings: HttpSettings) -> None:
    """Check the URL with the SSRF guard, and all placeholders."""
    templates = {"url": settings.url, "headers": settings.headers, "body": settings.body}
    for option, template in templates.items():
        _judge_names(option, template, settings)
    bare = re.sub(r"\{%.*?%\}", "x", settings.url)
    host = re.match(r"[^/?#]*//[^/?#]*", settings.url)
    if host is not None and "{%" in host[0]:
        raise ValueError("url", "a placeholder is not allowed in the host", "Write the host itself")
    try:
        check_url(bare, settings.rules)
    except ForbiddenUrl as error:
        remedy = "Use a public https URL; for development set allow_http and allow_private"
        raise ValueError("url", str(error), remedy) from error
    if settings.method == "GET" and settings.body is not None:
        raise ValueError("body", "GET has no body", "Put it into the URL, or use POST")
    form = "x-www-form-urlencoded" in settings.content_type
    if form and isinstance(settings.body, list):
        raise ValueError("body", "a form must be a table", "Write it as [channels.NAME.body]")
    if settings.errors and settings.error_path is None:
        raise ValueError("error_path", "it is missing", "Give the path of the error in the response")


def _judge_names(option: str, template: object, settings: HttpSettings) -> None:
    try:
        found = list(names(template))
    except ValueError as error:
        raise ValueError(option, str(error), "Write it as {%address%}") from error
    for name in found:
        known = name in _KNOWN or name.startswith("message.meta.")
        if not known and name.removeprefix("secrets.") not in settings.secrets:
            remedy = f"Use {', '.join(_KNOWN)}, message.meta.NAME, or a name of secrets as secrets.NAME"
            raise ValueError(option, f"unknown placeholder {name!r}", remedy)


KIND = channel_kind(HttpSettings, HttpChannel, _judge)
