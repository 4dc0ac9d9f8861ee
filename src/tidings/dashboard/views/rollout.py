"""Gradual rollout of channels: mode, share, history, change and undo."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE, READ
from ...app import App
from ...outbound.rollout.service import ROLLOUT_MODES
from ..forms import integer, read_form
from ..renderer import PageRenderer, ViewRoute
from ..responses import redirect, redirect_on_error, unknown_action


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the rollout routes."""
    service = app.outbound

    async def page(_: Request) -> Response:
        """List all channels with mode and share."""
        return renderer.page("rollouts.html", items=await service.rollout.all())

    async def show(request: Request) -> Response:
        """Show the rollout of one channel and its history."""
        found = await service.rollout.show(request.path_params["name"])
        return renderer.page(
            "rollout.html", rollout=found, modes=ROLLOUT_MODES, problem=request.query_params.get("problem")
        )

    async def act(request: Request) -> Response:
        """Change the rollout, or undo the last change."""
        name, action = request.path_params["name"], request.path_params["action"]
        form = await read_form(request)
        target = f"/rollout/{name}"
        with redirect_on_error(target):
            match action:
                case "set":
                    share, reason = integer(form, "share"), form.get("reason")
                    await service.rollout.set(name, mode=form.get("mode"), share=share, reason=reason)
                case "undo":
                    await service.rollout.back(name)
                case _:
                    raise unknown_action(action)
        return redirect(target)

    return [
        ViewRoute("GET", "/rollout", page, READ, whole=True),
        ViewRoute("GET", "/rollout/{name}", show, READ, whole=True),
        ViewRoute("POST", "/rollout/{name}/{action}", act, OPERATE, whole=True),
    ]
