"""The caller (principal) of the current request, set by the middleware.

A caller never grants, rotates or revokes a key with more permissions than its own (`lacks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .permissions import DEFAULT_TENANT, OPEN, ROLE_PERMISSIONS, AccessRule, Permission, Role, may


@dataclass(frozen=True, slots=True)
class Caller:
    """Name, role, tenant and limits of a caller. `key` is the id of its API key, if it is in the database."""

    who: str
    role: Role = Role.ADMIN
    tenant: str = DEFAULT_TENANT
    key: str | None = None
    scopes: frozenset[str] = frozenset()  # areas; empty: all
    rate: int | None = None  # calls per second
    origin: str | None = None  # client address
    expires_at: int | None = field(default=None, compare=False)  # expiry of its key

    @property
    def is_known(self) -> bool:
        """Whether the caller authenticated with a key."""
        return self.who not in RESERVED_NAMES

    @property
    def view(self) -> object:
        """A key for caches: equal for callers that see the same data."""
        return (self.tenant, self.role, self.scopes)

    def may(self, action: Permission, *, area: str | None = None, engine_wide: bool = False) -> bool:
        """Return whether the caller may do this; `area` is a part of the API or the dashboard."""
        if action is OPEN:
            return True
        in_scope = not self.scopes or area is None or area in self.scopes
        return may(self.role, action) and in_scope and (not engine_wide or self.tenant == DEFAULT_TENANT)

    def lacks(self, other: Caller) -> str | None:
        """Return the field in which `other` has more permissions than this caller, or None."""
        beyond = {
            "role": not ROLE_PERMISSIONS[other.role] <= ROLE_PERMISSIONS[self.role],
            "tenant": self.tenant not in (DEFAULT_TENANT, other.tenant),
            "scopes": bool(self.scopes) and not (other.scopes and other.scopes <= self.scopes),
            "rate": _is_over(other.rate, self.rate),
            "expires_in": _is_over(other.expires_at, self.expires_at),
        }
        return next((name for name, is_beyond in beyond.items() if is_beyond), None)

    def passes(self, rule: AccessRule, area: str) -> bool:
        """Return whether the caller satisfies the access rule of a route."""
        return self.may(rule.action, area=area, engine_wide=rule.engine_wide)


def _is_over(value: int | None, limit: int | None) -> bool:
    """Return whether a value exceeds a limit; None means no limit."""
    return limit is not None and (value is None or value > limit)


DASHBOARD = "dashboard"
COMMAND_LINE = Caller("command line")
THIS_MACHINE = Caller("this machine")  # in no-key mode
ANONYMOUS = Caller("nobody", Role.VIEWER)  # on routes without authentication

NO_KEY_NAMES = frozenset({DASHBOARD, THIS_MACHINE.who})  # callers in no-key mode
RESERVED_NAMES = NO_KEY_NAMES | {COMMAND_LINE.who, ANONYMOUS.who}  # not allowed as key names

_current: ContextVar[Caller] = ContextVar("caller", default=COMMAND_LINE)


def current_caller() -> Caller:
    """Return the caller of this request; without a request, the command line."""
    return _current.get()


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Set the current caller for the duration of the block."""
    token = _current.set(caller)
    try:
        yield
    finally:
        _current.reset(token)
