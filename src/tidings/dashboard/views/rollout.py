"""Roll-out: how much of each channel really goes out, the switch, and the way back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...outbound.rollout.service import ROLLOUT_MODES
from ...outbound.service import OutboundService
from ..forms import integer, read_form
from ..renderer import PageRenderer, ViewRoute, redirect, redirect_on_error, unknown_action


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(_: Request) -> Response:
        """Every channel with its mode and share."""
        return frame.page("rollouts.html", items=await desk.rollout.all())

    async def show(request: Request) -> Response:
        """One channel: how it stands, the switch, and what was switched before."""
        found = await desk.rollout.show(request.path_params["name"])
        return frame.page(
            "rollout.html", rollout=found, modes=ROLLOUT_MODES, problem=request.query_params.get("problem")
        )

    async def act(request: Request) -> Response:
        """Switch it, or go back to what it was."""
        name, action = request.path_params["name"], request.path_params["action"]
        form = await read_form(request)
        target = f"/rollout/{name}"
        with redirect_on_error(target):
            match action:
                case "set":
                    share, reason = integer(form, "share"), form.get("reason")
                    await desk.rollout.set(name, mode=form.get("mode"), share=share, reason=reason)
                case "back":
                    await desk.rollout.back(name)
                case _:
                    raise unknown_action(action)
        return redirect(target)

    return [
        ViewRoute("GET", "/rollout", page, READ, whole=True),
        ViewRoute("GET", "/rollout/{name}", show, READ, whole=True),
        ViewRoute("POST", "/rollout/{name}/{action}", act, OPERATE, whole=True),
    ]
