"""The schema: numbered migrations, one table of moves, plans that use their index."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from tidings.kernel import task_actions as people
from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.task_actions import TaskActionResult
from tidings.model.errors import InProgress, StoreUnavailable, StoreUnusable
from tidings.model.task import TRANSITIONS, NewTask, NodeId, Task, TaskState, Transition, can_transition
from tidings.model.time import SECOND
from tidings.store import migrations
from tidings.store.migrations import load_migrations, pending_migrations
from tidings.store.port import ClaimRequest, IdempotencyRecord, Step, Store
from tidings.store.postgres import PostgresStore
from tidings.store.postgres_server import refuse_unsafe
from tidings.store.sqlite import SqliteStore
from tidings.store.statements import load_statements

HOT = (
    "claim_some",
    "record_claims",
    "settle_one",
    "settle_done",
    "record_done",
    "start_one",
    "near",
    "heads",
    "promote",
    "demote",
)


def test_both_dialects_have_the_same_migrations() -> None:
    """Numbered from one, without a hole, under the same names."""
    names = [migration.name for migration in load_migrations("sqlite")]
    assert names == [migration.name for migration in load_migrations("postgres")]
    assert [m.number for m in load_migrations("sqlite")] == list(range(1, len(names) + 1))


def test_a_database_newer_than_the_code_is_refused() -> None:
    """With what to do about it."""
    with pytest.raises(StoreUnusable, match=r"newer than this program.*upgrade tidings"):
        pending_migrations("sqlite", {9999: ("9999_future", "x")}, upgrade=True)


def test_a_changed_migration_is_refused() -> None:
    """What was applied must be what the file says."""
    with pytest.raises(StoreUnusable, match="differs from the one"):
        pending_migrations("sqlite", {1: ("0001_schema", "another checksum")}, upgrade=True)


def test_an_old_database_is_upgraded_only_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup comes first: a newer program refuses the older schema until it is told to upgrade."""
    (first,) = load_migrations("sqlite")
    second = migrations.SchemaMigration(2, "0002_more", "create table more (n integer);")
    monkeypatch.setattr(migrations, "load_migrations", lambda _dialect: [first, second])
    have = {first.number: (first.name, first.checksum)}

    with pytest.raises(StoreUnusable, match="tidings db upgrade"):
        pending_migrations("sqlite", have, upgrade=False)
    assert pending_migrations("sqlite", have, upgrade=True) == [second]
    have[second.number] = (second.name, second.checksum)
    assert pending_migrations("sqlite", have, upgrade=False) == []


async def test_opening_twice_changes_nothing(store: Store, tmp_path: Path, clock: ManualClock) -> None:
    """The second open finds everything applied."""
    applied = await tables(store)
    again = again_on(store, clock)
    await again.open()
    assert applied == await tables(again)
    await again.close()


async def test_four_processes_bring_up_one_empty_database(bare_postgres_url: str) -> None:
    """A lock makes one of them do it."""
    stores = [PostgresStore(bare_postgres_url, connections=2) for _ in range(4)]
    await asyncio.gather(*(store.open() for store in stores))
    for store in stores:
        assert await store.read("node_list") == []
        await store.close()


@pytest.mark.parametrize("name", ["fsync", "full_page_writes"])
async def test_unsafe_server_settings_are_refused(
    postgres_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Durability is decided by the server, so it is read back."""
    asked: list[str] = []

    class Server:
        def get_server_version(self) -> Any:
            return type("V", (), {"major": 15})

        async def fetchval(self, _sql: str, setting: str) -> str:
            asked.append(setting)
            return "off" if setting == name else "on"

    with pytest.raises(StoreUnusable, match=f"{name} = off"):
        await refuse_unsafe(Server())


async def test_synchronous_commit_off_is_refused(postgres_url: str) -> None:
    """Seen on a real connection."""
    import asyncpg

    connection = await asyncpg.connect(postgres_url)
    database = await connection.fetchval("select current_database()")
    await connection.execute(f'alter database "{database}" set synchronous_commit = off')
    await connection.close()
    store = PostgresStore(postgres_url)
    with pytest.raises(StoreUnusable, match="synchronous_commit = off"):
        await store.open()


async def test_a_server_that_is_not_there_is_said_in_one_sentence() -> None:
    """Temporary, with a remedy."""
    with pytest.raises(StoreUnavailable, match="check that the server is running"):
        await PostgresStore("postgresql://nobody@127.0.0.1:1/none").open()


async def test_a_concurrent_request_with_the_same_key_is_answered_immediately(
    postgres_url: str, clock: ManualClock
) -> None:
    """Fifty calls with one key at the same time: one is accepted, the others replay or are told (B4)."""
    store = PostgresStore(postgres_url, now=clock.now, connections=8)
    await store.open()
    await store.write(Lane("q").join())
    once = IdempotencyRecord("messages", "k", "d", "first", clock.now() + 60 * SECOND)
    task = NewTask("q", "k", clock.now())
    answers = await asyncio.gather(*(store.enqueue([task], once=once) for _ in range(50)), return_exceptions=True)
    await store.close()
    accepted = [a for a in answers if not isinstance(a, BaseException) and a.ids]
    assert len(accepted) == 1
    for answer in answers:
        if isinstance(answer, BaseException):
            assert isinstance(answer, InProgress)
        elif answer not in accepted:
            assert answer.earlier is not None


def test_every_statement_has_a_purpose_and_is_short() -> None:
    """One statement per file, at most 60 lines, its purpose on top."""
    import tidings.store

    for file in (Path(tidings.store.__file__).parent / "sql").rglob("*.sql"):
        text = file.read_text()
        assert text.startswith("-- "), file
        assert len(text.splitlines()) <= 70, file
        assert ";" not in re.sub(r"--[^\n]*", "", text), f"{file} has more than one statement"
        if file.parent.name != "both":
            assert "Own file" in text, f"{file} does not say why it is not for both"


async def test_the_hot_statements_use_their_index_on_sqlite(tmp_path: Path) -> None:
    """No scan of the whole table."""
    store = SqliteStore(tmp_path / "t.db", now=lambda: 0, inline=True)
    await store.open()
    assert store._connection is not None
    for name in (*HOT, "node_held", "message_find", "message_window", "message_ended", "message_to", "history_of"):
        statement = load_statements("sqlite")[name]
        plan = [
            row[3]
            for row in store._connection.execute("explain query plan " + statement.sql, (None,) * len(statement.names))
        ]
        scans = [line for line in plan if re.match(r"SCAN (tasks|messages|history)\b(?! USING)", line)]
        assert not scans, f"{name}: {plan}"
    await store.close()


async def test_a_statement_is_planned_once_and_not_at_every_call_on_sqlite(tmp_path: Path) -> None:
    """A11: with other values next to a partial index SQLite used to plan it anew each time it ran."""
    store = SqliteStore(tmp_path / "t.db", now=lambda: 0, inline=True)
    await store.open()
    assert store._connection is not None
    planned: list[int] = []  # SQLite asks for leave while it plans, and only then

    def may(what: int, *_: object) -> int:
        planned.append(what)
        return int(apsw.SQLITE_OK)

    store._connection.authorizer = may
    for name in ("heads", "near", "message_window", "job_batch_check", "job_record_range"):
        statement = load_statements("sqlite")[name]
        seen = []
        for value in range(3):
            store._connection.execute(statement.sql, (value,) * len(statement.names)).fetchall()
            seen.append(len(planned))
        assert 0 < seen[0] == seen[2], f"{name} was planned again"
    await store.close()


async def test_the_hot_statements_use_their_index_on_postgres(postgres_url: str) -> None:
    """No sequential scan of a table that grows."""
    store = PostgresStore(postgres_url)
    await store.open()
    grows = ("tasks", "messages", "history")
    names = ("claim", "settle", "settle_done", "start", "next_due", "node_held", "message_find",
             "message_window",
             "message_ended", "message_to", "history_of", "promote_all", "demote",
            "message_load")  # fmt: skip
    async with store._connection() as connection:
        for name in names:
            statement = load_statements("postgres")[name]
            nulls = ", ".join("null" for _ in statement.names)
            await connection.execute(f"prepare p as {statement.sql}")
            plan = "\n".join(
                row[0]
                for row in await connection.fetch(f"explain execute p({nulls})" if nulls else "explain execute p")
            )
            await connection.execute("deallocate p")
            for table in grows:
                assert not re.search(rf"Seq Scan on {table}\b", plan), f"{name}:\n{plan}"
    await store.close()


@pytest.mark.parametrize("origin", list(TaskState))
async def test_every_pair_of_states_moves_as_the_table_says(
    store: Store, clock: ManualClock, origin: TaskState
) -> None:
    """A person's and a rule's moves, tried from each state: legal ones happen, others change nothing (A6)."""
    await store.write(Lane("q").join())
    node = NodeId((await store.write([Step("node_join", {"name": "n", "info": "{}"})]))[0][0]["id"])
    wishes: dict[TaskState, Callable[[int], Awaitable[tuple[TaskActionResult, object]]]] = {
        TaskState.CANCELLED: lambda id_: people.cancel(store, id_, reason="test"),
        TaskState.PENDING: lambda id_: people.retry(store, id_, due_at=clock.now(), expires_at=None, reason="test"),
    }
    for to, wish in wishes.items():
        id_ = await put(store, clock, node, origin)
        answer, _ = await wish(id_)
        found = (await people.get_task(store, id_) or {})["state"]
        legal = can_transition(origin, to) and origin is not TaskState.PROCESSING
        assert (answer is TaskActionResult.DONE) == legal
        assert found == (to if legal else origin)
    id_ = await put(store, clock, node, origin, unknown=True)
    moved = await people.record_sent_evidence(store, id_, node=None, detail="a receipt")
    assert moved == (origin in (TaskState.PENDING, TaskState.FAILED)), "evidence settles what waits or is in doubt"
    id_ = await put(store, clock, node, origin)
    expired = (await store.write([Step("expire", {"id": id_, "now": clock.now() + 9 * SECOND})]))[0]
    assert bool(expired) == (origin is TaskState.PENDING)


def test_a_certain_failure_is_not_undone_by_evidence_alone() -> None:
    """Only pending and failed(unknown) may become done without a claim; final states have no way out."""
    assert frozenset(TaskState) - frozenset(TRANSITIONS) == {TaskState.DONE, TaskState.CANCELLED, TaskState.EXPIRED}


async def put(store: Store, clock: ManualClock, node: NodeId, state: TaskState, *, unknown: bool = False) -> int:
    """A task in a given state, brought there by legal moves only."""
    expires = clock.now() + 5 * SECOND
    id_ = (await store.enqueue([NewTask("q", "k", clock.now(), expires_at=expires)])).ids[0]
    if state is TaskState.PENDING:
        await store.write([Step("queue_pause", {"name": "q", "reason": "t"})])
        await store.write([Step("queue_resume", {"name": "q"})])
        return id_
    if state is TaskState.CANCELLED:
        await people.cancel(store, id_, reason="set up")
        return id_
    if state is TaskState.EXPIRED:
        await store.write([Step("expire", {"id": id_, "now": expires})])
        return id_
    claimed = await store.claim(node, ClaimRequest({"q": 100}, 100))
    task = next(task for task in claimed.tasks if task.id == id_)
    others = [t for t in claimed.tasks if t.id != id_]
    await store.settle(node, [_move(t, TaskState.CANCELLED) for t in others])
    if state is not TaskState.PROCESSING:
        await store.settle(node, [_move(task, state, unknown=unknown)])
    return id_


def _move(task: Task, to: TaskState, *, unknown: bool = False) -> Transition:
    return Transition(task.id, task.claim_no, to, task.attempts, unknown=unknown)


async def tables(store: Store) -> list[str]:
    """The names of all tables."""
    if isinstance(store, SqliteStore):
        assert store._reader is not None
        return sorted(str(r[0]) for r in store._reader.execute("select name from sqlite_master"))
    assert isinstance(store, PostgresStore)
    async with store._connection() as connection:
        rows = await connection.fetch("select tablename from pg_tables where schemaname = 'tidings'")
        return sorted(row[0] for row in rows)


def again_on(store: Store, clock: ManualClock) -> Store:
    """A second store on the same database."""
    if isinstance(store, SqliteStore):
        return SqliteStore(store.path, now=clock.now, inline=True)
    assert isinstance(store, PostgresStore)
    return PostgresStore(store._dsn, now=clock.now)
