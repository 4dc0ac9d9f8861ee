"""Bulk requests: a stream of rows in, a stream of NDJSON results out, in constant memory.

An error after the response has started (database unavailable, too many rows) becomes an error line; the
summary then has `complete: false`, and the call can be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import orjson
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..inbound.roster import RosterImportProgress
from ..model.errors import TidingsError
from ..outbound.contacts.bulk_import import BulkImportProgress
from .errors import InternalError, MalformedBody, error_body, request_id_of
from .spool import Spool

NDJSON = "application/x-ndjson"
CSV = "text/csv"
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (CSV, NDJSON)},
    }
}
ImportProgress = BulkImportProgress | RosterImportProgress
_log = logging.getLogger("tidings.api")
_NEWLINE = orjson.OPT_APPEND_NEWLINE


class StreamChunk(NamedTuple):
    """Lines of the response, and their counts for the summary."""

    lines: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]


class NdjsonStreamResponse(Response):
    """The response. A separate task reads the request, whether or not the caller reads the response."""

    def __init__(
        self,
        request_id: str,
        counts: Sequence[str],
        *,
        remedy: str = "repeat the request",
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`counts` are the counters of the summary; `more` is called at the end for its other fields."""
        super().__init__(media_type=NDJSON)
        self._request_id = request_id
        self._counts: Counter[str] = Counter(dict.fromkeys(counts, 0))
        self._remedy = remedy
        self._more = more
        self._spool = Spool()
        self._has_started = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._failure: TidingsError | None = None

    def start(self, chunks: AsyncIterator[StreamChunk]) -> None:
        """Start reading and processing the request."""
        self._work = asyncio.create_task(self._process(chunks))

    async def first_answer(self) -> None:
        """Wait for the first line; an error before it is raised and gets its own HTTP status."""
        await self._has_started.wait()
        if self._failure is not None:
            raise self._failure

    async def _process(self, chunks: AsyncIterator[StreamChunk]) -> None:
        error: TidingsError | None = None
        try:
            async for chunk in chunks:
                self._spool.write(b"".join([orjson.dumps(line, option=_NEWLINE) for line in chunk.lines]))
                self._counts.update(chunk.counts)
                self._has_started.set()
        except TidingsError as known:
            error = known
        except ClientDisconnect:
            error = MalformedBody("the request was interrupted", remedy="repeat it")
        except Exception:
            _log.exception("request %s failed", self._request_id)
            error = InternalError("internal error", remedy=self._remedy)
        finally:
            if not self._has_started.is_set():
                self._failure = error
            self._finish(error)

    def _finish(self, error: TidingsError | None) -> None:
        if error is not None:
            self._spool.write(orjson.dumps({"error": error_body(error, self._request_id)}, option=_NEWLINE))
        summary = {**self._counts, **self._more(), "complete": error is None}
        self._spool.write(orjson.dumps({"summary": summary}, option=_NEWLINE))
        self._spool.end()
        self._has_started.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send lines as they are produced. A StreamingResponse would consume the request."""
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        assert self._work is not None
        try:
            async with aclosing(self._spool.chunks()) as chunks:
                async for chunk in chunks:
                    await send({"type": "http.response.body", "body": chunk, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            await self._work
        finally:
            self._work.cancel()


async def import_response(
    request: Request,
    imported: AsyncIterator[ImportProgress],
    counts: Sequence[str],
    *,
    more: Callable[[], Mapping[str, Any]] = dict,
    close: Callable[[], None] = lambda: None,
) -> NdjsonStreamResponse:
    """Run an import and stream its progress; `close` is called at its end."""
    response = NdjsonStreamResponse(request_id_of(request), counts, more=more)
    response.start(_import_progress(imported, counts, request_id_of(request), close))
    await response.first_answer()
    return response


async def _import_progress(
    imported: AsyncIterator[ImportProgress], counts: Sequence[str], request_id: str, close: Callable[[], None]
) -> AsyncIterator[StreamChunk]:
    """Yield each invalid row with its number, and the progress after every chunk."""
    done = dict.fromkeys(counts, 0)
    try:
        async for progress in imported:
            done = {name: n + progress.counts.get(name, 0) for name, n in done.items()}
            bad = [{"row": number, "error": error_body(error, request_id)} for number, error in progress.bad]
            yield StreamChunk([*bad, {"progress": done}], progress.counts)
    finally:
        close()
