"""Broadcasts with live progress, and the page of one with its recipients and actions."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...app import App
from ...outbound.service import OutboundService
from ..forms import query_values, read_form
from ..live_updates import Fragments
from ..renderer import PageRenderer, ViewRoute, Views
from ..responses import ActionHandler, next_page_query, pick_action, redirect, redirect_on_error

PAGE = 50
RECIPIENTS = 50


def routes(app: App, renderer: PageRenderer) -> list[ViewRoute]:
    """Return the broadcast routes."""
    views = _BroadcastViews(app.outbound, renderer)
    return [
        ViewRoute("GET", "/broadcasts", views.page),
        ViewRoute("GET", "/broadcasts/live", views.live_page),
        ViewRoute("GET", "/broadcasts/{id}", views.show),
        ViewRoute("GET", "/broadcasts/{id}/live", views.live),
        ViewRoute("POST", "/broadcasts/{id}/{action}", views.act, OPERATE),
    ]


class _BroadcastViews(Views[OutboundService]):
    async def page(self, request: Request) -> Response:
        """List broadcasts, newest first."""
        asked = query_values(request, "state", "xref", "after")
        found = await self._service.broadcasts.page(limit=PAGE, **asked)
        rows = self._renderer.piece("broadcasts.html", items=found.items, is_filtered=bool(asked))
        return self._renderer.listing("broadcasts.html", found, asked, rows=rows)

    async def live_page(self, request: Request) -> Response:
        """Stream the newest broadcasts."""

        async def render() -> Fragments:
            page = await self._service.broadcasts.page(limit=PAGE)
            return {"broadcasts": self._renderer.piece("broadcasts.html", items=page.items)}

        return await self._renderer.answer_live(request, render)

    async def show(self, request: Request) -> Response:
        """Show one broadcast: progress, counts, recipients and allowed actions."""
        id_, query = request.path_params["id"], request.query_params
        state, after = query.get("state") or None, query.get("after") or None
        broadcast, fragments = await self._service.broadcasts.show(id_), await self._render(id_)
        recipients = await self._service.broadcasts.recipients(id_, state=state, limit=RECIPIENTS, after=after)
        return self._renderer.page(
            "broadcast.html",
            broadcast=broadcast,
            fragments=fragments,
            recipients=recipients.items,
            state=state,
            more=next_page_query(recipients, {"state": state or ""}),
            problem=query.get("problem"),
        )

    async def live(self, request: Request) -> Response:
        """Stream the page of one broadcast."""
        return await self._renderer.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def act(self, request: Request) -> Response:
        """Perform an action; if the state does not allow it, show why."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/broadcasts/{id_}"):
            await self._do(request.path_params["action"], id_, await read_form(request))
        return redirect(f"/broadcasts/{id_}")

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> None:
        broadcasts = self._service.broadcasts
        actions: dict[str, ActionHandler] = {
            "trigger": broadcasts.trigger,
            "pause": broadcasts.pause,
            "resume": broadcasts.resume,
            "cancel": broadcasts.cancel,
            "retry": partial(broadcasts.retry, unknown=form.get("unknown") == "yes"),
        }
        await pick_action(action, actions)(id_)

    async def _render(self, id_: str) -> Fragments:
        broadcast, piece = await self._service.broadcasts.show(id_), self._renderer.piece
        return {
            "status": piece("broadcast_state.html", broadcast=broadcast),
            "actions": piece("broadcast_actions.html", broadcast=broadcast),
            "facts": piece("broadcast_facts.html", broadcast=broadcast),
        }
