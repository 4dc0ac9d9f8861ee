"""Many worlds, and what a run of them must have met to prove anything (R7)."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from .world import Report, simulate

# Each of these must have happened in a run of some hundred seeds, or the run is void.
MUST_MEET = (
    "NodeLost", "NodeFenced", "ClaimLost", "StoreSlow", "TasksExpired",
    "killed at random", "killed by poison", "killed after claim", "killed after start", "killed before send",
    "killed before settle", "killed after settle", "paused over a lease", "paused shortly", "node stopped",
    "clock set", "hint lost", "channel down", "channel breaker open", "channel paused",
    "store call failed before", "store call failed after", "store call failed cut", "store call failed late",
    "receiver 500", "receiver 429", "receiver 429 for all", "receiver 400", "receiver dropped",
    "receiver late",
    "reaped and given back", "reaped in doubt", "set aside as poison", "suspect claimed",
    "claim unanswered, given back", "not sent for want of trust", "late result kept", "held for a person",
    "duplicate, explained", "asked and found", "accepted at the second try", "in order", "on time",
    "cancel done", "cancel asked", "retry done", "reschedule done",
    "pending to cancelled", "pending to expired", "processing to failed", "failed to pending",
    "failed to done",
)  # fmt: skip


@dataclass(slots=True)
class Sum:
    """What many worlds came to."""

    worlds: int = 0
    seconds: float = 0.0  # of their time
    took: float = 0.0  # of ours
    met: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    guilty: list[Report] = field(default_factory=list)

    @property
    def missing(self) -> list[str]:
        """What never happened."""
        return [name for name in MUST_MEET if not self.met[name]]

    def add(self, report: Report) -> None:
        """One world more."""
        self.worlds += 1
        self.seconds += report.seconds
        self.met += report.met
        self.counts.update({name: int(n) for name, n in report.counts.items() if not name.startswith("late")})
        if report.violations:
            self.guilty.append(report)


def run(seeds: Iterable[int], *, until: float = float("inf"), told: Callable[[Report], None] | None = None) -> Sum:
    """These worlds, one after the other; stops early when `until` (monotonic) is over."""
    total, began = Sum(), time.monotonic()
    for seed in seeds:
        total.add(report := simulate(seed))
        if told is not None and report.violations:
            told(report)
        if time.monotonic() > until:
            break
    total.took = time.monotonic() - began
    return total


def verdict(report: Report) -> str:
    """What is wrong in a world, and how to see it again."""
    found = "; ".join(f"{name}: {', '.join(what)}" for name, what in report.violations.items())
    return f"seed {report.seed}: {found}\n  replay: python -m tests.simulation --seed {report.seed} --trace"
