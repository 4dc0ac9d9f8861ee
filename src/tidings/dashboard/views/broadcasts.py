"""Broadcasts: a row each with its bar, and the page of one, live, with what may be done to it now."""

from __future__ import annotations

from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from ...access.permissions import OPERATE
from ...outbound.service import OutboundService
from ..forms import query_values, read_form
from ..live_updates import Fragments
from ..renderer import (
    ActionHandler,
    PageRenderer,
    ViewRoute,
    Views,
    next_page_query,
    pick_action,
    redirect,
    redirect_on_error,
)

PAGE = 50
RECIPIENTS = 50


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Their routes."""
    views = _BroadcastViews(desk, frame)
    return [
        ViewRoute("GET", "/broadcasts", views.page),
        ViewRoute("GET", "/broadcasts/live", views.live_page),
        ViewRoute("GET", "/broadcasts/{id}", views.show),
        ViewRoute("GET", "/broadcasts/{id}/live", views.live),
        ViewRoute("POST", "/broadcasts/{id}/{action}", views.act, OPERATE),
    ]


class _BroadcastViews(Views):
    async def page(self, request: Request) -> Response:
        """Broadcasts, newest first."""
        asked = query_values(request, "state", "xref", "after")
        found = await self._desk.broadcasts.page(limit=PAGE, **asked)
        rows = self._frame.piece("broadcasts.html", items=found.items, is_filtered=bool(asked))
        return self._frame.listing("broadcasts.html", found, asked, rows=rows)

    async def live_page(self, request: Request) -> Response:
        """The newest of them, as they move."""

        async def render() -> Fragments:
            page = await self._desk.broadcasts.page(limit=PAGE)
            return {"broadcasts": self._frame.piece("broadcasts.html", items=page.items)}

        return await self._frame.answer_live(request, render)

    async def show(self, request: Request) -> Response:
        """One broadcast: its bar, its exact tally, its recipients, and what may be done to it now."""
        id_, query = request.path_params["id"], request.query_params
        state, after = query.get("state") or None, query.get("after") or None
        broadcast, fragments = await self._desk.broadcasts.show(id_), await self._render(id_)
        people = await self._desk.broadcasts.recipients(id_, state=state, limit=RECIPIENTS, after=after)
        return self._frame.page(
            "broadcast.html",
            broadcast=broadcast,
            fragments=fragments,
            people=people.items,
            state=state,
            more=next_page_query(people, {"state": state or ""}),
            problem=query.get("problem"),
        )

    async def live(self, request: Request) -> Response:
        """The stream of one broadcast's page."""
        return await self._frame.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def act(self, request: Request) -> Response:
        """What a person asks of one broadcast; what its state does not allow is refused and said."""
        id_ = request.path_params["id"]
        with redirect_on_error(f"/broadcasts/{id_}"):
            await self._do(request.path_params["action"], id_, await read_form(request))
        return redirect(f"/broadcasts/{id_}")

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> None:
        broadcasts = self._desk.broadcasts
        acts: dict[str, ActionHandler] = {
            "trigger": broadcasts.trigger,
            "pause": broadcasts.pause,
            "resume": broadcasts.resume,
            "cancel": broadcasts.cancel,
            "retry": partial(broadcasts.retry, unknown=form.get("unknown") == "yes"),
        }
        await pick_action(action, acts)(id_)

    async def _render(self, id_: str) -> Fragments:
        broadcast, piece = await self._desk.broadcasts.show(id_), self._frame.piece
        return {
            "standing": piece("progress.html", broadcast=broadcast),
            "acts": piece("broadcast_acts.html", broadcast=broadcast),
            "facts": piece("broadcast_facts.html", broadcast=broadcast),
        }
