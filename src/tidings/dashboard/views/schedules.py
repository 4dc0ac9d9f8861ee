"""Schedules: a row each with its rule in words, and the page of one with its next and last firings."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...outbound.desk import Desk
from ..forms import chosen
from ..frame import Act, Frame, Way, back, more, picked, refusals_told_on

PAGE = 50
AHEAD = 10
LOGGED = 25


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Schedules, newest first."""
        asked = chosen(request, "state", "after")
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
            more=more(log),
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """What a person asks of one schedule."""
        id_, action, made = request.path_params["id"], request.path_params["action"], desk.schedules
        acts: dict[str, Act] = {"pause": made.pause, "resume": made.resume, "end": made.end, "run": made.run}
        with refusals_told_on(f"/schedules/{id_}"):
            await picked(action, acts)(id_)
        return back(f"/schedules/{id_}")

    return [
        Way("GET", "/schedules", page),
        Way("GET", "/schedules/{id}", show),
        Way("POST", "/schedules/{id}/{action}", act, OPERATE),
    ]
