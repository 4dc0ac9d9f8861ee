"""On behalf: an engine as faces get it, in which everything is done for the tenant of the present caller.

Every method of a desk that concerns a tenant takes `tenant`. Here it is filled in from the caller, so no
route can forget it. What takes none belongs to the whole engine, and its routes say so (`whole=True`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar, cast

from .caller import current_caller

Thing = TypeVar("Thing")

_PARTS = ("tidings.app", "tidings.outbound", "tidings.inbound", "tidings.migration", "tidings.access")
_NO_PARTS = (  # modules of plain values
    "settings", "thresholds", "permissions", "caller", "rules", "rule_parser", "validation",
    "rule_interpreter",
)  # fmt: skip


def scope_to_tenant(thing: Thing) -> Thing:
    """The same thing, for the tenant of whoever calls."""
    return cast(Thing, _TenantScoped(thing))


class _TenantScoped:
    """Passes everything on; its parts are wrapped alike."""

    __slots__ = ("_thing",)

    def __init__(self, thing: object) -> None:
        self._thing = thing

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._thing, name)
        if inspect.ismethod(found):
            return partial(_call, found) if _concerns_tenant(found.__func__) else found
        is_part = _has_parts(type(found).__module__) and not isinstance(found, tuple | str | int | dict)
        return _TenantScoped(found) if is_part else found

    def __setattr__(self, name: str, value: object) -> None:
        if name in _TenantScoped.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._thing, name, value)


def _call(method: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call it for the caller of this moment, not of the moment when the method was looked up."""
    return method(*args, **{"tenant": current_caller().tenant, **more})


@cache
def _concerns_tenant(function: Any) -> bool:
    return "tenant" in inspect.signature(function).parameters


@cache
def _has_parts(module: str) -> bool:
    return module.startswith(_PARTS) and module.rpartition(".")[2] not in _NO_PARTS
