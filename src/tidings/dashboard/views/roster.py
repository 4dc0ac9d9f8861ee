"""The roster: the people whose messages are processed, and the history of changes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...inbound.roster import ROLES
from ...model.errors import TidingsError
from ..forms import read_form
from ..renderer import PageRenderer, ViewRoute
from ..responses import next_page_query, redirect, unknown_action

PAGE = 100
LOGGED = 20


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the roster routes."""
    inbound = app.inbound

    async def page(request: Request) -> Response:
        """List people by name."""
        query = request.query_params
        squad = query.get("squad", "").strip() or None
        found = await inbound.roster.page(squad=squad, limit=PAGE, after=query.get("after") or None)
        return renderer.page(
            "roster.html",
            items=found.items,
            squad=squad,
            more=next_page_query(found, {"squad": squad or ""}),
            roles=ROLES,
            sources=sorted(inbound.sources),
            log=(await inbound.roster.log(limit=LOGGED)).items,
            problem=query.get("problem"),
        )

    async def act(request: Request) -> Response:
        """Add, change or remove a person."""
        form, action = await read_form(request), request.path_params["action"]
        try:
            match action:
                case "put":
                    await inbound.roster.put(form)
                case "remove":
                    await inbound.roster.remove(form.get("sender", ""), form.get("source"))
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            return redirect("/roster", problem=str(error))
        return redirect("/roster")

    return [ViewRoute("GET", "/roster", page), ViewRoute("POST", "/roster/{action}", act, OPERATE)]
