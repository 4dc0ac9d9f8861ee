"""Broadcasts: a row each with its bar, and the page of one, live, with what may be done to it now."""

from __future__ import annotations

from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response

from ...access.rules import OPERATE
from ...outbound.desk import Desk
from ..forms import chosen, read_form
from ..frame import Frame, Way, back, no_such, refusals_told_on
from ..live import Fragments

PAGE = 50
RECIPIENTS = 50


def ways(desk: Desk, frame: Frame) -> list[Way]:
    """Their routes."""
    views = _Broadcasts(desk, frame)
    return [
        Way("GET", "/broadcasts", views.page),
        Way("GET", "/broadcasts/live", views.live_page),
        Way("GET", "/broadcasts/{id}", views.show),
        Way("GET", "/broadcasts/{id}/live", views.live),
        Way("POST", "/broadcasts/{id}/{action}", views.act, OPERATE),
    ]


class _Broadcasts:
    def __init__(self, desk: Desk, frame: Frame) -> None:
        self._desk = desk
        self._frame = frame

    async def page(self, request: Request) -> Response:
        """Broadcasts, newest first."""
        asked = chosen(request, "state", "xref", "after")
        page = await self._desk.broadcasts.page(limit=PAGE, **asked)
        more = urlencode(asked | {"after": page.next}) if page.next else None
        return self._frame.page(
            "broadcasts.html",
            items=page.items,
            chosen=asked,
            more=more,
            rows=self._frame.piece("broadcasts.html", items=page.items, is_filtered=bool(asked)),
        )

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
        more = urlencode({"state": state or "", "after": people.next}) if people.next else None
        return self._frame.page(
            "broadcast.html",
            broadcast=broadcast,
            fragments=fragments,
            people=people.items,
            state=state,
            more=more,
            problem=query.get("problem"),
        )

    async def live(self, request: Request) -> Response:
        """The stream of one broadcast's page."""
        return await self._frame.answer_live(request, lambda: self._render(request.path_params["id"]))

    async def act(self, request: Request) -> Response:
        """What a person asks of one broadcast; what its state does not allow is refused and said."""
        id_ = request.path_params["id"]
        with refusals_told_on(f"/broadcasts/{id_}"):
            await self._do(request.path_params["action"], id_, await read_form(request))
        return back(f"/broadcasts/{id_}")

    async def _do(self, action: str, id_: str, form: dict[str, str]) -> None:
        broadcasts = self._desk.broadcasts
        match action:
            case "trigger":
                await broadcasts.trigger(id_)
            case "pause":
                await broadcasts.pause(id_)
            case "resume":
                await broadcasts.resume(id_)
            case "cancel":
                await broadcasts.cancel(id_)
            case "retry":
                await broadcasts.retry(id_, held=form.get("held") == "yes")
            case _:
                raise no_such(action)

    async def _render(self, id_: str) -> Fragments:
        broadcast, piece = await self._desk.broadcasts.show(id_), self._frame.piece
        return {
            "standing": piece("progress.html", broadcast=broadcast),
            "acts": piece("broadcast_acts.html", broadcast=broadcast),
            "facts": piece("broadcast_facts.html", broadcast=broadcast),
        }
