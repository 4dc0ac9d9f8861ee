"""Limits, waits and breakers that a whole fleet shares, because they live on the channel's row (A4, A5)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidings.kernel.clock import ManualClock
from tidings.kernel.handler import ReservedSlot
from tidings.kernel.lanes import Lane
from tidings.kernel.rate_limit_slots import RateLimitWaiter
from tidings.model.message import Message
from tidings.model.outcome import Defer, Done, Outcome, Retry
from tidings.model.task import Category, Task, TaskId
from tidings.model.time import SECOND
from tidings.outbound.delivery import Delivery
from tidings.store.port import Step, Store
from tidings.store.rate_limits import slot_interval

from .kernel_harness import KernelHarness

RATE = Lane("main", per_second=10, keyed=True)
STEP, GAP = slot_interval(SECOND // 10), SECOND


def line(*keys: str, begin: int = 1) -> list[tuple[TaskId, str]]:
    """Tasks to these recipients."""
    return [(TaskId(number), key) for number, key in enumerate(keys, begin)]


async def test_turns_go_on_where_another_node_left_off(store: Store, clock: ManualClock) -> None:
    """One row for the channel, one for each recipient: whoever asks sees what the others have taken."""
    await store.write(RATE.join())
    first = await store.take_slots("main", line("ada", "bob"), GAP)
    second = await store.take_slots("main", line("cleo", "ada", begin=3), GAP)
    assert list(first.starts.values()) == [clock.now(), clock.now() + STEP]
    assert second.starts == {3: clock.now() + 2 * STEP}
    assert second.waits == {4: clock.now() + slot_interval(GAP)}

    clock.advance(1.05)
    third = await store.take_slots("main", line("ada", "bob", begin=4), GAP)
    assert third.starts == {4: clock.now(), 5: clock.now() + STEP}, "bob was free a step later"


async def test_a_rate_that_was_taken_away_meanwhile_holds_nobody_up(store: Store, clock: ManualClock) -> None:
    """Two nodes with two configurations, as during a roll-out: the turns come at once."""
    turns = await store.take_slots("main", line("ada", "ada"), GAP)
    assert (dict(turns.starts), dict(turns.waits)) == ({1: clock.now()}, {2: clock.now() + slot_interval(GAP)})


async def test_a_slow_node_gets_a_longer_slot_in_which_nobody_else_starts(store: Store, clock: ManualClock) -> None:
    """The last slot grows; one with others behind it is replaced by a new one. The next starts after it."""
    await store.write(RATE.join())
    first = (await store.take_slots("main", line("ada"), GAP)).starts[TaskId(1)]
    room = {"queue": "main", "until": first + STEP, "step": STEP, "more": 30_000}
    assert await store.write([Step("rate_limit_widen", room)]) == [[{"at": first}]]
    second = (await store.take_slots("main", line("bob"), GAP)).starts[TaskId(1)]
    assert second == first + STEP + 30_000

    assert await store.write([Step("rate_limit_widen", room)]) == [[{"at": second + STEP}]]
    third = (await store.take_slots("main", line("cleo"), GAP)).starts[TaskId(1)]
    assert third == second + 2 * STEP + 30_000


async def test_a_task_that_missed_its_slot_waits_for_a_longer_one_and_so_does_its_recipient(
    store: Store, clock: ManualClock
) -> None:
    """A second late, so it is put back; next time both limits leave it the longer slot."""
    world = await KernelHarness(store, clock, per_recipient=timedelta(seconds=1), per_second=10, keyed=True).open()
    id_ = await world.send("ada")
    task = Task(TaskId(1), "default", "main", "message", 5, 0, 1, 0, 1, 0, False, None, None, None)
    message = Message(id_, "default", "main", "ada", {"text": "hello"}, clock.now())
    turns = RateLimitWaiter(store, clock, {"message": Delivery(store, world.channels, now=clock.now)})

    async def wait() -> tuple[int, Outcome | None]:
        turn = ReservedSlot((await store.take_slots("main", line("ada"), GAP)).starts[TaskId(1)], message)
        clock.advance(slow)
        timed = task._replace(start_at=turn.at)
        return turn.at, await turns.wait(timed, RATE, world.worker.node.id, turn)

    slow = 1
    assert type((await wait())[1]) is Defer
    slow = 0
    at, outcome = await wait()
    assert outcome is None
    [free] = await store.read("recipient_rate_limit_find", queue="main", key="ada")
    assert free["next_at"] == at + 30_000 + slot_interval(GAP)
    assert (await store.take_slots("main", line("bob"), GAP)).starts[TaskId(1)] == at + STEP + 30_000


async def fleet(store: Store, clock: ManualClock, **options: Any) -> tuple[KernelHarness, KernelHarness]:
    """Two nodes of one fleet on one store."""
    one, other = KernelHarness(store, clock, **options), KernelHarness(store, clock, **options)
    return await one.open(), await other.open()


async def test_recipients_wait_for_each_other_over_two_nodes(store: Store, clock: ManualClock) -> None:
    """Whoever waits costs no try and is sent when its recipient is free, by whichever node."""
    options = {"per_recipient": timedelta(seconds=1), "per_second": 100, "keyed": True}
    nodes = await fleet(store, clock, **options)
    ids = [await nodes[0].send("ada", f"number {number}") for number in range(4)]
    for second in range(4):
        for node in nodes:
            await node.step()
        assert sum(len(node.channel.sent) for node in nodes) == second + 1
        clock.advance(1.05)
    shown = [await nodes[0].show(id_) for id_ in ids]
    assert {(row["state"], row["attempts"]) for row in shown} == {("sent", 1)}


async def test_a_turn_that_was_not_used_frees_its_recipient(store: Store, clock: ManualClock) -> None:
    """Nothing was sent, so nobody waits for it; a turn that somebody has taken since stays."""
    world = await KernelHarness(store, clock, per_recipient=timedelta(seconds=1), per_second=100, keyed=True).open()
    id_ = await world.send("ada")
    task = Task(TaskId(1), "default", "main", "message", 5, 0, 1, 0, 1, 0, False, None, None, None)
    message = Message(id_, "default", "main", "ada", {"text": "hello"}, clock.now())
    delivery = Delivery(store, world.channels, now=clock.now)
    for _ in range(2):
        taken = (await store.take_slots("main", line("ada"), GAP)).starts
        assert taken, "ada is free"
        await delivery.move_slot(task, ReservedSlot(taken[TaskId(1)], message), None)
        clock.advance(0.2)
    first = (await store.take_slots("main", line("ada"), GAP)).starts[TaskId(1)]
    await delivery.move_slot(task, ReservedSlot(first - 1, message), None)
    assert not (await store.take_slots("main", line("ada"), GAP)).starts


async def test_the_urgent_one_goes_first_where_a_rate_lets_one_at_a_time_through(
    store: Store, clock: ManualClock
) -> None:
    """Rule 3: one in eight goes to the oldest, counted by what is claimed and not by free slots."""
    world = await KernelHarness(store, clock, per_second=1, slots=100).open()
    for number in range(12):
        await world.send(f"ada-{number}", "can wait", priority=9)
    clock.advance(1)
    for number in range(7):
        await world.send(f"bob-{number}", "urgent", priority=0)
    for _ in range(10):
        await world.step(seconds=1.05)
    texts = [message.text for message in world.channel.sent]
    assert (texts.count("urgent"), len(texts)) == (7, 10)
    assert texts[:7] == ["urgent"] * 7


async def test_one_429_with_a_wait_slows_every_node(store: Store, clock: ManualClock) -> None:
    """A4: what one node is told holds for all, costs nobody a try, and ends for all at its time."""
    told = Retry(Category.THROTTLING, "HTTP 429", after=timedelta(seconds=30), whole_channel=True)
    answers: list[Outcome] = [told]
    script = lambda _message: answers.pop() if answers else Done()  # noqa: E731
    one, other = await fleet(store, clock, script=script)
    ids = [await one.send("ada")]
    await one.step()
    ids += [await other.send(f"bob-{number}") for number in range(3)]
    for seconds in (0, 29.9):
        assert not (await other.step(seconds=seconds)).claimed
        assert not (await one.step()).claimed
    assert "HTTP 429" in str(await other.why(ids[1]))
    clock.advance(0.2)
    assert (await other.step()).claimed == 4
    assert [(await one.show(id_))["attempts"] for id_ in ids] == [1, 1, 1, 1]


async def test_one_open_breaker_is_seen_by_every_node(store: Store, clock: ManualClock) -> None:
    """A5: five failures that one node saw stop both; after the pause one of them gets the one probe."""
    down = True

    def script(_message: Message) -> Outcome:
        return Retry(Category.TEMPORARY, "HTTP 500") if down else Done()

    one, other = await fleet(store, clock, script=script)
    ids = [await one.send(f"ada-{number}") for number in range(5)]
    await one.step()
    ids += [await other.send(f"bob-{number}") for number in range(3)]
    assert not (await other.step(seconds=59)).claimed
    assert not other.channel.sent

    clock.advance(1.5)
    probes = [await node.step() for node in (other, one)]
    assert sum(stepped.claimed for stepped in probes) == 1, "one probe, whoever asks first"
    assert not (await one.step(seconds=59)).claimed, "it failed: open again, for both"

    down = False
    clock.advance(400)  # past the retries' own waits
    assert (await other.step()).claimed == 1
    assert (await one.step()).claimed == 7, "the other's success closed it for this one"
    assert {(await one.show(id_))["state"] for id_ in ids} == {"sent"}
