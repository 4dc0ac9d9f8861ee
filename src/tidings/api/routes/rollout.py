"""Roll-out: how much of a channel really goes out, and how it compares with another sender."""

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
from ...outbound.rollout.periods import parse_duration, parse_period
from ...outbound.rollout.service import ROLLOUT_FIELDS
from ...outbound.service import OutboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields
from ..errors import MalformedBody
from ..query_parameters import STRICT_QUERY, reject_query

REPORT = "/v1/channels/{name}/report"
LINES = {
    "to": Field("string", "who got it", "ada", required=True),
    "at": Field("string", "when: ISO 8601, or a number since 1970", "2026-11-16T09:00:00Z", required=True),
    "text": Field("string", "the words; or `digest`", "Hello"),
    "subject": Field("string", "a headline"),
    "data": Field("object", "anything else that was sent"),
    "digest": Field("string", "instead of the content: what our own side is shown with"),
    "ref": Field("string", "the other sender's own id, so that a repeated report changes nothing"),
}


def routes(desk: OutboundService, timezone: ZoneInfo, *, largest: int, most: int) -> APIRouter:
    """Everything about roll-out; `largest` is for a line of a report in bytes, `most` for their number."""
    router = APIRouter(prefix="/v1", tags=["roll-out"], responses=ERROR_RESPONSES)

    @router.get("/rollout", dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def all() -> Response:
        """Every channel with its mode and share."""
        return json_response({"items": await desk.rollout.all()})

    @router.get("/channels/{name}/rollout", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def show(name: str) -> Response:
        """One channel, and what was switched before."""
        return json_response(await desk.rollout.show(name))

    @router.post("/channels/{name}/rollout", responses=NOT_FOUND, openapi_extra=body_schema(ROLLOUT_FIELDS))
    @requires(OPERATE, whole=True)
    async def switch(name: str, request: Request) -> Response:
        """Switch a channel: live, observe or shadow, and to which share of the recipients."""
        given = await read_fields(request, ROLLOUT_FIELDS)
        return json_response(
            await desk.rollout.set(
                name, mode=given.get("mode"), share=given.get("share"), reason=given.get("reason")
            )
        )

    @router.post("/channels/{name}/rollout/back", responses=NOT_FOUND | CONFLICT)
    @requires(OPERATE, whole=True)
    async def back(name: str, request: Request) -> Response:
        """To what it was before the last switch."""
        await read_fields(request, {})
        return json_response(await desk.rollout.back(name))

    @router.post(
        REPORT.removeprefix("/v1"),
        responses=NOT_FOUND,
        openapi_extra=body_schema(LINES, kind="application/x-ndjson"),
    )
    @requires(OPERATE, whole=True)
    async def report(name: str, request: Request) -> Response:
        """What another sender sent, as CSV or NDJSON; a repeated report changes nothing."""
        reject_query(request)
        form = uploads.upload_format(request.headers.get("content-type", ""))
        rows = uploads.read_rows(_pieces(request), form, largest=largest, most_lines=most)
        return json_response(await desk.rollout.report(name, rows, timezone=timezone))

    @router.get("/channels/{name}/compare", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def compare(
        name: str, since: str = "24h", until: str = "now", tolerance: str = "1m", limit: int = 100
    ) -> Response:
        """Where our side and the other sender's report differ, within a time."""
        begin, end = parse_period(since, until, now=desk.clock.now(), timezone=timezone)
        apart: timedelta = parse_duration(tolerance, field="tolerance")
        found = await desk.rollout.compare(name, since=begin, until=end, tolerance=apart, limit=limit)
        return json_response(found._asdict())

    return router


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            yield piece
    except ClientDisconnect:
        raise MalformedBody("the request broke off", remedy="repeat it") from None
