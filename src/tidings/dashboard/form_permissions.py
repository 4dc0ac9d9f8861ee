"""Buttons: a form is shown to those who may send it, by the rule of the route that it leads to.

One place for all pages, so that no template can show what the gate would refuse.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from urllib.parse import unquote

from starlette.routing import compile_path

from ..access.caller import THIS_MACHINE, Caller
from ..access.permissions import DEFAULT_RULE, AccessRule, area_of
from .renderer import ViewRoute

_FORM = re.compile(r'<form\b([^>]*\bmethod="post"[^>]*)>.*?</form>', re.DOTALL)
_PLACE = re.compile(r'\b(?:form)?action="([^"]*)"')


class FormPermissions:
    """The forms of all pages."""

    def __init__(self, ways: Iterable[ViewRoute]) -> None:
        self._rules = [
            (compile_path(way.path)[0], way.path, way.rule or DEFAULT_RULE)
            for way in ways
            if way.method == "POST"
        ]

    def shown_to(self, caller: Caller, page: str) -> str:
        """A page without the forms that this caller may not send; those with fields say why they are gone."""
        if caller.view == THIS_MACHINE.view:  # may do everything
            return page
        return _FORM.sub(lambda form: form[0] if self._may_send(caller, form[0]) else _instead(form), page)

    def _may_send(self, caller: Caller, form: str) -> bool:
        places = [unquote(html.unescape(place)).partition("?")[0] for place in _PLACE.findall(form)]
        return all(self._allows(caller, place) for place in places)

    def _allows(self, caller: Caller, place: str) -> bool:
        """What is no page of ours (signing out) is left to the gate."""
        found: tuple[AccessRule, str] | None = next(
            ((rule, path) for pattern, path, rule in self._rules if pattern.match(place)), None
        )
        return found is None or caller.passes(found[0], area_of(found[1]))


def _instead(form: re.Match[str]) -> str:
    return '<p class="none">Your key may look, but not do this.</p>' if 'class="compose"' in form[1] else ""
