"""Removes from a page the forms that the caller may not submit, by the access rules of their routes.

One place for all pages, so no template can show a button that the middleware would reject.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from urllib.parse import unquote

from starlette.routing import compile_path

from ..access.caller import THIS_MACHINE, Caller
from ..access.permissions import area_of
from .renderer import ViewRoute

_FORM = re.compile(r'<form\b([^>]*\bmethod="post"[^>]*)>.*?</form>', re.DOTALL)
_ACTION = re.compile(r'\b(?:form)?action="([^"]*)"')


class FormPermissions:
    """Knows the access rule of every form."""

    def __init__(self, routes: Iterable[ViewRoute]) -> None:
        self._routes = [(compile_path(route.path)[0], route) for route in routes if route.method == "POST"]

    def shown_to(self, caller: Caller, page: str) -> str:
        """Return the page without the forms that the caller may not submit; large forms leave a note."""
        if caller.view == THIS_MACHINE.view:  # has all permissions
            return page
        return _FORM.sub(lambda form: form[0] if self._may_submit(caller, form[0]) else _replacement(form), page)

    def _may_submit(self, caller: Caller, form: str) -> bool:
        paths = [unquote(html.unescape(path)).partition("?")[0] for path in _ACTION.findall(form)]
        return all(self._allows(caller, path) for path in paths)

    def _allows(self, caller: Caller, path: str) -> bool:
        """Check the rule of the route; a path without a view (signing out) is left to the middleware."""
        route = next((route for pattern, route in self._routes if pattern.match(path)), None)
        return route is None or caller.passes(route.rule, area_of(route.path))


def _replacement(form: re.Match[str]) -> str:
    return '<p class="none">Your API key does not have permission for this.</p>' if 'class="compose"' in form[1] else ""
