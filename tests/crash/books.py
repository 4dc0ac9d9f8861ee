"""The engine's own books, read from outside while its processes live and die."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

import apsw
import asyncpg

from tidings.testing import Cluster

from .ledger import Book

ROLE = "drill"  # the role that workers connect as, so that their connections can be told from ours

_BOOKS = """select m.recipient, t.state, t.unknown, t.crashes
from {0}tasks t join {0}messages m on m.task = t.id"""
_HELD = """select m.recipient, t.started_at is not null, n.name
from {0}tasks t join {0}messages m on m.task = t.id join {0}nodes n on n.id = t.node
where t.state = 'processing'"""
_OPEN = "select count(*) from {0}tasks where state in ('pending', 'processing')"
_SETTLED_AT = """select m.recipient, h.at from {0}history h join {0}messages m on m.task = h.task
where h.origin = 'processing' order by h.at"""
_LATE = "select count(*) from {0}history where detail like '%late result%'"


class Database(Protocol):
    """One database of one drill."""

    url: str
    worker_url: str

    async def rows(self, question: str) -> list[Any]: ...

    async def left_alone(self) -> None: ...


class SqliteFile:
    """A file; what a dead process had committed can be read at once."""

    def __init__(self, path: Path) -> None:
        self.url = self.worker_url = f"sqlite:///{path}"
        self.path = path

    async def rows(self, question: str) -> list[Any]:
        connection = apsw.Connection(str(self.path))
        try:
            connection.setbusytimeout(10_000)
            return list(connection.execute(question.format("")))
        finally:
            connection.close()

    async def left_alone(self) -> None:
        """Nothing of a dead process goes on."""


class PostgresDatabase:
    """A database of a private cluster; a dead client's last statement may still be running in the server."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.url = cluster.create_database(name)
        self.worker_url = self.url.replace("://tidings@", f"://{ROLE}@")
        self._question = (
            f"select count(*) from pg_stat_activity where usename = '{ROLE}' and datname = '{name}'"
        )

    async def rows(self, question: str) -> list[Any]:
        connection = await asyncpg.connect(self.url, timeout=10)
        try:
            return list(await connection.fetch(question.format("tidings.")))
        finally:
            await connection.close()

    async def left_alone(self) -> None:
        """Wait until the server has noticed that its clients are gone; only with a single worker."""
        for _ in range(500):
            if not (await self.rows(self._question))[0][0]:
                return
            await asyncio.sleep(0.01)


async def make_role(cluster: Cluster) -> None:
    """The role of the workers; trusted like everybody in a private cluster."""
    connection = await asyncpg.connect(cluster.dsn(), timeout=10)
    try:
        if not await connection.fetchval("select 1 from pg_roles where rolname = $1", ROLE):
            await connection.execute(f"create role {ROLE} superuser login")
    finally:
        await connection.close()


async def books(database: Database) -> dict[str, Book]:
    """What the engine says about every message."""
    return {row[0]: Book(row[1], bool(row[2]), row[3]) for row in await database.rows(_BOOKS)}


async def held(database: Database, pid: int) -> dict[str, bool]:
    """What a process has at work, and whether its start is written down."""
    return {row[0]: bool(row[1]) for row in await database.rows(_HELD) if row[2].endswith(f":{pid}")}


async def unfinished(database: Database) -> int:
    """How many messages wait or are at work."""
    return int((await database.rows(_OPEN))[0][0])


async def settled_at(database: Database) -> dict[str, float]:
    """When each message was last moved on from being at work, in seconds since 1970."""
    return {row[0]: row[1] / 1e6 for row in await database.rows(_SETTLED_AT)}


async def late_results(database: Database) -> int:
    """How many results came too late and were kept as evidence."""
    return int((await database.rows(_LATE))[0][0])
