"""HTTP calls of a connector: SSRF guard, Retry-After, errors by status, secrets redacted.

Only the job names the host: values of records are quoted in paths. Every address of the host must be allowed
by the job's SSRF rules, and the connection is pinned to a checked address. Only downloads follow redirects: under
the same rules, without credentials, and never from https to http. Files are streamed in both directions.

    address not allowed      PERMISSION, not sent
    not connected            TEMPORARY, not sent
    no answer in time        TIMEOUT   } `sent` for a write
    cut, reset               TEMPORARY } `sent` for a write
    5xx                      SERVER    } `sent` for a write
    2xx that cannot be read  AMBIGUOUS, `sent`, for a write; TEMPORARY for a read
    everything else          by its status, certainly not applied
"""

from __future__ import annotations

import mimetypes
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache, partial
from typing import Any, BinaryIO, NamedTuple, cast
from urllib.parse import quote

import orjson
from pyreqwest.http import Url

from ...wire.http_client import (
    CHUNK,
    MAX_SHOWN,
    HttpClient,
    HttpResponse,
    MaybeSent,
    NotSent,
    RequestBody,
    Sink,
    resolve_host,
)
from ...wire.retry_after import retry_after
from ...wire.ssrf_guard import ForbiddenUrl, SsrfGuard, SsrfRules, UnresolvedHost, has_dot_segments
from .port import ConnectorError, ErrorKind, invalid

MAX_ANSWER = 64 << 20
MAX_REDIRECTS = 3

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

    async def upload(self, path: str, form: Mapping[str, str], name: str, file: BinaryIO) -> ApiReply:
        """POST a file with other fields of a form (multipart/form-data), streamed from disk."""
        boundary = secrets.token_hex(16)
        kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
        parts = [f'name="{field}"\r\n\r\n{value}\r\n' for field, value in form.items()]
        parts.append(f'name="file"; filename="{name}"\r\nContent-Type: {kind}\r\n\r\n')
        head = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {part}" for part in parts).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()

        async def body() -> AsyncIterator[bytes]:
            file.seek(0)
            yield head
            while chunk := file.read(CHUNK):
                yield chunk
            yield tail

        size = len(head) + file.seek(0, 2) + len(tail)
        headers = {"content-type": f"multipart/form-data; boundary={boundary}", "content-length": str(size)}
        return await self._ask("POST", path, body, writes=True, headers=headers)

    async def download(self, path: str, file: BinaryIO, limit: int) -> None:
        """Stream a response into a file. Redirects to a storage host are called without credentials."""

        def keep(chunk: bytes) -> None:
            if file.tell() + len(chunk) > limit:
                raise invalid(f"the file is too large: the target accepts at most {limit:,} bytes", "size")
            file.write(chunk)

        url, headers = self._checked_url(path), self._headers
        for _ in range(MAX_REDIRECTS + 1):
            answer = await self._call("GET", url, headers, None, writes=False, sink=keep)
            where = answer.header("location")
            if where is None or not 300 <= answer.status < 400:
                break
            url, headers = _redirected(url, where), {}
        if answer.status != 200:
            self._parse_response(answer, writes=False, any_answer=False)
            raise ConnectorError(ErrorKind.PERMANENT, f"HTTP {answer.status}: no file", code=str(answer.status))

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
        url, encoded = self._checked_url(path), _encoded(body)
        answer = await self._call(method, url, {**self._headers, **headers}, encoded, writes=writes)
        return self._parse_response(answer, writes=writes, any_answer=any_answer)

    def _checked_url(self, path: str) -> Url:
        if has_dot_segments(path):
            raise invalid("a value would change the path of the API: it is . or ..")
        return _url(self._base + path)

    async def _call(
        self,
        method: str,
        url: Url,
        headers: Mapping[str, str],
        body: RequestBody,
        *,
        writes: bool,
        sink: Sink | None = None,
    ) -> HttpResponse:
        """Call a URL and return its response, whatever its status; raises ConnectorError without one."""
        try:
            return await self._request(method, url, headers, body, sink)
        except ForbiddenUrl as error:
            raise ConnectorError(ErrorKind.PERMISSION, f"not called: {error}") from error
        except (UnresolvedHost, NotSent) as error:
            raise ConnectorError(ErrorKind.TEMPORARY, f"not sent: {self.redact(str(error))}") from error
        except MaybeSent as error:
            late = isinstance(error.__cause__, TimeoutError)
            reason = f"no answer after the request left: {self.redact(str(error))}"
            raise ConnectorError(ErrorKind.TIMEOUT if late else ErrorKind.TEMPORARY, reason, sent=writes) from error

    async def _request(
        self, method: str, url: Url, headers: Mapping[str, str], body: RequestBody, sink: Sink | None
    ) -> HttpResponse:
        """Call the host at a checked address; on a failed connection try its next address."""
        began, origin = time.monotonic(), url.origin_ascii
        admitted = self._guard.known(origin) or await self._guard.admit(origin)
        others = len(admitted.addresses) - 1
        ask = partial(self._http.request, method, url, headers=headers, body=body, sink=sink)
        while True:
            left = self._deadline - timedelta(seconds=time.monotonic() - began)
            try:
                return await ask(deadline=left, pinned=admitted.pin(self._address), max_response_size=MAX_ANSWER)
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


def _redirected(url: Url, where: str) -> Url:
    """Return the URL of a redirect; the SSRF rules apply to it when it is called."""
    try:
        found = url.join(where)
    except ValueError:
        raise ConnectorError(ErrorKind.PERMANENT, "the redirect has an invalid URL") from None
    if found.username or found.password or (url.scheme == "https" and found.scheme != "https"):
        raise ConnectorError(ErrorKind.PERMISSION, "not called: the redirect has a user name, or leaves https")
    return found


def _encoded(body: object) -> RequestBody:
    if body is None or isinstance(body, bytes) or callable(body):
        return cast(RequestBody, body)
    try:
        return orjson.dumps(body)
    except TypeError as error:
        raise invalid(f"the record cannot be encoded as JSON: {error}") from error
