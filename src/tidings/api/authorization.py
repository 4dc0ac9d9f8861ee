"""Authorization of a request: finds the route that it matches and the access rule that the route declares.

Routes are matched in the framework's own order, so the rule found is that of the route that will answer.
The middleware calls simple endpoints (`RouteEntry.handler`) itself: the framework's own way to a function that
takes only the request and names from the path costs as much as accepting a message.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from fastapi import FastAPI, Request
from fastapi.routing import APIRoute
from starlette.responses import Response
from starlette.routing import Mount, Route

from ..access.caller import Caller
from ..access.permissions import DEFAULT_RULE, OPEN, READ, SEND, AccessRule, area_of, rule_of
from ..model.errors import Forbidden
from .query_parameters import reject_unknown

STATIC = "/static/"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
_BUILT_IN = {"/openapi.json": AccessRule(READ)}  # the framework's own routes


class RouteEntry(NamedTuple):
    """One route with the access rule that it declares."""

    method: str
    path: str
    pattern: re.Pattern[str]
    name: str  # of the endpoint function
    declared: AccessRule | None
    area: str  # of the API or of the dashboard
    handler: Callable[[Request, Mapping[str, str]], Awaitable[Response]] | None = None

    @property
    def rule(self) -> AccessRule:
        """The declared rule; a route without one is for admins only."""
        return self.declared or DEFAULT_RULE


class RouteMatch(NamedTuple):
    """The route of a request; `entry` is None if the path exists only with other methods."""

    entry: RouteEntry | None
    names: Mapping[str, str]  # path parameters
    is_open: bool = False  # without an entry: whether the path needs no key

    @property
    def rule(self) -> AccessRule:
        """The rule that applies to the request."""
        if self.entry is None:
            return AccessRule(OPEN if self.is_open else READ)
        return self.entry.rule

    @property
    def has_effect(self) -> bool:
        """Whether the request changes something; in the compatibility mode a GET may send."""
        return self.entry is not None and (self.entry.method not in SAFE_METHODS or self.rule.action is SEND)

    @property
    def what(self) -> str:
        """The action in the audit log, such as `messages.cancel`."""
        assert self.entry is not None
        return f"{self.entry.area}.{self.names.get('action', self.entry.name)}"

    @property
    def target(self) -> str | None:
        """The path parameters that name the target, for the audit log."""
        return " ".join(value for name, value in self.names.items() if name != "action") or None


_STATIC_FILES = RouteMatch(
    RouteEntry("GET", STATIC, re.compile(re.escape(STATIC)), "files", AccessRule(OPEN), area_of(STATIC)), {}
)


class RouteTable:
    """The routes of one application, built on the first request: the dashboard is added after the API."""

    def __init__(self) -> None:
        self._entries: list[RouteEntry] = []
        self._plain: dict[tuple[str, str], RouteMatch] = {}  # paths without parameters
        self._route_count = -1

    def find(self, api: FastAPI, method: str, path: str) -> RouteMatch | None:
        """Return the route of a request, or None if the path is unknown."""
        if self._route_count != len(api.routes):
            self._build(api)
        return self._plain.get((method, path)) or self._match(method, path)

    def _build(self, api: FastAPI) -> None:
        self._entries, self._route_count = list_routes(api), len(api.routes)
        self._plain = {
            (entry.method, entry.path): found
            for entry in self._entries
            if "{" not in entry.path and (found := self._match(entry.method, entry.path)) is not None
        }

    def _match(self, method: str, path: str) -> RouteMatch | None:
        if path.startswith(STATIC):
            return _STATIC_FILES
        others = []
        for entry in self._entries:
            match = entry.pattern.match(path)
            if match is not None and entry.method == method:
                return RouteMatch(entry, match.groupdict())
            if match is not None:
                others.append(entry)
        return RouteMatch(None, {}, any(entry.rule.action is OPEN for entry in others)) if others else None


def list_routes(api: FastAPI) -> list[RouteEntry]:
    """List every route of an application in matching order."""
    found = []
    for route in api.routes:
        if isinstance(route, Mount):
            continue
        assert isinstance(route, Route), route  # `create_api` adds plain routes, never routers
        rule = rule_of(route.endpoint) or _BUILT_IN.get(route.path)
        name = getattr(route.endpoint, "__name__", route.name)
        methods = sorted(route.methods or ())
        area, handler = area_of(route.path), _handler(route)
        found += [RouteEntry(method, route.path, route.path_regex, name, rule, area, handler) for method in methods]
    return found


def _handler(route: Route) -> Callable[[Request, Mapping[str, str]], Awaitable[Response]] | None:
    """Return a call of the endpoint of an API route that needs nothing else from the framework, or None."""
    if not isinstance(route, APIRoute) or not route.path.startswith("/v1/"):
        return None
    needs, endpoint = route.dependant, route.endpoint
    names = {field.name for field in needs.path_params if field.field_info.annotation is str}
    others = (*needs.query_params, *needs.header_params, *needs.cookie_params, *needs.body_params)
    is_simple = len(names) == len(needs.path_params) and not others
    if not is_simple or any(part.call is not reject_unknown for part in needs.dependencies):
        return None
    if needs.request_param_name is None:
        return lambda _, found: endpoint(**found)
    return lambda request, found: endpoint(request=request, **found)


def permission_denied(caller: Caller, match: RouteMatch) -> Forbidden:
    """Return the error that says whether the tenant, the scopes or the role are not sufficient."""
    action = match.rule.action
    if match.entry is not None and caller.may(action, area=match.entry.area):
        problem, remedy = "this belongs to the whole engine", "use a key of the tenant default"
    elif caller.may(action):
        problem = f"the scopes of the key {caller.who!r} do not include this area"
        remedy = "use a key without scopes, or with this one"
    else:
        problem = f"a key with the role {caller.role} may not do this"
        remedy = f"use a key that may {action}; see: tidings docs access"
    return Forbidden(problem, remedy=remedy)
