"""The store on PostgreSQL: shared by any number of processes.

Invariant: a claim takes rows with `skip locked`, and every settling statement names id, node and claim_no
(the fencing token), so two processes never both hold a task. All times are the server's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from operator import attrgetter
from typing import Any

import asyncpg

from ..model.errors import StoreUnavailable
from ..model.task import NewTask, NodeId, SettleResult, Task, TaskId, TaskState, Transition
from . import migrations
from .port import (
    AttemptTally,
    ClaimRequest,
    ClaimResult,
    EnqueueRequest,
    EnqueueResult,
    IdempotencyRecord,
    NextDue,
    OrderingKey,
    Row,
    Step,
    TableRows,
)
from .postgres_enqueue import BULK_SIZE, PostgresEnqueue
from .postgres_notify import PostgresNotifier
from .postgres_server import (
    SESSION_SETTINGS,
    end_abandoned_transactions,
    no_reset,
    refuse_transaction_pooling,
    refuse_unsafe,
    split_url,
    translate_postgres_errors,
)
from .postgres_steps import PostgresSteps
from .rate_limit_steps import read_free_times, read_rate_limit, reserve_steps
from .rate_limits import RateLimitState, SlotAssignment, assign_slots, reserve_slots
from .statements import load_statements
from .write_state import WriteState


class PostgresStore:
    """`Store` on PostgreSQL 14 or newer."""

    dialect = "postgres"
    sole_worker = False
    bulk = BULK_SIZE

    def __init__(
        self, url: str, *, now: Callable[[], int] | None = None, connections: int = 10, patience: float = 10.0
    ) -> None:
        self._dsn, self.schema = split_url(url)
        self.server = ""
        self.newest: dict[str, int] = {}
        self._size = connections
        self._patience = patience
        self._pool: asyncpg.Pool | None = None
        self._hints = PostgresNotifier(self._dsn, self._connection)
        self.writes = WriteState()
        self._sql = load_statements("postgres")
        self._steps = PostgresSteps(self._sql, now)
        self._creating = PostgresEnqueue(self._connection, self._steps, self.schema)

    # -- open and close

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Connect, verify the server's settings, and check or create the schema."""
        with translate_postgres_errors(started=False):
            self._pool = await asyncpg.create_pool(
                self._dsn,
                min_size=0,
                init_size=1,
                max_size=self._size,
                init=self._identify_server,
                reset=no_reset,
                command_timeout=self._patience,
                timeout=5,
                server_settings={**SESSION_SETTINGS, "search_path": self.schema},
                max_inactive_connection_lifetime=300,
            )
            try:
                async with self._pool.acquire() as connection:
                    await refuse_unsafe(connection)
                if self._size > 1:
                    await refuse_transaction_pooling(self._pool)
                async with self._pool.acquire() as connection:
                    await migrations.migrate_postgres(connection, self.schema, upgrade=upgrade, create=create)
            except BaseException:
                await self.close()
                raise

    async def _identify_server(self, connection: asyncpg.Connection) -> None:
        """Identify the server of a new connection: it changes after a failover or restart."""
        await end_abandoned_transactions(connection, after=self._patience / 2)
        self.server = await connection.fetchval("select extract(epoch from pg_postmaster_start_time())::text")

    async def close(self) -> None:
        """Close all connections; a pending hint is still sent."""
        await self._hints.close()
        if self._pool is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(5):
                    await self._pool.close()
            self._pool.terminate()
            self._pool = None

    async def damage(self) -> list[str]:
        """Return nothing: PostgreSQL checks its own pages, see data_checksums and pg_amcheck."""
        return []

    def may_work(self) -> bool:
        """Return True: any number of processes may work on one PostgreSQL."""
        return True

    # -- statements

    async def read(self, name: str, **params: Any) -> list[Row]:
        async with self._connection() as connection:
            return await self._steps.run(connection, Step(name, params))

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        async with self._connection() as connection:
            rows: Sequence[Sequence[Any]] = await connection.fetch(self._sql[name].sql, ids)
            return rows

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        async with self._connection() as connection:
            if len(steps) == 1 and not steps[0].needed:
                done = [await self._steps.run(connection, steps[0])]
            else:
                async with connection.transaction():
                    done = await self._steps.run_all(connection, steps)
        self.writes.wrote()
        return done

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderingKey]) -> list[list[Row]]:
        async with self._connection() as connection, connection.transaction():
            await self._steps.hold(connection, keys)
            done = await self._steps.run_all(connection, steps)
            await self._steps.pass_turn(connection, keys, demote=True)
            return done

    # -- the three verbs

    async def enqueue(
        self,
        tasks: Sequence[NewTask],
        *rows: TableRows,
        once: IdempotencyRecord | None = None,
        also: Sequence[Step] = (),
        together: bool = False,
    ) -> EnqueueResult:
        """Use one statement for one task, COPY in one transaction for many."""
        made = await self._creating.enqueue(EnqueueRequest(tasks, rows, also), once=once, together=together)
        self.writes.stored(made.ids)
        if made.ids:
            self.newest[self.server] = made.ids[-1]
        return made

    async def keep(self, rows: TableRows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """COPY the domain's rows under new ids; their tasks are created later."""
        ids = await self._creating.keep(rows, also=also)
        self.writes.stored(ids)
        return ids

    async def claim(self, node: NodeId, request: ClaimRequest) -> ClaimResult:
        """Claim with one statement; with two more in a transaction if a queue has a rate limit.

        Raises StoreUnavailable if the connection leads to a server that its node has not checked yet.
        """
        server = self.server
        async with self._connection() as connection:
            if self.server != server:
                raise StoreUnavailable("another database server responded", remedy="wait for the next heartbeat")
            if not request.limited & request.rooms.keys():
                return await self._claim(connection, node, request, request.rooms)
            async with connection.transaction():
                return await self._claim_paced(connection, node, request)

    async def _claim(
        self, connection: asyncpg.Connection, node: NodeId, request: ClaimRequest, rooms: dict[str, int] | Any
    ) -> ClaimResult:
        rows = await self._fetch(
            connection,
            "claim",
            node=node,
            room=request.room,
            fair=request.fair,
            queues=list(rooms),
            rooms=list(rooms.values()),
            probes=list(request.probes),
        )
        tasks = list(map(Task._make, rows))
        tasks.sort(key=_start_order)
        if min([task.claim_no for task in tasks], default=0) < 0:
            return ClaimResult([t for t in tasks if t.claim_no >= 0], [t for t in tasks if t.claim_no < 0])
        return ClaimResult(tasks, [])

    async def _claim_paced(self, connection: asyncpg.Connection, node: NodeId, request: ClaimRequest) -> ClaimResult:
        held = await self._fetch(connection, "rate_limit_lock", queues=sorted(request.limited))
        rooms = dict(request.rooms)
        paces = {row["queue"]: RateLimitState(row["interval"], row["next_at"]) for row in held}
        at = held[0]["now"] if held else 0
        for queue, pace in paces.items():
            if queue in rooms:
                rooms[queue] = min(rooms[queue], pace.allowance(at))
        claimed = await self._claim(connection, node, request, {q: n for q, n in rooms.items() if n > 0})
        tasks, free_at = reserve_slots(paces, claimed.tasks, request.keyed, at)
        for queue, free in free_at.items():
            await self._steps.run(connection, Step("rate_limit_take", {"queue": queue, "next_at": free}))
        return ClaimResult(tasks, claimed.expired)

    async def take_slots(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> SlotAssignment:
        """Reserve slots in one transaction; the queue's row serializes all nodes."""
        async with self._connection() as connection, connection.transaction():
            held = await self._steps.run(connection, Step("rate_limit_lock", {"queues": [queue]}))
            [clock], found = await self._steps.run_all(connection, [Step("now", {}), read_free_times(queue, line)])
            free = {row["key"]: row["next_at"] for row in found}
            turns = assign_slots(read_rate_limit(held), line, free, gap, clock["now"])
            await self._steps.run_all(connection, reserve_steps(queue, turns))
            return turns

    async def next_due(self, queues: Collection[str]) -> NextDue:
        async with self._connection() as connection:
            [row] = await self._fetch(connection, "next_due", queues=list(queues))
            return NextDue(row["now"], row["next_at"])

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        async with self._connection() as connection:
            ids, claims = [task.id for task in tasks], [task.claim_no for task in tasks]
            rows = await self._fetch(connection, "start", node=node, ids=ids, claims=claims)
            return {row[0] for row in rows}

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderingKey] = (),
        tally: Sequence[AttemptTally] = (),
        also: Sequence[Step] = (),
    ) -> list[SettleResult]:
        """Settle with one statement; in a transaction if ordering keys or other statements take part."""
        plain = [move for move in moves if _is_plain(move)]
        rest = [move for move in moves if not _is_plain(move)]
        async with self._connection() as connection:
            if not keys and not also and not (plain and rest):
                kept = await self._settle_some(connection, node, plain, rest, tally)
            else:
                async with connection.transaction():
                    await self._steps.hold(connection, keys)
                    kept = await self._settle_some(connection, node, plain, rest, tally)
                    await self._steps.run_all(connection, also)
                    await self._steps.pass_turn(connection, keys, demote=False)
            lost = [move for move in moves if move.id not in kept]
            for move in lost:
                if await self._was_ours(connection, move):
                    kept[move.id] = move.to
        self.writes.stored(kept)
        return [_settle_result(move, kept.get(move.id)) for move in moves]

    async def _settle_some(
        self,
        connection: asyncpg.Connection,
        node: NodeId,
        plain: Sequence[Transition],
        rest: Sequence[Transition],
        tally: Sequence[AttemptTally],
    ) -> dict[TaskId, str]:
        kept: dict[TaskId, str] = {}
        counts: dict[str, Any] = {"node": node, **_tally_arrays(tally)}
        if plain or not rest:
            rows = await self._fetch(
                connection,
                "settle_done",
                **counts,
                ids=[move.id for move in plain],
                claims=[move.claim_no for move in plain],
                details=[move.detail for move in plain],
            )
            kept = {row[0]: TaskState.DONE for row in rows}
            counts.update(_tally_arrays(()))
        if rest:
            arrays = dict(zip(_MOVE_ARRAYS, map(list, zip(*rest, strict=True)), strict=False))
            rows = await self._fetch(connection, "settle", **counts, **arrays)
            kept.update({row[0]: row[1] for row in rows})
        return kept

    async def _was_ours(self, connection: asyncpg.Connection, move: Transition) -> bool:
        """Whether this claim had already been settled: the response to that commit was lost."""
        row = await connection.fetchrow(self._sql["task_look"].sql, move.id)
        return row is not None and row["state"] == move.to and row["claim_no"] == move.claim_no

    # -- hints

    async def hint(self) -> None:
        """NOTIFY on a separate connection after the commit, at most once in 5 ms."""
        self._hints.give()

    def on_hint(self, wake: Callable[[], None]) -> None:
        """LISTEN on a separate connection, which is replaced if lost; polling bridges the gap."""
        self._hints.take(wake)

    # -- connections

    async def _fetch(self, connection: asyncpg.Connection, name: str, **params: Any) -> list[Any]:
        statement = self._sql[name]
        values = statement.bind({"now": self._steps.time(), **params})
        return list(await connection.fetch(statement.sql, *values))

    @contextlib.asynccontextmanager
    async def _connection(self) -> AsyncIterator[asyncpg.Connection]:
        pool = self._pool
        if pool is None:
            raise StoreUnavailable("the database is not open", remedy="open the store first")
        # A free connection needs no wait, and a timeout would cost as much as the connection.
        patience = None if pool.get_idle_size() else self._patience
        with self.writes.noted(), translate_postgres_errors(started=True):
            connection = await pool.acquire(timeout=patience)
            try:
                yield connection
            finally:
                await pool.release(connection, timeout=self._patience)


_MOVE_ARRAYS = (
    "ids", "claims", "states", "attempts", "dues",
    "categories", "details", "unknowns", "throttles", "crashes",
)  # fmt: skip


def _is_plain(move: Transition) -> bool:
    """Whether it is done and not unknown: the cheap statement can settle it."""
    return move.to is TaskState.DONE and not move.unknown


def _settle_result(move: Transition, state: str | None) -> SettleResult:
    if state is None:
        return SettleResult.CLAIM_LOST
    return SettleResult.KEPT if state == move.to else SettleResult.CANCELLED


_start_order = attrgetter("priority", "due_at", "id")


def _tally_arrays(tally: Sequence[AttemptTally]) -> dict[str, list[Any]]:
    return {
        "t_queues": [t.queue for t in tally],
        "t_whats": [t.what for t in tally],
        "t_ns": [t.n for t in tally],
        "t_mss": [t.ms for t in tally],
    }
