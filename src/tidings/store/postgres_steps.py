"""Named statements on a PostgreSQL connection, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

import asyncpg

from .port import OrderingKey, Row, Step, WriteConflict
from .statements import SqlStatement


class PostgresSteps:
    """Runs them. `now` is a test's clock; without one every statement asks the server's."""

    def __init__(self, sql: Mapping[str, SqlStatement], now: Callable[[], int] | None) -> None:
        self.sql = sql
        self._now = now

    def time(self) -> int | None:
        """What statements take for now; None: their server's time."""
        return None if self._now is None else self._now()

    async def run(self, connection: asyncpg.Connection, step: Step) -> list[Row]:
        """One step."""
        statement = self.sql[step.name]
        rows = await connection.fetch(statement.sql, *statement.bind({"now": self.time(), **step.params}))
        return [dict(row) for row in rows]

    async def run_all(self, connection: asyncpg.Connection, steps: Sequence[Step]) -> list[list[Row]]:
        """One by one; Outrun where one that is needed finds nothing."""
        done: list[list[Row]] = []
        for step in steps:
            wanted = step.only_if is None or done[step.only_if]
            done.append(await self.run(connection, step) if wanted else [])
            if step.needed and not done[-1]:
                raise WriteConflict(step.name)
        return done

    async def hold(self, connection: asyncpg.Connection, keys: Collection[OrderingKey]) -> None:
        """Keep others away from these order keys until the transaction ends."""
        if keys:
            statement = self.sql["lock_keys"]
            names = {"queues": [k[0] for k in keys], "ordering_keys": [k[1] for k in keys]}
            await connection.fetch(statement.sql, *statement.bind(names))

    async def pass_turn(
        self, connection: asyncpg.Connection, keys: Collection[OrderingKey], *, demote: bool
    ) -> None:
        """The first of each line comes next; `demote`: another may have been first so far."""
        if keys and demote:
            statement = self.sql["demote"]
            await connection.executemany(
                statement.sql, [statement.bind({"queue": q, "ordering_key": k}) for q, k in sorted(keys)]
            )
        if keys:
            statement = self.sql["promote_all"]
            names = {"queues": [k[0] for k in keys], "ordering_keys": [k[1] for k in keys]}
            await connection.fetch(statement.sql, *statement.bind(names))
