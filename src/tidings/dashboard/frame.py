"""The frame around every view: templates, live answers, and errors told on a page."""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple
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
from ..outbound.drafts import Reading
from .live import Live, Render, safely, while_allowed

View = Callable[[Request], Awaitable[Response]]
StillOpens = Callable[[str | None, str | None], Awaitable[bool]]


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


def no_such(action: str) -> NotFound:
    """A form that leads nowhere was not made by us."""
    return NotFound(f"there is nothing called {action[:60]!r}", remedy="use the buttons of the page")
