"""Keys: who may call. For admins; the secret is in the answer that makes it, and nowhere else."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from ...access.desk import AccessDesk
from ...access.keys import FIELDS, OVERLAPS
from ...access.rules import ADMIN, allowed
from ..bodies import CONFLICT, MISSING, PROBLEMS, answer, read_fields, read_json, takes
from ..queries import CHECKED, After


def routes(access: AccessDesk) -> APIRouter:
    """Everything under /v1/keys."""
    router = APIRouter(prefix="/v1/keys", tags=["keys"], responses=PROBLEMS)

    @router.post("", status_code=201, openapi_extra=takes(FIELDS), responses=CONFLICT)
    @allowed(ADMIN, noted=True)
    async def create(request: Request) -> Response:
        """Make a key. The answer has it as `key`: it is not shown again."""
        made = await access.keys.create(await read_json(request))
        return answer(made, 201, {"location": f"/v1/keys/{made['id']}"})

    @router.get("", dependencies=CHECKED)
    @allowed(ADMIN)
    async def page(
        *,
        tenant: Annotated[
            str | None, Query(description="another, or * for all; from the tenant default only")
        ] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """Keys, newest first, without their secrets."""
        return answer((await access.keys.page(of=tenant, limit=limit, after=after))._asdict())

    @router.get("/{id}", responses=MISSING, dependencies=CHECKED)
    @allowed(ADMIN)
    async def show(id: str) -> Response:
        """One key, without its secret."""
        return answer(await access.keys.show(id))

    @router.post("/{id}/rotate", responses=MISSING | CONFLICT, openapi_extra=takes(OVERLAPS, required=False))
    @allowed(ADMIN, noted=True)
    async def rotate(id: str, request: Request) -> Response:
        """Another secret, shown this once; the one before opens for another day, or as long as is said."""
        given = await read_fields(request, OVERLAPS)
        return answer(await access.keys.rotate(id, overlap=given.get("overlap")))

    @router.post("/{id}/revoke", responses=MISSING | CONFLICT)
    @allowed(ADMIN, noted=True)
    async def revoke(id: str, request: Request) -> Response:
        """Let it open nothing any more, with every session that it opened."""
        await read_fields(request, {})
        return answer(await access.keys.revoke(id))

    return router
