"""How long before its rate-limit slot a start is marked: a kill between the two makes it unknown (E2)."""

from __future__ import annotations

import pytest

from tidings.kernel.rate_limit_slots import MAX_LEAD, next_lead


def test_fast_marks_shorten_the_lead_to_a_few_milliseconds() -> None:
    """After ten marks of one millisecond, hardly anything is marked long before it is sent."""
    lead = MAX_LEAD
    for _ in range(10):
        lead = next_lead(lead, 0.001)

    assert lead == pytest.approx(0.005)


def test_a_slow_mark_lengthens_the_lead_at_once_and_within_its_limit() -> None:
    """The next attempt must not miss its slot because its mark is as slow as the last one."""
    assert next_lead(0.005, 0.012) == pytest.approx(0.024)
    assert next_lead(0.005, 1.0) == MAX_LEAD
