"""The roster: who may speak, with a form to add and a button to remove; below it what was done with it."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...inbound.roster import ROLES
from ...inbound.service import InboundService
from ...model.errors import TidingsError
from ..forms import read_form
from ..renderer import PageRenderer, ViewRoute, next_page_query, redirect, unknown_action

PAGE = 100
LOGGED = 20


def routes(desk: InboundService, frame: PageRenderer) -> list[ViewRoute]:
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
            more=next_page_query(found, {"squad": squad or ""}),
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
                    raise unknown_action(action)
        except TidingsError as error:
            return redirect("/roster", problem=str(error))
        return redirect("/roster")

    return [ViewRoute("GET", "/roster", page), ViewRoute("POST", "/roster/{action}", act, OPERATE)]
