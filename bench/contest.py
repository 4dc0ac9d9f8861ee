"""Contests: several contestants measured in turn, round by round, so that a busy minute hurts all alike."""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from .calls import MeasurementFailed
from .noise import Noise, wait_for_quiet

Measurement = Callable[[], dict[str, Any]]
DISTURBED = 0.2  # share of CPU used by others above which a turn is repeated
TRIES = 3


@dataclass(slots=True)
class Series:
    """What one contestant did, run by run; `problem` says why there is nothing more."""

    answers: list[dict[str, Any]] = field(default_factory=list)
    foreign: list[float] = field(default_factory=list)
    problem: str = ""

    def values(self, name: str = "per_s") -> list[float]:
        """One figure of every run."""
        return [float(answer[name]) for answer in self.answers]

    def median(self, name: str = "per_s") -> float | None:
        """The middle run's figure; None if no run ended well."""
        return statistics.median(self.values(name)) if self.answers else None

    def as_json(self) -> dict[str, Any]:
        """All of it."""
        return asdict(self)

    @property
    def foreign_cpu(self) -> float | None:
        """The middle run's share of CPU used by others."""
        return round(statistics.median(self.foreign), 2) if self.foreign else None


def contest(contestants: Mapping[str, Measurement], rounds: int, patience: float) -> dict[str, Series]:
    """Measure each contestant once per round; one that fails is left out of the following rounds.

    Before each turn we wait, at most `patience` seconds, for others to leave the machine alone; a turn that
    was disturbed all the same is repeated and the quietest kept, whatever its figure.
    """
    series = {name: Series() for name in contestants}
    for round_ in range(rounds):
        for name, measure in contestants.items():
            if series[name].problem:
                continue
            try:
                answer, share = _turn(f"{name} {round_ + 1}/{rounds}", measure, patience)
            except MeasurementFailed as problem:
                series[name].problem = str(problem)
                print(f"  {name}: {problem}", file=sys.stderr, flush=True)
            else:
                series[name].answers.append(answer)
                series[name].foreign.append(share)
    return series


def _turn(title: str, measure: Measurement, patience: float) -> tuple[dict[str, Any], float]:
    attempts: list[tuple[float, dict[str, Any]]] = []
    for _ in range(TRIES if patience else 1):
        wait_for_quiet(patience)
        with Noise() as noise:
            answer = measure()
        if not answer.get("verified", True):
            raise MeasurementFailed(f"the end state is wrong: {answer}")
        shown = {key: value for key, value in answer.items() if key != "process"}
        print(f"  {title}: {shown}, others' CPU {noise.share:.0%}", file=sys.stderr, flush=True)
        attempts.append((noise.share, answer))
        if noise.share <= DISTURBED:
            break
    share, answer = min(attempts, key=lambda one: one[0])
    return answer, share
