"""The inbox: what came in, and one message with its history."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...inbound.desk import InboundDesk
from ...inbound.inbox import STATES
from ...model.errors import NotFound, TidingsError
from ..frame import Frame, Way, back

PAGE = 50
FILTERS = ("state", "source", "conversation", "sender", "after")


def ways(desk: InboundDesk, frame: Frame) -> list[Way]:
    """Their routes."""

    async def page(request: Request) -> Response:
        """What came in, newest first."""
        chosen: dict[str, Any] = {
            name: value for name in FILTERS if (value := request.query_params.get(name, "").strip())
        }
        found = await desk.inbox.page(limit=PAGE, **chosen)
        more = urlencode(chosen | {"after": found.next}) if found.next else None
        return frame.page(
            "inbox.html",
            items=found.items,
            chosen=chosen,
            more=more,
            states=STATES,
            sources=await desk.inbox.sources(),
        )

    async def show(request: Request) -> Response:
        """One message: what was said, what became of it and why."""
        message = await desk.inbox.show(request.path_params["id"])
        return frame.page("inbox_message.html", message=message, problem=request.query_params.get("problem"))

    async def retry(request: Request) -> Response:
        """Start one that failed afresh."""
        id_ = request.path_params["id"]
        try:
            await desk.inbox.retry(id_)
        except NotFound:
            raise
        except TidingsError as error:
            return back(f"/inbox/{id_}", problem=str(error))
        return back(f"/inbox/{id_}")

    return [
        Way("GET", "/inbox", page),
        Way("GET", "/inbox/{id}", show),
        Way("POST", "/inbox/{id}/retry", retry, OPERATE),
    ]
