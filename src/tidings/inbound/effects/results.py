"""What came of a plan, command by command: for the summary that its conversation gets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...store.port import Store
from ..domain import CalendarCommand
from .ledger import EffectState, command_of


class EffectResult(NamedTuple):
    """One command of a plan; `is_over` says that nobody works on it any more."""

    command: CalendarCommand
    state: EffectState
    is_over: bool
    reason: str  # the last thing that was found out about it


async def effect_results(store: Store, plan: str) -> Sequence[EffectResult]:
    """The commands of a plan, in their order."""
    rows = await store.read("effects_of_plan", plan=plan)
    return [
        EffectResult(
            command_of(row), EffectState(row["state"]), bool(row["reported"]), _last(row["evidence"])
        )
        for row in rows
    ]


def _last(evidence: str) -> str:
    """The words of the last line, without its time and state."""
    line = evidence.rstrip("\n").rpartition("\n")[2]
    return line.partition(": ")[2] or line
