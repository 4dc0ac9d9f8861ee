"""What speaks how much: weights fitted on the messages in tests/corpora by `fitting`, kept as a table.

The table has a line for each name: what it says of a message (no crew, add, remove), or of a mention.
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
    """Of names that speak of a message, one for each action; and of names that speak of a mention."""

    message: Mapping[str, Sequence[float]]
    mention: Mapping[str, float]

    def actions(self, names: Sequence[str]) -> dict[ShiftAction, float]:
        """How likely each action is wanted, 0 to 1."""
        known = [self.message[name] for name in names if name in self.message]
        return {action: sigmoid(sum(each[i] for each in known)) for i, action in enumerate(ACTIONS)}

    def belongs(self, names: Sequence[str]) -> float:
        """How likely a mention belongs to what is wanted, 0 to 1."""
        return sigmoid(sum(self.mention.get(name, 0.0) for name in names))


def sigmoid(sum_of_weights: float) -> float:
    """A sum of weights as a share."""
    return 1.0 / (1.0 + exp(-max(-_MOST, min(_MOST, sum_of_weights))))


@lru_cache(1)
def load_weights() -> Weights:
    """The weights that come with the package."""
    return parse_weights(resources.files(__package__).joinpath(FILE).read_text(encoding="utf-8"))


def parse_weights(table: str) -> Weights:
    """Weights from their table."""
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


def format_weights(weights: Weights) -> str:
    """The table of weights."""
    lines = ["# Made by `python -m tools.shift_language.train`; change the messages, not this file."]
    lines += [
        "\t".join((name, *(f"{value:.2f}" for value in each)))
        for name, each in sorted(weights.message.items())
    ]
    lines += [f"{name}\t{value:.2f}" for name, value in sorted(weights.mention.items())]
    return "\n".join(lines) + "\n"
