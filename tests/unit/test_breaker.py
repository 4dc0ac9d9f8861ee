"""The breaker's decisions, without a database."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernel.breaker import (
    BreakerRule,
    BreakerState,
    BreakerUpdate,
    counts_as_failure,
    fold_outcomes,
    probe_at,
    state,
)
from tidings.model.outcome import Defer, Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category
from tidings.model.time import SECOND

OPENED = 1_000 * SECOND
RULE = BreakerRule()

OK = Done()
DOWN = Retry(Category.TEMPORARY, "connection refused")
BROKEN = Retry(Category.SYSTEM, "a bug of ours")
GONE = Reject(Category.PERMANENT, "no such person")
WRONG = Reject(Category.VALIDATION, "text too long")
SLOW = Retry(Category.THROTTLING, "slow down", after=timedelta(seconds=5), whole_channel=True)
SILENT = Unknown("no answer within 10 s")
LATER = Defer(OPENED, "quiet hours")

outcomes = st.lists(st.sampled_from([OK, DOWN, BROKEN, GONE, WRONG, SLOW, SILENT, LATER]))


def test_the_usual_rule_is_five_failures_and_a_minute() -> None:
    """A5: open after 5 failures in a row, half-open after 60 s."""
    assert BreakerRule(threshold=5, cooldown=timedelta(seconds=60)) == RULE


@pytest.mark.parametrize(
    ("results", "trail"),
    [
        ([], BreakerUpdate(False, 0)),
        ([OK], BreakerUpdate(True, 0)),
        ([OK, OK, OK], BreakerUpdate(True, 0)),
        ([DOWN], BreakerUpdate(False, 1)),
        ([DOWN, BROKEN, DOWN], BreakerUpdate(False, 3)),
        ([DOWN, OK], BreakerUpdate(True, 0)),
        ([OK, DOWN, DOWN], BreakerUpdate(True, 2)),
        ([DOWN] * 5 + [OK, DOWN], BreakerUpdate(True, 1)),
        ([GONE, WRONG, SLOW, LATER], BreakerUpdate(False, 0)),
        ([DOWN, GONE, DOWN, SLOW, DOWN], BreakerUpdate(False, 3)),
        ([SILENT, SILENT], BreakerUpdate(False, 2)),
    ],
)
def test_a_batch_is_folded_into_one_breaker_update(results: list[Outcome], trail: BreakerUpdate) -> None:
    """A5: in a row, so a success starts the count again and an answer about one message changes nothing."""
    assert fold_outcomes(results) == trail


@pytest.mark.parametrize("outcome", [DOWN, BROKEN, Reject(Category.SYSTEM, "a bug of ours"), SILENT])
def test_the_breaker_counts_only_an_unavailable_receiver(outcome: Outcome) -> None:
    """A5: temporary and system failures, and a request that nobody answered."""
    assert counts_as_failure(outcome)


@pytest.mark.parametrize("outcome", [OK, GONE, WRONG, SLOW, LATER])
def test_an_answer_about_one_message_or_our_pace_does_not_count(outcome: Outcome) -> None:
    """A5: permanent, validation and throttling leave the breaker alone."""
    assert not counts_as_failure(outcome)


@given(outcomes, outcomes, st.integers(0, 10))
def test_batches_may_be_cut_anywhere(first: list[Outcome], second: list[Outcome], before: int) -> None:
    """A5: settling in batches leads to the same count as settling one by one."""
    assert fold_outcomes(first + second).after(before) == fold_outcomes(second).after(
        fold_outcomes(first).after(before)
    )


def test_a_blank_trail_needs_no_write() -> None:
    """A5: the row is written on failure and on success only."""
    assert fold_outcomes([GONE, LATER]).is_blank
    assert not fold_outcomes([OK]).is_blank
    assert not fold_outcomes([DOWN]).is_blank


@pytest.mark.parametrize(
    ("opened_at", "probing", "now", "seen"),
    [
        (None, False, OPENED, BreakerState.CLOSED),
        (OPENED, False, OPENED, BreakerState.OPEN),
        (OPENED, False, OPENED + 60 * SECOND - 1, BreakerState.OPEN),
        (OPENED, False, OPENED + 60 * SECOND, BreakerState.HALF_OPEN),
        (OPENED, True, OPENED + 61 * SECOND, BreakerState.HALF_OPEN),
    ],
)
def test_the_state_follows_from_the_row_and_the_time(
    opened_at: int | None, probing: bool, now: int, seen: BreakerState
) -> None:
    """A5: closed → open → half-open after 60 s."""
    assert state(opened_at, probing=probing, now=now, rule=RULE) is seen


def test_the_probe_goes_out_when_the_cooldown_is_over() -> None:
    """A5: the instant that `why` names."""
    assert probe_at(OPENED, BreakerRule(cooldown=timedelta(seconds=10))) == OPENED + 10 * SECOND
