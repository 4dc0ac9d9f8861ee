"""Channels and nodes: how they stand; pause and resume."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.rules import ADMIN, OPERATE, READ, allowed
from ...outbound.desk import Desk
from ...reading.fields import Field
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields, takes
from ..queries import CHECKED

REASON = {"reason": Field("string", "shown to whoever asks why", "new number on Monday")}
ENDPOINT = {
    "to": Field("string", "the receiver's URL, or default", "https://example.com/hooks", required=True)
}


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/channels and /v1/nodes."""
    router = APIRouter(prefix="/v1", responses=PROBLEMS)

    @router.get("/channels", tags=["channels"], dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def channels() -> Response:
        """Every channel: paused, parked, breaker, limits, and what it does when an outcome is unknown."""
        return answer({"items": await desk.channels.all()})

    @router.get("/channels/{name}", tags=["channels"], responses=MISSING, dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def channel(name: str) -> Response:
        """One channel."""
        return answer(await desk.channels.one(name))

    @router.get(
        "/channels/{name}/code", tags=["channels"], responses=MISSING | CONFLICT, dependencies=CHECKED
    )
    @allowed(OPERATE, whole=True)
    async def code(name: str) -> Response:
        """A session as it stands now, asked of whoever holds it, and the code to scan if it is logged out."""
        return answer((await desk.channels.scan(name))._asdict())

    @router.post(
        "/channels/{name}/pause",
        tags=["channels"],
        responses=MISSING,
        openapi_extra=takes(REASON, required=False),
    )
    @allowed(OPERATE, whole=True)
    async def pause(name: str, request: Request) -> Response:
        """Start nothing more on it; its messages wait and lose no attempt."""
        given = await read_fields(request, REASON)
        return answer(await desk.channels.pause(name, reason=given.get("reason") or "paused by hand"))

    @router.post("/channels/{name}/resume", tags=["channels"], responses=MISSING)
    @allowed(OPERATE, whole=True)
    async def resume(name: str, request: Request) -> Response:
        """Start again: lifts a pause, a parking and an open breaker."""
        await read_fields(request, {})
        return answer(await desk.channels.resume(name))

    @router.post(
        "/channels/{name}/secret",
        tags=["channels"],
        responses=MISSING | CONFLICT,
        openapi_extra=takes(ENDPOINT),
    )
    @allowed(ADMIN)
    async def secret(name: str, request: Request) -> Response:
        """The secrets with which one receiver of this channel verifies its messages, newest first."""
        given = await read_fields(request, ENDPOINT)
        return answer(await desk.channels.endpoint_secrets(name, given["to"]))

    @router.get("/nodes", tags=["nodes"], dependencies=CHECKED)
    @allowed(READ, whole=True)
    async def nodes() -> Response:
        """Every process that works or may still hold something."""
        return answer({"items": await desk.overview.nodes()})

    return router
