"""One call to a provider's HTTP API, and its answer made safe to judge and to show.

The address of a provider comes from the operator and not from a user, so it is called as it is. Secrets are
taken out of everything that can be shown. A body is read up to a cap and parsed only as a JSON object; what
else comes (a proxy's HTML, ten megabytes of it) is judged by its status alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...model.outcome import Outcome, Reject, Retry, Unknown
from ...model.task import Category
from ...wire.http_client import LINGER, MAX_SHOWN, HttpClient, HttpResponse, MaybeSent, NotSent
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, SsrfRules, UrlTarget, check_url
from .options import text

MAX_ANSWER = 262_144

_ANY_HOST = SsrfRules(allow_private=True, allow_http=True)
_JSON = {"content-type": "application/json"}
_OUR_FAULT = frozenset({400, 405, 406, 411, 413, 414, 415, 422})
_ACCOUNT_STATUSES = frozenset({401, 402, 403, 407})
_THROTTLED = frozenset({420, 429})
_NOT_BEGUN = frozenset({408, 425, 503})  # refused before the work: certainly not done


def base_url(value: object) -> str:
    """Reader of the option: https, or http within one's own network, so that no token travels in clear."""
    given = text(value).rstrip("/")
    try:
        target = check_url(given, _ANY_HOST)
    except ForbiddenUrl as error:
        raise ValueError(f"{error}; it must be an https URL") from error
    if target.scheme != "https" and not _is_near(target):
        raise ValueError("it must be an https URL: over http everybody on the way could read the credentials")
    if "?" in given or "#" in given:
        raise ValueError("it must be a URL without ? and #")
    return given


def _is_near(target: UrlTarget) -> bool:
    """This machine, a private address, or a name without a dot, which only one's own network knows."""
    if target.address is not None:
        try:
            check_url(f"http://{target.host}/", SsrfRules(allow_http=True))
        except ForbiddenUrl:
            return True
        return False
    return "." not in target.host


class ProviderReply(NamedTuple):
    """An answer, whatever its status. `body` is None when it is not the JSON object that was expected."""

    status: int
    body: Mapping[str, Any] | None
    shown: str  # its beginning, short, escaped and without secrets
    wait: timedelta | None  # the wish of Retry-After
    is_json: bool  # or would be, had it not broken off

    @property
    def fields(self) -> Mapping[str, Any]:
        """The body's fields, or none."""
        return self.body or {}

    @property
    def is_success(self) -> bool:
        """Whether the status says that it was done."""
        return 200 <= self.status < 300

    def words(self, *said: object) -> str:
        """A reason: the status, and what was said about it (texts only, already without secrets)."""
        found = ": ".join(part for part in said if isinstance(part, str) and part) or self.shown
        return f"HTTP {self.status}: {found}" if found else f"HTTP {self.status}"


class ProviderApi:
    """A provider's API. `hide` are the secrets that an answer might repeat."""

    def __init__(
        self, base: str, *, deadline: timedelta, hide: Sequence[str] = (), now: Callable[[], int]
    ) -> None:
        self._base = base
        self._deadline = deadline
        self._hide = tuple(spelled for secret in hide for spelled in {secret, quote(secret, safe="")})
        self._now = now
        self._http = HttpClient(connect_within=deadline / 3, linger=LINGER)

    def begin(self) -> float:
        """When an attempt began: calls of one attempt share one deadline."""
        return time.monotonic()

    async def post(
        self, path: str, body: object, *, headers: Mapping[str, str] = {}, since: float | None = None
    ) -> ProviderReply | Outcome:
        """POST once: bytes as they are, anything else as JSON. An outcome instead of a reply says why there
        is none."""
        try:
            encoded = body if isinstance(body, bytes) else orjson.dumps(body)
        except TypeError as error:
            return Reject(Category.VALIDATION, f"the content cannot be written as JSON: {error}")
        return await self._ask("POST", path, encoded, {**_JSON, **headers}, since)

    async def get(self, path: str, *, headers: Mapping[str, str] = {}) -> ProviderReply | Outcome:
        """GET once; nothing is changed by it, so a lost answer is no doubt."""
        found = await self._ask("GET", path, None, headers, None)
        return without_side_effects(found)

    async def close(self) -> None:
        """Let go of connections."""
        await self._http.close()

    def shown(self, said: object) -> str:
        """What the other side said, fit for a page: short, one line, escaped, without secrets."""
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
            return Retry(Category.TEMPORARY, "not sent: no time was left")
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
            return Unknown(f"no answer after the request left: {self.shown(str(error))}")
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


def without_side_effects(found: ProviderReply | Outcome) -> ProviderReply | Outcome:
    """For a question that changes nothing: without an answer it is simply not answered."""
    if isinstance(found, Unknown):
        return Retry(Category.TEMPORARY, found.evidence)
    return found


def outcome_by_status(reply: ProviderReply, reason: str, *, certain: bool) -> Outcome:
    """What an answer means when nothing more specific is known about it.

    `certain`: the provider itself said that it failed. Otherwise a 5xx is a gateway's, which does not know
    whether the work behind it was done.
    """
    status = reply.status
    if status in _THROTTLED:
        return Retry(Category.THROTTLING, reason, after=reply.wait, whole_channel=True)
    if status in _NOT_BEGUN or (status >= 500 and certain):
        return Retry(Category.TEMPORARY, reason, after=reply.wait)
    if status >= 500 or reply.is_success:
        return Unknown(reason)
    if status < 400:
        return Reject(Category.PERMANENT, f"{reason} (a redirect is never followed)", whole_channel=True)
    if status in _ACCOUNT_STATUSES:
        return Reject(Category.PERMANENT, reason, whole_channel=True)
    return Reject(Category.VALIDATION if status in _OUR_FAULT else Category.PERMANENT, reason)


class ProviderError(NamedTuple):
    """What a provider's code means: its category, whether a retry helps and when, whose fault it is."""

    category: Category
    retry: bool = False
    account: bool = False
    after: timedelta | None = None
    hint: str = ""

    def outcome(self, reason: str, *, after: timedelta | None = None) -> Retry | Reject:
        """What becomes of the message; `after` is when to retry if the code does not say."""
        reason = f"{reason} ({self.hint})" if self.hint else reason
        if self.retry:
            return Retry(self.category, reason, after=self.after or after, whole_channel=self.account)
        return Reject(self.category, reason, whole_channel=self.account)


INVALID_REQUEST = ProviderError(Category.VALIDATION)
PERMANENT_ERROR = ProviderError(Category.PERMANENT)
ACCOUNT_ERROR = ProviderError(Category.PERMANENT, account=True)
TEMPORARY_ERROR = ProviderError(Category.TEMPORARY, retry=True)
RATE_LIMITED = ProviderError(Category.THROTTLING, retry=True, account=True)
