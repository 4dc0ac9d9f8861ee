"""The frame around every view: templates, live answers, and errors told on a page."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

import orjson
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from ..access.caller import Caller, current_caller
from ..access.permissions import READ, AccessRule, Permission
from ..inputs.pagination import Page
from ..kernel.clock import Clock
from ..model.errors import NotFound, TidingsError
from ..outbound.draft_parser import DraftParser
from ..outbound.service import OutboundService
from .live_updates import LiveStreams, Render, render_or_error, while_allowed

View = Callable[[Request], Awaitable[Response]]
SessionCheck = Callable[[str | None, str | None], Awaitable[bool]]
ActionHandler = Callable[[str], Awaitable[object]]


class ViewRoute(NamedTuple):
    """A view's route and the permission it needs (access/permissions.py); GET needs READ by default."""

    method: str
    path: str
    view: View
    action: Permission | None = None
    whole: bool = False
    noted: bool = False

    @property
    def rule(self) -> AccessRule | None:
        """What it asks of its caller."""
        action = READ if self.action is None and self.method == "GET" else self.action
        return None if action is None else AccessRule(action, self.whole, self.noted)


class PageRenderer:
    """What all views share."""

    def __init__(
        self,
        environment: Environment,
        live: LiveStreams,
        clock: Clock,
        *,
        timezone: ZoneInfo,
        phone_port: int | None,
        is_still_valid: SessionCheck,
    ) -> None:
        """`is_still_valid` says whether a key or a session that opened a stream still does."""
        self._environment = environment
        self._live = live
        self._phone_port = phone_port
        self._is_still_valid = is_still_valid
        self.clock = clock
        self.timezone = timezone
        self.shown_to: Callable[[Caller, str], str] = lambda _caller, page: page  # see buttons.py

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """A whole page."""
        rendered = self._environment.get_template(name).render(**values)
        return HTMLResponse(self.shown_to(current_caller(), rendered), status)

    def listing(self, name: str, found: Page, asked: Mapping[str, Any], **values: Any) -> Response:
        """A page of a list, with what was asked for and the address of the next page."""
        return self.page(name, items=found.items, chosen=asked, more=next_page_query(found, asked), **values)

    def form(
        self, name: str, form: Mapping[str, str] | None, error: TidingsError | None, **values: Any
    ) -> Response:
        """A page with a form: what was typed, what is wrong with it, and the key that it is sent with."""
        typed, status = form or {}, 200 if error is None else error.status
        key = typed.get("key") or self.clock.new_id()
        return self.page(name, status, **{"form": typed, "error": error, "key": key} | values)

    def problem(self, error: TidingsError) -> Response:
        """What went wrong, on a page."""
        return self.page("problem.html", error.status, error=error)

    def piece(self, name: str, **values: Any) -> str:
        """A fragment that can be put in place again later."""
        rendered = self._environment.get_template(f"pieces/{name}").render(**values)
        return self.shown_to(current_caller(), rendered)

    def reading(self) -> DraftParser:
        """Reads what was typed, as of now."""
        return DraftParser(now=self.clock.now(), timezone=self.timezone, tenant=current_caller().tenant)

    def told(self, view: View) -> View:
        """A view whose errors are told on a page."""

        @functools.wraps(view)
        async def safe(request: Request) -> Response:
            try:
                return await view(request)
            except _Redirect as found:
                return found.answer
            except TidingsError as error:
                return self.problem(error)

        return safe

    async def answer_live(self, request: Request, render: Render) -> Response:
        """A stream for those who can hold one; otherwise, or when asked, the fragments as they are now."""
        if "now" in request.query_params or not self._live.has_room:
            return json_response(await render_or_error(render))
        await render()  # what cannot be shown at all has a status of its own
        pieces = while_allowed(
            self._live.stream(render), functools.partial(self._is_still_valid, *request.state.shown)
        )
        return StreamingResponse(pieces, media_type="text/event-stream")

    def phone(self, request: Request) -> str | None:
        """Where the pretend phone is, seen from this browser."""
        if self._phone_port is None:
            return None
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname or "localhost"
        return f"http://{f'[{host}]' if ':' in host else host}:{self._phone_port}/"


class Views:
    """Views of what is sent, and of those who get it."""

    def __init__(self, desk: OutboundService, frame: PageRenderer) -> None:
        self._desk = desk
        self._frame = frame


def next_page_query(found: Page, asked: Mapping[str, Any] = {}) -> str | None:
    """The query of the next page, if there is one."""
    return urlencode({**asked, "after": found.next}) if found.next else None


def redirect(path: str, **said: str) -> Response:
    """To a page, after something was done or refused; what is said there goes with it."""
    return RedirectResponse(f"{path}?{urlencode(said)}" if said else path, 303)


class _Redirect(Exception):
    """Ends a view with this answer."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer


@contextmanager
def redirect_on_error(path: str) -> Iterator[None]:
    """End the view on this page, which says why, when something is refused; what is missing stays a 404."""
    try:
        yield
    except NotFound:
        raise
    except TidingsError as error:
        raise _Redirect(redirect(path, problem=str(error))) from error


def json_response(value: object) -> Response:
    """For the script of a page."""
    return Response(orjson.dumps(value), media_type="application/json")


def pick_action(action: str, acts: Mapping[str, ActionHandler]) -> ActionHandler:
    """What a button asks for."""
    if action not in acts:
        raise unknown_action(action)
    return acts[action]


def unknown_action(action: str) -> NotFound:
    """A form that leads nowhere was not made by us."""
    return NotFound(f"there is nothing called {action[:60]!r}", remedy="use the buttons of the page")
