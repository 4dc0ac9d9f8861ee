"""The circuit breaker of one channel, as pure decisions.

    closed ──`threshold` failures in a row──▶ open ──`cooldown`──▶ half-open, one probe
       ▲                                        ▲                     │
       └──────────────── success ───────────────┼─────────────────────┤
                                                └────── failure ──────┘

What counts: a temporary or system failure, and a request that left and was never answered, because each
of them says that the other side is not there. A success resets. Everything else (permanent, validation,
throttling, deferred) is an answer about one message or about our pace: it neither counts nor resets, and a
probe that ends so gives the probe back.

State lives on the channel's row, so it survives restarts and is shared by all nodes; results of claims made
before the breaker opened are ignored by whoever applies a Trail.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from ..model.outcome import Done, Outcome, Reject, Retry, Unknown
from ..model.task import Category
from ..model.time import Instant, micros

COUNTED_CATEGORIES = frozenset({Category.TEMPORARY, Category.SYSTEM})


class BreakerState(StrEnum):
    """What the breaker lets through: everything, nothing, or one probe."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"


@dataclass(frozen=True, slots=True)
class BreakerRule:
    """Open after `threshold` failures in a row; let one probe through after `cooldown`."""

    threshold: int = 5
    cooldown: timedelta = timedelta(seconds=60)


class BreakerUpdate(NamedTuple):
    """What a batch of results leaves behind: failures in a row at its end, and whether one reset came before.

    To apply: failures = (0 if reset else the row's failures) + these failures; open at the threshold.
    """

    reset: bool
    failures: int

    def after(self, failures: int) -> int:
        """The channel's failures in a row once this trail is applied."""
        return (0 if self.reset else failures) + self.failures

    @property
    def is_blank(self) -> bool:
        """Nothing to write, except to give back a probe."""
        return not self.reset and not self.failures


def fold_outcomes(outcomes: Iterable[Outcome]) -> BreakerUpdate:
    """Fold results of one channel, in the order in which they came in, into what must be written.

    Judged at the end of the batch: five failures followed by a success leave the breaker closed, because
    by then the other side has answered.
    """
    reset, failures = False, 0
    for outcome in outcomes:
        if isinstance(outcome, Done):
            reset, failures = True, 0
        elif counts_as_failure(outcome):
            failures += 1
    return BreakerUpdate(reset, failures)


def counts_as_failure(outcome: Outcome) -> bool:
    """Whether this result speaks against the channel as a whole."""
    if isinstance(outcome, Retry | Reject):
        return outcome.category in COUNTED_CATEGORIES
    return isinstance(outcome, Unknown)


def state(opened_at: int | None, *, probing: bool, now: int, rule: BreakerRule) -> BreakerState:
    """Where the breaker stands, from the channel's row, for showing; claims are decided in the store."""
    if opened_at is None:
        return BreakerState.CLOSED
    return BreakerState.HALF_OPEN if probing or now >= probe_at(opened_at, rule) else BreakerState.OPEN


def probe_at(opened_at: int, rule: BreakerRule) -> Instant:
    """When an open breaker lets its probe through."""
    return Instant(opened_at + micros(rule.cooldown))
