"""The audit log: who did what, when, to which target, from which address."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...access.permissions import ADMIN, requires
from ...access.service import AccessService
from ..bodies import page_response
from ..openapi_responses import ERROR_RESPONSES
from ..query_parameters import STRICT_QUERY, After, OtherTenant


def routes(access: AccessService) -> APIRouter:
    """Return the routes under /v1/audit."""
    router = APIRouter(tags=["audit"], responses=ERROR_RESPONSES)

    @router.get("/v1/audit", dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def page(
        *,
        actor: Annotated[str | None, Query(description="Filter by the name of the key.")] = None,
        action: Annotated[str | None, Query(description="Filter by action, such as messages.cancel.")] = None,
        tenant: OtherTenant = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """List audit entries, newest first."""
        return page_response(await access.audit.page(actor=actor, action=action, of=tenant, limit=limit, after=after))

    return router
