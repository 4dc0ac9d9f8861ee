"""Two readings of one message, by phrases and by weight: what both clearly say is sure, the rest is loose.

What is loose is read back before anything is booked (D9). The bars were chosen on authors whom the weights
had not met; see docs/reference/shift-language.md. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..words import Request
from .grammar import Accord, Heard
from .weighing import Weighed

_ALONE = 0.75  # so likely must the second reading find it, if the first finds nothing
_HEDGED = 0.95  # and so likely if it sounds like a question, a perhaps or the past, or names no time
_NEVER = 0.25  # so unlikely, and the first reading alone is not enough
_CLEAR = 0.8  # so likely must be what is wanted, and each of its mentions
_CLEARER = (0.95, 0.98)  # the same, if several things are wanted


def agree(first: Heard, second: Weighed) -> Heard:
    """What was heard, with how well the readings agree on it."""
    if not first.requests:
        return _by_weight(first, second) if _stands_alone(first, second) else first
    if set(first.requests) == set(second.requests):
        return replace(first, accord=Accord.SURE if _is_clear(second) else Accord.LOOSE)
    if second.likely < _NEVER:
        return replace(first, requests=(), accord=Accord.NONE)
    if _is_part(second.requests, first.requests):
        return _by_weight(first, second)
    return replace(first, accord=Accord.LOOSE)


def _by_weight(first: Heard, second: Weighed) -> Heard:
    return replace(
        first,
        requests=second.requests,
        warnings=tuple(dict.fromkeys((*first.warnings, *second.warnings))),
        days=tuple(sorted({request.date for request in second.requests if request.date})),
        accord=Accord.LOOSE,
    )


def _stands_alone(first: Heard, second: Weighed) -> bool:
    """Is it likely enough without the first reading?"""
    is_doubtful = first.evidence.is_hedged or not _is_placed(second.requests)
    return bool(second.requests) and second.likely >= (_HEDGED if is_doubtful else _ALONE)


def _is_clear(second: Weighed) -> bool:
    """Several things in one message are easily mixed up."""
    wanted, mentioned = (_CLEAR, _CLEAR) if len(second.requests) == 1 else _CLEARER
    return second.likely >= wanted and second.margin >= mentioned


def _is_part(some: Sequence[Request], all_: Sequence[Request]) -> bool:
    """Of several days or hours, the weights leave out those that were only talked about."""
    return bool(some) and set(some) < set(all_) and len({request.action for request in all_}) == 1


def _is_placed(requests: Sequence[Request]) -> bool:
    return any(request.date or request.start for request in requests)
