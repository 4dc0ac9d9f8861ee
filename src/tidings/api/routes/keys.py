"""API keys. For admins only; a secret appears only in the response that creates it."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from ...access.api_keys import FIELDS, ROTATE_FIELDS
from ...access.permissions import ADMIN, requires
from ...access.service import AccessService
from ..bodies import json_response, page_response, read_fields, read_json
from ..openapi_responses import CONFLICT, ERROR_RESPONSES, NOT_FOUND, action_options, body_schema
from ..query_parameters import STRICT_QUERY, After, OtherTenant


def routes(access: AccessService) -> APIRouter:
    """Return the routes under /v1/keys."""
    router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=ERROR_RESPONSES)

    @router.post("", status_code=201, openapi_extra=body_schema(FIELDS), responses=CONFLICT)
    @requires(ADMIN, writes_audit=True)
    async def create(request: Request) -> Response:
        """Create an API key. `key` in the response is not shown again."""
        made = await access.keys.create(await read_json(request))
        return json_response(made, 201, {"location": f"/v1/keys/{made['id']}"})

    @router.get("", dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def page(*, tenant: OtherTenant = None, limit: int = 50, after: After = None) -> Response:
        """List API keys, newest first, without their secrets."""
        return page_response(await access.keys.page(of=tenant, limit=limit, after=after))

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def show(id: str) -> Response:
        """Show one API key without its secret."""
        return json_response(await access.keys.show(id))

    @router.post("/{id}/rotate", **action_options(ROTATE_FIELDS))
    @requires(ADMIN, writes_audit=True)
    async def rotate(id: str, request: Request) -> Response:
        """Rotate the secret; it is shown once. The previous one works for 24 hours, or for `overlap`."""
        given = await read_fields(request, ROTATE_FIELDS)
        return json_response(await access.keys.rotate(id, overlap=given.get("overlap")))

    @router.post("/{id}/revoke", responses=NOT_FOUND | CONFLICT)
    @requires(ADMIN, writes_audit=True)
    async def revoke(id: str, request: Request) -> Response:
        """Revoke an API key and all its sessions."""
        await read_fields(request, {})
        return json_response(await access.keys.revoke(id))

    return router
