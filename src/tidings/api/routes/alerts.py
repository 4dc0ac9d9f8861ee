"""Alerts: list, show, acknowledge."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.service import OutboundService
from ..bodies import json_response, page_response, read_fields
from ..openapi_responses import ERROR_RESPONSES, NOT_FOUND, action_options
from ..query_parameters import STRICT_QUERY, After

PERSON = {"by": Field("string", "name of the person", "Ada", required=True)}


def routes(outbound: OutboundService) -> APIRouter:
    """Everything under /v1/alerts."""
    router = APIRouter(prefix="/v1/alerts", tags=["alerts"], responses=ERROR_RESPONSES)

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def page(
        *,
        past: Annotated[bool, Query(description="Include resolved alerts.")] = False,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List open alerts, newest first."""
        return page_response(await outbound.alerts.page(past=past, limit=limit, after=after))

    @router.get("/{id}", responses=NOT_FOUND)
    @requires(READ, engine_wide=True)
    async def show(id: str) -> Response:
        """Show one alert."""
        return json_response(await outbound.alerts.show(id))

    @router.post("/{id}/acknowledge", **action_options(PERSON, required=True))
    @requires(OPERATE, engine_wide=True)
    async def acknowledge(id: str, request: Request) -> Response:
        """Acknowledge an alert."""
        return json_response(await outbound.alerts.acknowledge(id, (await read_fields(request, PERSON))["by"]))

    return router
