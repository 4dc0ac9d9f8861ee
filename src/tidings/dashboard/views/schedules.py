"""Schedules: a row each with its rule in words, and the page of one with its next and last firings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...outbound.service import OutboundService
from ..forms import query_values
from ..renderer import (
    ActionHandler,
    PageRenderer,
    ViewRoute,
    next_page_query,
    pick_action,
    redirect,
    redirect_on_error,
)

PAGE = 50
AHEAD = 10
LOGGED = 25


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Schedules, newest first."""
        asked = query_values(request, "state", "after")
        found = await desk.schedules.page(limit=PAGE, **asked)
        return frame.listing("schedules.html", found, asked)

    async def show(request: Request) -> Response:
        """One schedule: its rule, what comes next, and what became of its occurrences."""
        id_, query = request.path_params["id"], request.query_params
        schedule = await desk.schedules.show(id_)
        ahead = [] if schedule["state"] == "ended" else await desk.schedules.preview(id_, AHEAD)
        log = await desk.schedules.occurrences(id_, limit=LOGGED, after=query.get("after") or None)
        return frame.page(
            "schedule.html",
            schedule=schedule,
            ahead=ahead,
            log=log.items,
            more=next_page_query(log),
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """What a person asks of one schedule."""
        id_, action, made = request.path_params["id"], request.path_params["action"], desk.schedules
        acts: dict[str, ActionHandler] = {
            "pause": made.pause,
            "resume": made.resume,
            "end": made.end,
            "run": made.run,
        }
        with redirect_on_error(f"/schedules/{id_}"):
            await pick_action(action, acts)(id_)
        return redirect(f"/schedules/{id_}")

    return [
        ViewRoute("GET", "/schedules", page),
        ViewRoute("GET", "/schedules/{id}", show),
        ViewRoute("POST", "/schedules/{id}/{action}", act, OPERATE),
    ]
