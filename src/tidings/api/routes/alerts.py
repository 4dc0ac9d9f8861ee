"""Alerts: what the engine found wrong with itself, and who takes care of it."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ, allowed
from ...outbound.desk import Desk
from ...reading.fields import Field
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields, takes
from ..queries import CHECKED, After

TAKE = {"by": Field("string", "who takes it on", "Ada", required=True)}


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/alerts."""
    router = APIRouter(prefix="/v1/alerts", tags=["alerts"], responses=PROBLEMS)

    @router.get("", dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def page(
        *,
        past: Annotated[bool, Query(description="those that are over, too")] = False,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Alerts that are open, newest first."""
        return answer((await desk.alerts.page(past=past, limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=MISSING)
    @allowed(READ, whole=True)
    async def show(id: str) -> Response:
        """One alert."""
        return answer(await desk.alerts.show(id))

    @router.post("/{id}/acknowledge", responses=MISSING | CONFLICT, openapi_extra=takes(TAKE))
    @allowed(OPERATE, whole=True)
    async def acknowledge(id: str, request: Request) -> Response:
        """Somebody takes it on."""
        return answer(await desk.alerts.acknowledge(id, (await read_fields(request, TAKE))["by"]))

    return router
