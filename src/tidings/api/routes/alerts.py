"""Alerts: what the engine found wrong with itself, and who takes care of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.service import OutboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields
from ..query_parameters import STRICT_QUERY, After

TAKE = {"by": Field("string", "who takes it on", "Ada", required=True)}


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/alerts."""
    router = APIRouter(prefix="/v1/alerts", tags=["alerts"], responses=ERROR_RESPONSES)

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def page(
        *,
        past: Annotated[bool, Query(description="those that are over, too")] = False,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Alerts that are open, newest first."""
        return json_response((await desk.alerts.page(past=past, limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=NOT_FOUND)
    @requires(READ, whole=True)
    async def show(id: str) -> Response:
        """One alert."""
        return json_response(await desk.alerts.show(id))

    @router.post("/{id}/acknowledge", responses=NOT_FOUND | CONFLICT, openapi_extra=body_schema(TAKE))
    @requires(OPERATE, whole=True)
    async def acknowledge(id: str, request: Request) -> Response:
        """Somebody takes it on."""
        return json_response(await desk.alerts.acknowledge(id, (await read_fields(request, TAKE))["by"]))

    return router
