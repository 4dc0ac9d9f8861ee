"""The log of all that was sent: to whom, when, with what result."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response, StreamingResponse

from ...access.permissions import READ, requires
from ...model.errors import Invalid
from ...outbound.sent_log import SENT_LOG_COLUMNS
from ...outbound.service import OutboundService
from ..bodies import ERROR_RESPONSES, json_response, response_content
from ..csv_export import FORMS, csv_header, csv_rows
from ..ndjson_streams import CSV
from ..query_parameters import STRICT_QUERY


def routes(desk: OutboundService) -> APIRouter:
    """The one route."""
    router = APIRouter(prefix="/v1/log", tags=["log"], responses=ERROR_RESPONSES)

    @router.get(
        "", dependencies=STRICT_QUERY, response_class=Response, responses=response_content(CSV, as_json=True)
    )
    @requires(READ)
    async def log(
        channel: str | None = None,
        to: str | None = None,
        limit: int = 50,
        after: str | None = None,
        format: Annotated[str, Query(description="json (a page), csv or csv-exact (all of it)")] = "json",
    ) -> Response:
        """What was sent, newest first. `csv` is safe for spreadsheets, `csv-exact` changes no cell."""
        if format == "json":
            page = await desk.sent.page(channel=channel, to=to, limit=limit, after=after)
            return json_response(page._asdict())
        if format not in FORMS:
            raise Invalid(
                f"there is no format {format!r}", field="format", remedy="use json, csv or csv-exact"
            )
        lines = _lines(desk, channel, to, exact=format == "csv-exact")
        headers = {"content-disposition": 'attachment; filename="tidings-sent.csv"'}
        return StreamingResponse(lines, 200, headers, media_type="text/csv; charset=utf-8")

    return router


async def _lines(
    desk: OutboundService, channel: str | None, to: str | None, *, exact: bool
) -> AsyncIterator[bytes]:
    yield csv_header(SENT_LOG_COLUMNS)
    async for rows in desk.sent.export(channel=channel, to=to):
        yield csv_rows(rows, SENT_LOG_COLUMNS, exact=exact)
