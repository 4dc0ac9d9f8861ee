"""What a reading of the calendar means for a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from .ledger import EffectState


class ReadBack(StrEnum):
    """What the touched half hours say."""

    DONE = "done"  # as they should be afterwards
    UNDONE = "undone"  # as they were before
    OTHER = "other"  # neither: somebody else was there, or something else was done


def compare_read_back(now: str, *, pre: str, expected: str) -> ReadBack:
    """Compare what is read with what was kept before the call."""
    if now == expected:
        return ReadBack.DONE
    return ReadBack.UNDONE if now == pre else ReadBack.OTHER


def verified_state(found: ReadBack, *, accepted: bool) -> EffectState:
    """What a command has come to, by its answer and by what was read back. The answer is no proof."""
    if found is ReadBack.DONE:
        return EffectState.CONFIRMED
    if found is ReadBack.UNDONE and not accepted:
        return EffectState.REFUSED
    return EffectState.CONFLICT


def superseded_state(mine: tuple[int, int], newer: Sequence[tuple[int, int]]) -> EffectState | None:
    """Whether later commands that are done leave no room for this one; half hours in common, but not all,
    are a person's to decide."""
    slots = set(range(*mine))
    settled = {slot for other in newer for slot in range(*other)}
    if slots <= settled:
        return EffectState.SUPERSEDED
    return EffectState.CONFLICT if slots & settled else None
