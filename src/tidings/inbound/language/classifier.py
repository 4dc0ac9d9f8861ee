"""A second reading, by weight instead of by phrase: what is wanted, and which days, hours and squads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..domain import ShiftAction, ShiftRequest
from .features import mention_features, message_features
from .parser import without_echo
from .shift_words import Shift
from .statements import DayHours, paired
from .time_windows import resolve_windows
from .token_row import TokenRow
from .tokens import ClockSpan, DayMention, SquadMention
from .weights import Weights

LIKELY = 0.5
_PERHAPS = 0.4  # the likeliest, if nothing is likely; whoever listens sees how likely it is


class Classification(NamedTuple):
    """What the weights say. Several actions leave open which one belongs to which day: no requests."""

    actions: Mapping[ShiftAction, float]
    requests: tuple[ShiftRequest, ...]
    margin: float = 0.0  # how clear it is of the least clear mention whether it belongs, 0.5 to 1
    warnings: tuple[str, ...] = ()

    @property
    def wanted(self) -> frozenset[ShiftAction]:
        return frozenset(action for action, likely in self.actions.items() if likely >= LIKELY)

    @property
    def likely(self) -> float:
        """How likely anything is wanted at all."""
        return max(self.actions.values())


def classify(row: TokenRow, weights: Weights) -> Classification:
    """The message as the weights read it."""
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
    """ "We do until midnight, they do the rest": which is whose?"""
    there = {token.text for token in row.tokens}
    return bool(there & {"they", "them", "their"}) and bool(there & {"we", "us", "our"})


def requests_from_mentions(
    row: TokenRow, action: ShiftAction, kept: set[int], warnings: list[str]
) -> tuple[ShiftRequest, ...]:
    """One action, of these mentions: each squad, each day, all hours."""
    items = [item for place, item in enumerate(row.items) if place in kept]
    squads: Sequence[str | None] = [item.name for item in items if isinstance(item, SquadMention)] or [
        row.own
    ]
    pairs = paired([item for item in items if isinstance(item, DayMention | ClockSpan | Shift)])
    days = [day for pair in pairs for day in pair.days]
    requests: list[ShiftRequest] = []
    for pair in pairs or (DayHours((), ()),):
        whole = pair if pair.days or not days else pair._replace(days=(days[0],))
        made = resolve_windows(whole, row.now)
        warnings.extend(made.warnings)
        requests += [
            ShiftRequest(action, squad, f"{each.date:%Y%m%d}" if each.date else None, each.start, each.end)
            for squad in dict.fromkeys(squads)
            for each in made.windows
        ]
    return without_echo(requests)
