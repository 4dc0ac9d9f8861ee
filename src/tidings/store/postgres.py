"""The store on PostgreSQL: shared by any number of processes.

Invariant: a claim takes rows with `skip locked`, and every settling statement names id, node and claim_no, so
two processes never both believe that they hold a task. All times are the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Sequence
from operator import attrgetter
from typing import Any

import asyncpg

from ..model.errors import InProgress, StoreFull, StoreUnavailable
from ..model.task import NewTask, NodeId, Settled, State, Task, TaskId, Transition
from . import migrations
from .hints import Hints
from .pacing import Pace, Turns, share_out
from .port import (
    Claimed,
    Creation,
    Enqueued,
    NextDue,
    Once,
    OrderKey,
    Outrun,
    Row,
    Rows,
    Step,
    Tally,
    Wish,
)
from .server import SESSION, no_reset, refuse_unsafe, split, translated
from .statements import statements
from .together import Together, filed, handed_out, rounds
from .turns import pace_of, taken, when_free

_TASK_COLUMNS = (
    "id",
    "tenant",
    "queue",
    "kind",
    "priority",
    "due_at",
    "changed_at",
    "order_key",
    "first_due",
    "head",
    "expires_at",
    "max_tries",
)
# Nothing was written, and that need not be the fault of all that shared the transaction.
_ONE_OF_THEM = (ValueError, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class PostgresStore:
    """`Store` on PostgreSQL 14 or newer."""

    dialect = "postgres"
    sole_worker = False
    bulk = 5000  # a commit costs as much as a thousand rows

    def __init__(
        self, url: str, *, now: Callable[[], int] | None = None, connections: int = 10, patience: float = 10.0
    ) -> None:
        self._dsn, self.schema = split(url)
        self._now = now
        self._size = connections
        self._patience = patience
        self._pool: asyncpg.Pool | None = None
        self._hints = Hints(self._dsn, self._connection)
        self._sql = statements("postgres")
        self._together: Together[Creation, Enqueued] = Together(self._enqueue_all, at_once=2)

    # -- life

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Connect, read the server's settings back, and check or bring up the schema."""
        with translated():
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=0,
                init_size=1,
                max_size=self._size,
                reset=no_reset,
                command_timeout=self._patience,
                timeout=5,
                server_settings={**SESSION, "search_path": self.schema},
                max_inactive_connection_lifetime=300,
            )
            try:
                async with self._pool.acquire() as connection:
                    await refuse_unsafe(connection)
                    await migrations.on_postgres(connection, self.schema, upgrade=upgrade, create=create)
            except BaseException:
                await self.close()
                raise

    async def close(self) -> None:
        """Close all connections; a hint that is about to go out still goes."""
        await self._hints.close()
        if self._pool is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._pool.close()
            self._pool.terminate()
            self._pool = None

    async def damage(self) -> list[str]:
        """PostgreSQL watches over its own pages; see data_checksums and pg_amcheck."""
        return []

    def may_work(self) -> bool:
        """Any number of processes may work on one PostgreSQL."""
        return True

    # -- statements

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement."""
        return (await self.write([Step(name, params)]))[0]

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """Run a read statement over many ids."""
        async with self._connection() as connection:
            rows: Sequence[Sequence[Any]] = await connection.fetch(self._sql[name].sql, ids)
            return rows

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        """Run statements in one transaction."""
        async with self._connection() as connection:
            if len(steps) == 1 and not steps[0].needed:
                return [await self._run(connection, steps[0])]
            async with connection.transaction():
                return await self._run_all(connection, steps)

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderKey]) -> list[list[Row]]:
        """`write`, holding these order keys and passing their turn on."""
        async with self._connection() as connection, connection.transaction():
            await self._hold(connection, keys)
            done = await self._run_all(connection, steps)
            await self._pass_turn(connection, keys, demote=True)
            return done

    async def _run_all(self, connection: asyncpg.Connection, steps: Sequence[Step]) -> list[list[Row]]:
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(await self._run(connection, step) if wanted else [])
            if step.needed and not done[-1]:
                raise Outrun(step.name)
        return done

    async def _run(self, connection: asyncpg.Connection, step: Step) -> list[Row]:
        statement = self._sql[step.name]
        rows = await connection.fetch(statement.sql, *statement.bind({"now": self._time(), **step.params}))
        return [dict(row) for row in rows]

    # -- the three verbs

    async def enqueue(
        self,
        tasks: Sequence[NewTask],
        *rows: Rows,
        once: Once | None = None,
        also: Sequence[Step] = (),
        together: bool = False,
    ) -> Enqueued:
        """COPY tasks and the domain's rows in one transaction."""
        if together and once is None and len(tasks) < self.bulk:
            return await self._together.ask(Creation(tasks, rows, also))
        async with self._connection() as connection, connection.transaction():
            if once is not None:
                earlier = await self._used(connection, once)
                if earlier is not None:
                    return Enqueued((), earlier)
            [ids] = await self._create(connection, [Creation(tasks, rows, also)])
            await self._run_all(connection, also)
            if once is not None:
                await self._run(connection, Step("key_keep", once._asdict()))
            return Enqueued(ids)

    async def _enqueue_all(self, group: Sequence[Creation]) -> list[Enqueued | Exception]:
        """One commit for all; one for each where somebody was outrun or cannot be written."""
        if len(group) > 1:
            try:
                return [*await self._enqueue_together(group)]
            except (StoreUnavailable, StoreFull) as error:
                if not isinstance(error.__cause__, _ONE_OF_THEM):
                    raise
            except (Outrun, asyncpg.PostgresError):
                pass
        answers: list[Enqueued | Exception] = []
        for one in group:
            try:
                answers.append(await self.enqueue(one.tasks, *one.rows, also=one.also))
            except Exception as error:  # told to whoever asked for it
                answers.append(error)
        return answers

    async def _enqueue_together(self, group: Sequence[Creation]) -> list[Enqueued]:
        async with self._connection() as connection, connection.transaction():
            ids = await self._create(connection, group)
            for steps in rounds([one.also for one in group]):
                statement = self._sql[steps[0].name]
                values = [statement.bind({"now": self._time(), **step.params}) for step in steps]
                found = await connection.fetchmany(statement.sql, values)
                if len(found) < len(steps) and any(step.needed for step in steps):
                    raise Outrun(steps[0].name)
        return [Enqueued(own) for own in ids]

    async def _create(
        self, connection: asyncpg.Connection, group: Sequence[Creation]
    ) -> list[Sequence[TaskId]]:
        """New tasks with their rows; each order key's turn goes to the first of its line."""
        tasks = [task for one in group for task in one.tasks]
        if not tasks:
            return [() for _ in group]
        keys = {(task.queue, task.order_key) for task in tasks if task.order_key is not None}
        await self._hold(connection, keys)
        ids, at = await self._take_ids(connection, len(tasks))
        await connection.copy_records_to_table(
            "tasks",
            columns=_TASK_COLUMNS,
            schema_name=self.schema,
            records=[
                (
                    id_,
                    t.tenant,
                    t.queue,
                    t.kind,
                    t.priority,
                    t.due_at,
                    at,
                    t.order_key,
                    None if t.order_key is None else t.due_at,
                    t.order_key is None,
                    t.expires_at,
                    t.max_tries,
                )
                for id_, t in zip(ids, tasks, strict=True)
            ],
        )
        taken = handed_out(group, ids)
        for rows, its_ids in filed(group, taken):
            await self._copy(connection, rows, its_ids)
        await self._pass_turn(connection, keys, demote=True)
        return taken

    async def _take_ids(self, connection: asyncpg.Connection, n: int) -> tuple[list[TaskId], int]:
        row = await connection.fetchrow(self._sql["take_ids"].sql, self._time(), n)
        return row["ids"] or [], row["now"]

    async def keep(self, rows: Rows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """COPY the domain's rows under ids of their own; their tasks come later."""
        async with self._connection() as connection, connection.transaction():
            await self._run_all(connection, also)
            ids, _ = await self._take_ids(connection, len(rows.values))
            await self._copy(connection, rows, ids)
            return ids

    async def _copy(self, connection: asyncpg.Connection, rows: Rows, ids: Sequence[TaskId]) -> None:
        await connection.copy_records_to_table(
            rows.table,
            columns=("task", *rows.columns),
            schema_name=self.schema,
            records=[(id_, *values) for id_, values in zip(ids, rows.values, strict=True)],
        )

    async def _used(self, connection: asyncpg.Connection, once: Once) -> Row | None:
        """What this key was answered before; a twin still under way is refused at once."""
        if not await connection.fetchval(self._sql["try_lock"].sql, f"{once.scope}\x01{once.key}"):
            raise InProgress(f"a call with the key {once.key!r} is under way", remedy="repeat it in a second")
        found = await self._run(connection, Step("key_find", {"scope": once.scope, "key": once.key}))
        return found[0] if found else None

    async def claim(self, node: NodeId, wish: Wish) -> Claimed:
        """One statement; two more and a transaction only where a queue has a rate."""
        async with self._connection() as connection:
            if not wish.limited & wish.rooms.keys():
                return await self._claim(connection, node, wish, wish.rooms)
            async with connection.transaction():
                return await self._claim_paced(connection, node, wish)

    async def _claim(
        self, connection: asyncpg.Connection, node: NodeId, wish: Wish, rooms: dict[str, int] | Any
    ) -> Claimed:
        statement = self._sql["claim"]
        rows = await connection.fetch(
            statement.sql,
            *statement.bind(
                {
                    "now": self._time(),
                    "node": node,
                    "room": wish.room,
                    "fair": wish.fair,
                    "queues": list(rooms),
                    "rooms": list(rooms.values()),
                    "probes": list(wish.probes),
                }
            ),
        )
        tasks = list(map(Task._make, rows))
        tasks.sort(key=_start_order)
        if min([task.claim_no for task in tasks], default=0) < 0:
            return Claimed([t for t in tasks if t.claim_no >= 0], [t for t in tasks if t.claim_no < 0])
        return Claimed(tasks, [])

    async def _claim_paced(self, connection: asyncpg.Connection, node: NodeId, wish: Wish) -> Claimed:
        statement = self._sql["limit_hold"]
        held = await connection.fetch(
            statement.sql, *statement.bind({"now": self._time(), "queues": sorted(wish.limited)})
        )
        rooms = dict(wish.rooms)
        paces = {row["queue"]: Pace(row["interval"], row["next_at"]) for row in held}
        at = held[0]["now"] if held else 0
        for queue, pace in paces.items():
            if queue in rooms:
                rooms[queue] = min(rooms[queue], pace.allowance(at))
        claimed = await self._claim(connection, node, wish, {q: n for q, n in rooms.items() if n > 0})
        tasks: list[Task] = []
        reserved: dict[str, Iterator[int]] = {}
        for queue, pace in paces.items():
            count = sum(task.queue == queue for task in claimed.tasks)
            if count and queue not in wish.keyed:
                instants, free = pace.instants(at, count)
                reserved[queue] = iter(instants)
                await self._run(connection, Step("limit_take", {"queue": queue, "next_at": free}))
        for task in claimed.tasks:
            tasks.append(
                task._replace(start_at=next(reserved[task.queue])) if task.queue in reserved else task
            )
        return Claimed(tasks, claimed.expired)

    async def take_turns(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> Turns:
        """One transaction; the queue's row makes all nodes take theirs one after the other."""
        async with self._connection() as connection, connection.transaction():
            held = await self._run(connection, Step("limit_hold", {"queues": [queue]}))
            [clock], found = await self._run_all(connection, [Step("now", {}), when_free(queue, line)])
            free = {row["key"]: row["next_at"] for row in found}
            turns = share_out(pace_of(held), line, free, gap, clock["now"])
            await self._run_all(connection, taken(queue, turns))
            return turns

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """When something on these queues can next be claimed."""
        async with self._connection() as connection:
            statement = self._sql["next_due"]
            row = await connection.fetchrow(
                statement.sql, *statement.bind({"now": self._time(), "queues": list(queues)})
            )
            return NextDue(row["now"], row["next_at"])

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        """Write down that these are about to act."""
        async with self._connection() as connection:
            statement = self._sql["start"]
            rows = await connection.fetch(
                statement.sql,
                *statement.bind(
                    {
                        "now": self._time(),
                        "node": node,
                        "ids": [task.id for task in tasks],
                        "claims": [task.claim_no for task in tasks],
                    }
                ),
            )
            return {row[0] for row in rows}

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderKey] = (),
        tally: Sequence[Tally] = (),
        also: Sequence[Step] = (),
    ) -> list[Settled]:
        """One statement in the common case; a transaction where order keys or other statements take part."""
        plain = [move for move in moves if _is_plain(move)]
        rest = [move for move in moves if not _is_plain(move)]
        async with self._connection() as connection:
            if not keys and not also and not (plain and rest):
                kept = await self._settle_some(connection, node, plain, rest, tally)
            else:
                async with connection.transaction():
                    await self._hold(connection, keys)
                    kept = await self._settle_some(connection, node, plain, rest, tally)
                    await self._run_all(connection, also)
                    await self._pass_turn(connection, keys, demote=False)
            lost = [move for move in moves if move.id not in kept]
            for move in lost:
                if await self._was_ours(connection, move):
                    kept[move.id] = move.to
        return [_verdict(move, kept.get(move.id)) for move in moves]

    async def _settle_some(
        self,
        connection: asyncpg.Connection,
        node: NodeId,
        plain: Sequence[Transition],
        rest: Sequence[Transition],
        tally: Sequence[Tally],
    ) -> dict[TaskId, str]:
        kept: dict[TaskId, str] = {}
        counts: dict[str, Any] = {"now": self._time(), "node": node, **_tally_arrays(tally)}
        if plain or not rest:
            statement = self._sql["settle_done"]
            rows = await connection.fetch(
                statement.sql,
                *statement.bind(
                    {
                        **counts,
                        "ids": [move.id for move in plain],
                        "claims": [move.claim_no for move in plain],
                        "details": [move.detail for move in plain],
                    }
                ),
            )
            kept = {row[0]: State.DONE for row in rows}
            counts.update(_tally_arrays(()))
        if rest:
            statement = self._sql["settle"]
            arrays = dict(zip(_MOVE_ARRAYS, map(list, zip(*rest, strict=True)), strict=True))
            rows = await connection.fetch(statement.sql, *statement.bind({**counts, **arrays}))
            kept.update({row[0]: row[1] for row in rows})
        return kept

    async def _was_ours(self, connection: asyncpg.Connection, move: Transition) -> bool:
        """Whether this very claim had been settled so already: the answer to that commit was lost."""
        row = await connection.fetchrow(self._sql["task_look"].sql, move.id)
        return row is not None and row["state"] == move.to and row["claim_no"] == move.claim_no

    async def _hold(self, connection: asyncpg.Connection, keys: Collection[OrderKey]) -> None:
        if keys:
            statement = self._sql["lock_keys"]
            names = {"queues": [k[0] for k in keys], "order_keys": [k[1] for k in keys]}
            await connection.fetch(statement.sql, *statement.bind(names))

    async def _pass_turn(
        self, connection: asyncpg.Connection, keys: Collection[OrderKey], *, demote: bool
    ) -> None:
        if keys and demote:
            statement = self._sql["demote"]
            await connection.executemany(
                statement.sql, [statement.bind({"queue": q, "order_key": k}) for q, k in sorted(keys)]
            )
        if keys:
            statement = self._sql["promote_all"]
            names = {"queues": [k[0] for k in keys], "order_keys": [k[1] for k in keys]}
            await connection.fetch(statement.sql, *statement.bind(names))

    # -- hints

    async def hint(self) -> None:
        """NOTIFY on a connection of its own after the commit, at most once in 5 ms."""
        self._hints.give()

    def on_hint(self, wake: Callable[[], None]) -> None:
        """Listen on a connection of its own; a lost one is replaced; polling alone is correct meanwhile."""
        self._hints.take(wake)

    # -- plumbing

    def _time(self) -> int | None:
        return None if self._now is None else self._now()

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        pool = self._pool
        if pool is None:
            raise StoreUnavailable("the database is not open", remedy="open the store first")
        # With one that is free nobody waits, and a limit would cost as much as the connection.
        patience = None if pool.get_idle_size() else self._patience
        with translated():
            connection = await pool.acquire(timeout=patience)
            try:
                yield connection
            finally:
                await pool.release(connection, timeout=self._patience)


_MOVE_ARRAYS = (
    "ids",
    "claims",
    "states",
    "tries",
    "dues",
    "categories",
    "details",
    "unknowns",
    "throttles",
    "crashes",
)


def _is_plain(move: Transition) -> bool:
    """Done without a doubt: the cheap statement can settle it."""
    return move.to is State.DONE and not move.unknown


def _verdict(move: Transition, state: str | None) -> Settled:
    if state is None:
        return Settled.CLAIM_LOST
    return Settled.KEPT if state == move.to else Settled.CANCELLED


_start_order = attrgetter("priority", "due_at", "id")


def _tally_arrays(tally: Sequence[Tally]) -> dict[str, list[Any]]:
    return {
        "t_queues": [t.queue for t in tally],
        "t_whats": [t.what for t in tally],
        "t_ns": [t.n for t in tally],
        "t_mss": [t.ms for t in tally],
    }
