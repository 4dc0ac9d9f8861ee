"""Databases of the crash drills, asked from outside while the engine's processes live and die."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg

from tidings.drill.engine_records import Row
from tidings.store.statements import load_statements
from tidings.testing import PostgresCluster

from ..time_limits import Limit

ROLE = "drill"  # the role that workers connect as, so that their connections can be told from ours

_LATE = "select count(*) from {0}history where detail like '%late result%'"


class Database(Protocol):
    """One database of one drill."""

    url: str
    worker_url: str

    async def read(self, name: str, **params: Any) -> list[Row]: ...

    async def rows(self, question: str) -> list[Any]: ...

    async def left_alone(self) -> None: ...


class SqliteFile:
    """A file; what a dead process had committed can be read at once."""

    def __init__(self, path: Path) -> None:
        self.url = self.worker_url = f"sqlite:///{path}"
        self.path = path

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run one of the store's statements."""
        statement = load_statements("sqlite")[name]
        with self._connected() as connection:
            connection.row_trace = lambda cursor, row: dict(
                zip([column[0] for column in cursor.get_description()], row, strict=True)
            )
            return list(connection.execute(statement.sql, statement.bind(params)))

    async def rows(self, question: str) -> list[Any]:
        """Run a question of a test's own."""
        with self._connected() as connection:
            return list(connection.execute(question.format("")))

    @contextlib.contextmanager
    def _connected(self) -> Iterator[apsw.Connection]:
        connection = apsw.Connection(str(self.path))
        try:
            connection.setbusytimeout(10_000)
            yield connection
        finally:
            connection.close()

    async def left_alone(self) -> None:
        """Nothing of a dead process goes on."""


class PostgresDatabase:
    """A database of a private cluster; a dead client's last statement may still be running in the server."""

    def __init__(self, cluster: PostgresCluster, name: str) -> None:
        self.url = cluster.create_database(name)
        self.worker_url = self.url.replace("://tidings@", f"://{ROLE}@")
        self._question = f"select count(*) from pg_stat_activity where usename = '{ROLE}' and datname = '{name}'"

    def through(self, address: str) -> str:
        """The workers' URL by another way, such as through a proxy."""
        return self.worker_url.replace("@/", f"@{address}/").partition("?")[0]

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run one of the store's statements."""
        statement = load_statements("postgres")[name]
        async with self._connected() as connection:
            return list(map(dict, await connection.fetch(statement.sql, *statement.bind(params))))

    async def rows(self, question: str) -> list[Any]:
        """Run a question of a test's own."""
        async with self._connected() as connection:
            return list(await connection.fetch(question.format("tidings.")))

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncpg.Connection]:
        connection = await asyncpg.connect(self.url, timeout=10, server_settings={"search_path": "tidings"})
        try:
            yield connection
        finally:
            await connection.close()

    async def left_alone(self) -> None:
        """Wait until the server has noticed that its clients are gone; only with a single worker."""
        limit = Limit(30)
        while (await self.rows(self._question))[0][0]:
            assert not limit.is_over(), "a dead worker's connections are still open"
            await asyncio.sleep(0.01)


async def make_role(cluster: PostgresCluster) -> None:
    """The role of the workers; trusted like everybody in a private cluster."""
    connection = await asyncpg.connect(cluster.dsn(), timeout=10)
    try:
        if not await connection.fetchval("select 1 from pg_roles where rolname = $1", ROLE):
            await connection.execute(f"create role {ROLE} superuser login")
    finally:
        await connection.close()


async def late_results(database: Database) -> int:
    """How many results came too late and were kept as evidence."""
    return int((await database.rows(_LATE))[0][0])
