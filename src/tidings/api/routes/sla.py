"""The SLA report: messages sent on time, by day and channel."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...access.permissions import READ, requires
from ...model.errors import Invalid
from ...outbound.service import OutboundService
from ...outbound.sla import COLUMNS, TARGET_SECONDS
from ..bodies import json_response
from ..csv_export import FORMS, csv_header, csv_rows
from ..ndjson_streams import CSV
from ..openapi_responses import ERROR_RESPONSES, response_content
from ..query_parameters import STRICT_QUERY


def routes(outbound: OutboundService) -> APIRouter:
    """Return the route /v1/sla."""
    router = APIRouter(prefix="/v1/sla", tags=["sla"], responses=ERROR_RESPONSES)

    @router.get("", dependencies=STRICT_QUERY, response_class=Response, responses=response_content(CSV, as_json=True))
    @requires(READ, engine_wide=True)
    async def report(
        days: Annotated[int, Query(description="Days to report, 1 to 400, today included.")] = 30,
        channel: str | None = None,
        format: Annotated[str, Query(description="json, csv or csv-exact.")] = "json",
    ) -> Response:
        """Report the share of messages sent within 60 seconds of their due time, by day (UTC) and channel."""
        if format not in ("json", *FORMS):
            raise Invalid(f"unknown format {format!r}", field="format", remedy="use json, csv or csv-exact")
        rows = [row._asdict() for row in await outbound.sla(days=days, channel=channel)]
        if format == "json":
            return json_response({"target_seconds": TARGET_SECONDS, "items": rows})
        body = csv_header(COLUMNS) + csv_rows(rows, COLUMNS, exact=format == "csv-exact")
        headers = {"content-disposition": 'attachment; filename="tidings-sla.csv"'}
        return Response(body, 200, headers, media_type="text/csv; charset=utf-8")

    return router
