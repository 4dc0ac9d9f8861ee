"""The store on SQLite: one file, one working process, any number that accept and read.

Invariant: WAL with synchronous FULL, and every acknowledgement after its COMMIT. The process that
holds the file's work lock is the only one that claims; when it dies the lock is free and the next takes over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from ..model.task import NewTask, NodeId, Settled, State, Task, TaskId, Transition
from . import migrations
from .claiming import Claiming
from .connecting import connect, keep_private, refuse_unwritable
from .file_steps import FileSteps, int_array
from .files import FileLock, WakeSocket
from .groups import GroupWriter, translated
from .pacing import Turns, share_out
from .port import Claimed, Enqueued, NextDue, Once, OrderKey, Row, Rows, Step, Tally, Wish, order_keys, shares
from .statements import statements
from .task_rows import task_rows
from .turns import pace_of, taken, when_free
from .writes import WriteState


class SqliteStore:
    """`Store` on one SQLite file."""

    dialect = "sqlite"
    sole_worker = True
    server = ""  # a file cannot be replaced under the process that has it open
    bulk = 1000  # they are written on the loop's own thread: more would make what is due wait

    def __init__(
        self, path: Path, *, now: Callable[[], int], inline: bool = False, patience: float = 10.0
    ) -> None:
        self.path = path
        self.newest: dict[str, int] = {}
        self._now = now
        self._inline = inline
        self._patience = patience
        self.writes = WriteState()
        self._sql = statements("sqlite")
        self._steps = FileSteps(self._sql, now)
        self._claiming = Claiming(self._steps, now)
        self._work = FileLock(path.with_name(path.name + ".work"))
        self._socket: WakeSocket | None = None
        self._writer: GroupWriter | None = None
        self._connection: apsw.Connection | None = None
        self._reader: apsw.Connection | None = None
        self._watched: int | None = None

    # -- life

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Open the file, bring up an empty one, check the schema and the durability settings."""
        refuse_unwritable(self.path)
        with translated(started=False):
            self._connection = connect(self.path, self._now)
            self._writer = GroupWriter(self._connection, inline=self._inline, patience=self._patience)
            self._connection.setbusytimeout(5000)
            with self._connection:
                self._connection.execute("begin immediate") if not self._connection.in_transaction else None
                migrations.on_sqlite(self._connection, upgrade=upgrade, create=create)
            self._connection.setbusytimeout(0 if not self._inline else 5000)
            self._reader = connect(self.path, self._now)
            self._reader.setbusytimeout(5000)
            self._reader.execute("pragma query_only = on")  # whatever writes goes through the group
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
        """SQLite's own check of its pages and indexes."""
        assert self._reader is not None
        with translated():
            found = [str(row[0]) for row in self._reader.execute("pragma quick_check(20)")]
        return [line for line in found if line != "ok"]

    def may_work(self) -> bool:
        """Take the file's work lock if it is free."""
        return self._work.take()

    # -- statements

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement on the reading connection."""
        assert self._reader is not None
        with translated():
            return self._steps.rows(self._reader, name, params)

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """Run a read statement over many ids."""
        assert self._reader is not None
        with translated():
            rows: Sequence[Sequence[Any]] = self._reader.execute(
                self._sql[name].sql, (int_array(ids),)
            ).fetchall()
            return rows

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        """Run statements in one transaction."""
        answer: list[list[Row]] = await self._run(lambda connection: self._steps.run_all(connection, steps))
        return answer

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderKey]) -> list[list[Row]]:
        """`write`, passing the turn of these order keys on."""

        def work(connection: apsw.Connection) -> list[list[Row]]:
            done = self._steps.run_all(connection, steps)
            self._steps.pass_turn(connection, keys, demote=True)
            return done

        answer: list[list[Row]] = await self._run(work)
        return answer

    async def _run(self, work: Callable[[apsw.Connection], Any], *, is_routine: bool = False) -> Any:
        assert self._writer is not None
        with self.writes.noted():
            answer = await self._writer.run(work, is_routine=is_routine)
        self.writes.wrote()
        return answer

    # -- the three verbs

    async def enqueue(
        self,
        tasks: Sequence[NewTask],
        *rows: Rows,
        once: Once | None = None,
        also: Sequence[Step] = (),
        together: bool = False,
    ) -> Enqueued:
        """Insert tasks and the domain's rows in one transaction; commits are shared anyway."""

        def work(connection: apsw.Connection) -> Enqueued:
            if once is not None:
                used = {"scope": once.scope, "key": once.key}
                earlier = self._steps.rows(connection, "key_find", used)
                if earlier:
                    return Enqueued((), earlier[0])
            now, ids = self._now(), self._next_ids(connection, len(tasks))
            connection.executemany(self._sql["enqueue_one"].sql, task_rows(tasks, ids, now))
            for own, its_ids in shares(rows, ids):
                connection.executemany(
                    _insert(own), [(id_, *values) for id_, values in zip(its_ids, own.values, strict=True)]
                )
            self._steps.pass_turn(connection, order_keys(tasks), demote=True)
            self._steps.run_all(connection, also)
            if once is not None:
                self._steps.rows(connection, "key_keep", once._asdict())
            return Enqueued(ids)

        answer: Enqueued = await self._run(work)
        self.writes.stored(answer.ids)
        return answer

    def _next_ids(self, connection: apsw.Connection, n: int) -> list[TaskId]:
        last: Any = connection.execute(self._sql["last_id"].sql).fetchone()
        first = 1 if last is None else int(last[0]) + 1
        return [TaskId(id_) for id_ in range(first, first + n)]

    async def keep(self, rows: Rows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Insert the domain's rows under ids of their own; their tasks come later."""

        def work(connection: apsw.Connection) -> Sequence[TaskId]:
            self._steps.run_all(connection, also)
            ids = self._next_ids(connection, len(rows.values))
            if ids:
                connection.execute(self._sql["keep_ids"].sql, (ids[-1],))
                connection.executemany(
                    _insert(rows), [(id_, *values) for id_, values in zip(ids, rows.values, strict=True)]
                )
            return ids

        answer: Sequence[TaskId] = await self._run(work)
        self.writes.stored(answer)
        return answer

    async def claim(self, node: NodeId, wish: Wish) -> Claimed:
        """A look beside the writer, so that an empty poll holds nobody up; then in its transaction."""
        assert self._reader is not None and self._writer is not None
        with translated():
            if not self._claiming.is_anything_due(self._reader, wish):
                return Claimed([], [])
        work = partial(self._claiming.claim, node=node, wish=wish)
        claimed, durable = await self._writer.run_ahead(work)
        return claimed._replace(durable=durable)

    async def take_turns(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> Turns:
        """In the writer's transaction."""

        def work(connection: apsw.Connection) -> Turns:
            held = self._steps.rows(connection, "limit_hold", {"queue": queue})
            [found] = self._steps.run_all(connection, [when_free(queue, line)])
            free = {row["key"]: row["next_at"] for row in found}
            turns = share_out(pace_of(held), line, free, gap, self._now())
            self._steps.run_all(connection, taken(queue, turns))
            return turns

        answer: Turns = await self._run(work)
        return answer

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """When something on these queues can next be claimed."""
        assert self._reader is not None
        with translated():
            return self._claiming.next_due(self._reader, queues)

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        """Write down that these are about to act."""

        def work(connection: apsw.Connection) -> set[TaskId]:
            now, sql = self._now(), self._sql["start_one"].sql
            return {
                task.id
                for task in tasks
                if connection.execute(sql, (now, task.id, node, task.claim_no)).fetchall()
            }

        answer: set[TaskId] = await self._run(work)
        return answer

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderKey] = (),
        tally: Sequence[Tally] = (),
        also: Sequence[Step] = (),
    ) -> list[Settled]:
        """Move claimed tasks on, in one transaction."""

        def work(connection: apsw.Connection) -> list[Settled]:
            now, before = self._now(), connection.total_changes()
            answers = self._settle_plain(connection, node, moves, now) or [
                self._settle_one(connection, node, move, now) for move in moves
            ]
            if not moves or connection.total_changes() > before:  # a repetition counts nothing
                connection.executemany(
                    self._sql["tally_add"].sql,
                    [(now, count.queue, count.what, count.n, count.ms) for count in tally],
                )
            self._steps.run_all(connection, also)
            self._steps.pass_turn(connection, keys, demote=False)
            return answers

        answer: list[Settled] = await self._run(work, is_routine=not also)
        self.writes.stored(Settled.KEPT in answer)
        return answer

    def _settle_plain(
        self, connection: apsw.Connection, node: NodeId, moves: Sequence[Transition], now: int
    ) -> list[Settled] | None:
        """The common case in bulk; None when some move is not plain or some claim is lost."""
        if any(move.to is not State.DONE or move.unknown for move in moves):
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
                [(m.id, "processing", "done", m.tries, node, None, m.detail, now) for m in moves],
            )
        else:
            connection.execute(self._sql["record_done"].sql, (node, now, int_array([m.id for m in moves])))
        return [Settled.KEPT] * len(moves)

    def _settle_one(self, connection: apsw.Connection, node: NodeId, move: Transition, now: int) -> Settled:
        statement = self._sql["settle_one"]
        params = {**move._asdict(), "state": move.to.value, "node": node, "now": now}
        row = connection.execute(statement.sql, statement.bind(params)).fetchone()
        if row is None:
            look = self._steps.rows(connection, "task_look", {"id": move.id})
            ours = look and look[0]["state"] == move.to and look[0]["claim_no"] == move.claim_no
            return Settled.KEPT if ours else Settled.CLAIM_LOST
        connection.execute(
            self._sql["record"].sql,
            (move.id, "processing", row[1], move.tries, node, move.category, move.detail, now),
        )
        return Settled.KEPT if row[1] == move.to else Settled.CANCELLED

    # -- hints

    async def hint(self) -> None:
        """One datagram to the working process."""
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
        """A consistent copy while everything goes on."""
        assert self._reader is not None
        with translated():
            destination = apsw.Connection(str(target))
            try:
                with destination.backup("main", self._reader, "main") as copy:
                    while not copy.done:
                        copy.step(1000)
                        await asyncio.sleep(0)
            finally:
                destination.close()


def _insert(rows: Rows) -> str:
    """The one place that composes SQL: names come from the domain's code, never from a caller."""
    columns = ("task", *rows.columns)
    marks = ", ".join("?" * len(columns))
    return f"insert into {rows.table} ({', '.join(columns)}) values ({marks})"  # noqa: S608
