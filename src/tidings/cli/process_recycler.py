"""Process recycling: max_messages_per_process and max_memory_per_process.

At a limit the process shuts down gracefully with exit code 75, and a supervisor restarts it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..model.errors import TemporaryError
from ..observability import memory_usage
from ..observability.events import BatchSettled, Emit, Event, ParcelsSent, Recycling

EXIT_CODE = TemporaryError.exit_code
_INTERVAL = 1.0  # seconds between two checks


def recycle_reason(done: int, used: int | None, *, after: int | None, memory_limit: int | None) -> str | None:
    """Return which limit is reached, or None."""
    if after is not None and done >= after:
        return f"{done:,} messages since the start"
    if memory_limit is not None and used is not None and used >= memory_limit:
        return f"{used >> 20:,} MiB of memory in use"
    return None


class Recycler:
    """Counts sent messages and requests the shutdown at a limit."""

    def __init__(self, after: int | None, memory_limit: int | None, stop: Callable[[], None]) -> None:
        self._after = after
        self._memory_limit = memory_limit
        self._stop = stop
        self._done = 0
        self.code = 0

    def take(self, event: Event) -> None:
        """Count the messages of an event."""
        if isinstance(event, BatchSettled):
            self._done += event.record_count
        elif isinstance(event, ParcelsSent):
            self._done += event.count

    async def watch(self, emit: Emit) -> None:
        """Check the limits every second, until one is reached."""
        if self._after is None and self._memory_limit is None:
            return
        while True:
            await asyncio.sleep(_INTERVAL)
            why = recycle_reason(
                self._done, memory_usage.used_bytes(), after=self._after, memory_limit=self._memory_limit
            )
            if why is not None:
                self.code = EXIT_CODE
                emit(Recycling(why))
                self._stop()
                return
