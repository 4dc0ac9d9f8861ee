"""Messages: lists of them, and the page of one, with its timeline and what may be done to it now."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...model.time import iso
from ...outbound.message_actions import allowed_actions
from ...outbound.service import OutboundService
from ..forms import query_values, read_form
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute, Views, redirect, redirect_on_error, unknown_action

PAGE = 50


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _MessageViews(desk, frame)
    return [
        ViewRoute("GET", "/messages", views.page),
        ViewRoute("GET", "/messages/{id}", views.show),
        ViewRoute("GET", "/messages/{id}/live", views.live),
        ViewRoute("POST", "/messages/{id}/{action}", views.act, OPERATE),
    ]


class _MessageViews(Views):
    async def page(self, request: Request) -> Response:
        """Messages by state, channel and recipient."""
        asked = query_values(request, "state", "channel", "to", "after")
        found = await self._desk.messages.page(limit=PAGE, **asked)
        return self._frame.listing("messages.html", found, asked)

    async def show(self, request: Request) -> Response:
        """One message: its standing, why, its timeline, and what may be done to it now."""
        id_ = request.path_params["id"]
        message, fragments = await self._desk.messages.show(id_), await self._render(id_)
        problem, phone = request.query_params.get("problem"), self._frame.phone(request)
        return self._frame.page(
            "message.html", message=message, fragments=fragments, problem=problem, phone=phone
        )

    async def live(self, request: Request) -> Response:
        """The stream of one message's page."""
        return await self._frame.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def act(self, request: Request) -> Response:
        """What a person asks of one message; what its state does not allow is refused and said."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/messages/{id_}"):
            await self._do(request.path_params["action"], id_, await read_form(request))
        return redirect(f"/messages/{id_}")

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> None:
        messages = self._desk.messages
        match action:
            case "cancel":
                await messages.cancel(id_)
            case "retry":
                await messages.retry(id_)
            case "discard":
                await messages.discard(id_)
            case "reschedule":
                reading = self._frame.reading()
                await messages.reschedule(id_, reading.when({"at": form.get("at", "")}) or reading.now)
            case _:
                raise unknown_action(action)

    async def _render(self, id_: str) -> Fragments:
        message, why = await self._desk.messages.show(id_), await self._desk.why(id_)
        piece = self._frame.piece
        return {
            "standing": piece("standing.html", message=message, why=why, until=iso(why.until)),
            "acts": piece("acts.html", message=message, legal=allowed_actions(message["state"])),
            "timeline": piece("timeline.html", message=message),
            "facts": piece("facts.html", message=message),
        }
