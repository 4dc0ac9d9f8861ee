"""The audit log: who changed what, when, and from where."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import ADMIN, DEFAULT_TENANT
from ...app import App
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute

PAGE = 100


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the audit log routes."""

    async def page(request: Request) -> Response:
        """List audit entries, newest first."""
        asked = query_values(request, "actor", "action", "tenant", "after")
        runs_engine = current_caller().tenant == DEFAULT_TENANT
        filters: dict[str, Any] = {name: asked.get(name) for name in ("actor", "action", "after")}
        of = asked.get("tenant", "*") if runs_engine else None
        found = await app.access.audit.page(of=of, limit=PAGE, **filters)
        return renderer.listing("audit.html", found, asked, runs_engine=runs_engine)

    return [ViewRoute("GET", "/audit", page, ADMIN)]
