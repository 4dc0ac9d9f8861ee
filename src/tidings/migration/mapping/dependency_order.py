"""Record types in waves by their references (topological order); names cycles. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.errors import Invalid
from .rules import OnUnresolved, TypeMap


def waves(types: Sequence[TypeMap]) -> list[list[str]]:
    """Return the types in waves: types of one wave may run concurrently. Raises Invalid for a cycle."""
    left = {one.name: set(one.waits_for) for one in types}
    found: list[list[str]] = []
    while left:
        ready = [name for name, needs in left.items() if not needs & set(left)]
        if not ready:
            raise _cyclic(cycle(types))
        found.append(ready)
        for name in ready:
            del left[name]
    return found


def cycle(types: Sequence[TypeMap]) -> list[str]:
    """Return the types of a cycle, the first one again at the end; empty without a cycle."""
    needs = {one.name: sorted(one.waits_for) for one in types}
    done: set[str] = set()
    for start, first in needs.items():
        stack = [(start, iter(first))] if start not in done else []
        while stack:
            name, rest = stack[-1]
            path = [entry for entry, _ in stack]
            step = next((one for one in rest if one not in done), None)
            if step is None:
                done.add(name)
                stack.pop()
            elif step in path:
                return [*path[path.index(step) :], step]
            else:
                stack.append((step, iter(needs.get(step, ()))))
    return []


def _cyclic(names: Sequence[str]) -> Invalid:
    problem = f"record types depend on each other: {' → '.join(names)}"
    remedy = f'set unresolved = "{OnUnresolved.LEAVE}" on one of the references to write it in a second pass'
    return Invalid(problem, field=f"types.{names[0]}" if names else "types", remedy=remedy)
