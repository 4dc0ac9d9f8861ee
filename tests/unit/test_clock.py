"""The clock: database time by our monotonic clock, and a clock moved by hand."""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernel.clock import (
    Clock,
    DriftLevel,
    ManualClock,
    SystemClock,
    classify_drift,
    clock_sample,
    narrow_sample,
)
from tidings.model.time import SECOND, micros

TEN_MINUTES = 600 * SECOND


@pytest.fixture
def wall(monkeypatch: pytest.MonkeyPatch) -> ManualClock:
    """The machine's clocks under the test's control."""
    machine = ManualClock()
    monkeypatch.setattr("tidings.kernel.clock.time.time_ns", lambda: machine.now() * 1000)
    monkeypatch.setattr("tidings.kernel.clock.time.monotonic", machine.monotonic)
    return machine


def test_both_clocks_fill_the_port() -> None:
    """B13: whoever takes a Clock takes either."""
    clocks: list[Clock] = [SystemClock(), ManualClock()]
    assert all(0 <= each.chance() < 1 and each.drift() == timedelta(0) for each in clocks)


def test_until_something_is_learned_the_time_is_the_wall_clock(wall: ManualClock) -> None:
    """B13: on SQLite the one working process's clock is the database's."""
    system = SystemClock()
    wall.jump(-30)

    assert system.now() == wall.now()
    assert system.drift() == timedelta(0)


def test_the_database_time_is_carried_on_by_the_monotonic_clock(wall: ManualClock) -> None:
    """B13: database time everywhere; a wall clock that jumps moves nothing but the drift."""
    system, ahead = SystemClock(), wall.now() + TEN_MINUTES
    system.learn(ahead, wall.monotonic(), wall.monotonic())

    wall.advance(seconds=5)
    wall.jump(-3600)

    assert system.now() == ahead + 5 * SECOND
    assert system.drift() == timedelta(minutes=70)


def test_the_answer_is_taken_to_come_from_the_middle_of_the_round_trip(wall: ManualClock) -> None:
    """B13: so the error is at most half of it."""
    system, asked_at = SystemClock(), wall.monotonic()
    wall.advance(seconds=0.2)
    system.learn(TEN_MINUTES, asked_at, wall.monotonic())

    assert system.now() == TEN_MINUTES + SECOND // 10


def test_a_slow_answer_does_not_blur_a_quick_one() -> None:
    """B13: what both allow is what the quick one allows, in either order."""
    quick = clock_sample(1_000 * SECOND, 0.0, 0.001)
    slow = clock_sample(1_001 * SECOND, 0.9, 1.1)

    assert narrow_sample(quick, slow) == quick
    assert narrow_sample(slow, quick) == quick
    assert narrow_sample(None, slow) == slow


def test_many_answers_read_at_one_end_of_the_round_trip_do_not_add_up(wall: ManualClock) -> None:
    """B13: not even when the answer is this clock's own, the time wanders off."""
    system = SystemClock()
    for _ in range(1_000):
        for round_trip in (0.010, 0.005, 0.002):
            asked_at, told = wall.monotonic(), system.now()
            wall.advance(seconds=round_trip)
            system.learn(told, asked_at, wall.monotonic())

    assert abs(system.drift()) < timedelta(milliseconds=10)


def test_a_store_that_takes_the_wall_clock_follows_its_corrections(wall: ManualClock) -> None:
    """B13: on SQLite the machine's clock is the database's, also after somebody has set it."""
    system = SystemClock()
    for _ in range(2):
        system.learn(system.wall(), wall.monotonic(), wall.monotonic() + 0.001)
        assert abs(system.drift()) <= timedelta(milliseconds=1)
        wall.jump(-3600)


def test_a_database_whose_clock_was_set_is_followed_at_once() -> None:
    """B13: two samples that cannot both be right mean that the newer one is."""
    before = clock_sample(1_000 * SECOND, 0.0, 0.001)
    forward, back = clock_sample(1_060 * SECOND, 0.8, 1.2), clock_sample(940 * SECOND, 0.8, 1.2)

    assert narrow_sample(before, forward) is forward
    assert narrow_sample(before, back) is back


def test_two_clocks_that_run_apart_slowly_are_followed_by_no_more_than_needed() -> None:
    """B13: what is just outside the new bounds moves to their edge, not to their middle."""
    before = clock_sample(1_000 * SECOND, 0.0, 0.001)
    after = clock_sample(1_100 * SECOND + 3_000, 100.0, 100.002)  # between 1 and 3 ms further ahead

    assert narrow_sample(before, after).offset == after.low


@given(
    truth=st.integers(0, 10**15),
    journeys=st.lists(st.tuples(st.floats(0, 10**6), st.floats(0, 2), st.floats(0, 2)), min_size=1),
)
def test_the_learned_time_is_never_further_off_than_half_the_quickest_round_trip(
    truth: int, journeys: list[tuple[float, float, float]]
) -> None:
    """B13: whichever way the network was slow; a few microseconds of rounding apart."""
    known = None
    for asked_at, outward, back in journeys:
        told = truth + round((asked_at + outward) * SECOND)
        known = narrow_sample(known, clock_sample(told, asked_at, asked_at + outward + back))

    quickest = min(outward + back for _, outward, back in journeys)
    assert known is not None
    assert abs(known.offset - truth) <= quickest / 2 * SECOND + 5


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        (0, DriftLevel.FINE),
        (1, DriftLevel.FINE),
        (1.001, DriftLevel.NOTED),
        (-1.001, DriftLevel.NOTED),
        (10, DriftLevel.NOTED),
        (10.001, DriftLevel.UNHEALTHY),
        (-600, DriftLevel.UNHEALTHY),
    ],
)
def test_drift_is_judged_in_either_direction(seconds: float, verdict: DriftLevel) -> None:
    """B13: over 1 s is logged, over 10 s fails the health check."""
    assert classify_drift(timedelta(seconds=seconds)) is verdict


def test_identifiers_are_new_and_sort_by_time() -> None:
    """A plain hyphenated UUID 7, so that a list by id is a list by age."""
    system = SystemClock()
    ids = [system.new_id() for _ in range(100)]

    assert all(str(uuid.UUID(each)) == each and uuid.UUID(each).version == 7 for each in ids)
    assert len(set(ids)) == 100
    assert ids == sorted(ids)


def test_the_real_clock_reads_the_machine() -> None:
    """B13: in microseconds since 1970, and monotonic seconds."""
    system, before, started = SystemClock(), time.time_ns() // 1000, time.monotonic()

    assert before <= system.now() <= time.time_ns() // 1000
    assert started <= system.monotonic() <= time.monotonic()


def test_time_moved_by_hand_moves_both_clocks() -> None:
    """B13: tests drive time instead of waiting for it."""
    manual = ManualClock(now=TEN_MINUTES)
    manual.advance(seconds=1.5)
    manual.advance(minutes=1, hours=1)
    manual.advance_to(TEN_MINUTES)  # over already

    assert manual.now() == TEN_MINUTES + 3661 * SECOND + SECOND // 2
    assert manual.monotonic() == 3661.5
    with pytest.raises(ValueError, match="forward"):
        manual.advance(seconds=-1)


def test_time_can_be_advanced_to_an_instant_exactly() -> None:
    """B13: to the microsecond, however far away."""
    manual = ManualClock()
    target = manual.now() + micros(timedelta(days=400, microseconds=7))
    manual.advance_to(target)

    assert manual.now() == target


def test_a_wall_clock_set_by_hand_leaves_the_monotonic_one() -> None:
    """B13: what an operator or a time server does to a machine."""
    manual = ManualClock(now=TEN_MINUTES)
    manual.jump(-60)
    manual.set_drift(timedelta(seconds=11))
    manual.learn(5, 0.0, 0.0)

    assert (manual.now(), manual.monotonic()) == (TEN_MINUTES - 60 * SECOND, 0.0)
    assert classify_drift(manual.drift()) is DriftLevel.UNHEALTHY


def test_the_same_seed_gives_the_same_run() -> None:
    """Chance and identity can be repeated exactly."""
    one, two, other = ManualClock(seed=7), ManualClock(seed=7), ManualClock(seed=8)

    first = [(one.chance(), one.new_id()) for _ in range(5)]

    assert first == [(two.chance(), two.new_id()) for _ in range(5)]
    assert first != [(other.chance(), other.new_id()) for _ in range(5)]
    assert all(uuid.UUID(each).version == 7 and uuid.UUID(each).variant == uuid.RFC_4122 for _, each in first)
