"""The rulebook: which rule a request comes under, looked up in the routes themselves, in their own order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import fastapi.routing
from fastapi import FastAPI
from starlette.routing import Mount

from ..access.permissions import DEFAULT_RULE, OPEN, READ, AccessRule, area_of, rule_of

STATIC = "/static/"
_BUILT_IN = {"/openapi.json": AccessRule(READ)}  # the framework's own routes


class RouteEntry(NamedTuple):
    """One route, as the gate needs to know it."""

    method: str
    path: str
    pattern: re.Pattern[str]
    name: str  # of the function that answers
    stated: AccessRule | None

    @property
    def rule(self) -> AccessRule:
        """What it asks; a route that says nothing is for admins only."""
        return self.stated or DEFAULT_RULE

    @property
    def area(self) -> str:
        """The part of the API or of the pages that it belongs to."""
        return area_of(self.path)


class RouteMatch(NamedTuple):
    """Where a request leads. No place: its path is known, but not with this method."""

    place: RouteEntry | None
    names: Mapping[str, str]  # the parts of its path
    is_open: bool = False  # without a place: whether its path is one that needs no key

    @property
    def rule(self) -> AccessRule:
        """What it asks of its caller."""
        if self.place is None:
            return AccessRule(OPEN if self.is_open else READ)
        return self.place.rule

    @property
    def what(self) -> str:
        """What is done, as the audit trail says it."""
        assert self.place is not None
        return f"{self.place.area}.{self.names.get('action', self.place.name)}"

    @property
    def target(self) -> str | None:
        """What it is done to."""
        return " ".join(value for name, value in self.names.items() if name != "action") or None


_STATIC_FILES = RouteMatch(
    RouteEntry("GET", STATIC, re.compile(re.escape(STATIC)), "files", AccessRule(OPEN)), {}
)


class RouteTable:
    """Of one application; made with the first request, because pages are added after the API is built."""

    def __init__(self) -> None:
        self._places: list[RouteEntry] = []
        self._plain: dict[tuple[str, str], RouteMatch] = {}  # paths without parts, the busy ones among them
        self._made_of = -1

    def find(self, api: FastAPI, method: str, path: str) -> RouteMatch | None:
        """Where a request leads; None where there is nothing at all."""
        if self._made_of != len(api.routes):
            self._make(api)
        return self._plain.get((method, path)) or self._look(method, path)

    def _make(self, api: FastAPI) -> None:
        self._places, self._made_of = list_routes(api), len(api.routes)
        self._plain = {
            (place.method, place.path): found
            for place in self._places
            if "{" not in place.path and (found := self._look(place.method, place.path)) is not None
        }

    def _look(self, method: str, path: str) -> RouteMatch | None:
        if path.startswith(STATIC):
            return _STATIC_FILES
        others = []
        for place in self._places:
            match = place.pattern.match(path)
            if match is not None and place.method == method:
                return RouteMatch(place, match.groupdict())
            if match is not None:
                others.append(place)
        return RouteMatch(None, {}, any(place.rule.action is OPEN for place in others)) if others else None


def list_routes(api: FastAPI) -> list[RouteEntry]:
    """Every route of an application, in the order in which they are tried."""
    found = []
    for route in _flat(api.routes):
        if not isinstance(getattr(route, "original_route", route), Mount):
            rule = rule_of(route.endpoint) or _BUILT_IN.get(route.path)
            name = getattr(route.endpoint, "__name__", route.name)
            found += [
                RouteEntry(method, route.path, route.path_regex, name, rule)
                for method in sorted(route.methods)
            ]
    return found


def _flat(routes: Iterable[Any]) -> Iterable[Any]:
    """Routes of included routers too; older releases of the framework have them in one list already."""
    flatten = getattr(fastapi.routing, "iter_route_contexts", None)
    return routes if flatten is None else flatten(list(routes))
