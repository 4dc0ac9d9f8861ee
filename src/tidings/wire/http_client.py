"""HTTP client: sends a request once, and tells whether a failed one may have been sent.

    NotSent      nothing was sent: no connection, no address, a local error
    MaybeSent    the request was sent, or may have been; there was no response

The difference decides between a plain retry and an Unknown outcome. The client library's error classes do not
tell it: a connection that was cut *after* the request is a ConnectError, too. Only the chain of causes does:
it contains `client error (Connect)` if, and only if, the connection was never made. Unrecognized errors count
as MaybeSent, because a duplicate is worse than an unknown outcome.

Redirects, decompression, cookies and environment proxies are off; the response is read raw and up to a limit;
one deadline covers everything. Once the status line is received it decides: a body that is slow, endless or
cut off changes nothing.

The library's own timer drops a response that arrived while the process was paused, because it is checked
before the socket. With a `linger` the deadline is enforced here instead (`wire/deadlines.py`), and the
library's timer runs that much longer: cancelling does not end a request in the library, so its timer must.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import nullcontext
from datetime import timedelta
from typing import NamedTuple

from pyreqwest.client import Client, ClientBuilder
from pyreqwest.exceptions import DetailedPyreqwestError, PyreqwestError
from pyreqwest.http import Url

from .. import __version__
from ..model.start_check import check_start
from .deadlines import deadline as expiring

MOST_CLIENTS = 64  # each costs 136 KB and 8 ms to build
IDLE_FOR = timedelta(seconds=4)  # less than the 5 s of common servers, to avoid unknown outcomes
LINGER = timedelta(seconds=30)  # the longest pause beyond a deadline after which a response is still used
MAX_SHOWN = 200  # characters of a response that are ever shown

CHUNK = 65_536  # bytes of a streamed body at a time

Sink = Callable[[bytes], object]
RequestBody = bytes | Callable[[], AsyncIterator[bytes]] | None  # a function streams it, again for each attempt

_NEVER_CONNECTED = "client error (Connect)"


class HttpFailure(Exception):
    """There was no response; the text says why and never contains the URL."""


class NotSent(HttpFailure):
    """Certainly not sent."""


class MaybeSent(HttpFailure):
    """May have been sent."""


class HttpResponse(NamedTuple):
    """A response. `headers` ignores case; `body_prefix` is raw and may be truncated."""

    status: int
    headers: Mapping[str, str]
    body_prefix: bytes
    elapsed: timedelta

    def header(self, name: str) -> str | None:
        """Return a header's value; undecodable bytes count as absent."""
        try:
            return self.headers.get(name)
        except ValueError:
            return None

    def shown(self, *, hide: Sequence[str] = ()) -> str:
        """Return the start of the body for a log or page: short, one line, escaped, without secrets."""
        text = self.body_prefix[: 8 * MAX_SHOWN].decode(errors="replace")
        for secret in hide:
            text = text.replace(secret, "[hidden]")
        return repr(text.strip()[:MAX_SHOWN])[1:-1]


class HttpClient:
    """Keep-alive connections to many hosts. Requests use addresses that the caller has checked (SSRF).

    The underlying client pins addresses for good, so there is one per (host, address), in an LRU cache.
    `connect_within` must be at most half of each deadline: a slower connection is NotSent, while the deadline
    itself cannot tell and gives MaybeSent. The TCP user timeout is twice that, counted by Linux from the
    first retransmission timeout: a broken network does not deliver a request minutes later, but perhaps
    shortly after its deadline, behind the attempt that replaced it. A packet that waits for its neighbor's
    address may still leave within three seconds. With a `linger`, a response that arrived during a pause of
    this process counts, if the pause ended within that time of the deadline.
    """

    def __init__(self, *, connect_within: timedelta, linger: timedelta = timedelta(), most: int = MOST_CLIENTS) -> None:
        self._connect_within = connect_within
        self._linger = linger
        self._most = most
        self._clients: OrderedDict[tuple[str, str] | None, Client] = OrderedDict()
        self._building: dict[tuple[str, str] | None, asyncio.Task[Client]] = {}
        self._closed = False

    async def request(
        self,
        method: str,
        url: Url,
        *,
        headers: Mapping[str, str],
        body: RequestBody = None,
        deadline: timedelta,
        pinned: str | None,
        max_response_size: int,
        sink: Sink | None = None,
    ) -> HttpResponse:
        """Send a request once and return the response, whatever its status. Raises NotSent or MaybeSent.

        `pinned` None leaves the DNS lookup to the system: only for hosts that are addresses, and configured
        URLs. With a `sink`, the body of a 200 goes there in chunks, and one that is cut off raises MaybeSent.
        """
        began = time.monotonic()
        key = None if pinned is None else (url.host_str or "", pinned)
        client = self._clients.get(key)
        if client is None:
            client = await self._client(key)
            check_start()  # otherwise all requests that waited for the client would be sent at once
            deadline -= timedelta(seconds=time.monotonic() - began)
            if deadline <= timedelta():
                raise NotSent("the deadline passed before the request was sent")
        else:
            self._clients.move_to_end(key)
        try:
            asked = client.request(method, url).headers(headers)
            if body is not None:
                asked = asked.body_bytes(body) if isinstance(body, bytes) else asked.body_stream(body())
            request = (
                asked.timeout(deadline + self._linger)
                .streamed_read_buffer_limit(0)  # the head only: the status must not wait for the body
                .build_streamed()
            )
        except (PyreqwestError, ValueError) as error:
            raise NotSent("the request could not be built") from error
        answer: HttpResponse | None = None
        kept = expiring(deadline.total_seconds()) if self._linger else nullcontext()
        try:
            async with kept, request as response:
                spent = timedelta(seconds=time.monotonic() - began)
                answer = HttpResponse(response.status, response.headers, b"", spent)
                while sink is not None and answer.status == 200 and (chunk := await response.body_reader.read(CHUNK)):
                    sink(bytes(chunk))
                prefix = await response.body_reader.read(max_response_size)
                spent = timedelta(seconds=time.monotonic() - began)
                answer = answer._replace(body_prefix=bytes(prefix or b""), elapsed=spent)
        except PyreqwestError as error:
            if answer is None or sink is not None:
                raise classify_failure(error) from error
        except TimeoutError as error:
            if answer is None or sink is not None:
                raise MaybeSent("operation timed out") from error
        assert answer is not None  # the request context suppresses nothing
        return answer

    async def close(self) -> None:
        """Close all connections; running requests end as MaybeSent."""
        self._closed = True
        clients = list(self._clients.values())
        self._clients.clear()
        for client in clients:
            await client.close()

    async def _client(self, key: tuple[str, str] | None) -> Client:
        if self._closed:
            raise NotSent("the channel is closed")
        task = self._building.get(key)
        if task is None:
            task = asyncio.create_task(self._build(key))
            self._building[key] = task
            task.add_done_callback(lambda _: self._building.pop(key, None))
        return await asyncio.shield(task)

    async def _build(self, key: tuple[str, str] | None) -> Client:
        """Build a client in a thread (8 ms). Evicted ones are not closed, so running requests finish."""
        try:
            client = await asyncio.to_thread(_new_client, key, self._connect_within)
        except (PyreqwestError, ValueError) as error:
            raise NotSent("no client could be built for this host") from error
        if self._closed:
            raise NotSent("the channel is closed")
        self._clients[key] = client
        if len(self._clients) > self._most:
            self._clients.popitem(last=False)
        return client


def _new_client(pin: tuple[str, str] | None, connect_within: timedelta) -> Client:
    builder = (
        ClientBuilder()
        .no_proxy()
        .follow_redirects(False)
        .referer(False)
        .gzip(False)
        .brotli(False)
        .zstd(False)
        .deflate(False)
        .connect_timeout(connect_within)
        .tcp_user_timeout(2 * connect_within)
        .pool_idle_timeout(IDLE_FOR)
        .user_agent(f"tidings/{__version__}")
    )
    if pin is not None:
        builder = builder.resolve(*pin, 0)  # port 0 keeps the URL's port
    return builder.build()


def classify_failure(error: PyreqwestError) -> HttpFailure:
    """Return NotSent or MaybeSent, by the chain of causes."""
    causes = _causes(error)
    # The first cause contains the whole URL with its query: it is never passed on.
    text = ": ".join(cause for cause in causes[1:] if not cause.startswith("client error"))
    reason = text or error.message
    return NotSent(reason) if _NEVER_CONNECTED in causes else MaybeSent(reason)


def _causes(error: PyreqwestError) -> list[str]:
    if not isinstance(error, DetailedPyreqwestError):
        return []
    return [cause["message"] for cause in error.details.get("causes") or ()]


async def resolve_host(host: str, *, within: timedelta) -> tuple[str, ...]:
    """Return all addresses of a name. Raises OSError or TimeoutError."""
    async with asyncio.timeout(within.total_seconds()):
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
    return tuple(str(address[0]) for *_, address in found)
