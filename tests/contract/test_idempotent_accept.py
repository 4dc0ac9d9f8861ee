"""One message with its idempotency key: one statement on PostgreSQL, with the meaning of a transaction."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.model.errors import InProgress
from tidings.model.task import NewTask
from tidings.model.time import SECOND
from tidings.outbound.message_validation import MESSAGE_COLUMNS
from tidings.store.port import EnqueueResult, IdempotencyRecord, Store, TableRows
from tidings.store.postgres import PostgresStore

from .test_store import node, queues, wish


def message(clock: ManualClock, id_: str = "m-1") -> TableRows:
    now = clock.now()
    return TableRows("messages", MESSAGE_COLUMNS, [(now, now, id_, "default", "q", "Ann", '{"text": "Hi"}', False)])


def once(clock: ManualClock, *, seconds: int = 60) -> IdempotencyRecord:
    return IdempotencyRecord("messages", "k", "digest", "answer", clock.now() + seconds * SECOND)


async def accept(store: Store, clock: ManualClock, id_: str = "m-1", *, seconds: int = 60) -> EnqueueResult:
    task = NewTask("q", "message", clock.now())
    return await store.enqueue([task], message(clock, id_), once=once(clock, seconds=seconds))


async def test_a_message_is_there_with_its_task_and_its_key(store: Store, clock: ManualClock) -> None:
    """B4: whoever repeats the call gets the first answer, and nothing more is written."""
    await queues(store, "q")
    me = await node(store)
    made = await accept(store, clock)
    again = await accept(store, clock, "m-2")

    assert again == EnqueueResult((), {"digest": "digest", "answer": "answer"})
    [claimed] = (await store.claim(me, wish())).tasks
    assert [claimed.id] == list(made.ids) and claimed.kind == "message"
    [found] = await store.load("message_load", [claimed.id])
    assert found[1] == "m-1"


async def test_a_key_that_has_run_out_is_used_anew(store: Store, clock: ManualClock) -> None:
    """B4: after its time it may be used again, and is kept from then on."""
    await queues(store, "q")
    first = await accept(store, clock, seconds=1)
    clock.advance(1)
    second = await accept(store, clock, "m-2")
    third = await accept(store, clock, "m-3")

    assert first.ids and second.ids and first.ids != second.ids
    assert third.earlier is not None


async def test_what_cannot_be_written_leaves_its_key_free(store: Store, clock: ManualClock) -> None:
    """All or none: neither task nor key of a message that the database refuses."""
    await queues(store, "q")
    me = await node(store)
    await accept(store, clock)
    taken = message(clock)  # its id is there already
    key = once(clock)._replace(key="another")
    with pytest.raises(Exception, match=r"(?i)unique"):
        await store.enqueue([NewTask("q", "message", clock.now())], taken, once=key)

    assert len((await store.claim(me, wish())).tasks) == 1
    assert not await store.read("idempotency_key_find", scope="messages", key="another")


async def test_fifty_at_once_with_one_key_are_one_message(postgres_url: str, clock: ManualClock) -> None:
    """B4: one is accepted; the others get its answer, or are told that it is under way."""
    store = PostgresStore(postgres_url, now=clock.now, connections=8)
    await store.open()
    await store.write(Lane("q").join())
    answers = await asyncio.gather(*(accept(store, clock, f"m-{i}") for i in range(50)), return_exceptions=True)
    rows = (await store.claim(await node(store), wish(50))).tasks
    await store.close()

    assert len(rows) == 1
    assert len([a for a in answers if isinstance(a, EnqueueResult) and a.ids]) == 1
    for answer in answers:
        assert isinstance(answer, InProgress | EnqueueResult), answer


async def test_a_concurrent_duplicate_that_committed_meanwhile_is_found(postgres_url: str, clock: ManualClock) -> None:
    """B4: the lock is free, and the statement began before the twin's commit: the conflict tells."""
    store = PostgresStore(postgres_url, now=clock.now, connections=4)
    await store.open()
    await store.write(Lane("q").join())
    twin, key = (
        "insert into idempotency_keys (scope, key, digest, answer, expires_at) values ($1, $2, $3, $4, $5)",
        once(clock),
    )
    async with store._connection() as connection:
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(twin, *key)
        waiting = asyncio.create_task(accept(store, clock))  # has the lock, and waits at the key
        while not await _is_waiting(store):
            pass  # asking is the wait
        await transaction.commit()
    answer = await waiting
    rows = (await store.claim(await node(store), wish())).tasks
    await store.close()

    assert answer == EnqueueResult((), {"digest": "digest", "answer": "answer"})
    assert not rows


async def _is_waiting(store: PostgresStore) -> bool:
    async with store._connection() as connection:
        return bool(await connection.fetchval("select exists (select 1 from pg_locks where not granted)"))


async def test_one_message_is_one_trip_to_the_server(postgres_url: str, clock: ManualClock) -> None:
    """Whoever accepts messages one by one pays for one statement each."""
    store = PostgresStore(postgres_url, now=clock.now, connections=1)
    await store.open()
    await store.write(Lane("q").join())
    asked: list[str] = []

    def note(query: Any) -> None:
        asked.append(query.query)

    async with store._connection() as connection:
        connection.add_query_logger(note)
    await accept(store, clock)
    trips = len(asked)
    await store.close()

    assert trips == 1, asked
