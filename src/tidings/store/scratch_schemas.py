"""Scratch schemas on PostgreSQL: created for one drill, locked while it runs, removed with their contents."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ..model.errors import Conflict, StoreUnavailable, StoreUnusable
from .external_tables.port import quote_identifier
from .postgres_server import split_url

PREFIX = "tidings_drill_"
_TIMEOUT = 60.0  # seconds per statement

_LOCK = "select pg_try_advisory_lock(hashtextextended($1, 0))"
_LEFT = "select nspname from pg_namespace where starts_with(nspname, $1) order by nspname"


@contextlib.asynccontextmanager
async def scratch_schema(url: str, schema: str) -> AsyncIterator[str]:
    """Create a schema and lock it. Return the URL that selects it."""
    async with _connected(url) as connection:
        if not await connection.fetchval(_LOCK, schema):
            raise Conflict(f"the schema {schema} is in use by another drill", remedy="start the drill again")
        try:
            await connection.execute(f"create schema {quote_identifier(schema)}")
        except asyncpg.DuplicateSchemaError:
            raise Conflict(f"the schema {schema} already exists", remedy="tidings drill --clean removes it") from None
        yield _into(url, schema)


async def remove_schema(url: str, schema: str) -> None:
    """Remove a schema and everything in it."""
    assert schema.startswith(PREFIX), "only schemas of drills"
    async with _connected(url) as connection:
        await _drop(connection, schema)


async def remove_stale_schemas(url: str) -> list[str]:
    """Remove the schemas of drills that have ended. Return their names."""
    async with _connected(url) as connection:
        found = [row["nspname"] for row in await connection.fetch(_LEFT, PREFIX)]
        gone = [schema for schema in found if await connection.fetchval(_LOCK, schema)]
        for schema in gone:
            await _drop(connection, schema)
    return gone


async def _drop(connection: asyncpg.Connection, schema: str) -> None:
    await connection.execute(f"drop schema if exists {quote_identifier(schema)} cascade")


def _into(url: str, schema: str) -> str:
    parts = urlsplit(url)
    query = {**dict(parse_qsl(parts.query)), "schema": schema}
    return urlunsplit(parts._replace(query=urlencode(query)))


@contextlib.asynccontextmanager
async def _connected(url: str) -> AsyncIterator[asyncpg.Connection]:
    try:
        connection = await asyncpg.connect(
            split_url(url)[0],
            timeout=10,
            command_timeout=_TIMEOUT,
            server_settings={"client_min_messages": "warning", "application_name": "tidings drill"},
        )
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError) as error:
        raise StoreUnavailable(
            f"PostgreSQL does not respond ({error})",
            remedy="check that the server is running and the database URL is correct",
        ) from error
    try:
        yield connection
    except asyncpg.InsufficientPrivilegeError as error:
        raise StoreUnusable(
            f"PostgreSQL denied creating a schema for the drill ({error})",
            remedy="GRANT CREATE ON DATABASE to the role, or use another --database",
        ) from error
    finally:
        with contextlib.suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
            await connection.close(timeout=5)
