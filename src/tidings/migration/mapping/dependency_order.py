"""Record types in waves by their references (topological order); names cycles. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.errors import Invalid
from .rules import OnUnresolved, TypeMap


def waves(types: Sequence[TypeMap]) -> list[list[str]]:
    """Return the types in waves: types of one wave may run concurrently. Raises Invalid for a cycle."""
    found, left = _sorted(types)
    if left:
        names = cycle(types)
        problem = f"record types depend on each other: {' → '.join(names)}"
        remedy = f'set unresolved = "{OnUnresolved.LEAVE}" on one of the references to write it in a second pass'
        raise Invalid(problem, field=f"types.{names[0]}", remedy=remedy)
    return found


def cycle(types: Sequence[TypeMap]) -> list[str]:
    """Return the types of a cycle, the first one again at the end; empty without a cycle."""
    _, left = _sorted(types)
    path, name = list[str](), next(iter(left), None)
    while name is not None and name not in path:
        path.append(name)
        name = min(left[name] & left.keys())  # each type that is left waits for another one
    return [] if name is None else [*path[path.index(name) :], name]


def _sorted(types: Sequence[TypeMap]) -> tuple[list[list[str]], dict[str, frozenset[str]]]:
    """Return the waves, and what the types wait for that are in a cycle or behind one."""
    left = {one.name: one.waits_for for one in types}
    found: list[list[str]] = []
    while ready := [name for name, needs in left.items() if not needs & left.keys()]:
        found.append(ready)
        left = {name: needs for name, needs in left.items() if name not in ready}
    return found, left
