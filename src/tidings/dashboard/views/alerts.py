"""Alerts: what the engine found wrong with itself, what to do about it, and who does."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...outbound.service import OutboundService
from ..forms import read_form
from ..renderer import PageRenderer, ViewRoute, next_page_query, redirect, redirect_on_error

PAGE = 50


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Those that are open; on request also those that are over."""
        past, after = bool(request.query_params.get("past")), request.query_params.get("after") or None
        found = await desk.alerts.page(past=past, limit=PAGE, after=after)
        following = next_page_query(found, {"past": "yes"} if past else {})
        problem = request.query_params.get("problem")
        return frame.page(
            "alerts.html", items=found.items, past=past, after=after, more=following, problem=problem
        )

    async def acknowledge(request: Request) -> Response:
        """Somebody takes one on."""
        form = await read_form(request)
        with redirect_on_error("/alerts"):
            await desk.alerts.acknowledge(request.path_params["id"], form.get("by", ""))
        return redirect("/alerts")

    return [
        ViewRoute("GET", "/alerts", page, READ, whole=True),
        ViewRoute("POST", "/alerts/{id}/acknowledge", acknowledge, OPERATE, whole=True),
    ]
