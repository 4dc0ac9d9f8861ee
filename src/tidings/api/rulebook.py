"""The rulebook: which rule a request comes under, looked up in the routes themselves, in their own order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import fastapi.routing
from fastapi import FastAPI
from starlette.routing import Mount

from ..access.rules import OPEN, READ, UNSTATED, Rule, area_of, rule_of

STATIC = "/static/"
_BUILT_IN = {"/openapi.json": Rule(READ)}  # the framework's own routes


class Place(NamedTuple):
    """One route, as the gate needs to know it."""

    method: str
    path: str
    pattern: re.Pattern[str]
    name: str  # of the function that answers
    stated: Rule | None

    @property
    def rule(self) -> Rule:
        """What it asks; a route that says nothing is for admins only."""
        return self.stated or UNSTATED

    @property
    def area(self) -> str:
        """The part of the API or of the pages that it belongs to."""
        return area_of(self.path)


class Found(NamedTuple):
    """Where a request leads. No place: its path is known, but not with this method."""

    place: Place | None
    names: Mapping[str, str]  # the parts of its path
    is_open: bool = False  # without a place: whether its path is one that needs no key

    @property
    def rule(self) -> Rule:
        """What it asks of its caller."""
        if self.place is None:
            return Rule(OPEN if self.is_open else READ)
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


_FILES = Found(Place("GET", STATIC, re.compile(re.escape(STATIC)), "files", Rule(OPEN)), {})


class Rulebook:
    """Of one application; made with the first request, because pages are added after the API is built."""

    def __init__(self) -> None:
        self._places: list[Place] = []
        self._plain: dict[tuple[str, str], Found] = {}  # paths without parts, the busy ones among them
        self._made_of = -1

    def find(self, api: FastAPI, method: str, path: str) -> Found | None:
        """Where a request leads; None where there is nothing at all."""
        if self._made_of != len(api.routes):
            self._make(api)
        return self._plain.get((method, path)) or self._look(method, path)

    def _make(self, api: FastAPI) -> None:
        self._places, self._made_of = places(api), len(api.routes)
        self._plain = {
            (place.method, place.path): found
            for place in self._places
            if "{" not in place.path and (found := self._look(place.method, place.path)) is not None
        }

    def _look(self, method: str, path: str) -> Found | None:
        if path.startswith(STATIC):
            return _FILES
        others = []
        for place in self._places:
            match = place.pattern.match(path)
            if match is not None and place.method == method:
                return Found(place, match.groupdict())
            if match is not None:
                others.append(place)
        return Found(None, {}, any(place.rule.action is OPEN for place in others)) if others else None


def places(api: FastAPI) -> list[Place]:
    """Every route of an application, in the order in which they are tried."""
    found = []
    for route in _flat(api.routes):
        if not isinstance(getattr(route, "original_route", route), Mount):
            rule = rule_of(route.endpoint) or _BUILT_IN.get(route.path)
            name = getattr(route.endpoint, "__name__", route.name)
            found += [
                Place(method, route.path, route.path_regex, name, rule) for method in sorted(route.methods)
            ]
    return found


def _flat(routes: Iterable[Any]) -> Iterable[Any]:
    """Routes of included routers too; older releases of the framework have them in one list already."""
    flatten = getattr(fastapi.routing, "iter_route_contexts", None)
    return routes if flatten is None else flatten(list(routes))
