"""Runs named statements on a PostgreSQL connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import asyncpg

from .port import OrderingKey, Row, Step, WriteConflict
from .statements import SqlStatement


class PostgresSteps:
    """Runs steps. `now` is a test's clock; without one, statements use the server's time."""

    def __init__(self, sql: Mapping[str, SqlStatement], now: Callable[[], int] | None) -> None:
        self.sql = sql
        self._now = now

    def time(self) -> int | None:
        """The time for statements; None: the server's time."""
        return None if self._now is None else self._now()

    async def run(self, connection: asyncpg.Connection, step: Step) -> list[Row]:
        statement = self.sql[step.name]
        rows = await connection.fetch(statement.sql, *statement.bind({"now": self.time(), **step.params}))
        return [dict(row) for row in rows]

    async def run_all(self, connection: asyncpg.Connection, steps: Sequence[Step]) -> list[list[Row]]:
        """Run the steps in order. Raises WriteConflict if a needed step returns no rows."""
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(await self.run(connection, step) if wanted else [])
            if step.needed and not done[-1]:
                raise WriteConflict(step.name)
        return done

    async def hold(self, connection: asyncpg.Connection, keys: Collection[OrderingKey]) -> None:
        """Lock these ordering keys until the transaction ends."""
        await self._run_for_keys(connection, "lock_keys", keys)

    async def pass_turn(self, connection: asyncpg.Connection, keys: Collection[OrderingKey], *, demote: bool) -> None:
        """Make the first task of each ordering key claimable; `demote`: another may have been first."""
        if keys and demote:
            statement = self.sql["demote"]
            await connection.executemany(
                statement.sql, [statement.bind({"queue": q, "ordering_key": k}) for q, k in sorted(keys)]
            )
        await self._run_for_keys(connection, "promote_all", keys)

    async def _run_for_keys(self, connection: asyncpg.Connection, name: str, keys: Collection[OrderingKey]) -> None:
        if keys:
            statement = self.sql[name]
            names = {"queues": [k[0] for k in keys], "ordering_keys": [k[1] for k in keys]}
            await connection.fetch(statement.sql, *statement.bind(names))
