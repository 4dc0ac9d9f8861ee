"""The inbox: inbound messages, and one of them with its timeline."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...inbound.inbox import STATES
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute
from ..responses import redirect, redirect_on_error

PAGE = 50
FILTERS = ("state", "source", "conversation", "sender", "after")


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the inbox routes."""
    inbound = app.inbound

    async def page(request: Request) -> Response:
        """List inbound messages, newest first."""
        asked = query_values(request, *FILTERS)
        found = await inbound.inbox.page(limit=PAGE, **asked)
        sources = await inbound.inbox.sources()
        return renderer.listing("inbox.html", found, asked, states=STATES, sources=sources)

    async def show(request: Request) -> Response:
        """Show one message with its state and the reason for it."""
        message = await inbound.inbox.show(request.path_params["id"])
        return renderer.page("inbox_message.html", message=message, problem=request.query_params.get("problem"))

    async def retry(request: Request) -> Response:
        """Retry a failed message."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/inbox/{id_}"):
            await inbound.inbox.retry(id_)
        return redirect(f"/inbox/{id_}")

    return [
        ViewRoute("GET", "/inbox", page),
        ViewRoute("GET", "/inbox/{id}", show),
        ViewRoute("POST", "/inbox/{id}/retry", retry, OPERATE),
    ]
