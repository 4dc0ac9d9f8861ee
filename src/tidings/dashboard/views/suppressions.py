"""Opt-outs: who must not be written to, with a form to add and a button for the way back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...model.errors import TidingsError
from ...outbound.service import OutboundService
from ..forms import query_values, read_form
from ..renderer import PageRenderer, ViewRoute, next_page_query, redirect, unknown_action

PAGE = 50


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(
        request: Request, form: dict[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """Who has opted out, by address."""
        asked = query_values(request, "address", "after")
        found = await desk.suppressions.page(limit=PAGE, **asked)
        return frame.form(
            "opt_outs.html", form, error, items=found.items, chosen=asked, more=next_page_query(found, asked)
        )

    async def act(request: Request) -> Response:
        """Opt somebody out, or back in."""
        form, action = await read_form(request), request.path_params["action"]
        try:
            match action:
                case "add":
                    named = {name: form.get(name, "") for name in ("address", "channel", "reason")}
                    await desk.suppressions.create(named)
                case "remove":
                    await desk.suppressions.remove(form.get("address", ""), form.get("channel"))
                case _:
                    raise unknown_action(action)
        except TidingsError as error:
            return await page(request, form, error)
        return redirect("/opt-outs")

    return [ViewRoute("GET", "/opt-outs", page), ViewRoute("POST", "/opt-outs/{action}", act, OPERATE)]
