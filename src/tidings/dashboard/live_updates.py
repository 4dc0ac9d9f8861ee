"""Live pages: fragments of a page, rendered again once a second and sent only where they changed.

However many people look at the first page, it is read once a second, and not at all when nobody looks.
Losing a stream loses nothing: the page asks again, or falls back to asking for the same fragments. A stream
ends within a second of the key or session that opened it.
"""

from __future__ import annotations

import asyncio
import html
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable

import orjson

from ..access.caller import current_caller
from ..kernel.clock import Clock
from ..model.errors import TidingsError

REFRESH_INTERVAL = 1.0  # seconds between two looks
KEEP_ALIVE = 15  # looks without news, after which a sign of life is sent
LONGEST = 600  # looks of one stream; the browser then connects again
MOST_STREAMS = 200
LOOK_AGAIN = 0.5  # seconds between two looks whether the reader's key or session still opens

Fragments = dict[str, str]  # by the id of the element that they fill
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
        """Whether one more stream may be opened; otherwise the page asks by itself."""
        return self._open < MOST_STREAMS and not self._closing.is_set()

    def close(self) -> None:
        """End every stream."""
        self._closing.set()

    async def stream(self, render: Render) -> AsyncIterator[bytes]:
        """Server-sent events: everything once, then what changed."""
        known: Fragments = {}
        quiet = 0
        self._open += 1
        try:
            yield b"retry: 1000\n\n"
            for _ in range(LONGEST):
                fresh = await render_or_error(render)
                news = {id_: text for id_, text in fresh.items() if known.get(id_) != text}
                known |= news
                quiet = 0 if news else quiet + 1
                if news:
                    yield b"data: " + orjson.dumps(news) + b"\n\n"
                elif quiet % KEEP_ALIVE == 0:
                    yield b": still here\n\n"
                if await self._pause(REFRESH_INTERVAL):
                    return
        finally:
            self._open -= 1

    async def _wait(self, seconds: float) -> bool:
        """Whether the streams are being closed."""
        try:
            async with asyncio.timeout(seconds):
                await self._closing.wait()
        except TimeoutError:
            return False
        return True


async def while_allowed(stream: AsyncIterator[bytes], is_allowed: Allowed) -> AsyncIterator[bytes]:
    """A stream that ends soon after whoever reads it may no longer."""
    following: asyncio.Future[bytes | None] | None = None
    try:
        while True:
            following = following or asyncio.ensure_future(_next(stream))
            await asyncio.wait({following}, timeout=LOOK_AGAIN)
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


async def _next(stream: AsyncIterator[bytes]) -> bytes | None:
    return await anext(stream, None)


class SharedFragments:
    """Fragments shared by callers with the same permissions, rendered at most once per `REFRESH_INTERVAL`.

    Others get their own: a page must not show one tenant what was rendered for another.
    """

    def __init__(self, render: Render, clock: Clock) -> None:
        self._render = render
        self._clock = clock
        self._lock = asyncio.Lock()
        self._rendered: dict[object, tuple[float, Fragments]] = {}

    async def __call__(self) -> Fragments:
        """What it looked like within the last second."""
        async with self._lock:
            known = self._rendered.get(current_caller().view)
            is_fresh = known is not None and self._clock.monotonic() - known[0] < 0.9 * REFRESH_INTERVAL
            return known[1] if known is not None and is_fresh else await self._read()

    async def fresh(self) -> Fragments:
        """What it looks like now, for whoever has just changed something."""
        async with self._lock:
            return await self._read()

    async def _read(self) -> Fragments:
        fragments = await self._render()
        if len(self._rendered) >= MOST_STREAMS:
            self._rendered.clear()
        self._rendered[current_caller().view] = (self._clock.monotonic(), fragments)
        return fragments


async def render_or_error(render: Render) -> Fragments:
    """Fragments, or what keeps us from having them: a page that is looked at must say so and go on."""
    try:
        return {"trouble": "", **await render()}
    except TidingsError as error:
        return {"trouble": html.escape(str(error))}
