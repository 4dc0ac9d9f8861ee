"""ProcessRecycling: after so many messages, or with so much memory in use, a fresh process takes over.

It stops in order, as for a signal, and ends with exit code 75, on which a supervisor starts it again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ..model.errors import TemporaryError
from ..observability import memory_usage
from ..observability.events import BatchSettled, Emit, Event, ProcessRecycling, TransportAttempts

EXIT_CODE = TemporaryError.exit_code
_LOOK = 1.0  # seconds


def recycle_reason(done: int, used: int | None, *, after: int | None, memory_limit: int | None) -> str | None:
    """Why it is time, or None."""
    if after is not None and done >= after:
        return f"{done:,} messages since the start"
    if memory_limit is not None and used is not None and used >= memory_limit:
        return f"{used >> 20:,} MiB of memory in use"
    return None


class Recycler:
    """Counts what was done, and asks for the stop when it is time."""

    def __init__(self, after: int | None, memory_limit: int | None, ask: Callable[[], None]) -> None:
        self._after = after
        self._memory_limit = memory_limit
        self._ask = ask
        self._done = 0
        self.code = 0

    def take(self, event: Event) -> None:
        """A sink for events."""
        if isinstance(event, BatchSettled):
            self._done += event.record_count
        elif isinstance(event, TransportAttempts):
            self._done += event.count

    async def watch(self, emit: Emit) -> None:
        """Look now and then, until it is time."""
        if self._after is None and self._memory_limit is None:
            return
        while True:
            await asyncio.sleep(_LOOK)
            why = recycle_reason(
                self._done, memory_usage.used_bytes(), after=self._after, memory_limit=self._memory_limit
            )
            if why is not None:
                self.code = EXIT_CODE
                emit(ProcessRecycling(why))
                self._ask()
                return
