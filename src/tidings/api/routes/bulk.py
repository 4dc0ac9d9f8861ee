"""The bulk call: a stream of messages in, a stream of lines out.

Each line stands alone: a bad one is told and skipped. With an Idempotency-Key a call that broke off can be
repeated.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import SEND, requires
from ...model.errors import TidingsError
from ...model.message import Draft
from ...outbound.contacts import uploads
from ...outbound.draft_parser import MESSAGE_FIELDS, DraftParser
from ...outbound.messages import BulkLineResult
from ...outbound.service import OutboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, body_schema, parse_json, response_content
from ..errors import error_body, request_id_of
from ..middleware import body_too_large
from ..ndjson_streams import NDJSON, NdjsonStreamResponse, StreamChunk
from ..query_parameters import reject_query

PATH = "/v1/messages:bulk"
MOST_BYTES = uploads.MAX_UPLOAD_BYTES


def routes(desk: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """The one route; `largest` is for a line in bytes, `most` for their number."""
    router = APIRouter(tags=["messages"], responses=ERROR_RESPONSES | CONFLICT)

    @router.post(
        PATH,
        openapi_extra=body_schema(MESSAGE_FIELDS, required=False, keyed=True, kind=NDJSON),
        response_class=Response,
        responses=response_content(NDJSON),
    )
    @requires(SEND)
    async def accept_many(request: Request) -> Response:
        """Accept many: one JSON object a line, one line of answer for each, and a summary at the end."""
        reject_query(request)
        reject_oversized_upload(request)
        key = request.headers.get("idempotency-key")
        reading = DraftParser(now=desk.clock.now(), timezone=timezone, tenant=current_caller().tenant)
        lines = uploads.read_lines(request.stream(), largest=largest, most_lines=most, most_bytes=MOST_BYTES)
        drafts = _drafts(lines, reading, keep=key is not None)
        exchange = NdjsonStreamResponse(
            request_id_of(request), ("accepted", "refused"), remedy="repeat it with the same Idempotency-Key"
        )
        exchange.start(_said(desk.messages.accept_many(drafts, key=key), request_id_of(request)))
        await exchange.first_answer()
        return exchange

    return router


def reject_oversized_upload(request: Request) -> None:
    """An upload that says by itself that it is too large is not read at all."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > MOST_BYTES:
        raise body_too_large(MOST_BYTES)


async def _said(chunks: AsyncIterator[list[BulkLineResult]], request_id: str) -> AsyncIterator[StreamChunk]:
    async for lines in chunks:
        good = sum(line.error is None for line in lines)
        told = [_told(line, request_id) for line in lines]
        yield StreamChunk(told, {"accepted": good, "refused": len(lines) - good})


def _told(line: BulkLineResult, request_id: str) -> dict[str, Any]:
    if line.error is None:
        return {"line": line.number, "id": line.id}
    return {"line": line.number, "error": error_body(line.error, request_id)}


async def _drafts(
    lines: AsyncIterator[tuple[int, bytes | TidingsError]], reading: DraftParser, *, keep: bool
) -> AsyncIterator[tuple[int, Draft | TidingsError]]:
    async for number, line in lines:
        if isinstance(line, TidingsError):
            yield number, line
            continue
        try:
            yield number, reading.draft(parse_json(line), keep=keep)
        except TidingsError as error:
            yield number, error
