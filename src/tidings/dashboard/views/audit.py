"""The audit trail: who did what, when, to what, from where."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import ADMIN, DEFAULT_TENANT
from ...access.service import AccessService
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute

PAGE = 100


def routes(access: AccessService, frame: PageRenderer) -> list[ViewRoute]:
    """Its route."""

    async def page(request: Request) -> Response:
        """What was changed or tried, newest first."""
        wanted = query_values(request, "actor", "action", "tenant", "after")
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        of = wanted.get("tenant", "*") if runs_engine else None
        found = await access.audit.page(
            actor=wanted.get("actor"),
            action=wanted.get("action"),
            of=of,
            limit=PAGE,
            after=wanted.get("after"),
        )
        return frame.listing("audit.html", found, wanted, runs_engine=runs_engine)

    return [ViewRoute("GET", "/audit", page, ADMIN)]
