"""The store's contract: three verbs, fenced, in order, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.model.task import Category, NewTask, NodeId, SettleResult, Task, TaskState, Transition
from tidings.model.time import SECOND
from tidings.store.port import AttemptTally, ClaimRequest, IdempotencyRecord, Step, Store, TableRows


async def node(store: Store, name: str = "n") -> NodeId:
    rows = await store.write([Step("node_join", {"name": name, "info": "{}"})])
    return NodeId(rows[0][0]["id"])


async def queues(store: Store, *names: str, **traits: Any) -> None:
    for name in names:
        await store.write(Lane(name, **traits).join())


def wish(room: int = 10, *names: str, fair: int = 0, **more: Any) -> ClaimRequest:
    return ClaimRequest({name: room for name in names or ("q",)}, room, fair, **more)


def new(clock: ManualClock, queue: str = "q", *, late: float = 0, **more: Any) -> NewTask:
    return NewTask(queue, "k", clock.now() - round(late * SECOND), **more)


def done(task: Task) -> Transition:
    return Transition(task.id, task.claim_no, TaskState.DONE, task.attempts)


def back(task: Task, due_at: int) -> Transition:
    return Transition(task.id, task.claim_no, TaskState.PENDING, task.attempts, due_at, Category.TEMPORARY, "later")


async def history(store: Store, task: int) -> list[tuple[str, str]]:
    return [(row["origin"], row["state"]) for row in await store.read("history_of", task=task)]


async def test_a_due_task_is_claimed_once(store: Store, clock: ManualClock) -> None:
    """A second claim by another node finds nothing (A1, B5)."""
    await queues(store, "q")
    first, second = await node(store), await node(store)
    await store.enqueue([new(clock)])

    assert len((await store.claim(first, wish())).tasks) == 1
    assert len((await store.claim(second, wish())).tasks) == 0


async def test_a_future_task_is_not_claimed_before_its_time(store: Store, clock: ManualClock) -> None:
    """Never early, and `next_due` says exactly when to look again."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock, late=-30)])

    assert not (await store.claim(me, wish())).tasks
    assert clock.now() + 30 * SECOND == (await store.next_due(["q"])).at

    clock.advance(30)
    assert len((await store.claim(me, wish())).tasks) == 1


async def test_priority_comes_first_then_the_earliest_due(store: Store, clock: ManualClock) -> None:
    """Lowest priority number first, then earliest due first, also across queues (A2)."""
    await queues(store, "q", "r")
    me = await node(store)
    ids = (
        await store.enqueue(
            [
                new(clock, late=1, priority=5),
                new(clock, "r", late=2, priority=5),
                new(clock, late=3, priority=9),
                new(clock, late=0, priority=0),
                new(clock, "r", late=4, priority=5),
            ]
        )
    ).ids

    claimed = await store.claim(me, wish(4, "q", "r"))

    assert [ids[3], ids[4], ids[1], ids[0]] == [task.id for task in claimed.tasks]


async def test_one_share_of_the_slots_goes_to_the_oldest(store: Store, clock: ManualClock) -> None:
    """Nothing starves behind more important work (rule 3)."""
    await queues(store, "q")
    me = await node(store)
    old = (await store.enqueue([new(clock, late=100, priority=9)])).ids[0]
    await store.enqueue([new(clock, late=1, priority=0) for _ in range(10)])

    assert old not in [t.id for t in (await store.claim(me, wish(4))).tasks]
    assert old in [t.id for t in (await store.claim(me, wish(4, fair=1))).tasks]


async def test_the_room_of_a_queue_is_a_cap(store: Store, clock: ManualClock) -> None:
    """A busy channel takes no more than its own share of a node."""
    await queues(store, "q", "r")
    me = await node(store)
    await store.enqueue([new(clock, late=9) for _ in range(5)] + [new(clock, "r") for _ in range(5)])

    claimed = await store.claim(me, ClaimRequest({"q": 2, "r": 5}, 10))

    assert sum(task.queue == "q" for task in claimed.tasks) == 2
    assert sum(task.queue == "r" for task in claimed.tasks) == 5


async def test_a_settled_claim_cannot_be_settled_again(store: Store, clock: ManualClock) -> None:
    """The second writer learns that the claim is gone and changes nothing (rule 5)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    task = (await store.claim(me, wish())).tasks[0]

    assert await store.settle(me, [done(task)]) == [SettleResult.KEPT]
    failed = Transition(task.id, task.claim_no, TaskState.FAILED, 1, None, Category.PERMANENT, "late")
    assert await store.settle(me, [failed]) == [SettleResult.CLAIM_LOST]
    assert await history(store, task.id) == [("pending", "processing"), ("processing", "done")]


async def test_settling_done_twice_after_a_lost_answer_is_kept(store: Store, clock: ManualClock) -> None:
    """A commit whose answer was lost is written again without harm (F11)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    task = (await store.claim(me, wish())).tasks[0]
    tally = [AttemptTally("q", "done", 1, 5)]
    await store.settle(me, [done(task)], tally=tally)

    assert await store.settle(me, [done(task)], tally=tally) == [SettleResult.KEPT]
    assert len(await history(store, task.id)) == 2
    assert [row["n"] for row in await store.read("attempt_tally_sums", since=0)] == [1], "counted once"


async def test_the_same_node_cannot_settle_its_old_claim(store: Store, clock: ManualClock) -> None:
    """A node that claims a task again after a reap is fenced off from its first claim."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    old = (await store.claim(me, wish())).tasks[0]
    await store.settle(me, [back(old, clock.now())])
    again = (await store.claim(me, wish())).tasks[0]

    assert again.claim_no == old.claim_no + 1
    assert await store.settle(me, [done(old)]) == [SettleResult.CLAIM_LOST]
    assert await store.settle(me, [done(again)]) == [SettleResult.KEPT]


async def test_a_batch_keeps_each_receipt_and_each_doubt(store: Store, clock: ManualClock) -> None:
    """A7, rule 5: done with a receipt, without one, and in doubt; a repetition writes nothing twice."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock) for _ in range(3)])
    first, second, third = (await store.claim(me, wish())).tasks
    moves = [done(first)._replace(detail="r-1"), done(second), done(third)._replace(detail="r-3", unknown=True)]

    for batch in (moves[:2], moves[2:], moves):
        assert await store.settle(me, batch) == [SettleResult.KEPT] * len(batch)
    details = {
        task.id: [row["detail"] for row in await store.read("history_of", task=task.id)]
        for task in (first, second, third)
    }

    assert details == {first.id: [None, "r-1"], second.id: [None, None], third.id: [None, "r-3"]}
    assert [(await store.read("task_look", id=task.id))[0]["state"] for task in (first, second, third)] == ["done"] * 3


async def test_one_lost_claim_does_not_spoil_its_batch(store: Store, clock: ManualClock) -> None:
    """Each row of a batch has its own answer."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock), new(clock)])
    first, second = (await store.claim(me, wish())).tasks
    await store.settle(me, [back(first, clock.now() + SECOND)])

    assert await store.settle(me, [done(first), done(second)]) == [SettleResult.CLAIM_LOST, SettleResult.KEPT]


async def test_a_start_mark_is_refused_to_a_lost_claim(store: Store, clock: ManualClock) -> None:
    """Whoever lost a claim may not act on it (rule 6)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    task = (await store.claim(me, wish())).tasks[0]
    assert {task.id} == await store.start(me, [task])
    await store.settle(me, [back(task, clock.now())])

    assert set() == await store.start(me, [task])


async def test_a_cancel_during_work_ends_a_retry_as_cancelled(store: Store, clock: ManualClock) -> None:
    """Asked in time, it is not tried again (A6)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    task = (await store.claim(me, wish())).tasks[0]
    await store.write([Step("request_cancel", {"id": task.id})])

    assert await store.settle(me, [back(task, clock.now())]) == [SettleResult.CANCELLED]
    assert (await history(store, task.id))[-1] == ("processing", "cancelled")


async def test_expired_tasks_come_back_unclaimed(store: Store, clock: ManualClock) -> None:
    """Expiry is judged at claim (rule 8)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock, late=5, expires_at=clock.now() - 1), new(clock)])

    claimed = await store.claim(me, wish())

    assert (len(claimed.tasks), len(claimed.expired)) == (1, 1)


@pytest.mark.parametrize("how", ["paused", "parked"])
async def test_a_channel_that_stands_still_is_skipped(store: Store, clock: ManualClock, how: str) -> None:
    """Its tasks are not rewritten, and no other channel waits (rule 13)."""
    await queues(store, "q", "r")
    me = await node(store)
    await store.enqueue([new(clock), new(clock, "r")])
    if how == "paused":
        await store.write([Step("queue_pause", {"name": "q", "reason": "by hand"})])
    else:
        await store.write([Step("queue_block", {"name": "q", "until": clock.now() + 9 * SECOND, "reason": "429"})])

    assert [task.queue for task in (await store.claim(me, wish(9, "q", "r"))).tasks] == ["r"]
    expected = None if how == "paused" else clock.now() + 9 * SECOND
    assert expected == (await store.next_due(["q", "r"])).at


class TestOrder:
    """Order keys: one at a time, by first due, then by sequence (rule 14)."""

    async def test_only_the_first_of_a_key_can_be_claimed(self, store: Store, clock: ManualClock) -> None:
        """The others wait until it is settled; settling passes the turn on."""
        await queues(store, "q")
        me = await node(store)
        ids = (await store.enqueue([new(clock, ordering_key="a") for _ in range(3)])).ids
        seen = []
        for _ in range(3):
            tasks = (await store.claim(me, wish())).tasks
            assert len(tasks) == 1
            seen.append(tasks[0].id)
            assert not (await store.claim(me, wish())).tasks
            await store.settle(me, [done(tasks[0])], keys=[("q", "a")])
        assert list(ids) == seen

    async def test_a_retrying_head_holds_its_key(self, store: Store, clock: ManualClock) -> None:
        """What comes later does not overtake what is being retried."""
        await queues(store, "q")
        me = await node(store)
        await store.enqueue([new(clock, ordering_key="a"), new(clock, ordering_key="a")])
        task = (await store.claim(me, wish())).tasks[0]
        await store.settle(me, [back(task, clock.now() + 60 * SECOND)], keys=[("q", "a")])

        assert not (await store.claim(me, wish())).tasks
        clock.advance(60)
        assert [task.id] == [t.id for t in (await store.claim(me, wish())).tasks]

    async def test_a_future_task_does_not_hold_a_ready_one(self, store: Store, clock: ManualClock) -> None:
        """An earlier due time accepted later goes first."""
        await queues(store, "q")
        me = await node(store)
        future = (await store.enqueue([new(clock, late=-60, ordering_key="a")])).ids[0]
        ready = (await store.enqueue([new(clock, ordering_key="a")])).ids[0]

        assert [ready] == [t.id for t in (await store.claim(me, wish())).tasks]
        clock.advance(61)
        assert not (await store.claim(me, wish())).tasks, "one at a time"
        task = Task(ready, "default", "q", "k", 5, 0, 1, 0, 1, 0, False, "a", None, None)
        await store.settle(me, [done(task)], keys=[("q", "a")])
        assert [future] == [t.id for t in (await store.claim(me, wish())).tasks]

    async def test_a_failed_task_releases_its_key(self, store: Store, clock: ManualClock) -> None:
        """Unless the lane stops on failure."""
        await queues(store, "q")
        me = await node(store)
        ids = (await store.enqueue([new(clock, ordering_key="a"), new(clock, ordering_key="a")])).ids
        task = (await store.claim(me, wish())).tasks[0]
        await store.settle(
            me, [Transition(task.id, 1, TaskState.FAILED, 1, None, Category.PERMANENT, "no")], keys=[("q", "a")]
        )

        assert [ids[1]] == [t.id for t in (await store.claim(me, wish())).tasks]

    async def test_a_key_stops_on_failure_where_asked(self, store: Store, clock: ManualClock) -> None:
        """A person's retry of the failed one starts it again, first."""
        await queues(store, "q", stop_on_failure=True)
        me = await node(store)
        await store.enqueue([new(clock, ordering_key="a"), new(clock, ordering_key="a")])
        task = (await store.claim(me, wish())).tasks[0]
        await store.settle(
            me, [Transition(task.id, 1, TaskState.FAILED, 1, None, Category.PERMANENT, "no")], keys=[("q", "a")]
        )
        assert not (await store.claim(me, wish())).tasks

        revive = Step("revive", {"id": task.id, "due_at": clock.now(), "expires_at": None})
        await store.change([revive], keys=[("q", "a")])
        assert [task.id] == [t.id for t in (await store.claim(me, wish())).tasks]


class TestLimits:
    """Rates are reserved send instants (rule 15)."""

    async def test_a_claim_takes_a_quarter_second_of_allowance(self, store: Store, clock: ManualClock) -> None:
        """20 a second: five instants in 250 ms, a little over 50 ms apart; the next claim goes on there."""
        await queues(store, "q", per_second=20)
        me = await node(store)
        await store.enqueue([new(clock, late=1) for _ in range(50)])
        limited = wish(50, limited=frozenset({"q"}))

        first = (await store.claim(me, limited)).tasks
        assert len(first) == 5
        assert [clock.now() + i * 52_500 for i in range(5)] == [task.start_at for task in first]
        assert not (await store.claim(me, limited)).tasks

        clock.advance(0.25)
        second = (await store.claim(me, limited)).tasks
        assert first[-1].start_at + 52_500 == second[0].start_at

    async def test_next_due_waits_for_the_rate(self, store: Store, clock: ManualClock) -> None:
        """No busy loop while the allowance is used up."""
        await queues(store, "q", per_second=1)
        me = await node(store)
        await store.enqueue([new(clock, late=1) for _ in range(5)])
        await store.claim(me, wish(50, limited=frozenset({"q"})))

        at = (await store.next_due(["q"])).at
        assert at is not None and at > clock.now()


class TestKeys:
    """Idempotency keys (B4)."""

    async def test_a_key_is_answered_with_what_it_was_answered_before(self, store: Store, clock: ManualClock) -> None:
        """The second call enqueues nothing."""
        await queues(store, "q")
        me = await node(store)
        once = IdempotencyRecord("messages", "k1", "digest", '{"id":1}', clock.now() + SECOND)
        assert len((await store.enqueue([new(clock)], once=once)).ids) == 1

        again = await store.enqueue([new(clock)], once=once)

        assert not again.ids
        assert again.earlier == {"digest": "digest", "answer": '{"id":1}'}
        assert len((await store.claim(me, wish())).tasks) == 1

    async def test_a_key_that_has_run_out_is_new(self, store: Store, clock: ManualClock) -> None:
        """Numbers are windows: after its time a key may be used again."""
        await queues(store, "q")
        once = IdempotencyRecord("messages", "k1", "digest", "{}", clock.now() + SECOND)
        await store.enqueue([new(clock)], once=once)
        clock.advance(1)

        assert len((await store.enqueue([new(clock)], once=once)).ids) == 1


async def test_a_failing_member_leaves_nothing_behind(store: Store, clock: ManualClock) -> None:
    """The domain's rows and the tasks share a transaction: all or none."""
    await queues(store, "q")
    me = await node(store)
    bad = TableRows("messages", ("accepted_at", "no_such_column"), [(1, 2)])

    with pytest.raises(Exception, match="no_such_column"):
        await store.enqueue([new(clock)], bad)

    assert not (await store.claim(me, wish())).tasks


async def test_the_breaker_opens_at_its_threshold_and_grants_one_probe(store: Store, clock: ManualClock) -> None:
    """Five failures park the channel for a minute; then one probe, not two (A5)."""
    await queues(store, "q")
    me = await node(store)
    await store.enqueue([new(clock)])
    failed = {
        "name": "q",
        "reset": False,
        "count": 5,
        "threshold": 5,
        "cooldown": 60 * SECOND,
        "claimed_at": clock.now(),
    }
    assert (await store.write([Step("breaker_failed", failed)]))[0][0]["opened_at"] is not None
    assert not (await store.claim(me, wish())).tasks
    assert not (await store.write([Step("breaker_probe", {"name": "q"})]))[0], "not before the minute is over"

    clock.advance(60)
    assert not (await store.claim(me, wish())).tasks, "half open: not without a probe"
    assert (await store.write([Step("breaker_probe", {"name": "q"})]))[0]
    assert not (await store.write([Step("breaker_probe", {"name": "q"})]))[0]
    assert len((await store.claim(me, wish(probes=frozenset({"q"})))).tasks) == 1

    old = {**failed, "count": 1, "claimed_at": clock.now() - 61 * SECOND}
    assert not (await store.write([Step("breaker_failed", old)]))[0], "claims from before it opened say nothing new"
    assert (await store.write([Step("breaker_closed", {"name": "q", "claimed_at": clock.now()})]))[0]
