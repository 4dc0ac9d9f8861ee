"""The first page: counts, the newest messages, the channels, and a form for a new one."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import DEFAULT_TENANT, OPERATE, READ, SEND
from ...inputs.natural_times import describe_time
from ...model.errors import Invalid, NotFound, TidingsError
from ...outbound.service import OutboundService
from ..charts import charts
from ..forms import read_form
from ..live_updates import Fragments, SharedFragments
from ..renderer import PageRenderer, ViewRoute, Views, json_response, pick_action, redirect


def routes(desk: OutboundService, frame: PageRenderer) -> list[ViewRoute]:
    """Its routes."""
    views = _HomeViews(desk, frame)
    return [
        ViewRoute("GET", "/", views.show),
        ViewRoute("GET", "/live", views.live, READ, whole=True),
        ViewRoute("GET", "/when", views.when),
        ViewRoute("POST", "/messages", views.compose, SEND),
        ViewRoute("POST", "/channels/{name}/{action}", views.switch, OPERATE, whole=True),
    ]


class _HomeViews(Views):
    def __init__(self, desk: OutboundService, frame: PageRenderer) -> None:
        super().__init__(desk, frame)
        self._fragments = SharedFragments(self._render, desk.clock)

    async def show(self, request: Request) -> Response:
        """The page, with word of what was just accepted. Figures of the engine are for who runs it."""
        if current_caller().tenant != DEFAULT_TENANT:
            return redirect("/messages")
        accepted = request.query_params.get("accepted")
        return await self._page(request, told=await self._told_of(accepted) if accepted else None)

    async def live(self, request: Request) -> Response:
        """Its stream."""
        return await self._frame.answer_live(request, self._fragments)

    async def compose(self, request: Request) -> Response:
        """Accept what the form says; a mistake is told beside its field."""
        form = await read_form(request)
        try:
            body = {name: form[name] for name in ("channel", "to", "text", "at") if name in form}
            draft = self._frame.reading().draft(body, keep=True)
            accepted = await self._desk.messages.accept(draft, key=form.get("key"))
        except TidingsError as error:
            if current_caller().tenant != DEFAULT_TENANT:
                raise
            return await self._page(request, error.status, form=form, error=error)
        return redirect("/", accepted=accepted.id)

    async def when(self, request: Request) -> Response:
        """How a time in words is understood, while it is being typed."""
        reading = self._frame.reading()
        try:
            at = reading.when({"at": request.query_params.get("text", "")})
        except Invalid as error:
            return json_response({"problem": str(error)})
        return json_response(
            {"when": describe_time(at or reading.now, self._frame.timezone, now=reading.now)}
        )

    async def switch(self, request: Request) -> Response:
        """Pause or resume one channel."""
        name, action = request.path_params["name"], request.path_params["action"]
        channels = self._desk.channels
        await pick_action(action, {"pause": channels.pause, "resume": channels.resume})(name)
        return redirect("/")

    async def _page(self, request: Request, status: int = 200, **values: Any) -> Response:
        shown = {"form": {}, "error": None, "told": None} | values
        fragments, key = await self._fragments.fresh(), self._desk.clock.new_id()
        return self._frame.page(
            "home.html", status, fragments=fragments, key=key, phone=self._frame.phone(request), **shown
        )

    async def _render(self) -> Fragments:
        overview, piece = self._desk.overview, self._frame.piece
        return {
            "trend": piece("trend.html", charts=charts(await overview.trend())),
            "counts": piece("counts.html", counts=await overview.counts()),
            "rows": piece("rows.html", items=await overview.newest(), is_first_page=True),
            "channels": piece("channels.html", items=await self._desk.channels.all()),
            "nodes": piece("nodes.html", items=await overview.nodes()),
        }

    async def _told_of(self, id_: str) -> dict[str, Any] | None:
        try:
            message, stored = await self._desk.messages.show(id_), await self._desk.messages.find(id_)
        except NotFound:
            return None
        return message | {
            "when": describe_time(stored["due_at"], self._frame.timezone, now=self._frame.clock.now())
        }
