"""Rates and recipients' rates as reserved instants: what leaves by them keeps the limit where it arrives."""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.task import Task, TaskId
from tidings.model.time import SECOND
from tidings.outbound.recipient_rate_limits import MAX_SLOTS, RecipientSlots
from tidings.store.rate_limits import (
    ARRIVAL_SPREAD,
    RateLimitState,
    SlotAssignment,
    assign_slots,
    reserve_slots,
    slot_interval,
)

NOW = 1_800_000_000 * SECOND
GAP = SECOND


def line(*keys: str) -> list[tuple[TaskId, str]]:
    """Tasks 1, 2, ... to these recipients."""
    return [(TaskId(number), key) for number, key in enumerate(keys, 1)]


@given(st.floats(0.2, 5000), st.lists(st.integers(0, ARRIVAL_SPREAD - 1), min_size=2, max_size=200))
def test_a_limit_holds_where_messages_arrive_up_to_the_spread_later(per_second: float, ways: list[int]) -> None:
    """Rule 15 at the receiver: in no second, wherever it begins, are there more than the limit allows."""
    interval = round(SECOND / per_second)
    task = Task(TaskId(1), "default", "main", "message", 5, 0, 1, 0, 1, 0, False, None, None, None)
    tasks, _ = reserve_slots({"main": RateLimitState(interval, 0)}, [task] * len(ways), (), NOW)
    arrivals = sorted(timed.start_at + way for timed, way in zip(tasks, ways, strict=True))
    fullest = max(bisect_left(arrivals, at + SECOND) - i for i, at in enumerate(arrivals))
    assert fullest <= max(1, -(-SECOND // interval))
    if per_second >= 1:
        assert slot_interval(interval) <= interval / 0.95, "and not much is given away"


@given(
    st.integers(1, SECOND),
    st.lists(st.sampled_from("abcdef"), max_size=20),
    st.dictionaries(st.sampled_from("abcdef"), st.integers(-SECOND, 2 * SECOND)),
    st.integers(-SECOND, SECOND),
)
def test_rate_limit_slots_keep_both_limits_and_skip_no_task(
    interval: int, keys: list[str], free: dict[str, int], ahead: int
) -> None:
    """Each task gets a start or a wait; starts are one step apart, a recipient's starts one gap apart."""
    pace, tasks = RateLimitState(interval, NOW + ahead), line(*keys)
    turns = assign_slots(pace, tasks, {key: NOW + at for key, at in free.items()}, GAP, NOW)
    starts = sorted(turns.starts.values())
    assert turns.starts.keys() | turns.waits.keys() == {task for task, _ in tasks}
    assert not turns.starts.keys() & turns.waits.keys()
    assert all(at >= max(NOW, pace.next_at) for at in starts)
    assert all(later - earlier >= pace.step for earlier, later in pairwise([*starts, turns.next_at]))
    for key in set(keys):
        own = sorted(turns.starts[task] for task, to in tasks if to == key and task in turns.starts)
        first = [NOW + free[key]] if key in free else []
        assert not own or not first or own[0] >= first[0]
        assert all(later - earlier >= slot_interval(GAP) for earlier, later in pairwise(own))
        assert not own or turns.free_at[key] == own[-1] + slot_interval(GAP)


def test_a_task_that_waits_for_its_recipient_costs_the_channel_no_slot() -> None:
    """The second to `a` waits for it; the next instant is for `b`."""
    turns = assign_slots(RateLimitState(33_333, 0), line("a", "a", "a", "b"), {}, GAP, NOW)
    assert list(turns.starts) == [1, 4]
    assert turns.starts[TaskId(4)] - turns.starts[TaskId(1)] == slot_interval(33_333)
    assert set(turns.waits.values()) == {NOW + slot_interval(GAP)}


def test_without_a_free_recipient_no_slot_is_reserved() -> None:
    """The row stays as it is, for those who can use it."""
    turns = assign_slots(RateLimitState(33_333, NOW + 7), line("a"), {"a": NOW + GAP}, GAP, NOW)
    assert turns == SlotAssignment(NOW, {}, {TaskId(1): NOW + GAP}, NOW + 7, {})


def test_tasks_for_one_recipient_get_slots_one_after_another() -> None:
    """One gap apart and not all at once; after sixteen places the line begins again."""
    lines, free = RecipientSlots(), NOW + GAP
    places = [lines.place("a", free, GAP, NOW) for _ in range(MAX_SLOTS + 2)]
    assert places[:MAX_SLOTS] == [free + i * GAP for i in range(MAX_SLOTS)]
    assert places[MAX_SLOTS:] == [free, free + GAP]
    assert lines.place("b", free, GAP, NOW) == free


def test_a_task_whose_recipient_is_free_soon_keeps_its_place() -> None:
    """The one before it was sent some milliseconds late: it waits for just that."""
    lines = RecipientSlots()
    for _ in range(5):
        lines.place("a", NOW + GAP, GAP, NOW)
    assert lines.place("a", NOW + GAP // 100, GAP, NOW) == NOW + GAP // 100


@pytest.mark.parametrize(("interval", "expected"), [(33_333, 34_999), (SECOND, 1_050_000), (6 * SECOND, 6_050_000)])
def test_the_spread_is_added_once_per_second(interval: int, expected: int) -> None:
    """30 a second become 28.6, one a second becomes one in 1.05 s, one in six seconds hardly changes."""
    assert slot_interval(interval) == expected
