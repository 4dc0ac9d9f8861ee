"""Capacity: how many tasks a node claims at once (A1)."""

from __future__ import annotations

from typing import Any

from tidings.kernel.capacity import Capacity
from tidings.kernel.lanes import Lane
from tidings.model.task import Task


def task(queue: str) -> Task:
    fields: dict[str, Any] = dict.fromkeys(Task._fields, 0)
    return Task(**{**fields, "queue": queue})


def test_a_task_occupies_its_slot_until_it_is_dropped() -> None:
    """A1: never more at once than there are slots."""
    room = Capacity(8, {"q": Lane("q")}, ())
    tasks = [task("q") for _ in range(8)]

    room.reserve(tasks)
    assert room.free(0) == 0
    assert not room.is_worth_a_look
    room.drop(tasks[0])
    room.drop(tasks[1])
    assert (room.free(0), room.is_worth_a_look) == (2, True), "a quarter is free: worth a claim"


def test_results_that_cannot_be_written_leave_no_room() -> None:
    """A1: twice the slots, in hand or unwritten, is the most that can be lost with a node."""
    room = Capacity(8, {"q": Lane("q")}, ())

    assert [room.free(unwritten) for unwritten in (0, 8, 12, 16, 99)] == [8, 8, 4, 0, 0]


def test_a_channel_has_its_own_cap_and_says_when_it_was_full() -> None:
    """A channel that is slow leaves slots to the others."""
    room = Capacity(100, {"slow": Lane("slow", concurrency=2), "q": Lane("q")}, ())
    room.reserve([task("slow"), task("slow"), task("q")])

    assert (room.of("slow", 50), room.of("q", 50)) == (0, 50)
    room.drop(task("q"))
    assert not room.was_full("q")
    room.drop(task("slow"))
    assert (room.of("slow", 50), room.was_full("slow")) == (1, True)


def test_a_keyed_queue_is_claimed_again_only_when_claimed_tasks_have_slots() -> None:
    """A limit per recipient is shared out before more is taken."""
    room = Capacity(100, {"chat": Lane("chat"), "q": Lane("q")}, {"chat"})
    taken = [task("chat"), task("chat")]
    room.reserve(taken)

    assert (room.of("chat", 50), room.of("q", 50)) == (0, 50)
    assert room.have_slots(taken)
    assert room.of("chat", 50) == 50
    assert not room.have_slots([task("q")])
