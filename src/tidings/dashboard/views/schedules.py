"""Schedules: a row each with its rule in words, and the page of one with its next and last firings."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...outbound.desk import Desk
from ..forms import chosen
from ..frame import Frame, Way, back, no_such, refusals_told_on

PAGE = 50
AHEAD = 10
LOGGED = 25


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Schedules, newest first."""
        asked = chosen(request, "state", "after")
        found = await desk.schedules.page(limit=PAGE, **asked)
        more = urlencode(asked | {"after": found.next}) if found.next else None
        return frame.page("schedules.html", items=found.items, chosen=asked, more=more)

    async def show(request: Request) -> Response:
        """One schedule: its rule, what comes next, and what became of its occurrences."""
        id_, query = request.path_params["id"], request.query_params
        schedule = await desk.schedules.show(id_)
        ahead = [] if schedule["state"] == "ended" else await desk.schedules.preview(id_, AHEAD)
        log = await desk.schedules.occurrences(id_, limit=LOGGED, after=query.get("after") or None)
        more = urlencode({"after": log.next}) if log.next else None
        return frame.page(
            "schedule.html",
            schedule=schedule,
            ahead=ahead,
            log=log.items,
            more=more,
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """What a person asks of one schedule."""
        id_, action = request.path_params["id"], request.path_params["action"]
        with refusals_told_on(f"/schedules/{id_}"):
            match action:
                case "pause":
                    await desk.schedules.pause(id_)
                case "resume":
                    await desk.schedules.resume(id_)
                case "end":
                    await desk.schedules.end(id_)
                case "run":
                    await desk.schedules.run(id_)
                case _:
                    raise no_such(action)
        return back(f"/schedules/{id_}")

    return [
        Way("GET", "/schedules", page),
        Way("GET", "/schedules/{id}", show),
        Way("POST", "/schedules/{id}/{action}", act, OPERATE),
    ]
