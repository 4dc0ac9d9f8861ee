"""HTTP calls of a connector: SSRF guard, Retry-After, errors by status, secrets redacted.

Only the job names the host: values of records are quoted in paths. Every address of the host must be allowed
by the job's SSRF rules, and the connection is pinned to a checked address.

    address not allowed      PERMISSION, not sent
    not connected            TEMPORARY, not sent
    no answer in time        TIMEOUT   } `sent` for a write
    cut, reset               TEMPORARY } `sent` for a write
    5xx                      SERVER    } `sent` for a write
    2xx that cannot be read  AMBIGUOUS, `sent`, for a write; TEMPORARY for a read
    everything else          by its status, certainly not applied
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...wire.http_client import MAX_SHOWN, HttpClient, HttpResponse, MaybeSent, NotSent, resolve_host
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, SsrfGuard, SsrfRules, UnresolvedHost, has_dot_segments
from .port import ConnectorError, ErrorKind, invalid

MAX_ANSWER = 64 << 20

_JSON = {"content-type": "application/json", "accept": "application/json"}
_BY_STATUS: Mapping[int, ErrorKind] = {
    401: ErrorKind.CREDENTIALS,
    402: ErrorKind.PERMISSION,
    403: ErrorKind.PERMISSION,
    404: ErrorKind.NOT_FOUND,
    407: ErrorKind.PERMISSION,
    408: ErrorKind.TEMPORARY,
    410: ErrorKind.NOT_FOUND,
    409: ErrorKind.PERMANENT,
    420: ErrorKind.RATE_LIMIT,
    425: ErrorKind.TEMPORARY,
    429: ErrorKind.RATE_LIMIT,
} | dict.fromkeys((400, 405, 406, 411, 413, 414, 415, 422), ErrorKind.VALIDATION)


class ApiReply(NamedTuple):
    """A successful response: parsed body and headers."""

    status: int
    body: Any
    headers: HttpResponse


class ApiRefusal(NamedTuple):
    """An error response, for connectors that know more about it than its status."""

    status: int
    body: Any  # None if it is not JSON
    redact: str
    wait: timedelta | None
    answer: HttpResponse
    writes: bool

    def to_error(
        self,
        failure: ErrorKind | None = None,
        *,
        said: object = None,
        field: object = None,
        code: object = None,
        wait: timedelta | None = None,
    ) -> ConnectorError:
        """Return the error for the status, unless the caller knows better."""
        words = said if isinstance(said, str) and said else self.redact
        return ConnectorError(
            failure or by_status(self.status),
            f"HTTP {self.status}: {words}" if words else f"HTTP {self.status}",
            wait=wait or self.wait,
            sent=self.writes and self.status >= 500,
            field=field if isinstance(field, str) else None,
            code=code if isinstance(code, str) else str(self.status),
        )


Explain = Callable[[ApiRefusal], ConnectorError]


def by_status(status: int) -> ErrorKind:
    """Return the kind of error for a status. Redirects are never followed."""
    if status >= 500:
        return ErrorKind.SERVER
    if status < 400:
        return ErrorKind.PERMANENT
    return _BY_STATUS.get(status, ErrorKind.UNKNOWN)


class ApiClient:
    """The API of one system, called within `rules`. `hide` are secrets that a response might repeat."""

    def __init__(
        self,
        base: str,
        *,
        headers: Mapping[str, str],
        deadline: timedelta,
        rules: SsrfRules,
        hide: Sequence[str],
        now: Callable[[], int],
        explain: Explain = ApiRefusal.to_error,
    ) -> None:
        self._base, self._headers, self._deadline = base, {**_JSON, **headers}, deadline
        self._hide = tuple(spelled for secret in hide for spelled in {secret, quote(secret, safe="")})
        self._now, self._explain = now, explain
        # A third each for DNS and connecting: what then times out is the answer.
        self._guard = SsrfGuard(rules, partial(resolve_host, within=deadline / 3))
        self._http = HttpClient(connect_within=deadline / 3)
        self._address = 1  # index of the address in use; the next after a failed connection

    async def read(self, path: str, body: object = None) -> ApiReply:
        """Read something; a body makes it a POST without side effects."""
        method = "GET" if body is None else "POST"
        return await self._ask(method, path, body, writes=False)

    async def write(
        self, method: str, path: str, body: object, *, headers: Mapping[str, str] = {}, any_answer: bool = False
    ) -> ApiReply:
        """Change something; with `any_answer`, a success need not be JSON and its body is None."""
        return await self._ask(method, path, body, writes=True, headers=headers, any_answer=any_answer)

    async def close(self) -> None:
        await self._http.close()

    async def _ask(
        self,
        method: str,
        path: str,
        body: object,
        *,
        writes: bool,
        headers: Mapping[str, str] = {},
        any_answer: bool = False,
    ) -> ApiReply:
        if has_dot_segments(path):
            raise invalid("a value would change the path of the API: it is . or ..")
        url, encoded = _url(self._base + path), _encoded(body)
        try:
            answer = await self._request(method, url, {**self._headers, **headers}, encoded)
        except ForbiddenUrl as error:
            raise ConnectorError(ErrorKind.PERMISSION, f"not called: {error}") from error
        except (UnresolvedHost, NotSent) as error:
            raise ConnectorError(ErrorKind.TEMPORARY, f"not sent: {self.redact(str(error))}") from error
        except MaybeSent as error:
            late = isinstance(error.__cause__, TimeoutError)
            reason = f"no answer after the request left: {self.redact(str(error))}"
            raise ConnectorError(ErrorKind.TIMEOUT if late else ErrorKind.TEMPORARY, reason, sent=writes) from error
        return self._parse_response(answer, writes=writes, any_answer=any_answer)

    async def _request(self, method: str, url: Url, headers: Mapping[str, str], body: bytes | None) -> HttpResponse:
        """Call the host at a checked address; on a failed connection try its next address."""
        began, origin = time.monotonic(), url.origin_ascii
        admitted = self._guard.known(origin) or await self._guard.admit(origin)
        others = len(admitted.addresses) - 1
        ask = partial(self._http.request, method, url, headers=headers, body=body, max_response_size=MAX_ANSWER)
        while True:
            left = self._deadline - timedelta(seconds=time.monotonic() - began)
            try:
                return await ask(deadline=left, pinned=admitted.pin(self._address))
            except NotSent:
                self._address, others = self._address + 1, others - 1
                if others < 0 or time.monotonic() - began > self._deadline.total_seconds() / 3:
                    raise

    def _parse_response(self, answer: HttpResponse, *, writes: bool, any_answer: bool) -> ApiReply:
        raw = answer.body_prefix.strip()
        try:
            body = orjson.loads(raw) if raw else None
            is_json = bool(raw) or answer.status == 204
        except orjson.JSONDecodeError:
            body, is_json = None, False
        if 200 <= answer.status < 300:
            if is_json or any_answer:
                return ApiReply(answer.status, body, answer)
            failure = ErrorKind.AMBIGUOUS if writes else ErrorKind.TEMPORARY
            reason = "the response is truncated or not JSON"
            raise ConnectorError(failure, reason, sent=writes, code=str(answer.status))
        wait = retry_after(answer.header("retry-after"), now=self._now())
        redact = self.redact(raw[: 8 * MAX_SHOWN].decode(errors="replace"))
        raise self._explain(ApiRefusal(answer.status, self._clean(body), redact, wait, answer, writes))

    def redact(self, said: str) -> str:
        """Redact text from the other side for display: short, one line, escaped, without secrets."""
        for secret in self._hide:
            said = said.replace(secret, "[hidden]")
        said = said.strip()[:MAX_SHOWN]
        return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in said)

    def _clean(self, body: Any) -> Any:
        """Redact all texts of an error body."""
        if isinstance(body, str):
            return self.redact(body)
        if isinstance(body, dict):
            return {str(name): self._clean(value) for name, value in list(body.items())[:50]}
        if isinstance(body, list):
            return [self._clean(value) for value in body[:50]]
        return body


@lru_cache(maxsize=16)
def _url(address: str) -> Url:
    return Url(address)


def _encoded(body: object) -> bytes | None:
    if body is None or isinstance(body, bytes):
        return body
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise invalid(f"the record cannot be encoded as JSON: {error}") from error
