"""Responses of views: redirects, JSON, links to the next page, and action lookup."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlencode

import orjson
from starlette.responses import RedirectResponse, Response

from ..inputs.pagination import Page
from ..model.errors import NotFound, TidingsError


def next_page_query(found: Page, asked: Mapping[str, Any] = {}) -> str | None:
    """Return the query string of the next page, or None on the last page."""
    return urlencode({**asked, "after": found.next}) if found.next else None


def redirect(path: str, **query: str) -> Response:
    """Redirect to a page after a POST (303); the query carries the message to show there."""
    return RedirectResponse(f"{path}?{urlencode(query)}" if query else path, 303)


class ViewRedirect(Exception):
    """Ends a view with a redirect."""

    def __init__(self, response: Response) -> None:
        self.response = response


@contextmanager
def redirect_on_error(path: str, **query: str) -> Iterator[None]:
    """On an error, redirect to a page that shows it. NotFound is raised and stays a 404."""
    try:
        yield
    except NotFound:
        raise
    except TidingsError as error:
        raise ViewRedirect(redirect(path, **query, problem=str(error))) from error


def json_response(value: object) -> Response:
    """Respond with JSON, for the script of a page."""
    return Response(orjson.dumps(value), media_type="application/json")


def pick_action(service: object, action: str, *known: str) -> Callable[[str], Awaitable[object]]:
    """Return the method of the service for one of the known actions; raises NotFound for another one."""
    if action not in known:
        raise unknown_action(action)
    method: Callable[[str], Awaitable[object]] = getattr(service, action)
    return method


def unknown_action(action: str) -> NotFound:
    """Return the error for an action that no button submits."""
    return NotFound(f"unknown action {action[:60]!r}", remedy="use the buttons of the page")
