"""The views: parse, call one function, render. Forms work without a script; the script only adds comfort."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

import orjson
from fastapi import FastAPI
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from ..model.errors import Invalid, NotFound, TidingsError
from ..model.time import iso
from ..outbound.desk import Desk
from ..outbound.drafts import Reading
from ..outbound.story import actions
from ..outbound.times import echo
from .forms import read_form
from .live import Fragments, Live, Render, Shared, safely

PAGE = 50
View = Callable[[Request], Awaitable[Response]]


def add_routes(
    api: FastAPI, desk: Desk, environment: Environment, live: Live, *, zone: ZoneInfo, phone_port: int | None
) -> None:
    """Every page and every form."""
    views = _Views(api, desk, environment, live, zone=zone, phone_port=phone_port)
    table: list[tuple[str, str, View]] = [
        ("GET", "/", views.home),
        ("GET", "/live", views.home_live),
        ("GET", "/when", views.when),
        ("GET", "/messages", views.messages),
        ("POST", "/messages", views.compose),
        ("GET", "/messages/{id}", views.message),
        ("GET", "/messages/{id}/live", views.message_live),
        ("POST", "/messages/{id}/{action}", views.act),
        ("GET", "/dead", views.dead),
        ("POST", "/dead/{action}", views.sweep),
        ("POST", "/channels/{name}/{action}", views.switch),
        ("GET", "/docs", views.docs),
        ("GET", "/sign-in", views.sign_in),
    ]
    for method, path, view in table:
        api.add_route(path, views.told(view), methods=[method], include_in_schema=False)


class _Views:
    def __init__(
        self,
        api: FastAPI,
        desk: Desk,
        environment: Environment,
        live: Live,
        *,
        zone: ZoneInfo,
        phone_port: int | None,
    ) -> None:
        self._api = api
        self._desk = desk
        self._environment = environment
        self._live = live
        self._zone = zone
        self._phone_port = phone_port
        self._home = Shared(self._home_fragments, desk.clock)

    def told(self, view: View) -> View:
        """A view whose errors are told on a page."""

        async def safe(request: Request) -> Response:
            try:
                return await view(request)
            except TidingsError as error:
                return self._page("problem.html", error.status, error=error)

        return safe

    # -- the first page

    async def home(self, request: Request) -> Response:
        """Counts, the newest messages, the channels, and a form for a new one."""
        return await self._home_page(request)

    async def _home_page(
        self,
        request: Request,
        status: int = 200,
        form: dict[str, str] | None = None,
        error: TidingsError | None = None,
    ) -> Response:
        fragments = await self._home.fresh()
        accepted = request.query_params.get("accepted")
        told = await self._told_of(accepted) if accepted else None
        return self._page(
            "home.html", status, fragments=fragments, form=form or {}, error=error, told=told,
            phone=self._phone(request), key=self._desk.clock.new_id(),
        )  # fmt: skip

    async def home_live(self, request: Request) -> Response:
        """The first page's stream."""
        return await self._answer_live(request, self._home)

    async def _home_fragments(self) -> Fragments:
        counts = await self._desk.overview.counts()
        rows = await self._desk.overview.newest()
        channels = await self._desk.channels.all()
        nodes = await self._desk.overview.nodes()
        return {
            "counts": self._piece("counts.html", counts=counts),
            "rows": self._piece("rows.html", items=rows, is_first_page=True),
            "channels": self._piece("channels.html", items=channels),
            "nodes": self._piece("nodes.html", items=nodes),
        }

    async def compose(self, request: Request) -> Response:
        """Accept what the form says."""
        form = await read_form(request)
        try:
            body = {name: form[name] for name in ("channel", "to", "text", "at") if name in form}
            draft = Reading(now=self._desk.clock.now(), zone=self._zone).draft(body, keep=True)
            accepted = await self._desk.messages.accept(draft, key=form.get("key"))
        except TidingsError as error:
            return await self._home_page(request, error.status, form, error)
        return RedirectResponse(f"/?{urlencode({'accepted': accepted.id})}", 303)

    async def _told_of(self, id_: str) -> dict[str, Any] | None:
        try:
            message = await self._desk.messages.show(id_)
        except NotFound:
            return None
        at = (await self._desk.messages.find(id_))["due_at"]
        return {**message, "when": echo(at, self._zone, now=self._desk.clock.now())}

    async def when(self, request: Request) -> Response:
        """How a time in words is understood, while it is being typed."""
        text = request.query_params.get("text", "")
        now = self._desk.clock.now()
        try:
            at = Reading(now=now, zone=self._zone).when({"at": text})
        except Invalid as error:
            return _json({"problem": f"{error.problem}. {error.remedy}"})
        return _json({"when": echo(now if at is None else at, self._zone, now=now)})

    # -- messages

    async def messages(self, request: Request) -> Response:
        """Messages by state, channel and recipient."""
        names = ("state", "channel", "to", "after")
        chosen = {name: value for name in names if (value := request.query_params.get(name, "").strip())}
        page = await self._desk.messages.page(limit=PAGE, **chosen)  # type: ignore[arg-type]
        further = {**chosen, "after": page.next} if page.next else None
        return self._page(
            "messages.html", items=page.items, chosen=chosen, more=urlencode(further) if further else None
        )

    async def message(self, request: Request) -> Response:
        """One message: its standing, why, its timeline, and what may be done to it now."""
        id_ = request.path_params["id"]
        message = await self._desk.messages.show(id_)
        return self._page(
            "message.html", fragments=await self._message_fragments(id_), message=message,
            problem=request.query_params.get("problem"), phone=self._phone(request),
        )  # fmt: skip

    async def message_live(self, request: Request) -> Response:
        """The stream of one message's page."""
        return await self._answer_live(request, lambda: self._message_fragments(request.path_params["id"]))

    async def _message_fragments(self, id_: str) -> Fragments:
        message, why = await self._desk.messages.show(id_), await self._desk.why(id_)
        return {
            "standing": self._piece("standing.html", message=message, why=why, until=iso(why.until)),
            "acts": self._piece("acts.html", message=message, legal=actions(message["state"])),
            "timeline": self._piece("timeline.html", message=message),
            "facts": self._piece("facts.html", message=message),
        }

    async def act(self, request: Request) -> Response:
        """What a person asks of one message; what its state does not allow is refused and said."""
        id_, action = request.path_params["id"], request.path_params["action"]
        form, messages = await read_form(request), self._desk.messages
        try:
            match action:
                case "cancel":
                    await messages.cancel(id_)
                case "retry":
                    await messages.retry(id_)
                case "discard":
                    await messages.discard(id_)
                case "reschedule":
                    reading = Reading(now=self._desk.clock.now(), zone=self._zone)
                    await messages.reschedule(id_, reading.when({"at": form.get("at", "")}) or reading.now)
                case _:
                    raise NotFound(
                        f"there is nothing called {action!r}", remedy="use the buttons of the page"
                    )
        except TidingsError as error:
            if isinstance(error, NotFound):
                raise
            return RedirectResponse(f"/messages/{id_}?{urlencode({'problem': str(error)})}", 303)
        return RedirectResponse(f"/messages/{id_}", 303)

    # -- dead letters

    async def dead(self, request: Request) -> Response:
        """Dead letters by cause, and one by one."""
        query = request.query_params
        chosen = {name: query[name] for name in ("channel", "category", "after") if query.get(name)}
        unknown = {"yes": True, "no": False}.get(query.get("held", ""))
        page = await self._desk.dead.page(limit=PAGE, unknown=unknown, **chosen)
        further = {**dict(query), "after": page.next} if page.next else None
        return self._page(
            "dead.html",
            groups=await self._desk.dead.groups(),
            items=page.items,
            is_filtered=bool(chosen) or unknown is not None,
            done=query.get("done"),
            more=urlencode(further) if further else None,
        )

    async def sweep(self, request: Request) -> Response:
        """Retry or discard all of one cause."""
        form = await read_form(request)
        which: dict[str, Any] = {name: form[name] for name in ("channel", "category") if name in form}
        which["unknown"] = form.get("held") == "yes"
        match request.path_params["action"]:
            case "retry":
                swept, word = await self._desk.dead.retry_all(**which), "started afresh"
            case "discard":
                swept, word = await self._desk.dead.discard_all(**which), "discarded"
            case action:
                raise NotFound(f"there is nothing called {action!r}", remedy="use the buttons of the page")
        more = "; more are left, do it again" if swept.more else ""
        return RedirectResponse(f"/dead?{urlencode({'done': f'{swept.moved:,} {word}{more}'})}", 303)

    # -- channels

    async def switch(self, request: Request) -> Response:
        """Pause or resume one channel."""
        name = request.path_params["name"]
        match request.path_params["action"]:
            case "pause":
                await self._desk.channels.pause(name)
            case "resume":
                await self._desk.channels.resume(name)
            case action:
                raise NotFound(f"there is nothing called {action!r}", remedy="use the buttons of the page")
        return RedirectResponse("/", 303)

    # -- beside

    async def docs(self, request: Request) -> Response:
        """The routes of the API, from its own description."""
        return self._page("docs.html", openapi=self._api.openapi(), base=str(request.base_url).rstrip("/"))

    async def sign_in(self, request: Request) -> Response:
        """The form that asks for a key."""
        query = request.query_params
        return self._page("sign_in.html", wrong="wrong" in query, wanted=query.get("next", "/"))

    # -- plumbing

    async def _answer_live(self, request: Request, render: Render) -> Response:
        """A stream for those who can hold one; otherwise, or when asked, the fragments as they are now."""
        if "now" in request.query_params or not self._live.has_room:
            return _json(await safely(render))
        await render()  # what cannot be shown at all has a status of its own
        return StreamingResponse(self._live.stream(render), media_type="text/event-stream")

    def _piece(self, name: str, **values: Any) -> str:
        return self._environment.get_template(f"pieces/{name}").render(**values)

    def _page(self, name: str, status: int = 200, **values: Any) -> Response:
        return HTMLResponse(self._environment.get_template(name).render(**values), status)

    def _phone(self, request: Request) -> str | None:
        """Where the pretend phone is, seen from this browser."""
        port = self._phone_port
        host = urlsplit(f"//{request.headers.get('host', 'localhost')}").hostname or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/" if port else None


def _json(value: object) -> Response:
    return Response(orjson.dumps(value), media_type="application/json")
