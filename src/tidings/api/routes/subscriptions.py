"""Subscriptions: who is told of what happens, by signed webhooks."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...outbound.events.subscriptions import SUBSCRIPTION_CHANGES, SUBSCRIPTION_FIELDS
from ...outbound.service import OutboundService
from ..bodies import (
    CONFLICT,
    ERROR_RESPONSES,
    NOT_FOUND,
    body_schema,
    created_response,
    json_response,
    read_fields,
    read_json,
)
from ..query_parameters import STRICT_QUERY


def routes(desk: OutboundService) -> APIRouter:
    """Everything under /v1/subscriptions."""
    router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], responses=ERROR_RESPONSES)

    @router.post(
        "", status_code=201, openapi_extra=body_schema(SUBSCRIPTION_FIELDS, keyed=True), responses=CONFLICT
    )
    @requires(ADMIN)
    async def add(request: Request) -> Response:
        """Subscribe to events. The answer has the secret that signs them: it is not shown again."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await desk.subscriptions.add(body, key=key)
        return created_response(made, f"/v1/subscriptions/{made.answer['id']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(limit: int = 50, after: str | None = None) -> Response:
        """Subscriptions, newest first, each with what is wrong with its receiver."""
        return json_response((await desk.subscriptions.page(limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """One subscription."""
        return json_response(await desk.subscriptions.show(id))

    @router.patch("/{id}", responses=NOT_FOUND, openapi_extra=body_schema(SUBSCRIPTION_CHANGES))
    @requires(ADMIN)
    async def edit(id: str, request: Request) -> Response:
        """Another address, other events, on or off."""
        return json_response(await desk.subscriptions.edit(id, await read_json(request)))

    @router.delete("/{id}", responses=NOT_FOUND)
    @requires(ADMIN)
    async def remove(id: str, request: Request) -> Response:
        """Tell it nothing any more."""
        await read_fields(request, {})
        await desk.subscriptions.remove(id)
        return json_response({"id": id, "removed": True})

    @router.post("/{id}/rotate", responses=NOT_FOUND)
    @requires(ADMIN)
    async def rotate(id: str, request: Request) -> Response:
        """A new secret; for a day events are signed with both."""
        await read_fields(request, {})
        return json_response(await desk.subscriptions.rotate(id))

    @router.post("/{id}/test", responses=NOT_FOUND | CONFLICT, status_code=202)
    @requires(OPERATE)
    async def test(id: str, request: Request) -> Response:
        """Send it the event `subscription.test`."""
        await read_fields(request, {})
        return json_response(await desk.subscriptions.test(id), 202)

    return router
