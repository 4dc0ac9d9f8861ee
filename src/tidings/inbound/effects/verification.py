"""Verification by reading back: compares the calendar with the expected result of a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from .ledger import EffectState


class ReadBack(StrEnum):
    """The state of the half hours of a command."""

    DONE = "done"  # as expected
    UNDONE = "undone"  # as before
    OTHER = "other"  # neither: someone else changed them, or the calendar did something else


def compare_read_back(now: str, *, pre: str, expected: str) -> ReadBack:
    """Compare the half hours with those recorded before the call."""
    if now == expected:
        return ReadBack.DONE
    return ReadBack.UNDONE if now == pre else ReadBack.OTHER


def verified_state(found: ReadBack, *, accepted: bool) -> EffectState:
    """Return the state of a command from the read-back; the calendar's answer alone proves nothing."""
    if found is ReadBack.DONE:
        return EffectState.CONFIRMED
    if found is ReadBack.UNDONE and not accepted:
        return EffectState.REFUSED
    return EffectState.CONFLICT


def superseded_state(mine: tuple[int, int], newer: Sequence[tuple[int, int]]) -> EffectState | None:
    """Return SUPERSEDED if later commands cover all half hours, CONFLICT if some, otherwise None."""
    slots = set(range(*mine))
    settled = {slot for other in newer for slot in range(*other)}
    if slots <= settled:
        return EffectState.SUPERSEDED
    return EffectState.CONFLICT if slots & settled else None
