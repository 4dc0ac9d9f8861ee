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

from ...access.caller import current
from ...access.rules import SEND, allowed
from ...model.errors import TidingsError
from ...model.message import Draft
from ...outbound.desk import Desk
from ...outbound.drafts import FIELDS, Reading
from ...outbound.messages import Line
from ...outbound.people import uploads
from ..bodies import CONFLICT, PROBLEMS, gives, parse, takes
from ..errors import described, id_of
from ..exchange import NDJSON, Exchange, Said
from ..gate import too_large
from ..queries import refuse_any

PATH = "/v1/messages:bulk"
MOST_BYTES = uploads.MOST_BYTES


def routes(desk: Desk, zone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """The one route; `largest` is for a line in bytes, `most` for their number."""
    router = APIRouter(tags=["messages"], responses=PROBLEMS | CONFLICT)

    @router.post(
        PATH,
        openapi_extra=takes(FIELDS, required=False, keyed=True, kind=NDJSON),
        response_class=Response,
        responses=gives(NDJSON),
    )
    @allowed(SEND)
    async def accept_many(request: Request) -> Response:
        """Accept many: one JSON object a line, one line of answer for each, and a summary at the end."""
        refuse_any(request)
        refuse_announced(request)
        key = request.headers.get("idempotency-key")
        reading = Reading(now=desk.clock.now(), zone=zone, tenant=current().tenant)
        lines = uploads.lines(request.stream(), largest=largest, most_lines=most, most_bytes=MOST_BYTES)
        drafts = _drafts(lines, reading, keep=key is not None)
        exchange = Exchange(
            id_of(request), ("accepted", "refused"), remedy="repeat it with the same Idempotency-Key"
        )
        exchange.start(_said(desk.messages.accept_many(drafts, key=key), id_of(request)))
        await exchange.first_answer()
        return exchange

    return router


def refuse_announced(request: Request) -> None:
    """An upload that says by itself that it is too large is not read at all."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > MOST_BYTES:
        raise too_large(MOST_BYTES)


async def _said(chunks: AsyncIterator[list[Line]], request_id: str) -> AsyncIterator[Said]:
    async for lines in chunks:
        good = sum(line.error is None for line in lines)
        told = [_told(line, request_id) for line in lines]
        yield Said(told, {"accepted": good, "refused": len(lines) - good})


def _told(line: Line, request_id: str) -> dict[str, Any]:
    if line.error is None:
        return {"line": line.number, "id": line.id}
    return {"line": line.number, "error": described(line.error, request_id)}


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
