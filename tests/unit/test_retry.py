"""Retry policies: the promised tables, and the rules that hold for every policy."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernel import retry
from tidings.kernel.retry import POLICIES, Backoff, RetryErrorKind, RetryPolicy, RetryRule
from tidings.model.errors import Misconfigured
from tidings.model.task import Category

MIDDLE = 0.5  # the chance at which jitter changes nothing
MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)

chances = st.floats(min_value=0, max_value=1, exclude_max=True)
rules = st.builds(
    RetryRule,
    max_attempts=st.integers(1, 20),
    backoff=st.sampled_from([kind for kind in Backoff if kind is not Backoff.TABLE]),
    initial_delay=st.timedeltas(timedelta(milliseconds=1), timedelta(hours=1)),
    max_delay=st.timedeltas(timedelta(hours=1), timedelta(days=7)),
    jitter=st.floats(min_value=0, max_value=0.99),
)


def waits(policy: RetryPolicy, category: Category = Category.TEMPORARY, **more: Any) -> list[timedelta]:
    """The waits between the tries of a message that fails every time."""
    found: list[timedelta] = []
    for attempts in range(1, 100):
        wait = retry.retry_delay(policy, attempts, 0, category, chance=MIDDLE, **more)
        if wait is None:
            return found
        found.append(wait)
    raise AssertionError("never gives up")


def test_companion_waits_five_minutes_times_the_square_of_the_attempts() -> None:
    """A3: 5 min × attempts², six tries in all, the first of them immediate."""
    assert waits(POLICIES["default"]) == [5 * MINUTE, 20 * MINUTE, 45 * MINUTE, 80 * MINUTE, 125 * MINUTE]


def test_companion_is_capped_at_twelve_hours() -> None:
    """A3: attempt 12 comes to exactly 12 h, every later one stays there, whatever the jitter."""
    rule = POLICIES["default"].rule

    assert rule.delay(12, chance=MIDDLE) == timedelta(hours=12)
    assert rule.delay(13, chance=0.999) == timedelta(hours=12)
    assert rule.delay(1000, chance=0.0) == timedelta(hours=12)


def test_companion_jitter_is_fifteen_percent_either_way() -> None:
    """A3: ±15 %."""
    rule = POLICIES["default"].rule

    assert rule.delay(1, chance=0.0) == 5 * MINUTE * 0.85
    assert 5 * MINUTE * 1.149 < rule.delay(1, chance=0.9999) < 5 * MINUTE * 1.15


def test_broadcast_waits_by_its_table() -> None:
    """B6: 5, 15, 60, 300, 900 minutes; five retries, six tries."""
    assert waits(POLICIES["stepped"]) == [m * MINUTE for m in (5, 15, 60, 300, 900)]


def test_personal_waits_by_its_table() -> None:
    """E3: 30 s, 2 min, 5 min; four tries."""
    assert waits(POLICIES["quick"]) == [30 * SECOND, 2 * MINUTE, 5 * MINUTE]


def test_migration_doubles_from_two_seconds() -> None:
    """C3: five attempts, exponential from 2 s; the twelfth wait would meet the cap of an hour."""
    policy = POLICIES["exponential"]

    assert waits(policy) == [2 * SECOND, 4 * SECOND, 8 * SECOND, 16 * SECOND]
    assert policy.rule.delay(11, chance=MIDDLE) == timedelta(seconds=2048)
    assert policy.rule.delay(12, chance=MIDDLE) == timedelta(seconds=3600)
    assert policy.rule.delay(10**6, chance=MIDDLE) == timedelta(seconds=3600)
    assert policy.rule.jitter == 0.10


def test_migration_has_strategies_per_kind_of_error() -> None:
    """C3: timeout 3 linear from 5 s, 5xx 5, rate_limit 10; unclassified errors a limited number of times."""
    policy = POLICIES["exponential"]

    assert waits(policy, kind=RetryErrorKind.TIMEOUT) == [5 * SECOND, 10 * SECOND]
    assert len(waits(policy, kind=RetryErrorKind.SERVER)) == 4
    assert policy.rule_for(Category.THROTTLING).max_attempts == 10
    assert policy.rule_for(Category.THROTTLING).delay(1, chance=MIDDLE) == 60 * SECOND  # C5: if none is given
    assert len(waits(policy, Category.SYSTEM)) == 2


def test_the_ready_made_policies_are_known_by_their_names() -> None:
    """A3, B6, C3, E3, and the one of events: each known by the name it carries."""
    assert set(POLICIES) == {"default", "stepped", "exponential", "quick", "events"}
    assert all(name == policy.name for name, policy in POLICIES.items())


@pytest.mark.parametrize("category", [Category.PERMANENT, Category.VALIDATION])
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_permanent_and_validation_errors_are_never_retried(policy: RetryPolicy, category: Category) -> None:
    """A4, E3: 'not registered' stays so, even when the other side adds a Retry-After."""
    assert retry.retry_delay(policy, 1, 1, category, chance=MIDDLE, after=SECOND) is None


def test_not_even_a_policy_that_says_so_retries_a_permanent_error() -> None:
    """A4: the five categories mean the same under every policy."""
    policy = RetryPolicy("wild", RetryRule(5, Backoff.FIXED, SECOND), retry_on=frozenset(Category))

    assert retry.retry_delay(policy, 1, 0, Category.PERMANENT, chance=MIDDLE) is None


def test_a_throttled_answer_spends_no_try() -> None:
    """A4, C3: throttling has its own counter, so a message out of tries may still wait for its turn."""
    policy = POLICIES["default"]

    assert retry.retry_delay(policy, 6, 0, Category.TEMPORARY, chance=MIDDLE) is None
    assert retry.retry_delay(policy, 6, 1, Category.THROTTLING, chance=MIDDLE, after=7 * SECOND) == 7 * SECOND


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_throttling_gives_up_after_ten_answers(policy: RetryPolicy) -> None:
    """C3: ten tries on a counter of its own."""
    given_ = [
        retry.retry_delay(policy, 0, count, Category.THROTTLING, chance=MIDDLE, after=SECOND) for count in range(1, 11)
    ]

    assert given_ == [SECOND] * 9 + [None]


def test_the_wait_the_other_side_asks_for_wins() -> None:
    """A4: as long as the platform says, shorter or longer than the policy and beyond its cap."""
    personal = POLICIES["quick"]

    assert retry.retry_delay(personal, 1, 0, Category.TEMPORARY, chance=0.9, after=SECOND) == SECOND
    assert retry.retry_delay(personal, 1, 1, Category.THROTTLING, chance=0.9, after=90 * MINUTE) == 90 * MINUTE


def test_the_wait_the_other_side_asks_for_is_believed_up_to_a_day() -> None:
    """A4: a receiver cannot park a message for ever; and nothing, or less, is no wish at all."""
    policy = POLICIES["quick"]

    assert retry.retry_delay(policy, 1, 0, Category.TEMPORARY, chance=MIDDLE, after=timedelta(days=400)) == timedelta(1)
    for nothing in (timedelta(0), timedelta(seconds=-5)):
        assert retry.retry_delay(policy, 1, 0, Category.TEMPORARY, chance=MIDDLE, after=nothing) == 30 * SECOND


def test_a_wish_to_be_asked_again_gives_no_tries() -> None:
    """A3: `max_attempts` counts, whatever Retry-After says."""
    assert retry.retry_delay(POLICIES["quick"], 4, 0, Category.TEMPORARY, chance=MIDDLE, after=SECOND) is None


def test_a_message_may_have_its_own_number_of_tries() -> None:
    """B6: `maxAttempts` replaces the policy's; past the table's end its last entry repeats."""
    policy = POLICIES["quick"]

    assert waits(policy, max_attempts=1) == []
    assert waits(policy, max_attempts=6) == [30 * SECOND, 2 * MINUTE, 5 * MINUTE, 5 * MINUTE, 5 * MINUTE]


@given(rules, st.integers(1, 10_000), chances)
def test_no_wait_is_negative_or_over_the_cap(rule: RetryRule, attempts: int, chance: float) -> None:
    """A3: jitter first, the cap last."""
    assert timedelta(0) <= rule.delay(attempts, chance=chance) <= rule.max_delay


@given(rules, st.integers(1, 200))
def test_waits_never_shrink_with_more_tries(rule: RetryRule, attempts: int) -> None:
    """A3: without chance, each wait is at least as long as the one before."""
    assert rule.delay(attempts, chance=MIDDLE) <= rule.delay(attempts + 1, chance=MIDDLE)


@given(rules, st.integers(1, 30), chances)
def test_jitter_stays_within_its_share(rule: RetryRule, attempts: int, chance: float) -> None:
    """A3: never further from the plain wait than the share says, a microsecond of rounding apart."""
    plain, jittered = rule.delay(attempts, chance=MIDDLE), rule.delay(attempts, chance=chance)

    if plain < rule.max_delay:
        assert abs(jittered - plain) <= plain * rule.jitter + timedelta(microseconds=1)


@given(rules, st.integers(0, 50), st.integers(0, 50), st.sampled_from(Category), chances)
def test_every_message_is_given_up_in_the_end(
    rule: RetryRule, attempts: int, throttles: int, category: Category, chance: float
) -> None:
    """B7: whatever fails for good reaches the dead letters, so no counter can run without an end."""
    policy = RetryPolicy("any", rule)
    spent, allowed = (throttles, 10) if category is Category.THROTTLING else (attempts, rule.max_attempts)

    wait = retry.retry_delay(policy, attempts, throttles, category, chance=chance)

    assert (wait is None) == (category not in retry.RETRYABLE or spent >= allowed)


def test_a_retry_policy_is_described_in_one_line() -> None:
    """A3, B6: what `why` shows."""
    assert retry.describe_policy(POLICIES["default"]) == "6 attempts, 5 min × attempts², at most 12 h, ±15 %"
    assert retry.describe_policy(POLICIES["stepped"]) == "6 attempts, 5 min, 15 min, 1 h, 5 h, 15 h"
    assert retry.describe_policy(POLICIES["exponential"]) == "5 attempts, 2 s, doubling, at most 1 h, ±10 %"


def test_a_custom_retry_policy_is_read_from_a_table() -> None:
    """A3: a policy, not a constant; durations as text or seconds, sub-tables for what differs."""
    policy = retry.parse_policy(
        "gentle",
        {
            "max_attempts": 4,
            "backoff": "linear",
            "initial_delay": "30s",
            "max_delay": "5m",
            "jitter": 0.1,
            "retry_on": ["temporary", "throttling"],
            "throttling": {"max_attempts": 20},
            "timeout": {"max_attempts": 2, "initial_delay": 5},
        },
    )

    assert waits(policy) == [30 * SECOND, 60 * SECOND, 90 * SECOND]
    assert waits(policy, Category.SYSTEM) == []
    assert policy.rule_for(Category.THROTTLING).max_attempts == 20
    assert policy.rule_for(Category.THROTTLING).backoff is retry.THROTTLE_RULE.backoff
    assert waits(policy, kind=RetryErrorKind.TIMEOUT) == [5 * SECOND]
    assert policy.rule_for(Category.TEMPORARY, RetryErrorKind.TIMEOUT).max_delay == 5 * MINUTE


def test_a_table_of_waits_needs_nothing_else() -> None:
    """B6: the tries follow from the table, one more than its entries; no cap cuts what was written."""
    policy = retry.parse_policy("mine", {"table": ["1m", "48h"], "jitter": 0.5})

    assert waits(policy) == [MINUTE, timedelta(hours=48)]
    assert policy.rule.delay(2, chance=0.99) > timedelta(hours=70)


def test_a_sub_table_may_leave_the_table_of_waits() -> None:
    """C3: a strategy per kind of error, with a backoff of its own."""
    policy = retry.parse_policy(
        "mine", {"table": ["1m"], "5xx": {"backoff": "fixed", "initial_delay": "1s", "max_attempts": 3}}
    )

    assert waits(policy, kind=RetryErrorKind.SERVER) == [SECOND, SECOND]


PLAIN: Mapping[str, Any] = {"max_attempts": 3, "backoff": "fixed", "initial_delay": "1s"}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "policies.mine.backoff is missing"),
        ({"backoff": "fixed", "initial_delay": "1s"}, "max_attempts is missing"),
        ({**PLAIN, "max_attempts": 0}, "max_attempts must be at least 1"),
        ({**PLAIN, "max_attempts": "3"}, "not a whole number"),
        ({**PLAIN, "max_attempts": True}, "not a whole number"),
        ({**PLAIN, "backoff": "cubic"}, "Use one of: exponential"),
        ({**PLAIN, "initial_delay": "1 month"}, "policies.mine.initial_delay: '1 month' is not a duration"),
        ({**PLAIN, "initial_delay": 0}, "initial_delay must be greater"),
        ({**PLAIN, "max_delay": "500ms"}, "max_delay must not be shorter"),
        ({**PLAIN, "jitter": 15}, "jitter must be at least 0"),
        ({**PLAIN, "jitter": "15%"}, "not a number"),
        ({**PLAIN, "jiter": 0.1}, "Did you mean 'jitter'"),
        ({**PLAIN, "zzz": 1}, "Known options: max_attempts"),
        ({**PLAIN, "table": ["1s"]}, "table requires backoff"),
        ({**PLAIN, "table": "1s"}, "is not a list"),
        ({"backoff": "table", "max_attempts": 3}, "table requires backoff"),
        ({**PLAIN, "retry_on": ["permanent"]}, "permanent and validation are never retried"),
        ({**PLAIN, "retry_on": "temporary"}, "Use a list of"),
        ({**PLAIN, "throttling": 5}, "policies.mine.throttling is not a table"),
        ({**PLAIN, "throttling": {"attempts": 5}}, "Did you mean 'max_attempts'"),
    ],
)
def test_an_invalid_retry_policy_is_rejected(options: Mapping[str, Any], words: str) -> None:
    """A3: the start stops with the key and what to write instead."""
    with pytest.raises(Misconfigured, match=words):
        retry.parse_policy("mine", options)
