"""What must be known of a PostgreSQL server: its URL, our session, what makes it unsafe, its errors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg

from ..model.errors import StoreFull, StoreUnavailable, WrongStore

# Plans are pinned to index scans and made once: a queue's table is empty in one minute and full in the next,
# statistics lag behind, and planning the claim costs as much as running it. JIT would cost more still.
SESSION = {
    "jit": "off",
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "application_name": "tidings",
}
LOST = (
    OSError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # a connection that broke off while it was being used
    asyncpg.PostgresConnectionError,
    asyncpg.PostgresSystemError,
    asyncpg.OperatorInterventionError,  # shutdown, crash, start, a cancelled query
    asyncpg.InsufficientResourcesError,  # connections, memory
    TimeoutError,
)


def split(url: str) -> tuple[str, str]:
    """The driver's URL, and the schema that ours may name in `?schema=`."""
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query))
    schema = query.pop("schema", "tidings")
    return urlunsplit(parts._replace(query=urlencode(query))), schema


async def no_reset(_connection: asyncpg.Connection) -> None:
    """Nothing to reset: no session state is ever changed, and a round trip per use would be paid for it."""


async def refuse_unsafe(connection: asyncpg.Connection) -> None:
    """Durability is decided by the server's settings, so they are read back."""
    if connection.get_server_version().major < 14:
        raise WrongStore(
            "this PostgreSQL is older than 14", remedy="upgrade the server to PostgreSQL 14 or newer"
        )
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        if await connection.fetchval("select current_setting($1)", name) == "off":
            raise WrongStore(
                f"PostgreSQL runs with {name} = off, which loses accepted messages in a power cut",
                remedy=f"set {name} = on (ALTER SYSTEM SET {name} = on, then reload)",
            )


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """The driver's errors as ours."""
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise StoreFull("the database's disk is full", remedy="free space; work resumes by itself") from error
    except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise WrongStore(
            f"PostgreSQL refused the connection: {error}", remedy="check the database URL"
        ) from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise WrongStore(
            f"PostgreSQL does not allow it ({error})",
            remedy="let the role own its schema, or GRANT CREATE ON DATABASE to it for the first start",
        ) from error
    except asyncpg.ProtocolViolationError as error:
        raise WrongStore(
            f"the server refused our session settings ({error})",
            remedy="behind PgBouncer list them in ignore_startup_parameters, see docs/how-to/postgresql.md",
        ) from error
    except asyncpg.ReadOnlySQLTransactionError as error:
        raise WrongStore(
            "this PostgreSQL is read-only", remedy="point the database URL at the primary"
        ) from error
    except (
        asyncpg.DeadlockDetectedError,
        asyncpg.SerializationError,
        asyncpg.LockNotAvailableError,
    ) as error:
        raise StoreUnavailable(
            f"PostgreSQL was busy ({error})", remedy="the same call may succeed now"
        ) from error
    except LOST as error:
        raise StoreUnavailable(
            f"PostgreSQL does not answer ({type(error).__name__}: {error})",
            remedy="check that the server runs and the database URL is right",
        ) from error
