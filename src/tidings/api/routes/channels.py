"""Channels and nodes: how they stand; pause and resume."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.service import OutboundService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields
from ..query_parameters import STRICT_QUERY

REASON = {"reason": Field("string", "shown to whoever asks why", "new number on Monday")}
ENDPOINT = {
    "to": Field("string", "the receiver's URL, or default", "https://example.com/hooks", required=True)
}


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/channels and /v1/nodes."""
    router = APIRouter(prefix="/v1", responses=ERROR_RESPONSES)

    @router.get("/channels", tags=["channels"], dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def channels() -> Response:
        """Every channel: paused, parked, breaker, limits, and what it does when an outcome is unknown."""
        return json_response({"items": await desk.channels.all()})

    @router.get("/channels/{name}", tags=["channels"], responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def channel(name: str) -> Response:
        """One channel."""
        return json_response(await desk.channels.one(name))

    @router.get(
        "/channels/{name}/code", tags=["channels"], responses=NOT_FOUND | CONFLICT, dependencies=STRICT_QUERY
    )
    @requires(OPERATE, whole=True)
    async def code(name: str) -> Response:
        """A session as it stands now, asked of whoever holds it, and the code to scan if it is logged out."""
        return json_response((await desk.channels.scan(name))._asdict())

    @router.post(
        "/channels/{name}/pause",
        tags=["channels"],
        responses=NOT_FOUND,
        openapi_extra=body_schema(REASON, required=False),
    )
    @requires(OPERATE, whole=True)
    async def pause(name: str, request: Request) -> Response:
        """Start nothing more on it; its messages wait and lose no attempt."""
        given = await read_fields(request, REASON)
        return json_response(await desk.channels.pause(name, reason=given.get("reason") or "paused by hand"))

    @router.post("/channels/{name}/resume", tags=["channels"], responses=NOT_FOUND)
    @requires(OPERATE, whole=True)
    async def resume(name: str, request: Request) -> Response:
        """Start again: lifts a pause, a parking and an open breaker."""
        await read_fields(request, {})
        return json_response(await desk.channels.resume(name))

    @router.post(
        "/channels/{name}/secret",
        tags=["channels"],
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(ENDPOINT),
    )
    @requires(ADMIN)
    async def secret(name: str, request: Request) -> Response:
        """The secrets with which one receiver of this channel verifies its messages, newest first."""
        given = await read_fields(request, ENDPOINT)
        return json_response(await desk.channels.endpoint_secrets(name, given["to"]))

    @router.get("/nodes", tags=["nodes"], dependencies=STRICT_QUERY)
    @requires(READ, whole=True)
    async def nodes() -> Response:
        """Every process that works or may still hold something."""
        return json_response({"items": await desk.overview.nodes()})

    return router
