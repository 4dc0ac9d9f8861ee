"""The engine for the length of one command: settings read, database opened, closed again whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..app import App
    from ..config import Settings
    from ..outbound.channels.base import Channel

T = TypeVar("T")


def settings(config: Path | None, database: str | None = None, **flags: object) -> Settings:
    """All settings; None means that a flag was not given."""
    from ..config import load

    return load(config, flags={"database": database, **flags})


def run(work: Coroutine[Any, Any, T], *, fast: bool = False) -> T:
    """The outermost line: everything below is asynchronous. `fast` takes the quicker loop if there is one."""
    with asyncio.Runner(loop_factory=_fast_loop() if fast else None) as runner:
        return runner.run(work)


@asynccontextmanager
async def opened(chosen: Settings) -> AsyncIterator[App]:
    """An engine with an open database that does no work of its own."""
    from ..app import build

    app = build(chosen)
    try:
        await app.open()
        await sync_clock(app)
        yield app
    finally:
        await app.close()


@asynccontextmanager
async def channels(chosen: Settings) -> AsyncIterator[Mapping[str, Channel]]:
    """The configured channels alone: no database is opened."""
    from ..app import build

    app = build(chosen)
    try:
        yield app.channels
    finally:
        for channel in app.channels.values():
            await channel.close()


async def sync_clock(app: App) -> None:
    """Ask the database what time it is, so that 'in 10 min' counts from there."""
    asked = app.clock.monotonic()
    rows = await app.store.read("now")
    app.clock.learn(rows[0]["now"], asked, app.clock.monotonic())


def _fast_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
