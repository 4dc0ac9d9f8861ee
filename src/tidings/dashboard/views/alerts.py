"""Alerts: what the engine found wrong with itself, what to do about it, and who does."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ
from ...outbound.desk import Desk
from ..forms import read_form
from ..frame import Frame, Way, back, more, refusals_told_on

PAGE = 50


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Those that are open; on request also those that are over."""
        past, after = bool(request.query_params.get("past")), request.query_params.get("after") or None
        found = await desk.alerts.page(past=past, limit=PAGE, after=after)
        following = more(found, {"past": "yes"} if past else {})
        problem = request.query_params.get("problem")
        return frame.page(
            "alerts.html", items=found.items, past=past, after=after, more=following, problem=problem
        )

    async def acknowledge(request: Request) -> Response:
        """Somebody takes one on."""
        form = await read_form(request)
        with refusals_told_on("/alerts"):
            await desk.alerts.acknowledge(request.path_params["id"], form.get("by", ""))
        return back("/alerts")

    return [
        Way("GET", "/alerts", page, READ, whole=True),
        Way("POST", "/alerts/{id}/acknowledge", acknowledge, OPERATE, whole=True),
    ]
