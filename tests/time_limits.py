"""Time limits of tests, in seconds of a quiet machine.

A limit says how long something may take when nothing else runs. Before a limit counts as exceeded, a probe
measures how much slower the machine is at that moment, and the limit is stretched by that factor. Tests that
are in time measure nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

_STEPS = 1_000_000
_QUIET = 0.035  # seconds that the steps take on the 2-core machine that the limits were chosen on
_LOOK = 0.005  # seconds between two looks at a condition


def slowness() -> float:
    """How many times longer work takes now than on a quiet machine; at least 1."""
    began, count = time.perf_counter(), 0
    for step in range(_STEPS):
        count += step & 7
    return max(1.0, (time.perf_counter() - began) / _QUIET)


class Limit:
    """A time limit that runs from now on; `restart` it when something has moved.

    With `time.process_time` or `time.thread_time` as its clock, it limits work instead of time.
    """

    def __init__(self, seconds: float, *, clock: Callable[[], float] | None = None) -> None:
        self._seconds = seconds
        self._clock = clock or time.monotonic
        self._factor = 1.0
        self.restart()

    def restart(self) -> None:
        """Count from now on."""
        self._began = self._clock()

    @property
    def left(self) -> float:
        """Seconds until it is worth asking whether the limit is exceeded."""
        return self._began + self._seconds * self._factor - self._clock()

    def is_over(self) -> bool:
        """Whether the limit is exceeded; measures the machine before it says yes."""
        if self.left > 0:
            return False
        self._factor = max(self._factor, slowness())
        return self.left <= 0


async def until(
    condition: Callable[[], object], seconds: float = 60, *, moved: Callable[[], object] = lambda: None
) -> bool:
    """Wait until something holds; False when `moved` has not changed for that long."""
    limit, last = Limit(seconds), moved()
    while not condition():
        if (now := moved()) != last:
            last = now
            limit.restart()
        elif limit.is_over():
            return False
        await asyncio.sleep(_LOOK)
    return True


@contextlib.asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """Raise TimeoutError when the body takes longer."""
    loop, limit = asyncio.get_running_loop(), Limit(seconds)
    async with asyncio.timeout(None) as timeout:
        timers: list[asyncio.TimerHandle] = []

        def look() -> None:
            if limit.is_over():
                timeout.reschedule(loop.time())
            else:
                timers[:] = [loop.call_later(limit.left, look)]

        look()
        try:
            yield
        finally:
            timers[0].cancel()


@pytest.hookimpl(tryfirst=True, optionalhook=True)
def pytest_timeout_set_timer(item: pytest.Item, settings: Any) -> bool | None:
    """Stretch the time limit of a test in the same way, where pytest-timeout keeps it by a signal."""
    if settings.method != "signal" or threading.current_thread() is not threading.main_thread():
        return None
    import pytest_timeout

    limit = Limit(settings.timeout)

    def expired(*_: object) -> None:
        __tracebackhide__ = True
        if limit.is_over():
            pytest_timeout.timeout_sigalrm(item, settings)
        else:
            signal.setitimer(signal.ITIMER_REAL, limit.left)

    def cancel() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    item.cancel_timeout = cancel  # type: ignore[attr-defined]
    signal.signal(signal.SIGALRM, expired)
    signal.setitimer(signal.ITIMER_REAL, settings.timeout)
    return True
