"""The roster: who may speak, with a form to add and a button to remove; below it what was done with it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...inbound.desk import InboundDesk
from ...inbound.roster import ROLES
from ...model.errors import TidingsError
from ..forms import read_form
from ..frame import Frame, Way, back, more, no_such

PAGE = 100
LOGGED = 20


def ways(desk: InboundDesk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """Who may speak, by name."""
        query = request.query_params
        squad = query.get("squad", "").strip() or None
        found = await desk.roster.page(squad=squad, limit=PAGE, after=query.get("after") or None)
        return frame.page(
            "roster.html",
            items=found.items,
            squad=squad,
            more=more(found, {"squad": squad or ""}),
            roles=ROLES,
            sources=sorted(desk.sources),
            log=(await desk.roster.log(limit=LOGGED)).items,
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """Add or change somebody, or take somebody off."""
        form, action = await read_form(request), request.path_params["action"]
        try:
            match action:
                case "put":
                    await desk.roster.put(form)
                case "remove":
                    await desk.roster.remove(form.get("sender", ""), form.get("source"))
                case _:
                    raise no_such(action)
        except TidingsError as error:
            return back("/roster", problem=str(error))
        return back("/roster")

    return [Way("GET", "/roster", page), Way("POST", "/roster/{action}", act, OPERATE)]
