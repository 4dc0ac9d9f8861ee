"""The caller: on whose behalf work is done. Set by the gate for the length of a request.

A caller never grants, rotates or revokes a key that may do more than its own (`lacks`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from .permissions import DEFAULT_TENANT, OPEN, ROLE_PERMISSIONS, AccessRule, Permission, Role, may


@dataclass(frozen=True, slots=True)
class Caller:
    """Who it is, for whom, and what they may do. `key` is the id of their key, where it has one."""

    who: str
    role: Role = Role.ADMIN
    tenant: str = DEFAULT_TENANT
    key: str | None = None
    scopes: frozenset[str] = frozenset()  # areas; none: all of them
    rate: int | None = None  # calls a second
    origin: str | None = None  # where they call from
    expires_at: int | None = field(default=None, compare=False)  # when their key does

    @property
    def is_known(self) -> bool:
        """Whether they have shown a key."""
        return self.who not in RESERVED_NAMES

    @property
    def view(self) -> object:
        """What decides what they see; the same for all who see the same."""
        return (self.tenant, self.role, self.scopes)

    def may(self, action: Permission, *, area: str | None = None, whole: bool = False) -> bool:
        """Whether they may do this; `area` is the part of the API or of the pages."""
        if action is OPEN:
            return True
        in_scope = not self.scopes or area is None or area in self.scopes
        return may(self.role, action) and in_scope and (not whole or self.tenant == DEFAULT_TENANT)

    def lacks(self, other: Caller) -> str | None:
        """The field in which another key may do more than this one; None: in none."""
        beyond = {
            "role": not ROLE_PERMISSIONS[other.role] <= ROLE_PERMISSIONS[self.role],
            "tenant": self.tenant not in (DEFAULT_TENANT, other.tenant),
            "scopes": bool(self.scopes) and not (other.scopes and other.scopes <= self.scopes),
            "rate": _is_over(other.rate, self.rate),
            "expires_in": _is_over(other.expires_at, self.expires_at),
        }
        return next((name for name, is_beyond in beyond.items() if is_beyond), None)

    def passes(self, rule: AccessRule, area: str) -> bool:
        """Whether a route is open to them."""
        return self.may(rule.action, area=area, whole=rule.whole)


def _is_over(value: int | None, limit: int | None) -> bool:
    """Whether a value exceeds a limit; None stands for no limit."""
    return limit is not None and (value is None or value > limit)


DASHBOARD = "page"
COMMAND_LINE = Caller("command line")
THIS_MACHINE = Caller("this machine")  # on loopback, as long as there is no key
ANONYMOUS = Caller("nobody", Role.VIEWER)  # where no key is needed

NO_KEY_NAMES = frozenset({DASHBOARD, THIS_MACHINE.who})  # callers in no-key mode
RESERVED_NAMES = frozenset(
    {DASHBOARD, COMMAND_LINE.who, THIS_MACHINE.who, ANONYMOUS.who}
)  # no key may be called so

_current: ContextVar[Caller] = ContextVar("caller", default=COMMAND_LINE)


def current_caller() -> Caller:
    """Whoever this is done for; without a request it is the command line, or the engine itself."""
    return _current.get()


@contextmanager
def acting_as(caller: Caller) -> Iterator[None]:
    """Do this on somebody's behalf."""
    token = _current.set(caller)
    try:
        yield
    finally:
        _current.reset(token)
