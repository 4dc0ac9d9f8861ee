"""The inbox: what came in, and one message with its history."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...inbound.desk import InboundDesk
from ...inbound.inbox import STATES
from ..forms import chosen
from ..frame import Frame, Way, back, refusals_told_on

PAGE = 50
FILTERS = ("state", "source", "conversation", "sender", "after")


def ways(desk: InboundDesk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """What came in, newest first."""
        asked = chosen(request, *FILTERS)
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
        with refusals_told_on(f"/inbox/{id_}"):
            await desk.inbox.retry(id_)
        return back(f"/inbox/{id_}")

    return [
        Way("GET", "/inbox", page),
        Way("GET", "/inbox/{id}", show),
        Way("POST", "/inbox/{id}/retry", retry, OPERATE),
    ]
