"""Limits on headers and connections that apply before authentication.

A request's header is limited in size and time, and a server in its number of connections. Requests over a
limit get an error (431, 408, 503) and are closed, so that no caller can exhaust the memory, CPU or file
descriptors that the worker of the same process needs.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from uvicorn._types import ASGI3Application

BACKLOG = 256  # connections that may be accepted in one turn of the loop, before any can be rejected
_OWN_FILES = 64  # database, logs, listening sockets, the broker
_PER_SLOT = 2  # a connection in use and one kept alive
_RETRY_AFTER = 1  # seconds

_log = logging.getLogger("tidings.connections")


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """The limits of one server."""

    header_bytes: int = 65_536
    header_seconds: float = 10.0
    connections: int = 1000


def connection_budget(wanted: int, *, concurrency: int) -> int:
    """Return the number of connections that leaves enough file descriptors for the worker.

    Raises the soft limit of this process as far as the hard limit allows.
    """
    reserve = _PER_SLOT * concurrency + BACKLOG + sandbox_connections(concurrency) + _OWN_FILES
    files = _allow_files(wanted + reserve)
    budget = min(wanted, files - min(reserve, files * 3 // 4))
    if budget < wanted:
        _log.warning(
            "at most %d connections, not %d: this process may open %d files; raise its limit (ulimit -n)",
            budget, wanted, files,
        )  # fmt: skip
    return budget


def sandbox_connections(concurrency: int) -> int:
    """Return how many connections the simulated phone of this process may keep."""
    return 4 * concurrency + 64


def _allow_files(needed: int) -> int:
    """Return the limit on open files, raised to `needed` if possible."""
    if resource is None:
        return needed
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


class LimitedProtocol(HttpToolsProtocol):
    """One connection with limits.

    Complete header lines, including trailers, are counted exactly. An unfinished line is counted by the bytes
    since the parser's last callback, so at most twice the limit is ever buffered.
    """

    limits = ConnectionLimits()

    def __init__(self, *args: Any, **more: Any) -> None:
        super().__init__(*args, **more)
        self._counted = 0  # bytes of this request's target, headers and trailers
        self._unreported = 0  # bytes since the parser's last callback
        self._too_large = False
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: RequestResponseCycle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Reject the connection if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(503, "overloaded", "too many connections", "retry shortly")
        else:
            self._expect_header()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer and running responses."""
        self._header_received()
        self._stop_answering()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse the data in pieces no longer than a header may be."""
        most = self.limits.header_bytes
        for first in range(0, len(data), most):
            if self.transport.is_closing():
                return
            piece = data[first : first + most]
            if self._deadline is None and (self.cycle is None or self.cycle.response_complete):
                self._expect_header()  # also after a response: the rest of a body that is not read
            self._unreported += len(piece)
            super().data_received(piece)
            if self._unreported > most and not self.transport.is_closing():
                self._refuse_header()

    # Callbacks of the parser

    def on_message_begin(self) -> None:
        """Start a new request."""
        super().on_message_begin()
        self._counted = self._unreported = 0

    def on_url(self, url: bytes) -> None:
        """Count a part of the target."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Count a line of the header or trailer."""
        self._count(len(name) + len(value) + 4)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Stop the header timer."""
        self._unreported = 0
        self._header_received()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Pass on a part of the body."""
        self._unreported = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Finish the request."""
        self._unreported = 0
        super().on_message_complete()

    def _count(self, size: int) -> None:
        self._unreported = 0
        self._counted += size
        if self._counted > self.limits.header_bytes:
            self._too_large = True
            raise OverflowError  # stops the parser, which asks for a response

    # Rejections

    def send_400_response(self, msg: str) -> None:
        """Respond after the parser stopped."""
        if self._too_large:
            self._refuse_header()
        else:
            self._refuse(400, "malformed", "the request is not HTTP", "send an HTTP/1.1 request")

    def _expect_header(self) -> None:
        self._deadline = self.loop.call_later(self.limits.header_seconds, self._header_is_late)

    def _header_received(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _header_is_late(self) -> None:
        if self.transport.is_closing():
            return
        if self.cycle is not None and not self.cycle.response_complete:
            self._expect_header()  # nothing is read while an earlier request is being answered
        else:
            self._refuse(408, "timeout", "the header was not received in time", "send the whole header at once")

    def _refuse_header(self) -> None:
        remedy = f"send at most {self.limits.header_bytes:,} bytes; the limit is the setting max_header"
        self._refuse(431, "header_too_large", "the header is too large", remedy)

    def _refuse(self, status: int, code: str, problem: str, remedy: str) -> None:
        """Respond, unless another response has started, and close."""
        if self.cycle is None or self.cycle.response_complete:
            self.transport.write(_refusal(status, code, problem, remedy))
        self._stop_answering()
        self.transport.close()

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answering = cycle
        super()._start_asgi_task(cycle, app)

    def _stop_answering(self) -> None:
        """Cancel all responses: uvicorn ends only the last one of pipelined requests."""
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()


def limited_protocol(limits_: ConnectionLimits) -> type[LimitedProtocol]:
    """Return the protocol of a server with these limits."""

    class ConfiguredProtocol(LimitedProtocol):
        limits = limits_

    return ConfiguredProtocol


def _refusal(status: int, code: str, problem: str, remedy: str) -> bytes:
    """Return a response in the API's error format. It has no request id, because no request was read."""
    error = {"code": code, "message": problem, "field": None, "remedy": remedy, "request_id": ""}
    body = orjson.dumps({"error": error})
    lines = [b"content-type: application/json", b"content-length: %d" % len(body), b"connection: close"]
    if status == 503:
        lines.append(b"retry-after: %d" % _RETRY_AFTER)
    return STATUS_LINE[status] + b"\r\n".join([*lines, b"", body])
