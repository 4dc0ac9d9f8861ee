"""Settings and an open engine for one command."""

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


def settings(config: Path | None, database: str | None = None, *, sends: bool = False, **flags: object) -> Settings:
    """Load the settings; flags override them, and None means not given.

    A command that `sends` or asks providers needs the secrets of every channel.
    """
    from ..config import load

    return load(config, flags={"database": database, **flags}, needs_channel_secrets=sends)


def run(work: Coroutine[Any, Any, T], *, fast: bool = False) -> T:
    """Run a coroutine to its end. `fast` uses uvloop if it is installed."""
    with asyncio.Runner(loop_factory=_fast_loop() if fast else None) as runner:
        return runner.run(work)


@asynccontextmanager
async def opened(chosen: Settings) -> AsyncIterator[App]:
    """Open an engine that does not claim messages, and close it afterwards."""
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
    """Build the configured channels without opening the database, and close them afterwards."""
    from ..app import build

    app = build(chosen)
    try:
        yield app.channels
    finally:
        for channel in app.channels.values():
            await channel.close()


async def sync_clock(app: App) -> None:
    """Set the clock from the time of the database."""
    asked = app.clock.monotonic()
    rows = await app.store.read("now")
    app.clock.learn(rows[0]["now"], asked, app.clock.monotonic())


def _fast_loop() -> Any:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop
