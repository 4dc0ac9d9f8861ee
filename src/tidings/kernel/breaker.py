"""The circuit breaker of one channel, as pure decisions.

    closed ──`threshold` failures in a row──▶ open ──`cooldown`──▶ half-open, one probe
       ▲                                        ▲                     │
       └──────────────── success ───────────────┼─────────────────────┤
                                                └────── failure ──────┘

Temporary and system failures count, and so do requests without a response: they suggest that the receiver is
down. A success resets the count. Other outcomes (permanent, validation, throttling, deferred) concern one
message or our rate: they neither count nor reset, and a probe with such an outcome is repeated.

The state is stored in the channel's row, so it survives restarts and is shared by all nodes. Results of
claims made before the breaker opened are ignored when a BreakerUpdate is applied.
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
    """The effect of a batch of results: failures since the last success, and whether there was a success.

    To apply: failures = (0 if reset else the row's failures) + these failures; open at the threshold.
    """

    reset: bool
    failures: int

    def after(self, failures: int) -> int:
        """Return the channel's consecutive failures after this update."""
        return (0 if self.reset else failures) + self.failures

    @property
    def is_blank(self) -> bool:
        """Whether there is nothing to write, except to return a probe."""
        return not self.reset and not self.failures


def fold_outcomes(outcomes: Iterable[Outcome]) -> BreakerUpdate:
    """Fold the results of one channel, in order of arrival, into one update.

    Only the end of the batch counts: five failures followed by a success leave the breaker closed.
    """
    reset, failures = False, 0
    for outcome in outcomes:
        if isinstance(outcome, Done):
            reset, failures = True, 0
        elif counts_as_failure(outcome):
            failures += 1
    return BreakerUpdate(reset, failures)


def counts_as_failure(outcome: Outcome) -> bool:
    """Whether this outcome counts as a failure of the whole channel."""
    if isinstance(outcome, Retry | Reject):
        return outcome.category in COUNTED_CATEGORIES
    return isinstance(outcome, Unknown)


def state(opened_at: int | None, *, probing: bool, now: int, rule: BreakerRule) -> BreakerState:
    """Return the breaker's state for display, from the channel's row. Claims are decided in the store."""
    if opened_at is None:
        return BreakerState.CLOSED
    return BreakerState.HALF_OPEN if probing or now >= probe_at(opened_at, rule) else BreakerState.OPEN


def probe_at(opened_at: int, rule: BreakerRule) -> Instant:
    """Return when an open breaker allows its probe."""
    return Instant(opened_at + micros(rule.cooldown))
