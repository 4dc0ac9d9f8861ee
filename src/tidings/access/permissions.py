"""Rules: which role may do what, as data. Pure.

Every route states its own, in one way per face:

    @router.post("/v1/things/{id}/pause", ...)          API: the line below the route
    @allowed(OPERATE)
    async def pause(...): ...

    Way("POST", "/things/{id}/{action}", view, OPERATE)    pages: the last field; a GET without one is READ

`whole=True` is for what belongs to the engine and not to a tenant (channels, nodes, the shift calendar): only
callers of the tenant `default` reach it. A route without a rule is for admins only, and fails the build
(tests/access/test_routes.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])

DEFAULT_TENANT = "default"


class Role(StrEnum):
    """What a key is for."""

    ADMIN = "admin"
    OPERATOR = "operator"
    SENDER = "sender"
    VIEWER = "viewer"
    METRICS = "metrics"


class Permission(StrEnum):
    """The classes of what can be done."""

    OPEN = "open"  # needs no key: health, sign-in; or has its own proof (signatures, feed tokens)
    SCRAPE = "scrape"  # read the metrics, and nothing else
    READ = "read"  # look at things
    SEND = "send"  # make messages, and stop one's own
    OPERATE = "operate"  # change what exists: pause, retry, edit, import
    ADMIN = "admin"  # keys, the audit trail, and where events go


OPEN, SCRAPE, READ, SEND, OPERATE, ADMIN = Permission

AREAS = (
    "alerts", "audit", "broadcasts", "calendar", "cases", "channels", "contacts", "conversations", "dead",
    "inbox", "keys", "lists", "log", "messages", "metrics", "migrations", "nodes", "notices", "overview",
    "rollout", "roster", "schedules", "settings", "sources", "subscriptions", "suppressions", "templates",
)  # fmt: skip
"""What a key's scopes may name: the first part of a path, of the API and of the pages alike."""

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.ADMIN: frozenset({OPEN, SCRAPE, READ, SEND, OPERATE, ADMIN}),
        Role.OPERATOR: frozenset({OPEN, SCRAPE, READ, SEND, OPERATE}),
        Role.SENDER: frozenset({OPEN, SCRAPE, READ, SEND}),
        Role.VIEWER: frozenset({OPEN, SCRAPE, READ}),
        Role.METRICS: frozenset({OPEN, SCRAPE}),
    }
)


_ALIASES = {"upcoming": "messages"}  # a dashboard page without an area of its own


def area_of(path: str) -> str:
    """The area that a path lies in; what stands at the root is the overview's."""
    first = path.removeprefix("/v1").strip("/").partition("/")[0].partition(":")[0]
    return _ALIASES.get(first, first if first in AREAS else "overview")


def may(role: Role, action: Permission) -> bool:
    """Whether a role covers a class of actions."""
    return action in ROLE_PERMISSIONS[role]


class AccessRule(NamedTuple):
    """What a route asks of its caller."""

    action: Permission
    whole: bool = False  # belongs to the engine, not to a tenant
    noted: bool = False  # what it calls writes its own line into the audit trail


DEFAULT_RULE = AccessRule(ADMIN, whole=True)


def requires(
    action: Permission, *, whole: bool = False, noted: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """State the rule of a route; stands right below the route's own decorator."""

    def state(endpoint: Endpoint) -> Endpoint:
        return with_rule(endpoint, AccessRule(action, whole, noted))

    return state


def with_rule(endpoint: Endpoint, rule: AccessRule | None) -> Endpoint:
    """The endpoint with its rule."""
    if rule is not None:
        endpoint.rule = rule  # type: ignore[attr-defined]
    return endpoint


def rule_of(endpoint: object) -> AccessRule | None:
    """The rule that an endpoint states."""
    return getattr(endpoint, "rule", None)
