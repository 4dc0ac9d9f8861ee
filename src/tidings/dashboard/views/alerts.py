"""Alerts about the engine itself, with their runbooks and acknowledgement."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...app import App
from ..forms import read_form
from ..renderer import PageRenderer, ViewRoute
from ..responses import next_page_query, redirect, redirect_on_error

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the alert routes."""
    service = app.outbound

    async def page(request: Request) -> Response:
        """List open alerts, with `past` also resolved ones."""
        past, after = bool(request.query_params.get("past")), request.query_params.get("after") or None
        found = await service.alerts.page(past=past, limit=PAGE, after=after)
        more = next_page_query(found, {"past": "yes"} if past else {})
        problem = request.query_params.get("problem")
        return renderer.page("alerts.html", items=found.items, past=past, after=after, more=more, problem=problem)

    async def acknowledge(request: Request) -> Response:
        """Acknowledge an alert."""
        form = await read_form(request)
        with redirect_on_error("/alerts"):
            await service.alerts.acknowledge(request.path_params["id"], form.get("by", ""))
        return redirect("/alerts")

    return [
        ViewRoute("GET", "/alerts", page, READ, whole=True),
        ViewRoute("POST", "/alerts/{id}/acknowledge", acknowledge, OPERATE, whole=True),
    ]
