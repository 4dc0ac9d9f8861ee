"""Virtual time: a loop whose clock jumps to the next timer, and processes that can be killed and paused.

A process is a context: whatever is started in it belongs to it. The callbacks of a killed process are never
run again (no handler of it runs either, as with SIGKILL), those of a paused one wait until it goes on.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
from asyncio import base_events, events
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple

from .clock import HostClock

HOST: contextvars.ContextVar[Host] = contextvars.ContextVar("host")
_MOST_ROUNDS = 20_000

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


class Deadlock(Exception):
    """The world would never end."""


class Host:
    """A process: alive, paused or dead."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self.pid = pid
        self.clock: HostClock | None = None  # of its machine
        self.nodes: set[int] = set()  # its incarnations
        self.seen_at = 0.0  # when a beat of it was last carried out
        self.beaten_at = 0.0  # when it asked for the last beat that was answered
        self.is_alive = True
        self.is_paused = False
        self.context = contextvars.copy_context()
        self.context.run(HOST.set, self)
        self._waiting: list[asyncio.Handle] = []
        self._tasks: dict[asyncio.Task[Any], None] = {}

    def start(self, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Begin something in this process."""
        return asyncio.get_running_loop().create_task(work, context=self.context)

    def owns(self, task: asyncio.Task[Any]) -> None:
        """Keep what has not ended, so that nothing of a dead process is tidied up while the world goes on."""
        self._tasks[task] = None
        task.add_done_callback(lambda ended: self._tasks.pop(ended, None))

    def kill(self) -> None:
        """From here on it does nothing at all."""
        self.is_alive = False
        self._waiting.clear()
        for task in self._tasks:
            task._log_destroy_pending = False  # type: ignore[attr-defined]

    def pause(self) -> None:
        """It stands still until it goes on."""
        self.is_paused = True

    def go_on(self) -> None:
        """Everything that became ready meanwhile is run now, in its order."""
        self.is_paused = False
        asyncio.get_running_loop()._ready.extend(self._waiting)  # type: ignore[attr-defined]
        self._waiting.clear()

    def admits(self, handle: asyncio.Handle) -> bool:
        """Whether a callback may run now; a paused process keeps it for later."""
        if self.is_paused and self.is_alive:
            self._waiting.append(handle)
        return self.is_alive and not self.is_paused


class _Handle(events.Handle):
    __slots__ = ()

    def _run(self) -> None:
        host = self._context.get(HOST, None)  # type: ignore[attr-defined]
        if host is None or host.admits(self):
            super()._run()


class _Timer(events.TimerHandle):
    __slots__ = ()

    def _run(self) -> None:
        host = self._context.get(HOST, None)  # type: ignore[attr-defined]
        if host is None or host.admits(self):
            super()._run()


class _Selector:
    """Never waits: what would have been waiting is added to the time."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._rounds = 0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise Deadlock("everything waits for something that will not come")
        self._rounds = 0 if timeout else self._rounds + 1
        if self._rounds > _MOST_ROUNDS:
            raise Deadlock("something goes round and round, and no time passes")
        self._loop.passed += timeout
        return []


class VirtualLoop(base_events.BaseEventLoop):
    """asyncio's own loop, with a time of its own and no outside world."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self._selector = _Selector(self)
        self.set_task_factory(_made)
        self.set_exception_handler(lambda loop, context: None)  # what matters is judged elsewhere

    def time(self) -> float:
        """Seconds since the world began."""
        return self.passed

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    def _call_soon(self, callback: Any, args: Any, context: Any) -> asyncio.Handle:
        handle = _Handle(callback, args, self, context)
        self._ready.append(handle)  # type: ignore[attr-defined]
        return handle

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        """As asyncio's, with a handle that knows its process."""
        timer = _Timer(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        timer._scheduled = True  # type: ignore[attr-defined]
        return timer

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        """Threads have no place in a world that can be repeated."""
        raise RuntimeError("no threads in virtual time")


def _made(loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
    task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, **options)
    context = options.get("context")
    host = context.get(HOST, None) if context is not None else HOST.get(None)
    if host is not None:
        host.owns(task)
    return task
