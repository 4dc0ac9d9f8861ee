"""Roll-out: how much of each channel really goes out, the switch, and the way back."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE, READ
from ...outbound.adoption.rollout import MODES
from ...outbound.desk import Desk
from ..forms import read_form, whole
from ..frame import Frame, Way, back, no_such, refusals_told_on


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(_: Request) -> Response:
        """Every channel with its mode and share."""
        return frame.page("rollouts.html", items=await desk.rollout.all())

    async def show(request: Request) -> Response:
        """One channel: how it stands, the switch, and what was switched before."""
        found = await desk.rollout.show(request.path_params["name"])
        return frame.page(
            "rollout.html", rollout=found, modes=MODES, problem=request.query_params.get("problem")
        )

    async def act(request: Request) -> Response:
        """Switch it, or go back to what it was."""
        name, action = request.path_params["name"], request.path_params["action"]
        form = await read_form(request)
        target = f"/rollout/{name}"
        with refusals_told_on(target):
            match action:
                case "set":
                    share, reason = whole(form, "share"), form.get("reason")
                    await desk.rollout.set(name, mode=form.get("mode"), share=share, reason=reason)
                case "back":
                    await desk.rollout.back(name)
                case _:
                    raise no_such(action)
        return back(target)

    return [
        Way("GET", "/rollout", page, READ, whole=True),
        Way("GET", "/rollout/{name}", show, READ, whole=True),
        Way("POST", "/rollout/{name}/{action}", act, OPERATE, whole=True),
    ]
