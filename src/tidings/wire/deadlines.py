"""Deadlines that do not discard a response which has already arrived.

When a process resumes after a pause (SIGSTOP, a frozen container), expired timers run before its sockets are
read. A timer that fires late therefore allows a short time to read responses that arrived meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

LATE = 0.05  # seconds; a timer that fires later was delayed by a pause
GRACE = 1.0  # seconds to read responses that arrived during a pause


@asynccontextmanager
async def deadline(seconds: float, *, has_left: Callable[[], object] = lambda: True) -> AsyncIterator[None]:
    """Raise TimeoutError after `seconds`, or GRACE after a pause if the request had been sent before it."""
    loop = asyncio.get_running_loop()
    expires = loop.time() + seconds
    async with asyncio.timeout(None) as scope:

        def expire() -> None:
            now = loop.time()
            scope.reschedule(now + GRACE if now - expires > LATE and has_left() else now)

        timer = loop.call_at(expires, expire)
        try:
            yield
        finally:
            timer.cancel()
