"""An exchange: a stream of lines in, a stream of lines out, memory flat however long they are.

What can only be known on the way (the database went away, too many lines) ends the answer with an error line;
its summary then says `complete: false`, and the call can be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import orjson
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ..model.errors import TidingsError
from ..outbound.contacts.bulk_import import BulkImportProgress
from .errors import InternalError, MalformedBody, error_body
from .spool import Spool

NDJSON = "application/x-ndjson"
CSV = "text/csv"
UPLOAD: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "content": {kind: {"schema": {"type": "string", "format": "binary"}} for kind in (CSV, NDJSON)},
    }
}
_log = logging.getLogger("tidings.api")
_NEWLINE = orjson.OPT_APPEND_NEWLINE


class StreamChunk(NamedTuple):
    """Some lines of the answer, and what they add to its summary."""

    lines: Sequence[Mapping[str, Any]]
    counts: Mapping[str, int]


class NdjsonStreamResponse(Response):
    """The answer. Lines are taken in a task of their own, whether the caller reads or not."""

    def __init__(
        self,
        request_id: str,
        counts: Sequence[str],
        *,
        remedy: str = "repeat it",
        more: Callable[[], Mapping[str, Any]] = dict,
    ) -> None:
        """`counts` are the names in the summary, `more` what it says besides, asked at the end."""
        super().__init__(media_type=NDJSON)
        self._request_id = request_id
        self._counts: Counter[str] = Counter(dict.fromkeys(counts, 0))
        self._remedy = remedy
        self._more = more
        self._spool = Spool()
        self._begun = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._failure: TidingsError | None = None

    def start(self, chunks: AsyncIterator[StreamChunk]) -> None:
        """Begin to read and take."""
        self._work = asyncio.create_task(self._take(chunks))

    async def first_answer(self) -> None:
        """Wait until there is something to tell; what fails before that still has a status of its own."""
        await self._begun.wait()
        if self._failure is not None:
            raise self._failure

    async def _take(self, chunks: AsyncIterator[StreamChunk]) -> None:
        error: TidingsError | None = None
        try:
            async for said in chunks:
                self._spool.write(b"".join([orjson.dumps(line, option=_NEWLINE) for line in said.lines]))
                self._counts.update(said.counts)
                self._begun.set()
        except TidingsError as known:
            error = known
        except ClientDisconnect:
            error = MalformedBody("the request broke off", remedy="repeat it")
        except Exception:  # the last resort, as in the gate
            _log.exception("request %s failed", self._request_id)
            error = InternalError("something went wrong in here", remedy=self._remedy)
        finally:
            if not self._begun.is_set():
                self._failure = error
            self._finish(error)

    def _finish(self, error: TidingsError | None) -> None:
        if error is not None:
            self._spool.write(orjson.dumps({"error": error_body(error, self._request_id)}, option=_NEWLINE))
        summary = {**self._counts, **self._more(), "complete": error is None}
        self._spool.write(orjson.dumps({"summary": summary}, option=_NEWLINE))
        self._spool.end()
        self._begun.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is there, as it comes. Not a StreamingResponse: that would read our request away."""
        headers = [(name, value) for name, value in self.raw_headers if name != b"content-length"]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        assert self._work is not None
        try:
            async with aclosing(self._spool.pieces()) as pieces:
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            await self._work
        finally:
            self._work.cancel()


async def import_progress(
    taken: AsyncIterator[BulkImportProgress],
    counts: Sequence[str],
    request_id: str,
    close: Callable[[], None],
) -> AsyncIterator[StreamChunk]:
    """Each bad row with its number, and after every chunk how far it has come."""
    done = dict.fromkeys(counts, 0)
    try:
        async for progress in taken:
            done = {what: n + progress.counts.get(what, 0) for what, n in done.items()}
            bad = [{"row": number, "error": error_body(error, request_id)} for number, error in progress.bad]
            yield StreamChunk([*bad, {"progress": done}], progress.counts)
    finally:
        close()
