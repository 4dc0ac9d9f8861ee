"""The frame around every view: templates, live answers, and errors told on a page."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlencode, urlsplit
from zoneinfo import ZoneInfo

import orjson
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response, StreamingResponse

from ..access.caller import Caller, current
from ..access.rules import READ, Action, Rule
from ..kernel.clock import Clock
from ..model.errors import NotFound, TidingsError
from ..outbound.desk import Desk
from ..outbound.drafts import Reading
from .live import Live, Render, safely, while_allowed

View = Callable[[Request], Awaitable[Response]]
StillOpens = Callable[[str | None, str | None], Awaitable[bool]]
Act = Callable[[str], Awaitable[object]]


class Listed(Protocol):
    """A page of a list, from whichever part it is."""

    @property
    def items(self) -> Sequence[Any]:
        """What is on it."""

    @property
    def next(self) -> str | None:
        """Where the next one begins."""


class Way(NamedTuple):
    """One route: how a view is reached, and by whom (access/rules.py). Looking is READ unless it says so."""

    method: str
    path: str
    view: View
    action: Action | None = None
    whole: bool = False
    noted: bool = False

    @property
    def rule(self) -> Rule | None:
        """What it asks of its caller."""
        action = READ if self.action is None and self.method == "GET" else self.action
        return None if action is None else Rule(action, self.whole, self.noted)


class Frame:
    """What all views share."""

    def __init__(
        self,
        environment: Environment,
        live: Live,
        clock: Clock,
        *,
        zone: ZoneInfo,
        phone_port: int | None,
        still_opens: StillOpens,
    ) -> None:
        """`still_opens` says whether a key or a session that opened a stream still does."""
        self._environment = environment
        self._live = live
        self._phone_port = phone_port
        self._still_opens = still_opens
        self.clock = clock
        self.zone = zone
        self.shown_to: Callable[[Caller, str], str] = lambda _caller, page: page  # see buttons.py

    def page(self, name: str, status: int = 200, **values: Any) -> Response:
        """A whole page."""
        rendered = self._environment.get_template(name).render(**values)
        return HTMLResponse(self.shown_to(current(), rendered), status)

    def listing(self, name: str, found: Listed, asked: Mapping[str, Any], **values: Any) -> Response:
        """A page of a list, with what was asked for and the address of the next page."""
        return self.page(name, items=found.items, chosen=asked, more=more(found, asked), **values)

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
        return self.shown_to(current(), rendered)

    def reading(self) -> Reading:
        """Reads what was typed, as of now."""
        return Reading(now=self.clock.now(), zone=self.zone, tenant=current().tenant)

    def told(self, view: View) -> View:
        """A view whose errors are told on a page."""

        @functools.wraps(view)
        async def safe(request: Request) -> Response:
            try:
                return await view(request)
            except _Elsewhere as found:
                return found.answer
            except TidingsError as error:
                return self.problem(error)

        return safe

    async def answer_live(self, request: Request, render: Render) -> Response:
        """A stream for those who can hold one; otherwise, or when asked, the fragments as they are now."""
        if "now" in request.query_params or not self._live.has_room:
            return as_json(await safely(render))
        await render()  # what cannot be shown at all has a status of its own
        pieces = while_allowed(
            self._live.stream(render), functools.partial(self._still_opens, *request.state.shown)
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

    def __init__(self, desk: Desk, frame: Frame) -> None:
        self._desk = desk
        self._frame = frame


def more(found: Listed, asked: Mapping[str, Any] = {}) -> str | None:
    """The query of the next page, if there is one."""
    return urlencode({**asked, "after": found.next}) if found.next else None


def back(path: str, **said: str) -> Response:
    """To a page, after something was done or refused; what is said there goes with it."""
    return RedirectResponse(f"{path}?{urlencode(said)}" if said else path, 303)


class _Elsewhere(Exception):
    """Ends a view with this answer."""

    def __init__(self, answer: Response) -> None:
        self.answer = answer


@contextmanager
def refusals_told_on(path: str) -> Iterator[None]:
    """End the view on this page, which says why, when something is refused; what is missing stays a 404."""
    try:
        yield
    except NotFound:
        raise
    except TidingsError as error:
        raise _Elsewhere(back(path, problem=str(error))) from error


def as_json(value: object) -> Response:
    """For the script of a page."""
    return Response(orjson.dumps(value), media_type="application/json")


def picked(action: str, acts: Mapping[str, Act]) -> Act:
    """What a button asks for."""
    if action not in acts:
        raise no_such(action)
    return acts[action]


def no_such(action: str) -> NotFound:
    """A form that leads nowhere was not made by us."""
    return NotFound(f"there is nothing called {action[:60]!r}", remedy="use the buttons of the page")
