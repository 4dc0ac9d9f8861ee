"""Subscriptions: who is told of what happens, by signed webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.rules import ADMIN, OPERATE, READ, allowed
from ...outbound.desk import Desk
from ...outbound.events.subscriptions import EDITS, FIELDS
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, created, read_fields, read_json, takes
from ..queries import CHECKED


def routes(desk: Desk) -> APIRouter:
    """Everything under /v1/subscriptions."""
    router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], responses=PROBLEMS)

    @router.post("", status_code=201, openapi_extra=takes(FIELDS, keyed=True), responses=CONFLICT)
    @allowed(ADMIN)
    async def add(request: Request) -> Response:
        """Subscribe to events. The answer has the secret that signs them: it is not shown again."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.subscriptions.add(body, key=key)
        return created(made, f"/v1/subscriptions/{made.answer['id']}")

    @router.get("", dependencies=CHECKED)
    @allowed(READ)
    async def page(limit: int = 50, after: str | None = None) -> Response:
        """Subscriptions, newest first, each with what is wrong with its receiver."""
        return answer((await desk.subscriptions.page(limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(READ)
    async def show(id: str) -> Response:
        """One subscription."""
        return answer(await desk.subscriptions.show(id))

    @router.patch("/{id}", responses=MISSING, openapi_extra=takes(EDITS))
    @allowed(ADMIN)
    async def edit(id: str, request: Request) -> Response:
        """Another address, other events, on or off."""
        return answer(await desk.subscriptions.edit(id, await read_json(request)))

    @router.delete("/{id}", responses=MISSING)
    @allowed(ADMIN)
    async def remove(id: str, request: Request) -> Response:
        """Tell it nothing any more."""
        await read_fields(request, {})
        await desk.subscriptions.remove(id)
        return answer({"id": id, "removed": True})

    @router.post("/{id}/rotate", responses=MISSING)
    @allowed(ADMIN)
    async def rotate(id: str, request: Request) -> Response:
        """A new secret; for a day events are signed with both."""
        await read_fields(request, {})
        return answer(await desk.subscriptions.rotate(id))

    @router.post("/{id}/test", responses=MISSING | CONFLICT, status_code=202)
    @allowed(OPERATE)
    async def test(id: str, request: Request) -> Response:
        """Send it the event `subscription.test`."""
        await read_fields(request, {})
        return answer(await desk.subscriptions.test(id), 202)

    return router
