"""The store on SQLite: one file, one working process, any number that accept and read.

Invariant: WAL with synchronous FULL, and every acknowledgement after its COMMIT. The process that
holds the file's work lock is the only one that claims; when it dies the lock is free and the next takes over.
"""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import apsw

from ..model.task import NewTask, NodeId, Settled, State, Task, TaskId, Transition
from . import migrations
from .choice import Candidate, choose
from .connecting import connect, keep_private, refuse_unwritable
from .files import FileLock, WakeSocket
from .groups import GroupWriter, translated
from .pacing import Pace, Turns, share_out
from .port import Claimed, Enqueued, NextDue, Once, OrderKey, Outrun, Row, Rows, Step, Tally, Wish, shares
from .statements import Statement, statements
from .turns import pace_of, taken, when_free

_LINKED = (None, "connected")  # no session, or one that can send


class SqliteStore:
    """`Store` on one SQLite file."""

    dialect = "sqlite"
    sole_worker = True
    bulk = 1000  # they are written on the loop's own thread: more would make what is due wait

    def __init__(
        self, path: Path, *, now: Callable[[], int], inline: bool = False, patience: float = 10.0
    ) -> None:
        self.path = path
        self._now = now
        self._inline = inline
        self._patience = patience
        self._sql = statements("sqlite")
        self._columns: dict[str, list[str]] = {}  # of statements that have given rows
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
        with translated():
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
            return self._rows(self._reader, self._sql[name], params)

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """Run a read statement over many ids."""
        assert self._reader is not None
        with translated():
            rows: Sequence[Sequence[Any]] = self._reader.execute(
                self._sql[name].sql, (_array(ids),)
            ).fetchall()
            return rows

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        """Run statements in one transaction."""
        answer: list[list[Row]] = await self._run(lambda connection: self._run_all(connection, steps))
        return answer

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderKey]) -> list[list[Row]]:
        """`write`, passing the turn of these order keys on."""

        def work(connection: apsw.Connection) -> list[list[Row]]:
            done = self._run_all(connection, steps)
            self._pass_turn(connection, keys, demote=True)
            return done

        answer: list[list[Row]] = await self._run(work)
        return answer

    def _run_all(self, connection: apsw.Connection, steps: Sequence[Step]) -> list[list[Row]]:
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(self._rows(connection, self._sql[step.name], step.params) if wanted else [])
            if step.needed and not done[-1]:
                raise Outrun(step.name)
        return done

    def _rows(
        self, connection: apsw.Connection, statement: Statement, params: Mapping[str, Any]
    ) -> list[Row]:
        cursor = connection.execute(statement.sql, statement.bind({"now": self._now(), **params}))
        names = self._columns.get(statement.name)
        if names is None:
            try:
                names = [column[0] for column in cursor.get_description()]
            except apsw.ExecutionCompleteError:  # no rows
                return []
            self._columns[statement.name] = names
        return [dict(zip(names, row, strict=True)) for row in cursor]

    async def _run(self, work: Callable[[apsw.Connection], Any], *, is_routine: bool = False) -> Any:
        assert self._writer is not None
        return await self._writer.run(work, is_routine=is_routine)

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
                earlier = self._rows(connection, self._sql["key_find"], used)
                if earlier:
                    return Enqueued((), earlier[0])
            now, ids = self._now(), self._next_ids(connection, len(tasks))
            connection.executemany(
                self._sql["enqueue_one"].sql,
                [
                    (
                        id_,
                        t.tenant,
                        t.queue,
                        t.kind,
                        t.priority,
                        t.due_at,
                        now,
                        t.order_key,
                        None if t.order_key is None else t.due_at,
                        t.order_key is None,
                        t.expires_at,
                        t.max_tries,
                    )
                    for id_, t in zip(ids, tasks, strict=True)
                ],
            )
            for own, its_ids in shares(rows, ids):
                connection.executemany(
                    _insert(own), [(id_, *values) for id_, values in zip(its_ids, own.values, strict=True)]
                )
            keys = {(task.queue, task.order_key) for task in tasks if task.order_key is not None}
            self._pass_turn(connection, keys, demote=True)
            self._run_all(connection, also)
            if once is not None:
                self._rows(connection, self._sql["key_keep"], once._asdict())
            return Enqueued(ids)

        answer: Enqueued = await self._run(work)
        return answer

    def _next_ids(self, connection: apsw.Connection, n: int) -> list[TaskId]:
        last: Any = connection.execute(self._sql["last_id"].sql).fetchone()
        first = 1 if last is None else int(last[0]) + 1
        return [TaskId(id_) for id_ in range(first, first + n)]

    async def keep(self, rows: Rows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Insert the domain's rows under ids of their own; their tasks come later."""

        def work(connection: apsw.Connection) -> Sequence[TaskId]:
            self._run_all(connection, also)
            ids = self._next_ids(connection, len(rows.values))
            if ids:
                connection.execute(self._sql["keep_ids"].sql, (ids[-1],))
                connection.executemany(
                    _insert(rows), [(id_, *values) for id_, values in zip(ids, rows.values, strict=True)]
                )
            return ids

        answer: Sequence[TaskId] = await self._run(work)
        return answer

    async def claim(self, node: NodeId, wish: Wish) -> Claimed:
        """Look at each queue's and priority's earliest, then claim them in the writer's transaction."""
        if not self._is_anything_due(wish):
            return Claimed([], [])

        def work(connection: apsw.Connection) -> Claimed:
            now = self._now()
            rooms = self._open_rooms(connection, wish, now)
            paces = self._held_paces(connection, wish, rooms, now)
            near, of_one_kind = self._near(connection, rooms, wish.room, now)
            if not of_one_kind:
                chosen = choose(
                    [Candidate(t.priority, t.due_at, t.id, t.queue) for t in near],
                    rooms,
                    wish.room,
                    wish.fair,
                )
                taken = {candidate.id for candidate in chosen}
                near = sorted((t for t in near if t.id in taken), key=lambda t: (t.priority, t.due_at, t.id))
            late = [task for task in near if task.expires_at is not None and task.expires_at <= now]
            gone = {task.id for task in late}
            tasks = [task for task in near if task.id not in gone] if late else near
            ids = [task.id for task in tasks]
            connection.execute(self._sql["claim_some"].sql, (node, now, _array(ids)))
            connection.execute(self._sql["record_claims"].sql, (_array(ids),))
            if paces:
                tasks = self._reserve(connection, wish, paces, tasks, now)
            return Claimed(tasks, [task._replace(tries=task.tries - 1, claim_no=-1) for task in late])

        assert self._writer is not None
        claimed, durable = await self._writer.run_ahead(work)
        return claimed._replace(durable=durable)

    def _is_anything_due(self, wish: Wish) -> bool:
        """A look beside the writer, so that an empty poll holds nobody up."""
        assert self._reader is not None
        now = self._now()
        with translated():
            return any(
                due_at <= now and queue in wish.rooms for queue, _, due_at in self._heads(self._reader)
            )

    def _open_rooms(self, connection: apsw.Connection, wish: Wish, now: int) -> dict[str, int]:
        rooms: dict[str, int] = {}
        for row in self._rows(connection, self._sql["queue_list"], {}):
            name = row["name"]
            if name not in wish.rooms or row["paused"] or (row["parked_until"] or 0) > now:
                continue
            if row["link"] not in _LINKED:
                continue
            if row["opened_at"] is None or name in wish.probes:
                rooms[name] = wish.rooms[name]
        return rooms

    def _held_paces(
        self, connection: apsw.Connection, wish: Wish, rooms: dict[str, int], now: int
    ) -> dict[str, Pace]:
        paces: dict[str, Pace] = {}
        for queue in wish.limited & rooms.keys():
            for row in self._rows(connection, self._sql["limit_hold"], {"queue": queue}):
                paces[queue] = Pace(row["interval"], row["next_at"])
                rooms[queue] = min(rooms[queue], paces[queue].allowance(now))
        return paces

    def _heads(self, connection: apsw.Connection) -> list[tuple[str, int, int]]:
        """Queue, priority and due time of the earliest of each."""
        heads: Any = connection.execute(self._sql["heads"].sql).fetchall()
        return cast("list[tuple[str, int, int]]", heads)

    def _near(
        self, connection: apsw.Connection, rooms: Mapping[str, int], room: int, now: int
    ) -> tuple[list[Task], bool]:
        """The earliest of each queue and priority, as they will be once claimed; True: all are of one."""
        near = self._sql["near"].sql
        found: list[Task] = []
        kinds = 0
        for queue, priority, due_at in self._heads(connection):
            free = min(rooms.get(queue, 0), room)
            if free > 0 and due_at <= now:
                found += map(Task._make, connection.execute(near, (queue, priority, now, free)))
                kinds += 1
        return found, kinds <= 1

    def _reserve(
        self, connection: apsw.Connection, wish: Wish, paces: Mapping[str, Pace], tasks: list[Task], now: int
    ) -> list[Task]:
        reserved = {}
        for queue, pace in paces.items():
            count = sum(task.queue == queue for task in tasks)
            if count and queue not in wish.keyed:
                instants, free = pace.instants(now, count)
                reserved[queue] = iter(instants)
                self._rows(connection, self._sql["limit_take"], {"queue": queue, "next_at": free})
        return [t._replace(start_at=next(reserved[t.queue])) if t.queue in reserved else t for t in tasks]

    async def take_turns(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> Turns:
        """In the writer's transaction."""

        def work(connection: apsw.Connection) -> Turns:
            held = self._rows(connection, self._sql["limit_hold"], {"queue": queue})
            [found] = self._run_all(connection, [when_free(queue, line)])
            free = {row["key"]: row["next_at"] for row in found}
            turns = share_out(pace_of(held), line, free, gap, self._now())
            self._run_all(connection, taken(queue, turns))
            return turns

        answer: Turns = await self._run(work)
        return answer

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """When something on these queues can next be claimed."""
        assert self._reader is not None
        now = self._now()
        earliest: int | None = None
        with translated():
            open_from: dict[str, int] = {}
            for row in self._rows(self._reader, self._sql["queue_list"], {}):
                parked = row["parked_until"] or 0
                if row["link"] not in _LINKED:
                    continue
                if row["name"] in queues and not row["paused"] and (row["opened_at"] is None or parked > now):
                    paced = 0 if row["next_at"] is None else row["next_at"] - 250_000
                    open_from[row["name"]] = max(parked, paced)
            for queue, _, due_at in self._heads(self._reader):
                if queue in open_from:
                    at = max(due_at, open_from[queue])
                    earliest = at if earliest is None else min(earliest, at)
        return NextDue(now, earliest)

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
            self._run_all(connection, also)
            self._pass_turn(connection, keys, demote=False)
            return answers

        answer: list[Settled] = await self._run(work, is_routine=not also)
        return answer

    def _settle_plain(
        self, connection: apsw.Connection, node: NodeId, moves: Sequence[Transition], now: int
    ) -> list[Settled] | None:
        """The common case in bulk; None when some move is not plain or some claim is lost."""
        if any(move.to is not State.DONE or move.unknown for move in moves):
            return None
        connection.execute("savepoint plain")
        fences = _array([move.id << 16 | move.claim_no & 0xFFFF for move in moves])
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
            connection.execute(self._sql["record_done"].sql, (node, now, _array([m.id for m in moves])))
        return [Settled.KEPT] * len(moves)

    def _settle_one(self, connection: apsw.Connection, node: NodeId, move: Transition, now: int) -> Settled:
        statement = self._sql["settle_one"]
        params = {**move._asdict(), "state": move.to.value, "node": node, "now": now}
        row = connection.execute(statement.sql, statement.bind(params)).fetchone()
        if row is None:
            look = self._rows(connection, self._sql["task_look"], {"id": move.id})
            ours = look and look[0]["state"] == move.to and look[0]["claim_no"] == move.claim_no
            return Settled.KEPT if ours else Settled.CLAIM_LOST
        connection.execute(
            self._sql["record"].sql,
            (move.id, "processing", row[1], move.tries, node, move.category, move.detail, now),
        )
        return Settled.KEPT if row[1] == move.to else Settled.CANCELLED

    def _pass_turn(self, connection: apsw.Connection, keys: Collection[OrderKey], *, demote: bool) -> None:
        for name in ("demote", "promote") if demote else ("promote",):
            for queue, key in keys:
                connection.execute(self._sql[name].sql, (queue, key)).fetchall()

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


def _array(numbers: Sequence[int]) -> Any:
    """A list as SQLite takes it in one piece: an array in memory, alive as long as its statement."""
    return apsw.carray(array("q", numbers or [-1]))  # an empty one has no address; no row has this id


def _insert(rows: Rows) -> str:
    """The one place that composes SQL: names come from the domain's code, never from a caller."""
    columns = ("task", *rows.columns)
    marks = ", ".join("?" * len(columns))
    return f"insert into {rows.table} ({', '.join(columns)}) values ({marks})"  # noqa: S608
