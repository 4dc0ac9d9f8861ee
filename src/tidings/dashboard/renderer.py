"""Rendering of pages and fragments, live responses, error pages, and helpers that views share."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response, StreamingResponse

from ..access.caller import Caller, current_caller
from ..access.permissions import READ, AccessRule, Endpoint, Permission, with_rule
from ..app import App
from ..inputs.pagination import Page
from ..model.errors import TidingsError
from ..outbound.draft_parser import DraftParser
from .forms import Form, read_form
from .live_updates import LiveStreams, Render, render_or_error, while_allowed
from .responses import ViewRedirect, json_response, next_page_query

View = Callable[[Request], Awaitable[Response]]


class ViewRoute(NamedTuple):
    """The route of a view, and what it requires of its caller."""

    method: str
    path: str
    rule: AccessRule


def get(path: str, action: Permission = READ, *, engine_wide: bool = False) -> Callable[[Endpoint], Endpoint]:
    """Declare the route of a view; it gets the request and the path parameters."""
    return _routed(ViewRoute("GET", path, AccessRule(action, engine_wide)))


def post(
    path: str, action: Permission, *, engine_wide: bool = False, writes_audit: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Declare the route of a view; it gets the request, the submitted form and the path parameters."""
    return _routed(ViewRoute("POST", path, AccessRule(action, engine_wide, writes_audit)))


def _routed(route: ViewRoute) -> Callable[[Endpoint], Endpoint]:
    def declare(view: Endpoint) -> Endpoint:
        view.route = route  # type: ignore[attr-defined]
        return view

    return declare


class PageRenderer:
    """Renders pages and fragments for all views."""

    def __init__(self, app: App, environment: Environment, live: LiveStreams, *, phone_port: int | None) -> None:
        self._environment = environment
        self._live = live
        self._phone_port = phone_port
        self._is_still_valid = app.access.authenticator.is_still_valid  # the key or session that opened a stream
        self.clock = app.clock
        self.timezone = app.settings.timezone
        self.shown_to: Callable[[Caller, str], str] = lambda _caller, page: page  # see form_permissions

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        rendered = self._environment.get_template(name).render(**values)
        return HTMLResponse(self.shown_to(current_caller(), rendered), status)

    def listing(self, name: str, found: Page, asked: Mapping[str, Any], **values: Any) -> Response:
        """Render one page of a list, with its filters and a link to the next page."""
        return self.page(name, items=found.items, chosen=asked, more=next_page_query(found, asked), **values)

    def form(self, name: str, form: Form | None, error: TidingsError | None, **values: Any) -> Response:
        """Render a form with the submitted values, the error, and its idempotency key."""
        typed, status = form or {}, 200 if error is None else error.status
        key = typed.get("key") or self.clock.new_id()
        return self.page(name, status, **{"form": typed, "error": error, "key": key} | values)

    def problem(self, error: TidingsError) -> Response:
        return self.page("problem.html", error.status, error=error)

    def piece(self, name: str, **values: Any) -> str:
        """Render a fragment that live updates can replace."""
        rendered = self._environment.get_template(f"pieces/{name}").render(**values)
        return self.shown_to(current_caller(), rendered)

    def draft_parser(self) -> DraftParser:
        """Return a parser of messages and times for the current caller and time."""
        return DraftParser(now=self.clock.now(), timezone=self.timezone, tenant=current_caller().tenant)

    async def answer_live(self, request: Request, render: Render) -> Response:
        """Respond with a stream, or with the current fragments: for `?now`, and when too many are open."""
        if "now" in request.query_params or not self._live.has_room:
            return json_response(await render_or_error(render))
        await render()  # raise errors before the stream starts, so that they get their own status
        pieces = while_allowed(self._live.stream(render), functools.partial(self._is_still_valid, *request.state.shown))
        return StreamingResponse(pieces, media_type="text/event-stream")

    def phone(self, request: Request) -> str | None:
        """Return the URL of the sandbox phone as seen from this browser, or None if it is not served."""
        if self._phone_port is None:
            return None
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._phone_port}/"


class Views:
    """Base class of views. A path with a fixed segment is declared before one with a parameter in its place."""

    def __init__(self, app: App, renderer: PageRenderer) -> None:
        self._app = app
        self._outbound = app.outbound
        self._renderer = renderer

    def endpoints(self) -> Iterator[tuple[ViewRoute, View]]:
        """Yield all routes in the order of their declaration."""
        for name, view in vars(type(self)).items():
            if (route := getattr(view, "route", None)) is not None:
                yield route, self._endpoint(route, getattr(self, name))

    def _endpoint(self, route: ViewRoute, view: Callable[..., Awaitable[Response]]) -> View:
        """Wrap a view so that it gets its arguments, and its errors become error pages."""

        @functools.wraps(view)  # the audit log names the view
        async def respond(request: Request) -> Response:
            try:
                form = [await read_form(request)] if route.method == "POST" else []
                return await view(request, *form, *request.path_params.values())
            except ViewRedirect as found:
                return found.response
            except TidingsError as error:
                return self._renderer.problem(error)

        return with_rule(respond, route.rule)
