"""Messages, and the page of one with its timeline and allowed actions."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...model.time import iso
from ...outbound.message_actions import allowed_actions
from ...outbound.service import OutboundService
from ..forms import query_values, read_form
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import ActionHandler, pick_action, redirect, redirect_on_error

PAGE = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the message routes."""
    views = _MessageViews(app.outbound, renderer)
    return [
        ViewRoute("GET", "/messages", views.page),
        ViewRoute("GET", "/messages/{id}", views.show),
        ViewRoute("GET", "/messages/{id}/live", views.live),
        ViewRoute("POST", "/messages/{id}/{action}", views.act, OPERATE),
    ]


class _MessageViews(Views[OutboundService]):
    async def page(self, request: Request) -> Response:
        """List messages by state, channel and recipient."""
        asked = query_values(request, "state", "channel", "to", "after")
        found = await self._service.messages.page(limit=PAGE, **asked)
        return self._renderer.listing("messages.html", found, asked)

    async def show(self, request: Request) -> Response:
        """Show one message: state and reason, timeline and allowed actions."""
        id_ = request.path_params["id"]
        message, fragments = await self._service.messages.show(id_), await self._render(id_)
        problem, phone = request.query_params.get("problem"), self._renderer.phone(request)
        return self._renderer.page("message.html", message=message, fragments=fragments, problem=problem, phone=phone)

    async def live(self, request: Request) -> Response:
        """Stream the page of one message."""
        return await self._renderer.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def act(self, request: Request) -> Response:
        """Perform an action; if the state does not allow it, show why."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/messages/{id_}"):
            await self._do(request.path_params["action"], id_, await read_form(request))
        return redirect(f"/messages/{id_}")

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> None:
        messages, parser = self._service.messages, self._renderer.draft_parser()
        if action == "reschedule":
            await messages.reschedule(id_, parser.due({"at": form.get("at", "")}) or parser.now)
            return
        actions: dict[str, ActionHandler] = {
            "cancel": messages.cancel,
            "retry": messages.retry,
            "discard": messages.discard,
        }
        await pick_action(action, actions)(id_)

    async def _render(self, id_: str) -> Fragments:
        message, why = await self._service.messages.show(id_), await self._service.why(id_)
        piece, allowed = self._renderer.piece, allowed_actions(message["state"])
        return {
            "status": piece("message_state.html", message=message, why=why, until=iso(why.until)),
            "actions": piece("message_actions.html", message=message, allowed=allowed),
            "timeline": piece("message_timeline.html", message=message),
            "facts": piece("message_facts.html", message=message),
        }
