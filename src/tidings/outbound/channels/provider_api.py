"""Call a provider's HTTP API; check what is sent, map status and error codes to outcomes.

The provider's URL comes from the operator, so the SSRF guard does not apply. Secrets are masked in everything
that can be shown. A body is read up to a limit and parsed only as a JSON object; anything else (a proxy's
HTML) is classified by its status alone.
"""

from __future__ import annotations

import re
import time
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Annotated, Any, NamedTuple
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...inputs.fields import Field, check_fields
from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Outcome, Reject, Retry, Unknown
from ...model.task import Category
from ...wire.http_client import LINGER, MAX_SHOWN, HttpClient, HttpResponse, MaybeSent, NotSent
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import api_url
from .base import NoLookup
from .long_text import send_parts
from .options import matching, text

MAX_ANSWER = 262_144

_JSON = {"content-type": "application/json"}
_OUR_FAULT = frozenset({400, 405, 406, 411, 413, 414, 415, 422})
_ACCOUNT_STATUSES = frozenset({401, 402, 403, 407})
_THROTTLED = frozenset({420, 429})
_NOT_BEGUN = frozenset({408, 425, 503})  # refused before processing: certainly not sent

Credential = Annotated[str, matching(re.compile(r"[!-~]{1,500}"), "must be printable ASCII without spaces")]
# https, or http within a private network, to protect the credentials
BaseUrl = Annotated[str, lambda value: api_url(text(value))]


class ProviderReply(NamedTuple):
    """A response of any status; `body` is None unless it is a JSON object."""

    status: int
    body: Mapping[str, Any] | None
    shown: str  # its start: short, escaped and without secrets
    wait: timedelta | None  # Retry-After
    is_json: bool  # or would be, if not truncated

    @property
    def fields(self) -> Mapping[str, Any]:
        """The body's fields, or an empty mapping."""
        return self.body or {}

    def inner(self, name: str) -> Mapping[str, Any]:
        """The fields of an object in the body, or an empty mapping."""
        found = self.fields.get(name)
        return found if isinstance(found, dict) else {}

    def exact_wait(self, seconds: object, now: int) -> timedelta | None:
        """The wait that the body tells, which may have fractions of a second, or that of Retry-After."""
        exact = retry_after(str(seconds), now=now) if isinstance(seconds, int | float) else None
        return self.wait if exact is None else exact

    @property
    def is_success(self) -> bool:
        """Whether the status is 2xx."""
        return 200 <= self.status < 300

    def words(self, *said: object) -> str:
        """A reason: the status and the given texts, which must be without secrets."""
        found = ": ".join(part for part in said if isinstance(part, str) and part) or self.shown
        return f"HTTP {self.status}: {found}" if found else f"HTTP {self.status}"


class ProviderApi:
    """A provider's API; `hide` are the secrets to mask in responses."""

    def __init__(self, base: str, *, deadline: timedelta, hide: Sequence[str] = (), now: Callable[[], int]) -> None:
        self._base = base
        self._deadline = deadline
        self._hide = tuple(spelled for secret in hide for spelled in {secret, quote(secret, safe="")})
        self._now = now
        self._http = HttpClient(connect_within=deadline / 3, linger=LINGER)

    def begin(self) -> float:
        """The start of an attempt, whose calls share one deadline."""
        return time.monotonic()

    async def post(
        self, path: str, body: object, *, headers: Mapping[str, str] = {}, since: float | None = None
    ) -> ProviderReply | Outcome:
        """POST once, bytes as given and other values as JSON; an Outcome if there is no reply."""
        try:
            encoded = body if isinstance(body, bytes) else orjson.dumps(body)
        except TypeError as error:
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        return await self._ask("POST", path, encoded, {**_JSON, **headers}, since)

    async def get(self, path: str, *, headers: Mapping[str, str] = {}) -> ProviderReply | Outcome:
        """GET once; a lost answer is retryable, because nothing was changed."""
        found = await self._ask("GET", path, None, headers, None)
        return found if isinstance(found, ProviderReply) else without_side_effects(found)

    async def close(self) -> None:
        """Close all connections."""
        await self._http.close()

    def shown(self, said: object) -> str:
        """A provider's text fit to show: short, one line, escaped, without secrets."""
        if not isinstance(said, str):
            return ""
        for secret in self._hide:
            said = said.replace(secret, "[hidden]")
        said = said.strip()[:MAX_SHOWN]
        return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in said)

    async def _ask(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], since: float | None
    ) -> ProviderReply | Outcome:
        left = self._deadline
        if since is not None:
            left -= timedelta(seconds=time.monotonic() - since)
        if left <= timedelta():
            return Retry(Category.TEMPORARY, "not sent: the deadline has passed")
        try:
            answer = await self._http.request(
                method,
                Url(self._base + path),
                headers=headers,
                body=body,
                deadline=left,
                pinned=None,
                max_response_size=MAX_ANSWER,
            )
        except NotSent as error:
            return Retry(Category.TEMPORARY, f"not sent: {self.shown(str(error))}")
        except MaybeSent as error:
            return Unknown(f"no answer after the request was sent: {self.shown(str(error))}")
        return self._read(answer)

    def _read(self, answer: HttpResponse) -> ProviderReply:
        wait = retry_after(answer.header("retry-after"), now=self._now())
        raw = answer.body_prefix.strip()
        try:
            body = orjson.loads(raw)
        except orjson.JSONDecodeError:
            body = None
        shown = self.shown(raw[: 8 * MAX_SHOWN].decode(errors="replace"))
        is_json = not raw or raw.startswith(b"{")
        return ProviderReply(answer.status, body if isinstance(body, dict) else None, shown, wait, is_json)


def provider_fields_of(content: Mapping[str, Any], known: Mapping[str, Field], provider: str) -> dict[str, Any]:
    """The non-null fields of `data`; raises Invalid for an unknown one."""
    data = content.get("data")
    if data is None:
        return {}
    if not isinstance(data, dict):
        remedy = f"use an object with some of: {', '.join(known)}"
        raise Invalid("data is not an object", field="data", remedy=remedy)
    try:
        given = check_fields(data, known)
    except Invalid as error:
        problem = f"{provider} cannot use data: {error.problem}"
        raise Invalid(problem, field=f"data.{error.field}", remedy=error.remedy) from error
    return {name: value for name, value in given.items() if value is not None}


class ProviderPost(NamedTuple):
    """One POST; a body of bytes is sent as it is, any other as JSON."""

    path: str
    body: Any
    headers: Mapping[str, str] = {}


class ProviderChannel(NoLookup):
    """A channel that calls a provider's API, once for each part of a message."""

    _api: ProviderApi

    @abstractmethod
    def requests_of(self, recipient: str, content: Mapping[str, Any], id_: str = "") -> Sequence[ProviderPost]:
        """The requests for this content; raises Invalid for what the provider would always reject."""

    @abstractmethod
    def _outcome(self, reply: ProviderReply, recipient: str = "", attempt: int = 1) -> Outcome:
        """The outcome of a reply."""

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for what the provider would always reject."""
        self.requests_of(recipient, content)

    async def send(self, message: Message) -> Outcome:
        """Make one call, or one per part of a long text, within one deadline."""
        try:
            requests = self.requests_of(message.recipient, message.content, message.id)
        except Invalid as error:
            return Reject(Category.VALIDATION, str(error))
        since = self._api.begin()

        async def send(request: ProviderPost, id_: str) -> Outcome:
            reply = await self._reply(request, id_, since)
            if not isinstance(reply, ProviderReply):
                return reply
            return self._outcome(reply, message.recipient, message.attempt)

        return await send_parts(message.id, requests, send)

    async def _reply(self, request: ProviderPost, id_: str, since: float) -> ProviderReply | Outcome:
        headers = {**request.headers, "x-request-id": id_}
        return await self._api.post(request.path, request.body, headers=headers, since=since)

    async def close(self) -> None:
        """Close all connections."""
        await self._api.close()


def masked(text: str, hide: Sequence[str]) -> str:
    """A text fit to show: short, escaped, without these secrets."""
    for secret in hide:
        text = text.replace(secret, "[hidden]")
    return repr(text.strip()[:MAX_SHOWN])[1:-1]


def without_side_effects(found: Outcome) -> Outcome:
    """The outcome of a read: a lost answer is a temporary error, not an unknown outcome."""
    if isinstance(found, Unknown):
        return Retry(Category.TEMPORARY, found.evidence)
    return found


def outcome_by_status(reply: ProviderReply, reason: str, *, certain: bool) -> Outcome:
    """The outcome of a response by its status alone.

    `certain`: the provider itself reports the failure. Otherwise a 5xx may come from a gateway, which does
    not know whether the request was processed.
    """
    status = reply.status
    if status in _THROTTLED:
        return Retry(Category.THROTTLING, reason, after=reply.wait, whole_channel=True)
    if status in _NOT_BEGUN or (status >= 500 and certain):
        return Retry(Category.TEMPORARY, reason, after=reply.wait)
    if status >= 500 or reply.is_success:
        return Unknown(reason)
    if status < 400:
        return Reject(Category.PERMANENT, f"{reason} (redirects are not followed)", whole_channel=True)
    if status in _ACCOUNT_STATUSES:
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    return Reject(Category.VALIDATION if status in _OUR_FAULT else Category.PERMANENT, reason)


class ProviderError(NamedTuple):
    """The meaning of a provider's error code: category, retry, delay, and whether it affects the account."""

    category: Category
    retry: bool = False
    account: bool = False
    after: timedelta | None = None
    hint: str = ""
    opted_out: bool = False

    def outcome(self, reason: str, *, after: timedelta | None = None) -> Retry | Reject:
        """The outcome; `after` is the retry delay if the code has none."""
        reason = f"{reason} ({self.hint})" if self.hint else reason
        if self.retry:
            return Retry(self.category, reason, after=self.after or after, whole_channel=self.account)
        return Reject(self.category, reason, whole_channel=self.account, opted_out=self.opted_out)


INVALID_REQUEST = ProviderError(Category.VALIDATION)
PERMANENT_ERROR = ProviderError(Category.PERMANENT)
OPTED_OUT = ProviderError(Category.PERMANENT, opted_out=True)
ACCOUNT_ERROR = ProviderError(Category.PERMANENT, account=True)
TEMPORARY_ERROR = ProviderError(Category.TEMPORARY, retry=True)
RATE_LIMITED = ProviderError(Category.THROTTLING, retry=True, account=True)
