"""Gradual rollout of a channel, and comparison with another sender."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from zoneinfo import ZoneInfo

from fastapi import APIRouter, Request
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.contacts import uploads
from ...outbound.rollout.service import ROLLOUT_FIELDS, parse_duration, parse_period
from ...outbound.service import OutboundService
from ..bodies import json_response, read_fields
from ..errors import MalformedBody
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema
from ..query_parameters import STRICT_QUERY, reject_query

REPORT = "/v1/channels/{name}/report"
LINES = {
    "to": Field("string", "recipient", "ada", required=True),
    "at": Field("string", "time: ISO 8601, or a Unix time", "2026-11-16T09:00:00Z", required=True),
    "text": Field("string", "message text; or `digest`", "Hello"),
    "subject": Field("string", "subject"),
    "data": Field("object", "other content that was sent"),
    "digest": Field("string", "hash of the content, as shown by the comparison, instead of the content"),
    "ref": Field("string", "id at the other sender, which makes reports idempotent"),
}


def routes(outbound: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """Return the rollout routes; `largest` limits a line of a report in bytes, `most` their number."""
    router = APIRouter(prefix="/v1", tags=["rollout"], responses=ERROR_RESPONSES)

    @router.get("/rollout", dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def all() -> Response:
        """List channels with mode and share."""
        return json_response({"items": await outbound.rollout.all()})

    @router.get("/channels/{name}/rollout", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def show(name: str) -> Response:
        """Show the rollout of one channel with its history."""
        return json_response(await outbound.rollout.show(name))

    @router.post("/channels/{name}/rollout", responses=NOT_FOUND, openapi_extra=body_schema(ROLLOUT_FIELDS))
    @requires(OPERATE, engine_wide=True)
    async def switch(name: str, request: Request) -> Response:
        """Set the mode of a channel (live, observe or shadow) and the share of recipients."""
        given = await read_fields(request, ROLLOUT_FIELDS)
        return json_response(
            await outbound.rollout.set(
                name, mode=given.get("mode"), share=given.get("share"), reason=given.get("reason")
            )
        )

    @router.post("/channels/{name}/rollout/undo", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE, engine_wide=True)
    async def undo(name: str, request: Request) -> Response:
        """Undo the last change."""
        await read_fields(request, {})
        return json_response(await outbound.rollout.back(name))

    @router.post(
        REPORT.removeprefix("/v1"), responses=NOT_FOUND, openapi_extra=body_schema(LINES, kind="application/x-ndjson")
    )
    @requires(OPERATE, engine_wide=True)
    async def report(name: str, request: Request) -> Response:
        """Report what another sender sent, as CSV or NDJSON. Repeated reports are ignored."""
        reject_query(request)
        form = uploads.upload_format(request.headers.get("content-type", ""))
        rows = uploads.read_rows(_chunks(request), form, largest=largest, most_lines=most)
        return json_response(await outbound.rollout.report(name, rows, timezone=timezone))

    @router.get("/channels/{name}/compare", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def compare(
        name: str, since: str = "24h", until: str = "now", tolerance: str = "1m", limit: int = 100
    ) -> Response:
        """Compare our messages of a period with the other sender's report."""
        begin, end = parse_period(since, until, now=outbound.clock.now(), timezone=timezone)
        apart: timedelta = parse_duration(tolerance, field="tolerance")
        found = await outbound.rollout.compare(name, since=begin, until=end, tolerance=apart, limit=limit)
        return json_response(found._asdict())

    return router


async def _chunks(request: Request) -> AsyncIterator[bytes]:
    try:
        async for chunk in request.stream():
            yield chunk
    except ClientDisconnect:
        raise MalformedBody("the request was interrupted", remedy="repeat it") from None
