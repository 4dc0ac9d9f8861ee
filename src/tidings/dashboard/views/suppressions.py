"""The suppression list: addresses that receive no messages, with forms to add and remove them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...model.errors import TidingsError
from ..forms import query_values, read_form
from ..renderer import PageRenderer, ViewRoute
from ..responses import next_page_query, redirect, unknown_action

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the suppression routes."""
    service = app.outbound

    async def page(request: Request, form: dict[str, str] | None = None, error: TidingsError | None = None) -> Response:
        """List suppressions by address."""
        asked = query_values(request, "address", "after")
        found = await service.suppressions.page(limit=PAGE, **asked)
        more = next_page_query(found, asked)
        return renderer.form("suppressions.html", form, error, items=found.items, chosen=asked, more=more)

    async def act(request: Request) -> Response:
        """Add or remove a suppression."""
        form, action = await read_form(request), request.path_params["action"]
        try:
            match action:
                case "add":
                    named = {name: form.get(name, "") for name in ("address", "channel", "reason")}
                    await service.suppressions.create(named)
                case "remove":
                    await service.suppressions.remove(form.get("address", ""), form.get("channel"))
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            return await page(request, form, error)
        return redirect("/suppressions")

    return [ViewRoute("GET", "/suppressions", page), ViewRoute("POST", "/suppressions/{action}", act, OPERATE)]
