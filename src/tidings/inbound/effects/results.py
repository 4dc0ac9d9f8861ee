"""The results of a plan, command by command."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ...store.port import Store
from ..domain import CalendarCommand
from .ledger import EffectState, command_of


class EffectResult(NamedTuple):
    """The result of one command; `is_over` means that its state is final."""

    command: CalendarCommand
    state: EffectState
    is_over: bool
    reason: str  # the last line of evidence


async def effect_results(store: Store, plan: str) -> Sequence[EffectResult]:
    """Return the results of a plan's commands, in order."""
    rows = await store.read("effects_of_plan", plan=plan)
    return [
        EffectResult(command_of(row), EffectState(row["state"]), bool(row["reported"]), _last(row["evidence"]))
        for row in rows
    ]


def _last(evidence: str) -> str:
    """Return the text of the last line, without time and state."""
    line = evidence.rstrip("\n").rpartition("\n")[2]
    return line.partition(": ")[2] or line
