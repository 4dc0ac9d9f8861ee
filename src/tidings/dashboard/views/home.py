"""The overview: counts, charts, the newest messages, the channels, and a form for a new message."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from ...access.caller import current_caller
from ...access.permissions import DEFAULT_TENANT, SEND
from ...app import App
from ...inputs.natural_times import describe_time
from ...model.errors import Invalid, NotFound, TidingsError
from ..charts import charts
from ..forms import Form
from ..live_updates import Fragments, SharedFragments
from ..renderer import PageRenderer, Views, get, post
from ..responses import json_response, redirect


class HomeViews(Views):
    def __init__(self, app: App, renderer: PageRenderer) -> None:
        super().__init__(app, renderer)
        self._fragments = SharedFragments(self._render, app.clock)

    @get("/")
    async def show(self, request: Request) -> Response:
        """Show the overview, with a notice about an accepted message; only for the default tenant."""
        if current_caller().tenant != DEFAULT_TENANT:
            return redirect("/messages")
        accepted = request.query_params.get("accepted")
        return await self._page(request, accepted=await self._accepted(accepted) if accepted else None)

    @get("/live", engine_wide=True)
    async def live(self, request: Request) -> Response:
        return await self._renderer.answer_live(request, self._fragments)

    @post("/messages", SEND)
    async def compose(self, request: Request, form: Form) -> Response:
        """Accept a message; an error is shown next to its field."""
        try:
            body = {name: form[name] for name in ("channel", "to", "text", "at") if name in form}
            draft = self._renderer.draft_parser().draft(body, keep=True)
            accepted = await self._outbound.messages.accept(draft, key=form.get("key"))
        except TidingsError as error:
            if current_caller().tenant != DEFAULT_TENANT:
                raise
            return await self._page(request, form, error)
        return redirect("/", accepted=accepted.id)

    @get("/when")
    async def when(self, request: Request) -> Response:
        """Return how a time is interpreted, while it is being typed."""
        parser = self._renderer.draft_parser()
        try:
            at = parser.due({"at": request.query_params.get("text", "")})
        except Invalid as error:
            return json_response({"problem": str(error)})
        return json_response({"when": describe_time(at or parser.now, self._renderer.timezone, now=parser.now)})

    async def _page(
        self, request: Request, form: Form | None = None, error: TidingsError | None = None, **shown: Any
    ) -> Response:
        phone, key = self._renderer.phone(request), self._outbound.clock.new_id()
        fragments = await self._fragments.fresh()
        return self._renderer.form("home.html", form, error, fragments=fragments, key=key, phone=phone, **shown)

    async def _render(self) -> Fragments:
        overview, piece = self._outbound.overview, self._renderer.piece
        return {
            "trend": piece("trend.html", charts=charts(await overview.trend())),
            "counts": piece("counts.html", counts=await overview.counts()),
            "rows": piece("messages.html", items=await overview.newest(), is_first_page=True),
            "channels": piece("channels.html", items=await self._outbound.channels.all()),
            "nodes": piece("nodes.html", items=await overview.nodes()),
        }

    async def _accepted(self, id_: str) -> dict[str, Any] | None:
        try:
            message, stored = await self._outbound.messages.show(id_), await self._outbound.messages.find(id_)
        except NotFound:
            return None
        return message | {
            "when": describe_time(stored["due_at"], self._renderer.timezone, now=self._renderer.clock.now())
        }
