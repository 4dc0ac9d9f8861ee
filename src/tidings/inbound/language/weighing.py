"""A second reading, by weight instead of by phrase: what is wanted, and which days, hours and squads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..words import Action, Request
from .features import of_mention, of_message
from .grammar import without_echo
from .pieces import Day, Span, Squad
from .row import Row
from .shift_words import Shift
from .statements import Pair, paired
from .timetable import plan
from .weights import Weights

LIKELY = 0.5
_PERHAPS = 0.4  # the likeliest, if nothing is likely; whoever listens sees how likely it is


class Weighed(NamedTuple):
    """What the weights say. Several actions leave open which one belongs to which day: no requests."""

    actions: Mapping[Action, float]
    requests: tuple[Request, ...]
    margin: float = 0.0  # how clear it is of the least clear mention whether it belongs, 0.5 to 1
    warnings: tuple[str, ...] = ()

    @property
    def wanted(self) -> frozenset[Action]:
        return frozenset(action for action, likely in self.actions.items() if likely >= LIKELY)

    @property
    def likely(self) -> float:
        """How likely anything is wanted at all."""
        return max(self.actions.values())


def weigh(row: Row, weights: Weights) -> Weighed:
    """The message as the weights read it."""
    actions = weights.actions(of_message(row))
    wanted = [action for action, likely in actions.items() if likely >= LIKELY]
    if not wanted:
        wanted = [action for action, likely in actions.items() if likely == max(actions.values()) >= _PERHAPS]
    if len(wanted) != 1:
        return Weighed(actions, ())
    action = wanted[0]
    shares = {place: weights.belongs(of_mention(row, place, action)) for place in row.mentions()}
    kept = {place for place, share in shares.items() if share >= LIKELY}
    margin = min((max(share, 1 - share) for share in shares.values()), default=1.0)
    warnings: list[str] = []
    requests = planned(row, action, kept, warnings)
    is_shared = len(requests) > 1 and _has_two_sides(row)
    return Weighed(actions, requests, LIKELY if is_shared else margin, tuple(warnings))


def _has_two_sides(row: Row) -> bool:
    """ "We do until midnight, they do the rest": which is whose?"""
    there = {token.text for token in row.tokens}
    return bool(there & {"they", "them", "their"}) and bool(there & {"we", "us", "our"})


def planned(row: Row, action: Action, kept: set[int], warnings: list[str]) -> tuple[Request, ...]:
    """One action, of these mentions: each squad, each day, all hours."""
    items = [item for place, item in enumerate(row.items) if place in kept]
    squads: Sequence[str | None] = [item.name for item in items if isinstance(item, Squad)] or [row.own]
    pairs = paired([item for item in items if isinstance(item, Day | Span | Shift)])
    days = [day for pair in pairs for day in pair.days]
    requests: list[Request] = []
    for pair in pairs or (Pair((), ()),):
        whole = pair if pair.days or not days else pair._replace(days=(days[0],))
        made = plan(whole, row.now)
        warnings.extend(made.warnings)
        requests += [
            Request(action, squad, f"{each.date:%Y%m%d}" if each.date else None, each.start, each.end)
            for squad in dict.fromkeys(squads)
            for each in made.windows
        ]
    return without_echo(requests)
