"""The bulk call: a stream of lines in, a stream of lines out, memory flat however long they are.

Each line stands alone: a bad one is told and skipped. What can only be known on the way (the database went
away, too many lines) ends the answer with an error line; its summary then says `complete: false`, and with an
Idempotency-Key the call can simply be repeated.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import aclosing
from zoneinfo import ZoneInfo

import orjson
from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from ...model.errors import TidingsError
from ...model.message import Draft
from ...outbound import uploads
from ...outbound.desk import Desk
from ...outbound.drafts import FIELDS, Reading
from ...outbound.messages import Line
from ..bodies import CONFLICT, PROBLEMS, parse, takes
from ..errors import Malformed, Unexpected, described, id_of
from ..gate import too_large
from ..queries import refuse_any
from ..spool import Spool

PATH = "/v1/messages:bulk"
MOST_BYTES = 1 << 30
_NDJSON = "application/x-ndjson"
_log = logging.getLogger("tidings.api")
_NEWLINE = orjson.OPT_APPEND_NEWLINE


def routes(desk: Desk, zone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """The one route; `largest` is for a line in bytes, `most` for their number."""
    router = APIRouter(tags=["messages"], responses=PROBLEMS | CONFLICT)

    @router.post(PATH, openapi_extra=takes(FIELDS, keyed=True, kind=_NDJSON))
    async def accept_many(request: Request) -> Response:
        """Accept many: one JSON object a line, one line of answer for each, and a summary at the end."""
        refuse_any(request)
        key = request.headers.get("idempotency-key")
        announced = request.headers.get("content-length", "")
        if announced.isdigit() and int(announced) > MOST_BYTES:
            raise too_large(MOST_BYTES)
        reading = Reading(now=desk.clock.now(), zone=zone)
        lines = uploads.lines(request.stream(), largest=largest, most_lines=most, most_bytes=MOST_BYTES)
        drafts = _drafts(lines, reading, keep=key is not None)
        exchange = _Exchange(id_of(request))
        exchange.start(desk.messages.accept_many(drafts, key=key))
        await exchange.first_answer()
        return exchange

    return router


class _Exchange(Response):
    """The answer. Lines are accepted in a task of their own, whether the caller reads or not."""

    def __init__(self, request_id: str) -> None:
        super().__init__(media_type=_NDJSON)
        self._request_id = request_id
        self._spool = Spool()
        self._begun = asyncio.Event()
        self._work: asyncio.Task[None] | None = None
        self._failure: TidingsError | None = None

    def start(self, chunks: AsyncIterator[list[Line]]) -> None:
        """Begin to read and accept."""
        self._work = asyncio.create_task(self._accept(chunks))

    async def first_answer(self) -> None:
        """Wait until there is something to tell; what fails before that still has a status of its own."""
        await self._begun.wait()
        if self._failure is not None:
            raise self._failure

    async def _accept(self, chunks: AsyncIterator[list[Line]]) -> None:
        accepted = refused = 0
        error: TidingsError | None = None
        try:
            async for lines in chunks:
                self._spool.write(b"".join([self._line(line) for line in lines]))
                good = sum(line.error is None for line in lines)
                accepted, refused = accepted + good, refused + len(lines) - good
                self._begun.set()
        except TidingsError as known:
            error = known
        except ClientDisconnect:
            error = Malformed("the request broke off", remedy="repeat it")
        except Exception:  # the last resort, as in the gate
            _log.exception("request %s failed", self._request_id)
            error = Unexpected(
                "something went wrong in here", remedy="repeat it with the same Idempotency-Key"
            )
        finally:
            if not self._begun.is_set():
                self._failure = error
            self._finish(accepted, refused, error)

    def _finish(self, accepted: int, refused: int, error: TidingsError | None) -> None:
        if error is not None:
            self._spool.write(orjson.dumps({"error": described(error, self._request_id)}, option=_NEWLINE))
        summary = {"accepted": accepted, "refused": refused, "complete": error is None}
        self._spool.write(orjson.dumps({"summary": summary}, option=_NEWLINE))
        self._spool.end()
        self._begun.set()

    def _line(self, line: Line) -> bytes:
        if line.error is None:
            return orjson.dumps({"line": line.number, "id": line.id}, option=_NEWLINE)
        told = described(line.error, self._request_id)
        return orjson.dumps({"line": line.number, "error": told}, option=_NEWLINE)

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


async def _drafts(
    lines: AsyncIterator[tuple[int, bytes | TidingsError]], reading: Reading, *, keep: bool
) -> AsyncIterator[tuple[int, Draft | TidingsError]]:
    async for number, line in lines:
        if isinstance(line, TidingsError):
            yield number, line
            continue
        try:
            yield number, reading.draft(parse(line), keep=keep)
        except TidingsError as error:
            yield number, error
