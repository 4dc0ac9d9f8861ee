"""A clock that was an hour ahead and is set right: nothing waits for it to catch up, and nothing is early."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidings.doctor import FindingSeverity, check_clock, check_clock_change
from tidings.kernel.clock import ManualClock
from tidings.kernel.clock_changes import apply_clock_change
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Retry
from tidings.model.task import Category
from tidings.model.time import HOUR, MINUTE
from tidings.observability.events import ClockSetBack
from tidings.outbound.scheduler_health import check_scheduler_health
from tidings.store.port import ClaimRequest, Step, Store

from .kernel_harness import KernelHarness

REFUSED = Retry(Category.TEMPORARY, "HTTP 500", after=timedelta(seconds=30))


class Script:
    """What the channel answers, in this order; then that it is done."""

    def __init__(self, *answers: Outcome) -> None:
        self.answers = list(answers)

    def __call__(self, _message: Message) -> Outcome:
        return self.answers.pop(0) if self.answers else Done()


async def ahead(store: Store, clock: ManualClock, *answers: Outcome, **options: Any) -> KernelHarness:
    """A node that has worked while its clock was an hour ahead."""
    world = KernelHarness(store, clock, Script(*answers), **options)
    clock.jump(3600)
    return await world.open()


async def beat(world: KernelHarness) -> None:
    """A heartbeat, and what follows within a second."""
    await world.worker._heartbeat_once()
    await world.worker._reap_once()


async def corrected(world: KernelHarness, seconds: float = 0) -> list[str]:
    """What is sent when the clock was set right and this time has passed since."""
    world.clock.jump(-3600)
    before = len(world.channel.sent)
    await beat(world)
    await world.step(seconds=seconds)
    return [message.recipient for message in world.channel.sent[before:]]


async def test_a_message_to_be_sent_at_once_is_sent_at_once(store: Store, clock: ManualClock) -> None:
    """B13, F20: in the order of acceptance, which was while the clock was ahead; the log says by how much."""
    world = await ahead(store, clock)
    for name in ("ada", "bob"):
        await world.send(name)
        clock.advance(0.5)
    assert await corrected(world) == ["ada", "bob"]
    assert world.told(ClockSetBack) == [ClockSetBack(3599.5, 2)]
    await beat(world)
    assert len(world.told(ClockSetBack)) == 1, "once"


async def test_a_message_accepted_while_nobody_worked_is_sent_at_once(store: Store, clock: ManualClock) -> None:
    """Only the message itself shows that the clock was ahead; the next process to start finds it."""
    world = KernelHarness(store, clock)
    for lane in world.lanes.values():
        await store.write(lane.join())
    clock.jump(3600)
    await world.send("ada")
    clock.jump(-3600)
    await world.open()
    await apply_clock_change(store, world.worker.node.id, world.events.append)
    await world.step()
    assert [message.recipient for message in world.channel.sent] == ["ada"]


async def test_a_message_for_a_later_time_is_not_sent_early(store: Store, clock: ManualClock) -> None:
    """B13: accepted before, or while the clock was ahead; due by then, or rescheduled."""
    due = clock.now() + HOUR // 2
    world = KernelHarness(store, clock, Script(REFUSED))
    await world.open()
    await world.send("before", at=due)
    clock.jump(3600)
    await beat(world)
    await world.step()  # refused, as it seems half an hour late; it waits for its next attempt
    await world.send("meanwhile", at=clock.now() + MINUTE)
    moved = await world.send("moved")
    await world.messages.reschedule(moved, clock.now() + 2 * MINUTE)

    assert await corrected(world, seconds=29 * 60) == []
    clock.advance(hours=1)
    await world.step()
    assert {message.recipient for message in world.channel.sent} == {"before", "meanwhile", "moved"}


async def test_a_wait_between_attempts_is_as_long_as_it_would_have_been(store: Store, clock: ManualClock) -> None:
    """30 s after the failed attempt, of which 10 s had passed."""
    world = await ahead(store, clock, REFUSED)
    await world.send("ada")
    await world.step()
    await world.step(seconds=10)
    await beat(world)
    assert await corrected(world, seconds=19) == []
    await world.step(seconds=2)
    assert len(world.channel.sent) == 2


async def test_messages_of_one_ordering_key_keep_their_order(store: Store, clock: ManualClock) -> None:
    """Those accepted after the correction come behind those accepted before."""
    world = await ahead(store, clock)
    await world.send("ada", "first", ordering_key="k")
    await world.send("ada", "second", ordering_key="k")
    await corrected(world)
    await world.send("ada", "third", ordering_key="k")
    for _ in range(3):
        await world.step(seconds=1)
    assert [message.text for message in world.channel.sent] == ["first", "second", "third"]


async def test_a_rate_limit_does_not_stall_the_channel(store: Store, clock: ManualClock) -> None:
    """Slots that were reserved an hour ahead, of the channel and of the recipient, move with the clock."""
    options = {"per_second": 2, "keyed": True, "per_recipient": timedelta(seconds=2)}
    world = await ahead(store, clock, **options)
    for number in range(3):
        await world.send("ada", f"number {number}")
    await world.step()
    await beat(world)
    assert await corrected(world, seconds=1) == [], "the recipient still has to wait"
    for _ in range(2):
        await world.step(seconds=2.2)
    assert len(world.channel.sent) == 3


async def test_breakers_and_throttled_channels_wait_as_long_as_they_would_have(
    store: Store, clock: ManualClock
) -> None:
    """A minute for the breaker that five failures have opened; then one probe, then the others."""
    fails = [Retry(Category.TEMPORARY, "HTTP 500")] * 5
    world = await ahead(store, clock, *fails)
    for number in range(5):
        await world.send(f"ada-{number}")
    await world.step()
    await beat(world)
    assert await corrected(world, seconds=58) == []
    for _ in range(2):
        await world.step(seconds=300)
    assert len(world.channel.sent) == 10


async def test_what_one_process_does_for_all_is_not_left_undone(store: Store, clock: ManualClock) -> None:
    """A duty that was done a moment ago is due again a minute later, and not in an hour."""
    world = await ahead(store, clock)
    await store.write([Step("maintenance_join", {"name": "tidy"})])
    take = Step("maintenance_take", {"name": "tidy", "every": MINUTE, "node": world.worker.node.id})
    assert (await store.write([take]))[0]
    await corrected(world, seconds=58)
    assert not (await store.write([take]))[0]
    clock.advance(3)
    assert (await store.write([take]))[0]


async def test_what_a_dead_process_had_started_is_not_left_for_an_hour(store: Store, clock: ManualClock) -> None:
    """The reaper waits for the attempt's deadline, which counts from its start; then it is due."""
    world = await ahead(store, clock)
    await world.send("ada")
    node = world.worker.node.id
    wish = ClaimRequest({"main": 1}, 1, 0, frozenset(), frozenset(), frozenset())
    claimed = await store.claim(node, wish)
    if claimed.durable is not None:
        await claimed.durable
    assert await store.start(node, claimed.tasks)
    await corrected(world)
    [held] = await store.read("node_held", node=node, after=0, limit=10)
    assert max(held["started_at"], held["due_at"]) <= clock.now()


async def test_doctor_and_health_say_that_the_clock_was_set_back(store: Store, clock: ManualClock) -> None:
    """By how much, and which messages keep the times that they got; also when nobody works."""
    world = await ahead(store, clock)
    await world.send("ada")
    await world.send("bob", at=clock.now() + HOUR)
    clock.jump(-3600)
    now = clock.now()
    [mark] = await store.read("clock_high")
    [found] = await store.read("clock_affected", at=now)
    assert check_clock(timedelta(0), seen=mark["high"], now=now).status is FindingSeverity.ERROR
    [finding] = check_clock_change(found, now=now)
    assert "set back by 1 h: 2 messages and 0 schedules" in finding.message
    assert "the clock was set back by 1 h" in (await check_scheduler_health(store, clock)).reasons
    await beat(world)
    await world.step()
    [found] = await store.read("clock_affected", at=now)
    assert "1 messages" in check_clock_change(found, now=now)[0].message
    assert (await check_scheduler_health(store, clock)).healthy
