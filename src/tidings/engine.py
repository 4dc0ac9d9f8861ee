"""The engine embedded in another program: opened, running, and closed with it.

It works like `tidings serve` without its own port: the program is one more process of the fleet. Accepted
messages are durable before `send` returns, and any process may send them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

from .app import App, build
from .config import Settings, load
from .model.errors import Conflict
from .observability.events import Emit
from .observability.log import log_sink
from .outbound.draft_parser import DraftParser
from .outbound.service import OutboundService

_CHECK_INTERVAL = 0.05  # seconds between two checks of a message
_FINAL = ("sent", "failed", "cancelled", "skipped", "expired")


class Engine:
    """An embedded engine. `async with Engine() as engine`, or `FastAPI(lifespan=engine.lifespan)`.

    Settings come from `tidings.toml` and the environment; arguments take precedence.
    """

    def __init__(
        self, config: str | Path | None = None, *, works: bool = True, emit: Emit | None = None, **settings: Any
    ) -> None:
        self._settings = load(config, flags=settings)
        self._works = works  # False: accept and show only; other processes send
        self._emit = emit
        self._app: App | None = None

    @property
    def settings(self) -> Settings:
        """The settings it was built from."""
        return self._settings

    @property
    def app(self) -> App:
        """The engine's parts, while it is open."""
        if self._app is None:
            raise Conflict("the engine is not open", remedy="use it inside `async with engine`, or its lifespan")
        return self._app

    @property
    def outbound(self) -> OutboundService:
        """The service with all operations: messages, schedules, broadcasts, contacts, channels …"""
        return self.app.outbound

    async def send(
        self, channel: str, to: str, text: str = "", *, key: str | None = None, **fields: Any
    ) -> Mapping[str, Any]:
        """Accept one message; fields as in POST /v1/messages. A repeated idempotency `key` sends nothing."""
        given = {name.removesuffix("_"): value for name, value in fields.items()}  # `in` is a Python keyword
        body = {"channel": channel, "to": to, **({"text": text} if text else {}), **given}
        reading = DraftParser(now=self.app.clock.now(), timezone=self._settings.timezone)
        accepted = await self.app.messages.accept(reading.draft(body, keep=key is not None), key=key)
        return await self.app.messages.show(accepted.id)

    async def wait(self, id_: str) -> Mapping[str, Any]:
        """Wait until a message is final, and return it."""
        while (row := await self.app.messages.show(id_))["state"] not in _FINAL:  # noqa: ASYNC110
            await asyncio.sleep(_CHECK_INTERVAL)
        return row

    async def __aenter__(self) -> Self:
        """Open the database and start working."""
        emit = self._emit or log_sink(self._settings.log)
        app = build(self._settings, emit=emit)
        try:
            await app.open()
            await app.cipher.check()
            asked = app.clock.monotonic()
            app.clock.learn((await app.store.read("now"))[0]["now"], asked, app.clock.monotonic())
            if self._works:
                app.workflows.ready()
                app.worker.start()
            else:
                app.worker.start_observers()
        except BaseException:
            await app.close()
            raise
        self._app = app
        return self

    async def __aexit__(self, *_: object) -> None:
        """Finish or release running tasks, and close."""
        app, self._app = self._app, None
        if app is not None:
            await app.close()

    @asynccontextmanager
    async def lifespan(self, _application: object = None) -> AsyncIterator[None]:
        """Lifespan for FastAPI, Starlette and other ASGI frameworks."""
        async with self:
            yield
