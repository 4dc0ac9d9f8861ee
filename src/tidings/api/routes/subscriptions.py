"""Event subscriptions (signed webhooks)."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.permissions import ADMIN, OPERATE, READ, requires
from ...outbound.events.subscriptions import SUBSCRIPTION_CHANGES, SUBSCRIPTION_FIELDS
from ...outbound.service import OutboundService
from ..bodies import created_response, json_response, page_response, read_fields, read_json
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, create_options
from ..query_parameters import STRICT_QUERY


def routes(outbound: OutboundService) -> APIRouter:
    """Return the routes under /v1/subscriptions."""
    router = APIRouter(prefix="/v1/subscriptions", tags=["subscriptions"], responses=ERROR_RESPONSES)

    @router.post("", **create_options(SUBSCRIPTION_FIELDS))
    @requires(ADMIN)
    async def add(request: Request) -> Response:
        """Subscribe to events. The signing secret in the response is not shown again."""
        body, key = await read_json(request), request.headers.get("idempotency-key")
        made = await outbound.subscriptions.add(body, key=key)
        return created_response(made, f"/v1/subscriptions/{made.answer['id']}")

    @router.get("", dependencies=STRICT_QUERY)
    @requires(READ)
    async def page(limit: int = 50, after: str | None = None) -> Response:
        """List subscriptions, newest first, with the errors of their receivers."""
        return page_response(await outbound.subscriptions.page(limit=limit, after=after))

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(READ)
    async def show(id: str) -> Response:
        """Show one subscription."""
        return json_response(await outbound.subscriptions.show(id))

    @router.patch("/{id}", responses=NOT_FOUND, openapi_extra=body_schema(SUBSCRIPTION_CHANGES))
    @requires(ADMIN)
    async def edit(id: str, request: Request) -> Response:
        """Change the URL or the events, enable or disable."""
        return json_response(await outbound.subscriptions.edit(id, await read_json(request)))

    @router.delete("/{id}", responses=NOT_FOUND)
    @requires(ADMIN)
    async def remove(id: str, request: Request) -> Response:
        """Delete a subscription."""
        await read_fields(request, {})
        await outbound.subscriptions.remove(id)
        return json_response({"id": id, "removed": True})

    @router.post("/{id}/rotate", responses=NOT_FOUND)
    @requires(ADMIN)
    async def rotate(id: str, request: Request) -> Response:
        """Rotate the secret. Events are signed with both secrets for 24 hours."""
        await read_fields(request, {})
        return json_response(await outbound.subscriptions.rotate(id))

    @router.post("/{id}/test", responses=NOT_FOUND | CONFLICT, status_code=202)
    @requires(OPERATE)
    async def test(id: str, request: Request) -> Response:
        """Send the event `subscription.test`."""
        await read_fields(request, {})
        return json_response(await outbound.subscriptions.test(id), 202)

    return router
