"""Every call to the store fails once: not done and failed, and done and failed (R3, R4, F10, F11, F15).

The process lives on, so there is no excuse at all: each attempt is made exactly once, nothing stays at work,
and no slot is lost. Runs go on with the next call until one ends without having met its fault.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tidings.kernel import retry
from tidings.kernel.clock import SystemClock
from tidings.kernel.lanes import Lane
from tidings.kernel.runner import RunnerOptions
from tidings.kernel.worker import Worker
from tidings.model.errors import StoreUnavailable
from tidings.model.outcome import Done, Outcome, Retry
from tidings.model.task import Category, NewTask, OnUnknown, Task, TaskId, Transition
from tidings.store.port import Step, Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from ..time_limits import Limit, within
from .conftest import Note
from .databases import Database, SqliteFile
from .rig import IS_FULL

pytestmark = pytest.mark.crash

VERBS = frozenset({"read", "load", "write", "claim", "start", "next_due", "settle", "change"})
STRIDE = 1 if IS_FULL else 6
POLICY = retry.parse_policy("quick", {"backoff": "fixed", "initial_delay": "20ms", "max_attempts": 50})


class Faulty:
    """A store whose n-th call fails, before or after it was done."""

    def __init__(self, store: Store, nth: int, *, is_done: bool) -> None:
        self._store = store
        self._left = nth
        self._is_done = is_done
        self.failed: str | None = None

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._store, name)
        return self._watched(name, real) if name in VERBS else real

    def _watched(self, name: str, real: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def call(*arguments: Any, **options: Any) -> Any:
            self._left -= 1
            if self._left:
                return await real(*arguments, **options)
            self.failed = f"{name} {arguments[0] if name == 'read' else ''}"
            if self._is_done:
                await real(*arguments, **options)
            raise StoreUnavailable(f"{name} failed on purpose")

        return call


class Counting:
    """A handler that counts attempts; every fifth task must be tried twice."""

    listens = False

    def __init__(self) -> None:
        self.attempts: Counter[TaskId] = Counter()

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, Any]:
        """Nothing to load, but it takes a moment, in which the next claim is already made."""
        await asyncio.sleep(0.01)
        return {task.id: None for task in tasks}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Nothing to add."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """One attempt."""
        self.attempts[task.id] += 1
        await asyncio.sleep(0.002)
        if task.id % 5 == 0 and self.attempts[task.id] == 1:
            return Retry(Category.TEMPORARY, "once more")
        return Done()


@pytest.fixture
async def store(database: Database) -> Any:
    """The database's store, opened."""
    made: Store = (
        SqliteStore(database.path, now=SystemClock().wall)
        if isinstance(database, SqliteFile)
        else PostgresStore(database.url)
    )
    await made.open()
    yield made
    await made.close()


async def run_with(store: Store, faulty: Faulty, database: Database, lane: Lane) -> None:
    """Work through some tasks, three of them under suspicion, until all are done; then stop."""
    now = SystemClock().wall()
    ids = (await store.enqueue([NewTask("q", "k", now) for _ in range(20)])).ids
    await database.rows(f"update {{0}}tasks set crashes = 2 where id in ({ids[1]}, {ids[2]}, {ids[7]}) returning id")
    handler = Counting()
    worker = Worker(
        faulty, SystemClock(), {"q": lane}, {"k": handler}, emit=lambda event: None,
        options=RunnerOptions(concurrency=8, poll_interval=timedelta(milliseconds=50)),
        node_timeout=timedelta(seconds=30), heartbeat_interval=timedelta(milliseconds=50),
    )  # fmt: skip
    worker.start()
    limit = Limit(20)
    while (await database.rows("select count(*) from {0}tasks where state <> 'done'"))[0][0]:
        if limit.is_over():
            break
        await asyncio.sleep(0.02)
    load = worker.runner.load
    assert (faulty.failed, load["in_flight"]) == (faulty.failed, 0), "a slot was lost"
    async with within(20):
        await worker.stop()
    expected = {id_: 2 if id_ % 5 == 0 else 1 for id_ in ids}
    states = await database.rows("select state, count(*) from {0}tasks where state <> 'done' group by state")
    assert (faulty.failed, [tuple(row) for row in states]) == (faulty.failed, [])
    assert (faulty.failed, dict(handler.attempts)) == (faulty.failed, expected)


@pytest.mark.parametrize("is_done", [False, True], ids=["not done and failed", "done and failed"])
@pytest.mark.parametrize("on_unknown", [OnUnknown.RESEND, OnUnknown.HOLD])
async def test_no_failing_call_repeats_or_loses_an_attempt(
    store: Store, database: Database, on_unknown: OnUnknown, is_done: bool, note: Note
) -> None:
    """Whatever call fails, each attempt is made once (F10, F11)."""
    lane = Lane("q", POLICY, on_unknown)
    met: Counter[str] = Counter()
    nth = 1
    while True:
        faulty = Faulty(store, nth, is_done=is_done)
        await run_with(store, faulty, database, lane)
        if faulty.failed is None:
            break
        met[faulty.failed.split()[0]] += 1
        nth += STRIDE
    note(runs=sum(met.values()), failed=dict(met))

    assert not IS_FULL or (met["claim"] and met["settle"]), (
        "the calls that count never failed: this run proves nothing (R7)"
    )
