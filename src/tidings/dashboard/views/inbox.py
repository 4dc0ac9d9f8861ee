"""The inbox: what came in, and one message with its history."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...inbound.inbox import STATES
from ...inbound.service import InboundService
from ..forms import query_values
from ..renderer import PageRenderer, ViewRoute, redirect, redirect_on_error

PAGE = 50
FILTERS = ("state", "source", "conversation", "sender", "after")


def routes(desk: InboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """What came in, newest first."""
        asked = query_values(request, *FILTERS)
        found = await desk.inbox.page(limit=PAGE, **asked)
        sources = await desk.inbox.sources()
        return frame.listing("inbox.html", found, asked, states=STATES, sources=sources)

    async def show(request: Request) -> Response:
        """One message: what was said, what became of it and why."""
        message = await desk.inbox.show(request.path_params["id"])
        return frame.page("inbox_message.html", message=message, problem=request.query_params.get("problem"))

    async def retry(request: Request) -> Response:
        """Start one that failed afresh."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/inbox/{id_}"):
            await desk.inbox.retry(id_)
        return redirect(f"/inbox/{id_}")

    return [
        ViewRoute("GET", "/inbox", page),
        ViewRoute("GET", "/inbox/{id}", show),
        ViewRoute("POST", "/inbox/{id}/retry", retry, OPERATE),
    ]
