"""Tenant scope: a proxy of the engine that acts for the tenant of the current caller.

Service methods that concern a tenant take `tenant`. The proxy fills it in from the caller, so no route can
forget it. Methods without it concern the whole engine, and their routes declare `engine_wide=True`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache, partial
from typing import Any, TypeVar, cast

from .caller import current_caller

Scoped = TypeVar("Scoped")

_PACKAGES = ("tidings.app", "tidings.outbound", "tidings.inbound", "tidings.migration", "tidings.access")
_VALUE_MODULES = (  # their objects are not wrapped
    "settings", "thresholds", "permissions", "caller", "rules", "rule_parser", "validation",
    "rule_interpreter",
)  # fmt: skip


def scope_to_tenant(target: Scoped) -> Scoped:
    """Wrap an object so that it acts for the tenant of the current caller."""
    return cast(Scoped, _TenantScoped(target))


class _TenantScoped:
    """Delegates to the wrapped object; its parts are wrapped, too."""

    __slots__ = ("_target",)

    def __init__(self, target: object) -> None:
        self._target = target

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._target, name)
        if inspect.ismethod(found):
            return partial(_call, found) if _concerns_tenant(found.__func__) else found
        is_service = _is_service(type(found).__module__) and not isinstance(found, tuple | str | int | dict)
        return _TenantScoped(found) if is_service else found

    def __setattr__(self, name: str, value: object) -> None:
        if name in _TenantScoped.__slots__:
            object.__setattr__(self, name, value)
        else:
            setattr(self._target, name, value)


def _call(method: Callable[..., Any], *args: Any, **more: Any) -> Any:
    """Call a method for the caller at the time of the call, not of the attribute lookup."""
    return method(*args, **{"tenant": current_caller().tenant, **more})


@cache
def _concerns_tenant(function: Any) -> bool:
    return "tenant" in inspect.signature(function).parameters


@cache
def _is_service(module: str) -> bool:
    return module.startswith(_PACKAGES) and module.rpartition(".")[2] not in _VALUE_MODULES
