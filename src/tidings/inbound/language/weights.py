"""The weights of the classifier (weights.tsv), trained on the messages in tests/corpora.

The table has one line per feature: its weights for a message (no crew, add, remove), or for a mention.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from math import exp
from typing import NamedTuple

from ..domain import ShiftAction

ACTIONS = (ShiftAction.NO_CREW, ShiftAction.ADD, ShiftAction.REMOVE)
FILE = "weights.tsv"
_MOST = 30.0


class Weights(NamedTuple):
    """The weights of message features, one per action, and of mention features."""

    message: Mapping[str, Sequence[float]]
    mention: Mapping[str, float]

    def actions(self, names: Sequence[str]) -> dict[ShiftAction, float]:
        """Return the probability of each action, 0 to 1."""
        known = [self.message[name] for name in names if name in self.message]
        return {action: sigmoid(sum(each[i] for each in known)) for i, action in enumerate(ACTIONS)}

    def belongs(self, names: Sequence[str]) -> float:
        """Return the probability that a mention belongs to the action, 0 to 1."""
        return sigmoid(sum(self.mention.get(name, 0.0) for name in names))


def sigmoid(sum_of_weights: float) -> float:
    return 1.0 / (1.0 + exp(-max(-_MOST, min(_MOST, sum_of_weights))))


@lru_cache(1)
def load_weights() -> Weights:
    return parse_weights(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def parse_weights(table: str) -> Weights:
    message: dict[str, tuple[float, ...]] = {}
    mention: dict[str, float] = {}
    for line in table.splitlines():
        if line.startswith("#"):
            continue
        name, *values = line.split("\t")
        if len(values) == 1:
            mention[name] = float(values[0])
        else:
            message[name] = tuple(map(float, values))
    return Weights(message, mention)
