"""A linear classifier: actions, and the days, hours and squads that belong to them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..domain import ShiftAction, ShiftRequest
from .features import TokenRow, mention_features, message_features
from .parser import requests_of, without_echo
from .shift_words import Shift
from .statements import DayHours, paired
from .tokens import ClockSpan, DayMention, SquadMention
from .weights import Weights

LIKELY = 0.5
_PERHAPS = 0.4  # least probability of the best action if none is likely


class Classification(NamedTuple):
    """The result of the classifier. Without a single best action there are no requests."""

    actions: Mapping[ShiftAction, float]
    requests: tuple[ShiftRequest, ...]
    margin: float = 0.0  # confidence of the least certain mention, 0.5 to 1
    warnings: tuple[str, ...] = ()

    @property
    def wanted(self) -> frozenset[ShiftAction]:
        return frozenset(action for action, likely in self.actions.items() if likely >= LIKELY)

    @property
    def likely(self) -> float:
        """The probability of the best action."""
        return max(self.actions.values())


def classify(row: TokenRow, weights: Weights) -> Classification:
    actions = weights.actions(message_features(row))
    wanted = [action for action, likely in actions.items() if likely >= LIKELY]
    if not wanted:
        wanted = [action for action, likely in actions.items() if likely == max(actions.values()) >= _PERHAPS]
    if len(wanted) != 1:
        return Classification(actions, ())
    action = wanted[0]
    shares = {place: weights.belongs(mention_features(row, place, action)) for place in row.mentions()}
    kept = {place for place, share in shares.items() if share >= LIKELY}
    margin = min((max(share, 1 - share) for share in shares.values()), default=1.0)
    warnings: list[str] = []
    requests = requests_from_mentions(row, action, kept, warnings)
    is_shared = len(requests) > 1 and _has_two_sides(row)
    return Classification(actions, requests, LIKELY if is_shared else margin, tuple(warnings))


def _has_two_sides(row: TokenRow) -> bool:
    """Return whether both "we" and "they" occur: "we do until midnight, they do the rest"."""
    there = {token.text for token in row.tokens}
    return bool(there & {"they", "them", "their"}) and bool(there & {"we", "us", "our"})


def requests_from_mentions(
    row: TokenRow, action: ShiftAction, kept: set[int], warnings: list[str]
) -> tuple[ShiftRequest, ...]:
    """Build the requests of one action: each squad with each day and its hours."""
    items = [item for place, item in enumerate(row.items) if place in kept]
    squads: Sequence[str | None] = [item.name for item in items if isinstance(item, SquadMention)] or [row.own]
    pairs = paired([item for item in items if isinstance(item, DayMention | ClockSpan | Shift)])
    days = [day for pair in pairs for day in pair.days]
    requests: list[ShiftRequest] = []
    for pair in pairs or (DayHours((), ()),):
        whole = pair if pair.days or not days else pair._replace(days=(days[0],))
        requests += requests_of(action, squads, whole, row.now, warnings)
    return without_echo(requests)
