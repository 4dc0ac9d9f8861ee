"""The bench's own PostgreSQL: private, durable settings, one fresh database per measurement."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import asyncpg

from tidings.testing.postgres import PostgresCluster

SETTINGS: dict[str, str | int] = {
    "fsync": "on",
    "synchronous_commit": "on",
    "full_page_writes": "on",
    "shared_buffers": "2GB",
    "max_wal_size": "8GB",
    "max_connections": 200,
}


class Server:
    """A running PostgreSQL that hands out empty databases."""

    def __init__(self, cluster: PostgresCluster) -> None:
        self._cluster = cluster
        self._numbers = count(1)

    def version(self) -> str:
        """The server's version, such as 15.18."""

        async def ask() -> str:
            connection = await asyncpg.connect(self._cluster.dsn())
            said: str = await connection.fetchval("show server_version")
            await connection.close()
            return said.partition(" ")[0]

        return asyncio.run(ask())

    @contextmanager
    def database(self) -> Iterator[str]:
        """An empty database, as its DSN; dropped afterwards, so one run's dead rows never meet the next."""
        name = f"bench_{next(self._numbers)}"
        dsn = self._cluster.create_database(name)
        try:
            yield dsn
        finally:
            self._cluster.drop_database(name)


@contextmanager
def postgres() -> Iterator[Server]:
    """Start the server, stop it and remove its data at the end."""
    with PostgresCluster(settings=SETTINGS) as cluster:
        yield Server(cluster)


@contextmanager
def old_snapshot(dsn: str) -> Iterator[None]:
    """Hold a snapshot, as a forgotten export does: nothing that dies from now on may be cleaned away."""
    with asyncio.Runner() as runner:
        connection = runner.run(asyncpg.connect(dsn))
        runner.run(connection.execute("begin isolation level repeatable read; select pg_current_snapshot()"))
        try:
            yield
        finally:
            runner.run(connection.close())
