"""The graph of a workflow as data: its nodes, what follows what, and a plain runner for it.

extract → nothing | clarify | withdraw | read → validate → nothing | refuse | clarify | confirm | execute

Nodes reach the world through two ports only: a mind (which answers) and the days of the calendar (which are
read). There is no port that writes: effects are in the plan, and belong to whoever stores it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol

from ..words import Day, Mind
from . import planning
from .planning import Plan, Sheet
from .rules import commands, is_day, judge

START = "extract"
Node = Callable[[Sheet], Awaitable[Sheet]]
ReadDay = Callable[[str], Awaitable[Day]]

NEXT: Mapping[str, Callable[[Sheet], str] | str] = {
    "extract": planning.after_extract,
    "read": "validate",
    "validate": planning.after_validate,
}
"""What follows a node: always the same, or as a function says. A node that is not here is an end."""

BRANCHES: Mapping[str, tuple[str, ...]] = {
    "extract": ("withdraw", "nothing", "clarify", "read"),
    "validate": ("clarify", "confirm", "execute", "nothing", "refuse"),
}
"""Where a function of NEXT may lead."""

_ENDS: Mapping[str, Callable[[Sheet], Plan]] = {
    "withdraw": planning.withdraw,
    "nothing": planning.nothing,
    "clarify": planning.clarify,
    "confirm": planning.confirm,
    "execute": planning.execute,
    "refuse": planning.refuse,
}


class Runner(Protocol):
    """Runs the graph once, for one message."""

    async def run(self, sheet: Sheet) -> Plan:
        """The plan at the end of it."""


def nodes(mind: Mind, read_day: ReadDay) -> dict[str, Node]:
    """All nodes, over these two ports."""

    async def extract(sheet: Sheet) -> Sheet:
        return planning.understood(sheet, await mind.extract(sheet["scene"]))

    async def read(sheet: Sheet) -> Sheet:
        dates = {each.date for each in commands(sheet["wants"]) if each and is_day(each.date)}
        known = {day.date: day for day in sheet["scene"].days}
        return {"days": known | {date: await read_day(date) for date in sorted(dates - known.keys())}}

    async def validate(sheet: Sheet) -> Sheet:
        scene, flow = sheet["scene"], sheet["flow"]
        found = judge(sheet["wants"], sheet["days"], scene.speaker, flow.squad, sheet["house"], sheet["now"])
        return {"findings": found}

    def end(make: Callable[[Sheet], Plan]) -> Node:
        async def node(sheet: Sheet) -> Sheet:
            return {"plan": make(sheet)}

        return node

    made = {name: end(make) for name, make in _ENDS.items()}
    return {"extract": extract, "read": read, "validate": validate, **made}


class PlainRunner:
    """The graph without anything installed: node after node until an end."""

    def __init__(self, mind: Mind, read_day: ReadDay) -> None:
        self._nodes = nodes(mind, read_day)

    async def run(self, sheet: Sheet) -> Plan:
        """Walk from the start to an end."""
        name: str | None = START
        while name is not None:
            sheet = {**sheet, **await self._nodes[name](sheet)}
            onward = NEXT.get(name)
            name = onward(sheet) if callable(onward) else onward
        return sheet["plan"]
