"""Transactions of a client that is gone: PostgreSQL ends them, so that their locks block nobody (B17, E1)."""

from __future__ import annotations

import pytest

from tidings.store.port import Step
from tidings.store.postgres import PostgresStore
from tidings.store.postgres_server import CONNECTION_ERRORS

JOIN = Step("rate_limit_join", {"queue": "drill", "interval": 25_000})


async def test_the_locks_of_a_client_that_is_cut_off_are_released(postgres_url: str) -> None:
    """A host that vanishes between two statements holds the row of a rate limit; other nodes get it soon."""
    other, gone = PostgresStore(postgres_url, patience=60), PostgresStore(postgres_url, patience=5)
    await other.open()
    await gone.open()
    try:
        await gone.write([JOIN])
        async with gone._connection() as connection:
            await connection.execute("begin")
            await connection.execute("update rate_limits set next_at = next_at")

            await other.write([JOIN])

            with pytest.raises(CONNECTION_ERRORS):
                await connection.execute("select 1")
    finally:
        await gone.close()
        await other.close()
