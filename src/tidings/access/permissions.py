"""Authorization: roles, permissions, and the access rule that every route declares. Pure.

    @router.post("/v1/things/{id}/pause", ...)                    API: below the route decorator
    @requires(OPERATE)
    async def pause(...): ...

    @post("/things/{id}/{action}", OPERATE)                       dashboard: of the decorator; @get is READ

`engine_wide=True` marks resources of the whole engine (channels, nodes, the shift calendar): only the tenant
`default` may use them. A route without a rule is for admins only and fails a test
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
    """The role of a key."""

    ADMIN = "admin"
    OPERATOR = "operator"
    SENDER = "sender"
    VIEWER = "viewer"
    METRICS = "metrics"


class Permission(StrEnum):
    """Classes of actions."""

    OPEN = "open"  # no key: health, sign-in, and routes with a signature or a token
    SCRAPE = "scrape"  # read metrics
    READ = "read"  # read data
    SEND = "send"  # create and cancel messages
    OPERATE = "operate"  # pause, retry, edit, import
    ADMIN = "admin"  # keys, the audit log, subscriptions


OPEN, SCRAPE, READ, SEND, OPERATE, ADMIN = Permission

AREAS = (
    "alerts", "audit", "broadcasts", "calendar", "cases", "channels", "contacts", "conversations", "dead",
    "inbox", "keys", "lists", "log", "messages", "metrics", "migrations", "nodes", "notices", "overview",
    "rollout", "roster", "schedules", "settings", "sources", "subscriptions", "suppressions", "templates",
)  # fmt: skip
"""The scopes of keys: the first path segment, in the API and in the dashboard."""

ROLE_PERMISSIONS: Mapping[Role, frozenset[Permission]] = MappingProxyType(
    {
        Role.ADMIN: frozenset({OPEN, SCRAPE, READ, SEND, OPERATE, ADMIN}),
        Role.OPERATOR: frozenset({OPEN, SCRAPE, READ, SEND, OPERATE}),
        Role.SENDER: frozenset({OPEN, SCRAPE, READ, SEND}),
        Role.VIEWER: frozenset({OPEN, SCRAPE, READ}),
        Role.METRICS: frozenset({OPEN, SCRAPE}),
    }
)


_ALIASES = {"upcoming": "messages", "sla": "overview"}  # paths without an area of their own


def area_of(path: str) -> str:
    """Return the area of a path; other paths belong to the overview."""
    if path.startswith("/api/v1/"):  # sessions and broadcasts of the compatibility mode are broadcasts
        return "broadcasts"
    first = path.removeprefix("/v1").strip("/").partition("/")[0].partition(":")[0]
    return _ALIASES.get(first, first if first in AREAS else "overview")


def may(role: Role, action: Permission) -> bool:
    """Return whether a role has a permission."""
    return action in ROLE_PERMISSIONS[role]


class AccessRule(NamedTuple):
    """What a route requires of its caller."""

    action: Permission
    engine_wide: bool = False  # a resource of the engine, not of a tenant
    writes_audit: bool = False  # writes its own audit entry


DEFAULT_RULE = AccessRule(ADMIN, engine_wide=True)


def requires(
    action: Permission, *, engine_wide: bool = False, writes_audit: bool = False
) -> Callable[[Endpoint], Endpoint]:
    """Declare the access rule of a route; place it below the route decorator."""

    def state(endpoint: Endpoint) -> Endpoint:
        return with_rule(endpoint, AccessRule(action, engine_wide, writes_audit))

    return state


def with_rule(endpoint: Endpoint, rule: AccessRule) -> Endpoint:
    """Attach a rule to an endpoint."""
    endpoint.rule = rule  # type: ignore[attr-defined]
    return endpoint


def rule_of(endpoint: object) -> AccessRule | None:
    """Return the rule of an endpoint, or None."""
    return getattr(endpoint, "rule", None)
