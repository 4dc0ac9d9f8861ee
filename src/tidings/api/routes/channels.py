"""Channels and nodes: state, pause, resume, endpoint secrets."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...inputs.fields import Field
from ...outbound.service import OutboundService
from ..bodies import REASON, json_response, read_fields, read_reason
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, action_options, body_schema
from ..query_parameters import STRICT_QUERY

ENDPOINT = {"to": Field("string", "the receiver's URL, or default", "https://example.com/hooks", required=True)}


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/channels and /v1/nodes."""
    router = APIRouter(prefix="/v1", responses=ERROR_RESPONSES)

    @router.get("/channels", tags=["channels"], dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def channels() -> Response:
        """List channels with their state, breaker, rate limits and handling of unknown outcomes."""
        return json_response({"items": await outbound.channels.all()})

    @router.get("/channels/{name}", tags=["channels"], responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def channel(name: str) -> Response:
        """Show one channel."""
        return json_response(await outbound.channels.one(name))

    @router.get("/channels/{name}/code", tags=["channels"], responses=NOT_FOUND | CONFLICT, dependencies=STRICT_QUERY)
    @requires(OPERATE, engine_wide=True)
    async def code(name: str) -> Response:
        """Return the live session state, and the QR code to scan if it is logged out."""
        return json_response((await outbound.channels.scan(name))._asdict())

    @router.post(
        "/channels/{name}/pause",
        tags=["channels"],
        responses=NOT_FOUND,
        openapi_extra=body_schema(REASON, required=False),
    )
    @requires(OPERATE, engine_wide=True)
    async def pause(name: str, request: Request) -> Response:
        """Pause a channel. Its messages wait and use no attempts."""
        reason = await read_reason(request, "paused by hand")
        return json_response(await outbound.channels.pause(name, reason=reason))

    @router.post("/channels/{name}/resume", tags=["channels"], responses=NOT_FOUND)
    @requires(OPERATE, engine_wide=True)
    async def resume(name: str, request: Request) -> Response:
        """Resume a channel: ends a pause, throttling and an open breaker."""
        await read_fields(request, {})
        return json_response(await outbound.channels.resume(name))

    @router.post("/channels/{name}/secret", tags=["channels"], **action_options(ENDPOINT, required=True))
    @requires(ADMIN)
    async def secret(name: str, request: Request) -> Response:
        """Return the signing secrets of one webhook receiver, newest first."""
        given = await read_fields(request, ENDPOINT)
        return json_response(await outbound.channels.endpoint_secrets(name, given["to"]))

    @router.get("/nodes", tags=["nodes"], dependencies=STRICT_QUERY)
    @requires(READ, engine_wide=True)
    async def nodes() -> Response:
        """List all nodes that are live or may still hold messages."""
        return json_response({"items": await outbound.overview.nodes()})

    return router
