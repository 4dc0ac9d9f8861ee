"""What a reading of the calendar means for a command. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

from .ledger import EffectState


class Seen(StrEnum):
    """What the touched half hours say."""

    DONE = "done"  # as they should be afterwards
    UNDONE = "undone"  # as they were before
    OTHER = "other"  # neither: somebody else was there, or something else was done


def seen(now: str, *, pre: str, expected: str) -> Seen:
    """Compare what is read with what was kept before the call."""
    if now == expected:
        return Seen.DONE
    return Seen.UNDONE if now == pre else Seen.OTHER


def answered(found: Seen, *, accepted: bool) -> EffectState:
    """What a command has come to, by its answer and by what was read back. The answer is no proof."""
    if found is Seen.DONE:
        return EffectState.CONFIRMED
    if found is Seen.UNDONE and not accepted:
        return EffectState.REFUSED
    return EffectState.CONFLICT


def overtaken(mine: tuple[int, int], newer: Sequence[tuple[int, int]]) -> EffectState | None:
    """Whether later commands that are done leave no room for this one; half hours in common, but not all,
    are a person's to decide."""
    slots = set(range(*mine))
    settled = {slot for other in newer for slot in range(*other)}
    if slots <= settled:
        return EffectState.SUPERSEDED
    return EffectState.CONFLICT if slots & settled else None
