"""Enqueues on PostgreSQL: new tasks with the domain's rows, in one transaction each or several in one.

Most requests are one message with its idempotency key. They use one statement, so that accepting messages one
by one costs one round trip and not ten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from functools import cache

import asyncpg

from ..model.errors import InProgress, StoreFull, StoreUnavailable
from ..model.task import NewTask, TaskId
from .port import EnqueueRequest, EnqueueResult, IdempotencyRecord, Row, Step, TableRows, WriteConflict, ordering_keys
from .postgres_steps import PostgresSteps
from .request_batches import RequestBatcher, merge_rows, merge_steps, split_ids_by_request
from .task_rows import COLUMNS, task_rows

BULK_SIZE = 5000  # a commit costs as much as a thousand rows

# Nothing was written, and not all requests of the transaction need be the cause.
_ONE_OF_THEM = (ValueError, asyncpg.DeadlockDetectedError, asyncpg.SerializationError)


class PostgresEnqueue:
    """Enqueues requests; `connection` borrows a connection of the store."""

    def __init__(
        self,
        connection: Callable[[], AbstractAsyncContextManager[asyncpg.Connection]],
        steps: PostgresSteps,
        schema: str,
    ) -> None:
        self._connection = connection
        self._steps = steps
        self._schema = schema
        self._together: RequestBatcher[EnqueueRequest, EnqueueResult] = RequestBatcher(self._enqueue_all, at_once=2)

    async def enqueue(self, one: EnqueueRequest, *, once: IdempotencyRecord | None, together: bool) -> EnqueueResult:
        if together and once is None and len(one.tasks) < BULK_SIZE:
            return await self._together.ask(one)
        if _is_single(one):
            async with self._connection() as connection:
                made = await self._enqueue_single(connection, one.tasks[0], one.rows[0], once)
                if made is not None:
                    return made
        async with self._connection() as connection, connection.transaction():
            if once is not None:
                earlier = await self._used(connection, once)
                if earlier is not None:
                    return EnqueueResult((), earlier)
            [ids] = await self._create(connection, [one])
            await self._steps.run_all(connection, one.also)
            if once is not None:
                await self._steps.run(connection, Step("idempotency_key_keep", once._asdict()))
            return EnqueueResult(ids)

    async def keep(self, rows: TableRows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        async with self._connection() as connection, connection.transaction():
            await self._steps.run_all(connection, also)
            ids, _ = await self._take_ids(connection, len(rows.values))
            await self._copy(connection, rows, ids)
            return ids

    # -- one

    async def _enqueue_single(
        self, connection: asyncpg.Connection, task: NewTask, rows: TableRows, once: IdempotencyRecord | None
    ) -> EnqueueResult | None:
        """Enqueue with one statement; None if the key was used and has been deleted meanwhile: retry."""
        row, now = rows.values[0], self._steps.time()
        new = (
            task.tenant, task.queue, task.kind, task.priority, task.due_at, task.expires_at,
            task.max_attempts,
        )  # fmt: skip
        if once is None:
            sql = _single(rows.table, rows.columns, has_key=False)
            return EnqueueResult([await connection.fetchval(sql, now, *new, *row)])
        sql = _single(rows.table, rows.columns, has_key=True)
        is_free, id_ = await connection.fetchrow(sql, now, *new, *once, _lock(once), *row)
        if not is_free:
            raise _in_progress(once)
        if id_ is not None:
            return EnqueueResult([id_])
        earlier = await self._steps.run(connection, _find(once))
        return EnqueueResult((), earlier[0]) if earlier else None

    async def _used(self, connection: asyncpg.Connection, once: IdempotencyRecord) -> Row | None:
        """Return the earlier response for this key. Raises InProgress if another call uses it now."""
        if not await connection.fetchval(self._steps.sql["try_lock"].sql, _lock(once)):
            raise _in_progress(once)
        found = await self._steps.run(connection, _find(once))
        return found[0] if found else None

    # -- many

    async def _enqueue_all(self, group: Sequence[EnqueueRequest]) -> list[EnqueueResult | Exception]:
        """Enqueue in one commit; or one by one if a request had a conflict or cannot be written."""
        if len(group) > 1:
            try:
                return [*await self._enqueue_together(group)]
            except (StoreUnavailable, StoreFull) as error:
                if not isinstance(error.__cause__, _ONE_OF_THEM):
                    raise
            except (WriteConflict, asyncpg.PostgresError):
                pass
        answers: list[EnqueueResult | Exception] = []
        for one in group:
            try:
                answers.append(await self.enqueue(one, once=None, together=False))
            except Exception as error:  # raised to the caller of this request
                answers.append(error)
        return answers

    async def _enqueue_together(self, group: Sequence[EnqueueRequest]) -> list[EnqueueResult]:
        async with self._connection() as connection, connection.transaction():
            ids = await self._create(connection, group)
            for steps in merge_steps([one.also for one in group]):
                statement = self._steps.sql[steps[0].name]
                values = [statement.bind({"now": self._steps.time(), **step.params}) for step in steps]
                found = await connection.fetchmany(statement.sql, values)
                if len(found) < len(steps) and any(step.needed for step in steps):
                    raise WriteConflict(steps[0].name)
        return [EnqueueResult(own) for own in ids]

    async def _create(self, connection: asyncpg.Connection, group: Sequence[EnqueueRequest]) -> list[Sequence[TaskId]]:
        """Create tasks with their rows; the first task of each ordering key becomes claimable."""
        tasks = [task for one in group for task in one.tasks]
        if not tasks:
            return [() for _ in group]
        keys = ordering_keys(tasks)
        await self._steps.hold(connection, keys)
        ids, at = await self._take_ids(connection, len(tasks))
        await connection.copy_records_to_table(
            "tasks", columns=COLUMNS, schema_name=self._schema, records=task_rows(tasks, ids, at)
        )
        taken = split_ids_by_request(group, ids)
        for rows, its_ids in merge_rows(group, taken):
            await self._copy(connection, rows, its_ids)
        await self._steps.pass_turn(connection, keys, demote=True)
        return taken

    async def _take_ids(self, connection: asyncpg.Connection, n: int) -> tuple[list[TaskId], int]:
        row = await connection.fetchrow(self._steps.sql["take_ids"].sql, self._steps.time(), n)
        return row["ids"] or [], row["now"]

    async def _copy(self, connection: asyncpg.Connection, rows: TableRows, ids: Sequence[TaskId]) -> None:
        await connection.copy_records_to_table(
            rows.table,
            columns=("task", *rows.columns),
            schema_name=self._schema,
            records=[(id_, *values) for id_, values in zip(ids, rows.values, strict=True)],
        )


def _is_single(one: EnqueueRequest) -> bool:
    """Whether it is one task with its row and nothing else, without an ordering key."""
    return (
        len(one.tasks) == 1
        and [len(rows.values) for rows in one.rows] == [1]
        and not one.also
        and one.tasks[0].ordering_key is None
    )


def _lock(once: IdempotencyRecord) -> str:
    return f"{once.scope}\x01{once.key}"


def _in_progress(once: IdempotencyRecord) -> InProgress:
    return InProgress(f"a call with the key {once.key!r} is in progress", remedy="retry in one second")


def _find(once: IdempotencyRecord) -> Step:
    return Step("idempotency_key_find", {"scope": once.scope, "key": once.key})


@cache
def _single(table: str, columns: tuple[str, ...], *, has_key: bool) -> str:
    """Return the statement for a task, its row and its idempotency key; a key in use prevents all of it.

    Only the conflict sees a call that has committed meanwhile; a read would not, because the statement began
    before it had the lock.
    """
    clock = "coalesce($1::bigint, tidings_now())"
    first = 15 if has_key else 9
    values = ", ".join(f"${first + i}" for i in range(len(columns)))
    key = f"""
      guard as materialized (select pg_try_advisory_xact_lock(hashtextextended($14, 11)) as free),
      kept as (
        insert into idempotency_keys (scope, key, digest, answer, expires_at)
        select $9, $10, $11, $12, $13 from guard where free
        on conflict (scope, key) do update
        set digest = excluded.digest, answer = excluded.answer, expires_at = excluded.expires_at
        where idempotency_keys.expires_at <= {clock}
        returning 1
      ),"""  # noqa: S608
    return f"""
    with {key if has_key else ""}
      new as (
        insert into tasks (id, tenant, queue, kind, priority, due_at, changed_at, head, expires_at,
        max_attempts)
        select nextval('task_ids'), $2, $3, $4, $5, $6, {clock}, true, $7, $8 {"from kept" if has_key else ""}
        returning id
      ),
      own as (insert into {table} (task, {", ".join(columns)}) select id, {values} from new returning task)
    select {"(select free from guard), " if has_key else ""}(select task from own)"""  # noqa: S608
