"""Live updates by server-sent events (SSE): fragments are rendered once a second and sent when they change.

The overview is rendered at most once a second for all of its readers, and not at all without readers. After
a lost stream the page reconnects, or falls back to polling the same fragments. A stream ends within a second
after the key or session that opened it is revoked.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import orjson

from ..access.caller import current_caller
from ..kernel.clock import Clock
from ..model.errors import TidingsError

REFRESH_INTERVAL = 1.0  # seconds
KEEP_ALIVE = 15  # refreshes without changes before a keep-alive comment is sent
MAX_REFRESHES = 600  # per stream; the browser then reconnects
MAX_STREAMS = 200
ACCESS_CHECK_INTERVAL = 0.5  # seconds between checks of the key or session

Fragments = dict[str, str]  # HTML by element id
Render = Callable[[], Awaitable[Fragments]]
Pause = Callable[[float], Awaitable[bool]]
Allowed = Callable[[], Awaitable[bool]]


class LiveStreams:
    """All open streams of one process."""

    def __init__(self, pause: Pause | None = None) -> None:
        self._closing = asyncio.Event()
        self._pause = pause or self._wait
        self._open = 0

    @property
    def has_room(self) -> bool:
        """Whether another stream may be opened; otherwise the page polls."""
        return self._open < MAX_STREAMS and not self._closing.is_set()

    def close(self) -> None:
        self._closing.set()

    async def stream(self, render: Render) -> AsyncIterator[bytes]:
        """Yield server-sent events: all fragments once, then the changed ones."""
        known: Fragments = {}
        unchanged = 0
        self._open += 1
        try:
            yield b"retry: 1000\n\n"
            for _ in range(MAX_REFRESHES):
                fresh = await render_or_error(render)
                news = {id_: text for id_, text in fresh.items() if known.get(id_) != text}
                known |= news
                unchanged = 0 if news else unchanged + 1
                if news:
                    yield b"data: " + orjson.dumps(news) + b"\n\n"
                elif unchanged % KEEP_ALIVE == 0:
                    yield b": keep-alive\n\n"
                if await self._pause(REFRESH_INTERVAL):
                    return
        finally:
            self._open -= 1

    async def _wait(self, seconds: float) -> bool:
        """Wait; return whether the streams are being closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True


async def while_allowed(stream: AsyncIterator[bytes], is_allowed: Allowed) -> AsyncIterator[bytes]:
    """Pass a stream on until its reader loses access."""
    following: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(anext(stream, None))
            await asyncio.wait({following}, timeout=ACCESS_CHECK_INTERVAL)
            if not await is_allowed():
                return
            if following.done():
                piece, following = following.result(), None
                if piece is None:
                    return
                yield piece
    finally:
        if following is not None:
            following.cancel()
            await asyncio.wait({following})
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


class SharedFragments:
    """Fragments shared by callers with the same permissions, rendered at most once per `REFRESH_INTERVAL`.

    The cache key includes the tenant: no tenant sees what was rendered for another.
    """

    def __init__(self, render: Render, clock: Clock) -> None:
        self._render = render
        self._clock = clock
        self._lock = asyncio.Lock()
        self._rendered: dict[object, tuple[float, Fragments]] = {}

    async def __call__(self) -> Fragments:
        """Return the fragments of the last second, rendered if necessary."""
        async with self._lock:
            known = self._rendered.get(current_caller().view)
            is_fresh = known is not None and self._clock.monotonic() - known[0] < 0.9 * REFRESH_INTERVAL
            return known[1] if known is not None and is_fresh else await self._read()

    async def fresh(self) -> Fragments:
        """Return newly rendered fragments, for a caller that has just changed something."""
        async with self._lock:
            return await self._read()

    async def _read(self) -> Fragments:
        fragments = await self._render()
        if len(self._rendered) >= MAX_STREAMS:
            self._rendered.clear()
        self._rendered[current_caller().view] = (self._clock.monotonic(), fragments)
        return fragments


async def render_or_error(render: Render) -> Fragments:
    """Return the fragments, or the error as a fragment, so that a stream survives it."""
    try:
        return {"trouble": "", **await render()}
    except TidingsError as error:
        return {"trouble": html.escape(str(error))}
