"""Wake-up hints between processes on one PostgreSQL: NOTIFY after a commit, LISTEN on a separate connection.

A lost hint only costs time, because its receivers poll, too.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

import asyncpg

from ..model.errors import StoreFull, StoreUnavailable
from .postgres_server import CONNECTION_ERRORS

_CHANNEL = "tidings_wake"
_SOON = 0.005  # seconds between two hints


class PostgresNotifier:
    """Sends and receives hints. `connection` borrows a connection of the store."""

    def __init__(
        self, dsn: str, connection: Callable[[], contextlib.AbstractAsyncContextManager[asyncpg.Connection]]
    ) -> None:
        self._dsn = dsn
        self._connection = connection
        self._wake: Callable[[], None] = lambda: None
        self._listening: asyncio.Task[None] | None = None
        self._hinting: asyncio.Task[None] | None = None

    def give(self) -> None:
        """Send a hint to all processes soon."""
        if self._hinting is None or self._hinting.done():
            self._hinting = asyncio.create_task(self._notify())

    def take(self, wake: Callable[[], None]) -> None:
        """Call `wake` for every hint; a lost connection is replaced."""
        self._wake = wake
        if self._listening is None:
            self._listening = asyncio.create_task(self._listen())

    async def close(self) -> None:
        """Stop listening; a pending hint is still sent."""
        if self._hinting is not None:
            await asyncio.wait([self._hinting], timeout=1)
        for task in (self._listening, self._hinting):
            if task is not None:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
        self._listening = self._hinting = None

    async def _notify(self) -> None:
        await asyncio.sleep(_SOON)
        with contextlib.suppress(StoreUnavailable, StoreFull):
            async with self._connection() as connection:
                await connection.execute(f"notify {_CHANNEL}")

    async def _listen(self) -> None:
        while True:
            with contextlib.suppress(*CONNECTION_ERRORS, asyncpg.PostgresError):
                connection = await asyncpg.connect(
                    self._dsn, timeout=5, server_settings={"application_name": "tidings wake"}
                )
                try:
                    gone = asyncio.Event()
                    connection.add_termination_listener(lambda _c, gone=gone: gone.set())
                    await connection.add_listener(_CHANNEL, lambda *_: self._wake())
                    self._wake()
                    await gone.wait()
                finally:
                    connection.terminate()
            await asyncio.sleep(1)
