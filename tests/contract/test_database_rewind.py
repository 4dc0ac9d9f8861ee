"""A database that has gone back: noticed by its nodes, told, and nothing is sent again without a flag.

A failover to an asynchronous standby loses the newest commits. `Tail` takes the tables back to an earlier
state in one transaction, as such a failover does; the last test does it with a real standby.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import asyncpg
import pytest

from tidings.doctor import FindingSeverity, check_standbys
from tidings.kernel.clock import ManualClock
from tidings.kernel.heartbeats import RewindDetected
from tidings.model.task import OnUnknown, TaskState, Transition
from tidings.model.time import HOUR
from tidings.observability.events import AlertRaised, DatabaseRewound, NodeFenced
from tidings.outbound.schedules.occurrence_builder import MessageOccurrenceBuilder
from tidings.outbound.schedules.scheduler import Scheduler
from tidings.outbound.schedules.service import ScheduleService
from tidings.store.port import ClaimRequest
from tidings.store.postgres import PostgresStore

from .kernel_harness import KernelHarness
from .test_alerts import watched

TABLES = ("nodes", "tasks", "history", "messages", "attempt_tallies", "idempotency_keys", "schedules", "occurrences")


class Tail:
    """What a failover loses: everything since `keep`."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    async def keep(self) -> None:
        """The standby has this, and gets nothing more."""
        for table in TABLES:
            await self._connection.execute(f"drop table if exists kept_{table}")
            await self._connection.execute(f"create temp table kept_{table} as select * from {table}")

    async def lose(self) -> None:
        """The standby is the primary now."""
        async with self._connection.transaction():
            for table in TABLES:
                await self._connection.execute(f"delete from {table}")
                await self._connection.execute(
                    f"insert into {table} overriding system value select * from kept_{table}"
                )


@pytest.fixture
async def store(postgres_url: str, clock: ManualClock) -> AsyncIterator[PostgresStore]:
    """A file cannot go back under the process that has it open: PostgreSQL only."""
    made = PostgresStore(postgres_url, now=clock.now, connections=4)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def tail(postgres_url: str) -> AsyncIterator[Tail]:
    """A connection of the test's own."""
    connection = await asyncpg.connect(postgres_url, server_settings={"search_path": "tidings"})
    yield Tail(connection)
    await connection.close()


def reconnects(world: KernelHarness) -> None:
    """Everything so far was on another server."""
    world.store.newest = {"the lost primary": max(world.store.newest.values(), default=0)}
    world.worker.node._server = "the lost primary"


async def goes_on(world: KernelHarness) -> None:
    """One heartbeat of the node, which recovers if it must; then a step-by-step node takes its place."""
    await world.worker._heartbeat_once()
    await world.worker.runner.stop()
    world.worker = world.node()
    await world.worker.node.join()


async def test_what_was_due_is_sent_again_only_as_unknown(store: PostgresStore, clock: ManualClock, tail: Tail) -> None:
    """Noticed with the next heartbeat; flagged, counted, told, and not before an attempt must have ended."""
    world = await KernelHarness(store, clock).open()
    await world.step()
    before = clock.now()
    ids = [await world.send(f"p{n}") for n in range(3)]
    later = await world.send("later", at=clock.now() + HOUR)
    await tail.keep()
    assert (await world.step(seconds=2)).claimed == 3
    await tail.lose()
    clock.advance(2)

    await goes_on(world)
    [event] = world.told(DatabaseRewound)
    assert isinstance(event, DatabaseRewound)
    assert (event.survived_at, event.found_at, event.unknown) == (before, clock.now(), 3)
    assert not world.told(NodeFenced)
    assert (await world.step()).claimed == 0, "an attempt may still be under way on the lost copy"
    assert (await world.step(seconds=11)).claimed == 3
    assert world.channel.ids == [*ids, *ids]
    shown = [await world.show(id_) for id_ in ids]
    assert [(row["state"], row["unknown"]) for row in shown] == [("sent", True)] * 3
    assert "may have it twice" in (await world.why(ids[0])).answer
    assert not (await world.show(later))["unknown"], "it was not due"


async def test_what_may_not_be_sent_twice_is_held_for_a_person(
    store: PostgresStore, clock: ManualClock, tail: Tail
) -> None:
    """The whole line of an order key, too, where only its first could have been claimed."""
    world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
    await world.step()
    ids = [await world.send("ada", ordering_key=key) for key in (None, "chat", "chat")]
    await tail.keep()
    assert (await world.step(seconds=2)).claimed == 2
    assert (await world.step()).claimed == 1, "the second of its key"
    await tail.lose()

    await goes_on(world)
    [event] = world.told(DatabaseRewound)
    assert isinstance(event, DatabaseRewound)
    assert event.unknown == 3
    for _ in range(3):
        assert (await world.step(seconds=20)).claimed == 0
    assert len(world.channel.sent) == 3
    shown = [await world.show(id_) for id_ in ids]
    assert [(row["state"], row["unknown"]) for row in shown] == [("failed", True)] * 3
    assert "uncertain: it may or may not have been sent" in (await world.why(ids[2])).answer


async def test_a_result_that_was_lost_is_not_taken_for_a_claim_that_had_not_begun(
    store: PostgresStore, clock: ManualClock, tail: Tail
) -> None:
    """The claim survived, its start mark and its result did not: the reaper must not give it back free."""
    world = await KernelHarness(store, clock, on_unknown=OnUnknown.HOLD).open()
    await world.step()
    id_ = await world.send()
    node = world.worker.node.id
    [task] = (await store.claim(node, ClaimRequest({"main": 1}, 1))).tasks
    await tail.keep()
    await world.worker.node.beat()
    await store.start(node, [task])
    await store.settle(node, [Transition(task.id, task.claim_no, TaskState.DONE, task.attempts)])
    await tail.lose()

    await goes_on(world)
    assert (await world.worker.reaper.step()).waiting == 1, "its node is dead, its deadline has not passed"
    clock.advance(11)
    assert (await world.worker.reaper.step()).unknown == 1
    assert ((shown := await world.show(id_))["state"], shown["unknown"]) == ("failed", True)


@pytest.mark.parametrize("lost", ["message", "claim", "result"])
async def test_a_loss_between_two_heartbeats_is_noticed_on_the_other_server(
    store: PostgresStore, clock: ManualClock, tail: Tail, lost: str
) -> None:
    """The number is as expected; the newest message, claim or result that this node saw is not there."""
    world = await KernelHarness(store, clock).open()
    node = world.worker.node
    if lost != "message":
        await world.send()
    await world.step(seconds=2) if lost == "message" else await node.beat()
    if lost == "result":
        [task] = (await store.claim(node.id, ClaimRequest({"main": 1}, 1))).tasks
        await tail.keep()
        await store.settle(node.id, [Transition(task.id, task.claim_no, TaskState.DONE, task.attempts)])
        node.see(task, settled=True)
    else:
        await tail.keep()
        await world.send() if lost == "message" else await world.worker.runner.step()
    await tail.lose()

    reconnects(world)
    assert not node.is_trusted, "nothing starts on another server before it was looked at"
    assert (await world.worker.runner.step()).claimed == 0
    for _ in range(2):
        with pytest.raises(RewindDetected):
            await node.beat()
        assert not node.is_trusted, "and nothing before this is settled"
    await goes_on(world)
    assert len(world.told(DatabaseRewound)) == 1


async def test_an_occurrence_that_was_made_on_the_lost_copy_is_made_again_as_unknown(
    store: PostgresStore, clock: ManualClock, tail: Tail
) -> None:
    """Its message did not survive; the schedule makes it again before anything is marked."""
    world = await KernelHarness(store, clock).open()
    makers = {"message": MessageOccurrenceBuilder(world.messages)}
    scheduler = Scheduler(store, clock, makers, rest=timedelta(0))
    world.worker.rewinds._task_creators = [scheduler]
    body = {"rule": {"every": "1h"}, "message": {"channel": "main", "to": "ada", "text": "hi"}}
    await ScheduleService(store, clock, makers).create(body, timezone=ZoneInfo("UTC"))
    await world.step(seconds=3598)
    await tail.keep()
    clock.advance(3)
    await scheduler.step()
    assert (await world.step()).claimed == 1
    await tail.lose()
    clock.advance(3)

    await goes_on(world)
    assert (await world.step()).claimed == 0
    assert (await world.step(seconds=11)).claimed == 1
    assert [(await world.show(id_))["unknown"] for id_ in world.channel.ids[1:]] == [True]


async def test_nothing_lost_raises_no_alarm(store: PostgresStore, clock: ManualClock) -> None:
    """A synchronous failover or a restart changes the server and nothing else: work goes on after a beat."""
    house = await watched(store, clock)
    world = house.world
    for _ in range(2):
        id_ = await world.send()
        await world.step(seconds=2)
        assert (await world.show(id_))["state"] == "sent"
        await world.send("later", at=clock.now() + HOUR)
        reconnects(world)
        assert not world.worker.node.is_trusted
        await world.worker._heartbeat_once()
        assert world.worker.node.is_trusted
    assert not world.told(DatabaseRewound)
    assert await house.raised() == set()


async def test_a_node_that_is_new_on_a_restored_database_has_nothing_to_compare(
    store: PostgresStore, clock: ManualClock, tail: Tail
) -> None:
    """All processes were stopped for the restore: no alarm, and a person decides as documented."""
    world = await KernelHarness(store, clock).open()
    await world.step()
    await world.send()
    await tail.keep()
    await world.step(seconds=2)
    await tail.lose()
    world.worker = world.node()
    await world.worker.node.join()
    assert await world.worker.rewinds.step()
    assert (await world.step(seconds=2)).claimed == 1
    assert not world.told(DatabaseRewound)


async def test_one_node_marks_and_the_others_wait_for_it(store: PostgresStore, clock: ManualClock, tail: Tail) -> None:
    """Every node notices; one works on it, and another takes over when that one has died."""
    world = await KernelHarness(store, clock).open()
    nodes = [world.worker, world.node(), world.node()]
    for other in nodes[1:]:
        await other.node.join()
    await tail.keep()
    for other in nodes:
        await other.node.beat()
    await tail.lose()
    for other in nodes:
        with pytest.raises(RewindDetected) as found:
            await other.node.beat()
        await other.rewinds.open(found.value)
    clock.advance(1)
    await world.send()
    first, second, _ = nodes
    await store.write([first.rewinds._take()])  # and is killed here
    assert not await second.rewinds.step()
    clock.advance(10)
    assert await second.rewinds.step()
    assert [await other.rewinds.step() for other in nodes] == [True, True, True]
    [event] = world.told(DatabaseRewound)
    assert isinstance(event, DatabaseRewound)
    assert (event.node, event.unknown) == (second.node.id, 0), "what came after it was found is not unknown"


async def test_the_alert_says_how_far_it_went_back_and_ends_after_a_day(
    store: PostgresStore, clock: ManualClock, tail: Tail
) -> None:
    """Raised by whichever process looks next, in words, with its runbook."""
    house = await watched(store, clock)
    world = house.world
    await world.step()
    for n in range(3):
        await world.send(f"p{n}")
    await tail.keep()
    await world.step(seconds=2)
    await tail.lose()
    await goes_on(world)

    assert await house.raised() == {"database_rewound"}
    [alert] = (await house.alerts.page()).items
    assert alert["severity"] == "critical"
    assert alert["problem"].endswith("; 3 tasks may have been sent already and are uncertain")
    [told] = await house.told()
    assert "tidings docs runbooks/database-rewound" in told
    assert len(world.told(AlertRaised)) == 1
    await world.step(seconds=86_400)
    await world.worker.node.beat()
    assert "database_rewound" not in await house.raised()


class TestDoctor:
    """`tidings doctor` warns of standbys that a failover would lose acknowledged messages to."""

    async def test_without_standbys_there_is_nothing_to_say(self, store: PostgresStore) -> None:
        """The statement needs no privilege."""
        assert [check_standbys(row) for row in await store.read("replication")] == [[]]

    @pytest.mark.parametrize(
        ("seen", "status", "what"),
        [
            ({"names": ""}, FindingSeverity.WARNING, "all asynchronous"),
            ({"names": "", "hidden": 1}, FindingSeverity.WARNING, "all asynchronous"),
            ({"commits": "local", "synchronous": 1}, FindingSeverity.WARNING, "all asynchronous"),
            ({"hidden": 1}, FindingSeverity.WARNING, "this role may not see"),
            ({"synchronous": 1}, FindingSeverity.OK, "synchronous: 1"),
        ],
    )
    def test_asynchronous_standbys_are_found_as_far_as_the_role_may_see(
        self, seen: dict[str, object], status: FindingSeverity, what: str
    ) -> None:
        """An ordinary role sees that they are there, and no more."""
        row = {"standbys": 1, "hidden": 0, "synchronous": 0, "names": "db2", "commits": "on", **seen}
        [finding] = check_standbys(row)
        assert finding.status is status and what in finding.message
