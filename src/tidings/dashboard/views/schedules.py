"""Recurring schedules, and the page of one with its upcoming and past occurrences."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute
from ..responses import ActionHandler, next_page_query, pick_action, redirect, redirect_on_error

PAGE = 50
UPCOMING = 10
LOGGED = 25


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the schedule routes."""
    service = app.outbound

    async def page(request: Request) -> Response:
        """List schedules, newest first."""
        asked = query_values(request, "state", "after")
        found = await service.schedules.page(limit=PAGE, **asked)
        return renderer.listing("schedules.html", found, asked)

    async def show(request: Request) -> Response:
        """Show one schedule: its rule, upcoming and past occurrences."""
        id_, query = request.path_params["id"], request.query_params
        schedule = await service.schedules.show(id_)
        upcoming = [] if schedule["state"] == "ended" else await service.schedules.preview(id_, UPCOMING)
        log = await service.schedules.occurrences(id_, limit=LOGGED, after=query.get("after") or None)
        return renderer.page(
            "schedule.html",
            schedule=schedule,
            upcoming=upcoming,
            log=log.items,
            more=next_page_query(log),
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """Perform an action on one schedule."""
        id_, schedules = request.path_params["id"], service.schedules
        actions: dict[str, ActionHandler] = {
            "pause": schedules.pause,
            "resume": schedules.resume,
            "end": schedules.end,
            "run": schedules.run,
        }
        with redirect_on_error(f"/schedules/{id_}"):
            await pick_action(request.path_params["action"], actions)(id_)
        return redirect(f"/schedules/{id_}")

    return [
        ViewRoute("GET", "/schedules", page),
        ViewRoute("GET", "/schedules/{id}", show),
        ViewRoute("POST", "/schedules/{id}/{action}", act, OPERATE),
    ]
