"""The audit trail: who did what, when, to what, from where."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.responses import Response

from ...access.permissions import ADMIN, requires
from ...access.service import AccessService
from ..bodies import ERROR_RESPONSES, json_response
from ..query_parameters import STRICT_QUERY, After


def routes(access: AccessService) -> APIRouter:
    """The one route."""
    router = APIRouter(tags=["audit"], responses=ERROR_RESPONSES)

    @router.get("/v1/audit", dependencies=STRICT_QUERY)
    @requires(ADMIN)
    async def page(
        *,
        actor: Annotated[str | None, Query(description="only by this key's name")] = None,
        action: Annotated[str | None, Query(description="only this, such as messages.cancel")] = None,
        tenant: Annotated[
            str | None, Query(description="another, or * for all; from the tenant default only")
        ] = None,
        limit: int = 50,
        after: After = None,
    ) -> Response:
        """What was changed or tried, newest first."""
        found = await access.audit.page(actor=actor, action=action, of=tenant, limit=limit, after=after)
        return json_response(found._asdict())

    return router
