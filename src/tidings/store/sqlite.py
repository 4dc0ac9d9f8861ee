"""The store on SQLite: one file, one working process, any number that accept and read.

Invariant: WAL with synchronous=FULL, and every acknowledgement after its COMMIT. Only the process that holds
the file's work lock claims; when it dies, the lock is released and the next process takes over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ..model.task import NewTask, NodeId, SettleResult, Task, TaskId, TaskState, Transition
from . import migrations
from .group_commit import GroupWriter, translate_sqlite_errors
from .port import (
    AttemptTally,
    ClaimRequest,
    ClaimResult,
    EnqueueResult,
    IdempotencyRecord,
    NextDue,
    OrderingKey,
    Row,
    Step,
    TableRows,
    ordering_keys,
    split_task_ids,
)
from .rate_limit_steps import read_free_times, read_rate_limit, reserve_steps
from .rate_limits import SlotAssignment, assign_slots
from .sqlite_claims import SqliteClaims
from .sqlite_files import FileLock, WakeSocket, connect, keep_private, refuse_unwritable
from .sqlite_steps import SqliteSteps, int_array
from .statements import load_statements
from .task_rows import task_rows
from .write_state import WriteState

T = TypeVar("T")


class SqliteStore:
    """`Store` on one SQLite file."""

    dialect = "sqlite"
    sole_worker = True
    server = ""  # a file cannot be replaced while the process has it open
    bulk = 1000  # written on the event loop's thread: more would delay due tasks

    def __init__(self, path: Path, *, now: Callable[[], int], inline: bool = False, patience: float = 10.0) -> None:
        self.path = path
        self.newest: dict[str, int] = {}
        self._now = now
        self._inline = inline
        self._patience = patience
        self.writes = WriteState()
        self._sql = load_statements("sqlite")
        self._steps = SqliteSteps(self._sql, now)
        self._claiming = SqliteClaims(self._steps, now)
        self._work = FileLock(path.with_name(path.name + ".work"))
        self._socket: WakeSocket | None = None
        self._writer: GroupWriter | None = None
        self._connection: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._watched: int | None = None

    # -- open and close

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Open the file, create the schema in an empty one, check schema and durability settings."""
        refuse_unwritable(self.path)
        with translate_sqlite_errors(started=False, folder=self.path.parent.resolve()):
            self._connection = connect(self.path, self._now)
            self._writer = GroupWriter(self._connection, inline=self._inline, patience=self._patience)
            self._connection.setbusytimeout(5000)
            with self._connection:
                self._connection.execute("begin immediate") if not self._connection.in_transaction else None
                migrations.migrate_sqlite(self._connection, upgrade=upgrade, create=create)
            self._connection.setbusytimeout(0 if not self._inline else 5000)
            self._reader = connect(self.path, self._now)
            self._reader.setbusytimeout(5000)
            self._reader.execute("pragma query_only = on")  # all writes go through the group writer
            keep_private(self.path)
        self._socket = WakeSocket(self.path.with_name(self.path.name + ".wake"))

    async def close(self) -> None:
        """Finish the last group, then close."""
        if self._watched is not None:
            asyncio.get_running_loop().remove_reader(self._watched)
            self._watched = None
        if self._writer is not None:
            await self._writer.close()
        for connection in (self._reader, self._connection):
            if connection is not None:
                connection.close()
        if self._socket is not None:
            self._socket.close()
        self._writer = self._connection = self._reader = self._socket = None
        self._work.free()

    async def damage(self) -> list[str]:
        """Return the findings of SQLite's quick_check."""
        assert self._reader is not None
        with translate_sqlite_errors():
            found = [str(row[0]) for row in self._reader.execute("pragma quick_check(20)")]
        return [line for line in found if line != "ok"]

    def may_work(self) -> bool:
        """Take the file's work lock if it is free."""
        return self._work.take()

    # -- statements

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement on the reading connection."""
        assert self._reader is not None
        with translate_sqlite_errors():
            return self._steps.rows(self._reader, name, params)

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        assert self._reader is not None
        with translate_sqlite_errors():
            rows: Sequence[Sequence[Any]] = self._reader.execute(self._sql[name].sql, (int_array(ids),)).fetchall()
            return rows

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        answer: list[list[Row]] = await self._run(lambda connection: self._steps.run_all(connection, steps))
        return answer

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderingKey]) -> list[list[Row]]:
        def work(connection: apsw.Connection) -> list[list[Row]]:
            done = self._steps.run_all(connection, steps)
            self._steps.pass_turn(connection, keys, demote=True)
            return done

        return await self._run(work)

    async def _run(self, work: Callable[[apsw.Connection], T], *, is_routine: bool = False) -> T:
        assert self._writer is not None
        with self.writes.noted():
            answer = await self._writer.run(work, is_routine=is_routine)
        self.writes.wrote()
        return answer

    # -- the three verbs

    async def enqueue(
        self,
        tasks: Sequence[NewTask],
        *rows: TableRows,
        once: IdempotencyRecord | None = None,
        also: Sequence[Step] = (),
        together: bool = False,
    ) -> EnqueueResult:
        """Insert tasks and the domain's rows in one transaction; commits are always shared."""

        def work(connection: apsw.Connection) -> EnqueueResult:
            if once is not None:
                used = {"scope": once.scope, "key": once.key}
                earlier = self._steps.rows(connection, "idempotency_key_find", used)
                if earlier:
                    return EnqueueResult((), earlier[0])
            now, ids = self._now(), self._next_ids(connection, len(tasks))
            connection.executemany(self._sql["enqueue_one"].sql, task_rows(tasks, ids, now))
            for own, its_ids in split_task_ids(rows, ids):
                _insert(connection, own, its_ids)
            self._steps.pass_turn(connection, ordering_keys(tasks), demote=True)
            self._steps.run_all(connection, also)
            if once is not None:
                self._steps.rows(connection, "idempotency_key_keep", once._asdict())
            return EnqueueResult(ids)

        answer: EnqueueResult = await self._run(work)
        self.writes.stored(answer.ids)
        return answer

    def _next_ids(self, connection: apsw.Connection, n: int) -> list[TaskId]:
        last: Any = connection.execute(self._sql["last_id"].sql).fetchone()
        first = 1 if last is None else int(last[0]) + 1
        return [TaskId(id_) for id_ in range(first, first + n)]

    async def keep(self, rows: TableRows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Insert the domain's rows under new ids; their tasks are created later."""

        def work(connection: apsw.Connection) -> Sequence[TaskId]:
            self._steps.run_all(connection, also)
            ids = self._next_ids(connection, len(rows.values))
            if ids:
                connection.execute(self._sql["keep_ids"].sql, (ids[-1],))
                _insert(connection, rows, ids)
            return ids

        answer: Sequence[TaskId] = await self._run(work)
        self.writes.stored(answer)
        return answer

    async def claim(self, node: NodeId, request: ClaimRequest) -> ClaimResult:
        """Check on the reading connection first, so that an empty poll blocks no one; then claim."""
        assert self._reader is not None and self._writer is not None
        with translate_sqlite_errors():
            if not self._claiming.is_anything_due(self._reader, request):
                return ClaimResult([], [])
        work = partial(self._claiming.claim, node=node, request=request)
        claimed, durable = await self._writer.run_ahead(work)
        return claimed._replace(durable=durable)

    async def take_slots(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> SlotAssignment:
        """Reserve slots in the writer's transaction."""

        def work(connection: apsw.Connection) -> SlotAssignment:
            held = self._steps.rows(connection, "rate_limit_lock", {"queue": queue})
            [found] = self._steps.run_all(connection, [read_free_times(queue, line)])
            free = {row["key"]: row["next_at"] for row in found}
            turns = assign_slots(read_rate_limit(held), line, free, gap, self._now())
            self._steps.run_all(connection, reserve_steps(queue, turns))
            return turns

        return await self._run(work)

    async def next_due(self, queues: Collection[str]) -> NextDue:
        assert self._reader is not None
        with translate_sqlite_errors():
            return self._claiming.next_due(self._reader, queues)

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        def work(connection: apsw.Connection) -> set[TaskId]:
            now, sql = self._now(), self._sql["start_one"].sql
            return {
                task.id for task in tasks if connection.execute(sql, (now, task.id, node, task.claim_no)).fetchall()
            }

        return await self._run(work)

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderingKey] = (),
        tally: Sequence[AttemptTally] = (),
        also: Sequence[Step] = (),
    ) -> list[SettleResult]:
        def work(connection: apsw.Connection) -> list[SettleResult]:
            now, before = self._now(), connection.total_changes()
            answers = self._settle_plain(connection, node, moves, now) or [
                self._settle_one(connection, node, move, now) for move in moves
            ]
            if not moves or connection.total_changes() > before:  # a repeated settle counts nothing
                connection.executemany(
                    self._sql["attempt_tally_add"].sql,
                    [(now, count.queue, count.what, count.n, count.ms) for count in tally],
                )
            self._steps.run_all(connection, also)
            self._steps.pass_turn(connection, keys, demote=False)
            return answers

        answer: list[SettleResult] = await self._run(work, is_routine=not also)
        self.writes.stored(SettleResult.KEPT in answer)
        return answer

    def _settle_plain(
        self, connection: apsw.Connection, node: NodeId, moves: Sequence[Transition], now: int
    ) -> list[SettleResult] | None:
        """Settle the common case in bulk; None if a transition is not plain or a claim is lost."""
        if any(move.to is not TaskState.DONE or move.unknown for move in moves):
            return None
        connection.execute("savepoint plain")
        fences = int_array([move.id << 16 | move.claim_no & 0xFFFF for move in moves])
        connection.execute(self._sql["settle_done"].sql, (now, fences, node))
        if connection.changes() != len(moves):
            connection.execute("rollback to plain")
            connection.execute("release plain")
            return None
        connection.execute("release plain")
        if any(move.detail is not None for move in moves):
            connection.executemany(
                self._sql["record"].sql,
                [(m.id, "processing", "done", m.attempts, node, None, m.detail, now) for m in moves],
            )
        else:
            connection.execute(self._sql["record_done"].sql, (node, now, int_array([m.id for m in moves])))
        return [SettleResult.KEPT] * len(moves)

    def _settle_one(self, connection: apsw.Connection, node: NodeId, move: Transition, now: int) -> SettleResult:
        statement = self._sql["settle_one"]
        params = {**move._asdict(), "state": move.to.value, "node": node, "now": now}
        row = connection.execute(statement.sql, statement.bind(params)).fetchone()
        if row is None:
            look = self._steps.rows(connection, "task_look", {"id": move.id})
            ours = look and look[0]["state"] == move.to and look[0]["claim_no"] == move.claim_no
            return SettleResult.KEPT if ours else SettleResult.CLAIM_LOST
        connection.execute(
            self._sql["record"].sql,
            (move.id, "processing", row[1], move.attempts, node, move.category, move.detail, now),
        )
        return SettleResult.KEPT if row[1] == move.to else SettleResult.CANCELLED

    # -- hints

    async def hint(self) -> None:
        """Send one datagram to the working process."""
        if self._socket is not None:
            self._socket.send()

    def on_hint(self, wake: Callable[[], None]) -> None:
        """Receive hints; only the working process does."""
        assert self._socket is not None
        if self._watched is None and (descriptor := self._socket.listen()) is not None:
            self._watched = descriptor
            asyncio.get_running_loop().add_reader(descriptor, self._hinted, wake)

    def _hinted(self, wake: Callable[[], None]) -> None:
        if self._socket is not None:
            self._socket.drain()
        wake()

    async def backup(self, target: Path) -> None:
        """Write a consistent copy while work continues."""
        assert self._reader is not None
        with translate_sqlite_errors():
            destination = apsw.Connection(str(target))
            try:
                with destination.backup("main", self._reader, "main") as copy:
                    while not copy.done:
                        copy.step(1000)
                        await asyncio.sleep(0)
            finally:
                destination.close()


def _insert(connection: apsw.Connection, rows: TableRows, ids: Sequence[TaskId]) -> None:
    """Insert a domain's rows: names come from the domain's code, never from a caller."""
    columns = ("task", *rows.columns)
    marks = ", ".join("?" * len(columns))
    sql = f"insert into {rows.table} ({', '.join(columns)}) values ({marks})"  # noqa: S608
    connection.executemany(sql, [(id_, *values) for id_, values in zip(ids, rows.values, strict=True)])
