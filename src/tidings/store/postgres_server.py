"""PostgreSQL servers: URL, session settings, safety checks and error translation."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ..model.errors import StoreFull, StoreRefused, StoreUnavailable, StoreUnusable

# Plans use index scans and are made once: a queue's table alternates between empty and full, statistics lag
# behind, and planning a claim costs as much as running it. JIT would cost even more.
SESSION_SETTINGS = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "application_name": "tidings",
}
CONNECTION_ERRORS = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that broke while it was used
    asyncpg.PostgresConnectionError,
    asyncpg.PostgresSystemError,
    asyncpg.OperatorInterventionError,  # shutdown, crash, start, a cancelled query
    asyncpg.InsufficientResourcesError,  # connections, memory
    asyncpg.IdleInTransactionSessionTimeoutError,  # see end_abandoned_transactions
    TimeoutError,
)


def split_url(url: str) -> tuple[str, str]:
    """Split our URL into the driver's URL and the schema from `?schema=`."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    schema = query.pop("schema", "tidings")
    return urlunsplit(parts._replace(query=urlencode(query))), schema


async def end_abandoned_transactions(connection: asyncpg.Connection, *, after: float) -> None:
    """Let the server end transactions of lost clients, and release their locks.

    A host that is cut off in the middle of a transaction would otherwise block every other node until TCP
    notices, which takes hours by default. A statement, not a startup parameter, because poolers ignore those.
    """
    await connection.execute(
        "select set_config('idle_in_transaction_session_timeout', $1, false),"
        " set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
        " set_config('tcp_keepalives_count', '3', false)",
        f"{round(after * 1000)}ms",
    )


async def no_reset(_connection: asyncpg.Connection) -> None:
    """Do not reset: the session state never changes, and a reset would cost a round trip."""


async def refuse_unsafe(connection: asyncpg.Connection) -> None:
    """Raise StoreUnusable if the server's settings do not guarantee durability."""
    if connection.get_server_version().major < 14:
        raise StoreUnusable("this PostgreSQL is older than 14", remedy="upgrade the server to PostgreSQL 14 or newer")
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if await connection.fetchval("select current_setting($1)", name) == "off":
            raise StoreUnusable(
                f"PostgreSQL runs with {name} = off, which loses accepted messages in a power cut",
                remedy=f"set {name} = on (ALTER SYSTEM SET {name} = on, then reload)",
            )


async def refuse_transaction_pooling(pool: asyncpg.Pool) -> None:
    """Raise StoreUnusable behind a pooler that changes sessions between transactions, which breaks LISTEN."""
    async with pool.acquire() as one, pool.acquire() as other:
        try:
            before = await _backends(one, other)
            for first, second in ((one, other), (other, one)):
                begun = [first.transaction(), second.transaction()]
                for transaction in begun:
                    await transaction.start()
                for transaction in begun:
                    await transaction.commit()
                if before[0] == before[1] or await _backends(one, other) != before:
                    raise _pooled()
        except (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError) as error:
            raise _pooled() from error


async def _backends(*connections: asyncpg.Connection) -> list[int]:
    return [await connection.fetchval("select pg_backend_pid()") for connection in connections]


def _pooled() -> StoreUnusable:
    return StoreUnusable(
        "a pooler in front of PostgreSQL gives each transaction another session (transaction pooling)",
        remedy="connect directly, or set pool_mode = session; see: tidings docs postgresql",
    )


@contextlib.contextmanager
def translate_postgres_errors(*, started: bool) -> Iterator[None]:
    """Translate driver errors.

    At the start a refusal needs a person: StoreUnusable. Later the same refusal (a password being rotated, a
    standby not promoted yet) is an outage: StoreUnavailable. Only data errors (SQLSTATE classes 22 and 23)
    are caused by the values; they pass unchanged.
    """
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise StoreFull("the database's disk is full", remedy="free space; work resumes automatically") from error
    except (asyncpg.DeadlockDetectedError, asyncpg.SerializationError, asyncpg.LockNotAvailableError) as error:
        raise StoreUnavailable(f"PostgreSQL was busy ({error})", remedy="retry the call") from error
    except asyncpg.ProtocolViolationError as error:
        raise _refused(error, started) from error
    except CONNECTION_ERRORS as error:
        raise StoreUnavailable(
            f"PostgreSQL does not respond ({type(error).__name__}: {error})",
            remedy="check that the server is running and the database URL is correct",
        ) from error
    except (asyncpg.DataError, asyncpg.IntegrityConstraintViolationError):
        raise
    except asyncpg.PostgresError as error:
        raise _refused(error, started) from error


def _refused(error: asyncpg.PostgresError, started: bool) -> StoreUnavailable | StoreUnusable:
    problem, remedy, reason = _refusal(error)
    if started and reason:
        return StoreRefused(problem, remedy=remedy, reason=reason)
    return (StoreUnavailable if started else StoreUnusable)(problem, remedy=remedy)


def _refusal(error: asyncpg.PostgresError) -> tuple[str, str, str]:
    """Return why the server refuses, the remedy, and a short reason without hosts or files."""
    match error:
        case asyncpg.InvalidCatalogNameError():
            remedy = "create it (createdb --owner ROLE NAME), or correct the database URL"
            return f"PostgreSQL refused the connection: {error}", remedy, "login refused"
        case asyncpg.InvalidAuthorizationSpecificationError():
            return f"PostgreSQL refused the connection: {error}", "check the database URL", "login refused"
        case asyncpg.InsufficientPrivilegeError():
            remedy = "let the role own its schema, or GRANT CREATE ON DATABASE to it for the first start"
            return f"PostgreSQL denied permission ({error})", remedy, "permission denied"
        case asyncpg.ProtocolViolationError():
            remedy = "behind PgBouncer list them in ignore_startup_parameters, see: tidings docs postgresql"
            return f"PostgreSQL refused the session settings ({error})", remedy, "login refused"
        case asyncpg.ReadOnlySQLTransactionError():
            return "this PostgreSQL is read-only", "point the database URL at the primary", "read-only"
        case _:
            return f"PostgreSQL refused a statement ({error.sqlstate}: {error})", "check the server's log", ""
