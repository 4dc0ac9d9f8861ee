"""Task groups: tasks that belong together are counted exactly, whatever moves them; rows may precede tasks."""

from __future__ import annotations

import asyncio
import random
from collections import Counter

import pytest

from tidings.kernel import task_actions as people
from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.worker import Worker
from tidings.model.errors import Conflict
from tidings.model.outcome import Skip
from tidings.model.task import NewTask, NodeId, Task, TaskState, Transition
from tidings.model.time import SECOND
from tidings.store.port import ClaimRequest, Step, Store, TableRows
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from .kernel_harness import KernelHarness


async def run(store: Store, sql: str) -> list[tuple[object, ...]]:
    """A statement of the test's own."""
    if isinstance(store, PostgresStore):
        async with store._connection() as connection:
            return [tuple(row) for row in await connection.fetch(sql)]
    assert isinstance(store, SqliteStore)
    rows: list[tuple[object, ...]] = await store._run(lambda connection: connection.execute(sql).fetchall())
    return rows


async def counted(store: Store) -> dict[object, int]:
    """What the counts say."""
    rows = await run(store, "select outcome, sum(n) from task_group_counts where group_id = 7 group by outcome")
    return {what: int(str(n)) for what, n in rows if n}


async def real(store: Store) -> dict[object, int]:
    """What the tasks themselves say."""
    rows = await run(store, "select state, unknown, cancel_requested from tasks where group_id = 7")
    words: Counter[object] = Counter()
    for state, unknown, asked in rows:
        if state == "failed":
            words["unknown" if unknown else "failed"] += 1
        elif state == "cancelled":
            words["cancelled" if asked else "skipped"] += 1
        elif state in ("done", "expired"):
            words[state] += 1
    return dict(words)


def _random_end(task: Task, chance: random.Random, now: int) -> Transition:
    to = chance.choice([TaskState.DONE, TaskState.DONE, TaskState.FAILED, TaskState.PENDING, TaskState.CANCELLED])
    unknown = chance.random() < 0.3 and to in (TaskState.FAILED, TaskState.PENDING)
    detail = None if chance.random() < 0.5 else "said"
    due = now if to is TaskState.PENDING else None
    return Transition(task.id, task.claim_no, to, task.attempts, due, None, detail, unknown)


@pytest.mark.parametrize("seed", range(6))
async def test_the_counts_of_a_lot_equal_its_tasks_whatever_moved_them(
    store: Store, clock: ManualClock, seed: int
) -> None:
    """Rule 17: settle, cancel, ask, retry, evidence, expiry, in any order; a lost claim counts nothing."""
    chance = random.Random(seed)
    await store.write(Lane("q").join())
    me = NodeId((await store.write([Step("node_join", {"name": "n", "info": "{}"})]))[0][0]["id"])
    expiry = clock.now() + 40 * SECOND
    ids = (await store.enqueue([NewTask("q", "k", clock.now(), expires_at=expiry) for _ in range(40)])).ids
    await run(store, "update tasks set group_id = 7 where id % 4 <> 0")
    for _ in range(30):
        clock.advance(1.5)
        match chance.choice(["claim", "claim", "cancel", "retry", "evidence", "expire"]):
            case "claim":
                claimed = await store.claim(me, ClaimRequest({"q": 8}, 8))
                if claimed.expired:
                    await people.expire_tasks(store, [task._asdict() for task in claimed.expired], me)
                for task in claimed.tasks[:2]:
                    await people.cancel(store, task.id, reason="asked")
                moves = [_random_end(task, chance, clock.now()) for task in claimed.tasks]
                if moves:
                    moves.append(moves[0]._replace(claim_no=99))  # somebody else's claim
                    await store.settle(me, moves)
            case "cancel":
                await people.cancel(store, chance.choice(ids), reason="by hand")
            case "retry":
                due, expires = clock.now(), clock.now() + 20 * SECOND
                await people.retry(store, chance.choice(ids), due_at=due, expires_at=expires, reason="again")
            case "evidence":
                await people.record_sent_evidence(store, chance.choice(ids), node=None, detail="a receipt")
            case _:
                rows = [{"id": id_, "queue": "q", "ordering_key": None, "attempts": 0} for id_ in ids[:5]]
                await people.expire_tasks(store, rows, me)
        assert await counted(store) == await real(store)
    assert sum((await counted(store)).values()) > 10


async def test_rows_can_be_kept_before_their_tasks(store: Store, clock: ManualClock) -> None:
    """Their ids are never given to others, so the tasks can be made of them later."""
    columns = ("accepted_at", "scheduled_at", "id", "tenant", "channel", "recipient", "content", "group_id", "part")
    values = [(1, 1, f"m{i}", "default", "q", f"user-{i}", "", 7, 0) for i in range(3)]

    first = (await store.enqueue([NewTask("q", "k", clock.now())])).ids
    kept = await store.keep(TableRows("messages", columns, values))
    later = (await store.enqueue([NewTask("q", "k", clock.now())])).ids
    again = await store.keep(TableRows("messages", columns, [(1, 1, "m9", "default", "q", "user-9", "", 7, 0)]))

    assert len({*first, *kept, *later, *again}) == 6
    assert sorted([*first, *kept, *later, *again]) == [*first, *kept, *later, *again]
    assert await run(store, "select count(*) from messages where group_id = 7") == [(4,)]


async def test_one_recipient_is_frozen_once_in_a_lot(store: Store) -> None:
    """The database itself refuses a duplicate, and then nothing of the page is kept."""
    columns = ("accepted_at", "scheduled_at", "id", "tenant", "channel", "recipient", "content", "group_id", "part")
    values = [(1, 1, f"m{i}", "default", "q", "ada", "", 7, 0) for i in range(2)]

    with pytest.raises(Exception, match=r"(?i)unique|duplicate"):
        await store.keep(TableRows("messages", columns, values))

    assert await run(store, "select count(*) from messages") == [(0,)]


async def test_a_skipped_message_ends_without_a_try(store: Store, clock: ManualClock) -> None:
    """It is final, its history says why, and nobody takes it for cancelled by a person."""
    world = await KernelHarness(store, clock, lambda _: Skip("only observed")).open()
    id_ = await world.send()

    await world.step()

    shown = await world.show(id_)
    assert (shown["state"], shown["attempts"]) == ("skipped", 0)
    assert shown["history"][-1]["detail"] == "only observed"
    assert "skipped" in (await world.why(id_)).answer
    other = await world.send(at=clock.now() + SECOND)
    await world.messages.cancel(other)
    assert [row["id"] for row in (await world.messages.page(state="skipped")).items] == [id_]
    assert [row["id"] for row in (await world.messages.page(state="cancelled")).items] == [other]


async def test_actors_step_and_are_stirred(store: Store, clock: ManualClock) -> None:
    """One step after the other; a wake_actors ends the wait, and an actor that fails is asked again."""
    import asyncio

    class Eager:
        name = "eager"
        steps = 0
        ran = asyncio.Event()

        async def step(self) -> float:
            self.steps += 1
            self.ran.set()
            if self.steps == 2:
                raise RuntimeError("once")
            return 3600.0

    world, actor = KernelHarness(store, clock), Eager()
    worker = Worker(store, clock, world.lanes, {}, emit=world.events.append, actors=[actor])
    worker.start()
    for expected in (1, 2, 3):
        async with asyncio.timeout(10):
            await actor.ran.wait()
        assert actor.steps == expected
        actor.ran.clear()
        worker.wake_actors()
    await worker.stop()


async def test_a_hint_does_not_make_a_pruner_look(store: Store, clock: ManualClock) -> None:
    """On a busy node hints come all the time; what is due once an hour must not run ten times a second."""

    class Counting:
        def __init__(self, name: str) -> None:
            self.name, self.steps, self.ran = name, 0, asyncio.Event()

        async def step(self) -> float:
            self.steps += 1
            self.ran.set()
            return 3600.0

    world, actor, pruner = KernelHarness(store, clock), Counting("actor"), Counting("pruner")
    worker = Worker(store, clock, world.lanes, {}, emit=world.events.append, actors=[actor], pruners=[pruner])
    worker.start()
    for _ in range(3):
        async with asyncio.timeout(10):
            await actor.ran.wait()
        actor.ran.clear()
        worker.wake_actors()
    await worker.stop()
    assert (pruner.steps, actor.steps >= 3) == (1, True)


async def test_a_frozen_message_can_be_looked_at_and_says_what_it_waits_for(store: Store, clock: ManualClock) -> None:
    """Before it has a task it stands as its broadcast stands, and moves only with it."""
    world = await KernelHarness(store, clock).open()
    await run(
        store,
        "insert into broadcasts (group_id, id, tenant, name, channel, state, reason, starts, content,"
        " options, accepted_at, changed_at) values (7, 'b1', 'default', 'n', 'main', 'paused', 'lunch',"
        """ 'manual', '{"text": "hi"}', '{}', 1, 1) returning group_id""",
    )
    columns = ("accepted_at", "scheduled_at", "id", "tenant", "channel", "recipient", "content", "group_id", "part")
    await store.keep(TableRows("messages", columns, [(1, 1, "m1", "default", "main", "ada", "", 7, 0)]))

    shown = await world.show("m1")

    assert (shown["state"], shown["text"]) == ("pending", "hi")
    assert "lunch" in (await world.why("m1")).answer
    with pytest.raises(Conflict, match="b1"):
        await world.messages.cancel("m1")
