"""The log of sent messages: recipient, time and result."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from ...access.permissions import READ, requires
from ...model.errors import Invalid
from ...outbound.sent_log import SENT_LOG_COLUMNS
from ...outbound.service import OutboundService
from ..bodies import json_response
from ..csv_export import FORMS, csv_pages
from ..ndjson_streams import CSV
from ..openapi_responses import ERROR_RESPONSES, response_content
from ..query_parameters import STRICT_QUERY


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/log."""
    router = APIRouter(prefix="/v1/log", tags=["log"], responses=ERROR_RESPONSES)

    @router.get("", dependencies=STRICT_QUERY, response_class=Response, responses=response_content(CSV, as_json=True))
    @requires(READ)
    async def log(
        channel: str | None = None,
        to: str | None = None,
        limit: int = 50,
        after: str | None = None,
        format: Annotated[str, Query(description="json (one page), csv or csv-exact (all).")] = "json",
    ) -> Response:
        """List sent messages, newest first, as JSON or CSV."""
        if format == "json":
            page = await outbound.sent.page(channel=channel, to=to, limit=limit, after=after)
            return json_response(page._asdict())
        if format not in FORMS:
            raise Invalid(f"unknown format {format!r}", field="format", remedy="use json, csv or csv-exact")
        rows = outbound.sent.export(channel=channel, to=to)
        lines = csv_pages(rows, SENT_LOG_COLUMNS, exact=format == "csv-exact")
        headers = {"content-disposition": 'attachment; filename="tidings-sent.csv"'}
        return StreamingResponse(lines, 200, headers, media_type="text/csv; charset=utf-8")

    return router
