"""Bulk intake of messages: NDJSON in, NDJSON out.

An invalid line is reported and skipped. With an Idempotency-Key an interrupted call can be repeated.
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
from ...outbound.contacts.uploads import MAX_UPLOAD_BYTES, read_lines
from ...outbound.draft_parser import MESSAGE_FIELDS, DraftParser
from ...outbound.messages import BulkLineResult
from ...outbound.service import OutboundService
from ..bodies import parse_json
from ..body_limits import reject_oversized_upload
from ..errors import error_body, request_id_of
from ..ndjson_streams import NDJSON, NdjsonStreamResponse, StreamChunk
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, body_schema, content_options
from ..query_parameters import reject_query

PATH = "/v1/messages:bulk"


def routes(outbound: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """Return the bulk route; `largest` limits a line in bytes, `most` the number of lines."""
    router = APIRouter(tags=["messages"], responses=ERROR_RESPONSES | CONFLICT)

    @router.post(
        PATH,
        openapi_extra=body_schema(MESSAGE_FIELDS, required=False, keyed=True, kind=NDJSON),
        **content_options(NDJSON),
    )
    @requires(SEND)
    async def accept_many(request: Request) -> Response:
        """Accept many messages: one JSON object per line, one result per line, and a summary at the end."""
        reject_query(request)
        reject_oversized_upload(request)
        key = request.headers.get("idempotency-key")
        parser = DraftParser(now=outbound.clock.now(), timezone=timezone, tenant=current_caller().tenant)
        lines = read_lines(request.stream(), largest=largest, most_lines=most, most_bytes=MAX_UPLOAD_BYTES)
        drafts = _drafts(lines, parser, keep=key is not None)
        return await bulk_response(request, outbound.messages.accept_many(drafts, key=key))

    return router


async def bulk_response(request: Request, chunks: AsyncIterator[list[BulkLineResult]]) -> NdjsonStreamResponse:
    """Stream the results of lines, with their counts in the summary."""
    id_, remedy = request_id_of(request), "repeat it with the same Idempotency-Key"
    response = NdjsonStreamResponse(id_, ("accepted", "refused"), remedy=remedy)
    response.start(_line_results(chunks, id_))
    await response.first_answer()
    return response


async def _line_results(chunks: AsyncIterator[list[BulkLineResult]], request_id: str) -> AsyncIterator[StreamChunk]:
    async for lines in chunks:
        good = sum(line.error is None for line in lines)
        yield StreamChunk(
            [_result(line, request_id) for line in lines], {"accepted": good, "refused": len(lines) - good}
        )


def _result(line: BulkLineResult, request_id: str) -> dict[str, Any]:
    if line.error is None:
        return {"line": line.number, "id": line.id}
    return {"line": line.number, "error": error_body(line.error, request_id)}


async def _drafts(
    lines: AsyncIterator[tuple[int, bytes | TidingsError]], parser: DraftParser, *, keep: bool
) -> AsyncIterator[tuple[int, Draft | TidingsError]]:
    async for number, line in lines:
        if isinstance(line, TidingsError):
            yield number, line
            continue
        try:
            yield number, parser.draft(parse_json(line), keep=keep)
        except TidingsError as error:
            yield number, error
