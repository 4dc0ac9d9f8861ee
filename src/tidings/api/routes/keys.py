"""Keys: who may call. For admins; the secret is in the answer that makes it, and nowhere else."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.api_keys import FIELDS, ROTATE_FIELDS
from ...access.permissions import ADMIN, requires
from ...access.service import AccessService
from ..bodies import CONFLICT, ERROR_RESPONSES, NOT_FOUND, body_schema, json_response, read_fields, read_json
from ..query_parameters import STRICT_QUERY, After


def routes(access: AccessService) -> APIRouter:
    """Everything under /v1/keys."""
    router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=ERROR_RESPONSES)

    @router.post("", status_code=201, openapi_extra=body_schema(FIELDS), responses=CONFLICT)
    @requires(ADMIN, noted=True)
    async def create(request: Request) -> Response:
        """Make a key. The answer has it as `key`: it is not shown again."""
        made = await access.keys.create(await read_json(request))
        return json_response(made, 201, {"location": f"/v1/keys/{made['id']}"})

    @router.get("", dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def page(
        *,
        tenant: Annotated[
            str | None, Query(description="another, or * for all; from the tenant default only")
        ] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Keys, newest first, without their secrets."""
        return json_response((await access.keys.page(of=tenant, limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=NOT_FOUND, dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def show(id: str) -> Response:
        """One key, without its secret."""
        return json_response(await access.keys.show(id))

    @router.post(
        "/{id}/rotate",
        responses=NOT_FOUND | CONFLICT,
        openapi_extra=body_schema(ROTATE_FIELDS, required=False),
    )
    @requires(ADMIN, noted=True)
    async def rotate(id: str, request: Request) -> Response:
        """Another secret, shown this once; the one before opens for another day, or as long as is said."""
        given = await read_fields(request, ROTATE_FIELDS)
        return json_response(await access.keys.rotate(id, overlap=given.get("overlap")))

    @router.post("/{id}/revoke", responses=NOT_FOUND | CONFLICT)
    @requires(ADMIN, noted=True)
    async def revoke(id: str, request: Request) -> Response:
        """Let it open nothing any more, with every session that it opened."""
        await read_fields(request, {})
        return json_response(await access.keys.revoke(id))

    return router
