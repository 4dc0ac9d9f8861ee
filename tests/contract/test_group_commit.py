"""Group commit: one transaction for many callers, and each gets its own result."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from tidings.model.errors import StoreUnavailable
from tidings.model.task import NewTask
from tidings.store.port import EnqueueRequest, EnqueueResult, Step, Store, TableRows, WriteConflict
from tidings.store.postgres import PostgresStore
from tidings.store.request_batches import BatchedLookup, RequestBatcher, merge_steps


def hearing(number: int, message: str | None = None) -> Step:
    """The row of a message that was worked through: unique by message."""
    fields = {
        "message": message or f"m{number}", "tenant": "default", "conversation": f"crew/{number}",
        "squad": "34", "workflow": None, "decision": "noise", "reason": "talk", "deferred": None, "at": 1,
        "sent_at": 1,
        "speaker": "{}", "text": "hello", "facts": "[]",
    }  # fmt: skip
    return Step("handled_message_add", fields, needed=True)


def followup(number: int) -> tuple[NewTask, TableRows]:
    """A task with a row of its own."""
    return NewTask("inbound", "followup", 1, ordering_key=f"crew/{number}"), TableRows(
        "followups", ("plan",), [(f"p{number}",)]
    )


async def write(store: Store, number: int, message: str | None = None) -> EnqueueResult:
    """One creation that may share its commit."""
    task, rows = followup(number)
    return await store.enqueue([task], rows, also=[hearing(number, message)], together=True)


async def test_many_creations_share_a_commit_and_keep_their_rows(store: Store) -> None:
    """Each task has the row that was given with it, and the turn of its key."""
    done = await asyncio.gather(*[write(store, number) for number in range(20)])

    ids = [one.ids[0] for one in done]
    plans = dict([(row[0], row[1]) for row in await store.load("followup_load", ids)])
    assert [plans[id_] for id_ in ids] == [f"p{number}" for number in range(20)]
    assert len({row[0] for row in await heard(store)}) == 20


async def test_a_caller_that_lost_the_race_writes_nothing_and_affects_no_other(store: Store) -> None:
    """A message that was worked through before: nothing of it is written, all of the others' is."""
    await write(store, 3)
    done = await asyncio.gather(*[write(store, number) for number in range(8)], return_exceptions=True)

    assert [isinstance(one, WriteConflict) for one in done] == [number == 3 for number in range(8)]
    assert len(await heard(store)) == 8
    ids = [one.ids[0] for one in done if isinstance(one, EnqueueResult)]
    assert len(await store.load("followup_load", ids)) == 7


async def test_two_of_the_same_in_one_commit_are_one(store: Store) -> None:
    """Whoever comes second is outrun, also where both come at once."""
    done = await asyncio.gather(
        write(store, 1, "same"), write(store, 2, "same"), write(store, 3), return_exceptions=True
    )
    assert sum(isinstance(one, WriteConflict) for one in done) == 1
    assert len(await heard(store)) == 2


async def test_a_creation_that_no_database_takes_fails_alone(store: Store) -> None:
    """A text that cannot be stored is its own trouble."""
    bad = hearing(2)
    bad = bad._replace(params={**bad.params, "decision": None})
    done = await asyncio.gather(
        write(store, 1), store.enqueue([], also=[bad], together=True), write(store, 3), return_exceptions=True
    )
    assert [isinstance(one, EnqueueResult) for one in done] == [True, False, True]


async def test_a_lost_database_fails_the_whole_group_and_nothing_is_retried(postgres_url: str) -> None:
    """Perhaps it was written: only whoever asked may try again."""
    store = PostgresStore(postgres_url)
    tried: list[Sequence[EnqueueRequest]] = []

    async def lost(group: Sequence[EnqueueRequest]) -> list[EnqueueResult]:
        tried.append(group)
        raise StoreUnavailable("gone") from ConnectionError()

    store._creating._enqueue_together = lost  # type: ignore[method-assign]
    done = await asyncio.gather(*[write(store, number) for number in range(3)], return_exceptions=True)
    assert [type(one) for one in done] == [StoreUnavailable] * 3
    assert len(tried) == 1


async def heard(store: Store) -> list[tuple[str]]:
    """The messages that were worked through."""
    found = []
    for number in range(20):
        rows = await store.read(
            "handled_message_page", tenant="default", conversation=f"crew/{number}", after=0, limit=5
        )
        found += [(row["message"],) for row in rows]
    return found


def test_steps_of_one_name_run_at_a_time_and_each_line_keeps_its_order() -> None:
    """As few rounds as the lines allow."""

    def line(*names: str) -> list[Step]:
        return [Step(name, {}) for name in names]

    lines = [line("hear", "add", "end"), line("hear", "end"), line("hear", "move", "end"), line("move"), []]
    found = [(steps[0].name, len(steps)) for steps in merge_steps(lines)]
    assert found == [("hear", 3), ("add", 1), ("move", 2), ("end", 3)]
    assert [(steps[0].name, len(steps)) for steps in merge_steps([line("a", "b"), line("b", "a")])] == [
        ("a", 1), ("b", 2), ("a", 1),
    ]  # fmt: skip


async def test_what_is_asked_meanwhile_is_answered_together_and_never_earlier() -> None:
    """An answer begins after its question; a key is read once in a group; errors go to whoever asked."""
    groups: list[list[int]] = []
    first = asyncio.Event()

    async def read(keys: Sequence[int]) -> dict[int, int]:
        groups.append(list(keys))
        if len(groups) == 1:
            await first.wait()
        return {key: 10 * key for key in keys if key}

    lookup = BatchedLookup(read, most=3)
    one = asyncio.create_task(lookup.find(1))
    while not groups:  # noqa: ASYNC110  (until the first is under way)
        await asyncio.sleep(0)
    more = [asyncio.create_task(lookup.find(key)) for key in (1, 2, 2, 0)]
    await asyncio.sleep(0)
    more[1].cancel()
    first.set()

    assert await one == 10
    answers = await asyncio.gather(*more, return_exceptions=True)
    assert answers[0] == 10 and answers[2] == 20
    assert isinstance(answers[1], asyncio.CancelledError) and isinstance(answers[3], KeyError)
    assert groups == [[1], [1, 2], [0]]


async def test_a_failed_answer_reaches_every_waiting_caller() -> None:
    """And the next group is answered."""
    problems = [StoreUnavailable("away")]

    async def answer(questions: Sequence[int]) -> list[int | Exception]:
        if problems:
            raise problems.pop()
        return [-number for number in questions]

    together: RequestBatcher[int, int] = RequestBatcher(answer)
    failed = await asyncio.gather(together.ask(1), together.ask(2), return_exceptions=True)
    assert [type(one) for one in failed] == [StoreUnavailable] * 2
    assert await together.ask(3) == -3


@pytest.mark.parametrize("together", [True, False])
async def test_a_creation_without_tasks_is_its_steps(store: Store, together: bool) -> None:
    """Needed steps decide."""
    await store.enqueue([], also=[hearing(1)], together=together)
    with pytest.raises(WriteConflict):
        await store.enqueue([], also=[hearing(1)], together=together)
