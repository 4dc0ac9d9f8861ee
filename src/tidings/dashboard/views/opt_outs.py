"""Opt-outs: who must not be written to, with a form to add and a button for the way back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...model.errors import TidingsError
from ...outbound.desk import Desk
from ..forms import chosen, read_form
from ..frame import Frame, Way, back, more, no_such

PAGE = 50


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(
        request: Request, form: dict[str, str] | None = None, error: TidingsError | None = None
    ) -> Response:
        """Who has opted out, by address."""
        asked = chosen(request, "address", "after")
        found = await desk.suppressions.page(limit=PAGE, **asked)
        return frame.form(
            "opt_outs.html", form, error, items=found.items, chosen=asked, more=more(found, asked)
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
                    raise no_such(action)
        except TidingsError as error:
            return await page(request, form, error)
        return back("/opt-outs")

    return [Way("GET", "/opt-outs", page), Way("POST", "/opt-outs/{action}", act, OPERATE)]
