"""The engine inside another program: opened, at work, and closed with it.

Everything is as in `tidings serve`, without its own port: the program is one more process of the fleet. What
it accepts is durable before `send` returns, and is sent by whichever process is there.
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

_LOOK = 0.05  # seconds between two looks at a message that is waited for
_OVER = ("sent", "failed", "cancelled", "skipped", "expired")


class Engine:
    """One engine. `async with Engine() as engine`, or `FastAPI(lifespan=engine.lifespan)`.

    Settings are those of `tidings.toml` and the environment; those given here win.
    """

    def __init__(
        self,
        config: str | Path | None = None,
        *,
        works: bool = True,
        emit: Emit | None = None,
        **settings: Any,
    ) -> None:
        self._settings = load(config, flags=settings)
        self._works = works  # False: it accepts and shows, and leaves the sending to others
        self._emit = emit
        self._app: App | None = None

    @property
    def settings(self) -> Settings:
        """What it was built from."""
        return self._settings

    @property
    def app(self) -> App:
        """The engine's parts, while it is open."""
        if self._app is None:
            raise Conflict(
                "the engine is not open", remedy="use it inside `async with engine`, or its lifespan"
            )
        return self._app

    @property
    def desk(self) -> OutboundService:
        """All that may be done: messages, schedules, broadcasts, contacts, channels …"""
        return self.app.desk

    async def send(
        self, channel: str, to: str, text: str = "", *, key: str | None = None, **fields: Any
    ) -> Mapping[str, Any]:
        """Accept one message; fields are those of POST /v1/messages. The same `key` again sends nothing."""
        given = {name.removesuffix("_"): value for name, value in fields.items()}  # `in` is Python's own word
        body = {"channel": channel, "to": to, **({"text": text} if text else {}), **given}
        reading = DraftParser(now=self.app.clock.now(), timezone=self._settings.timezone)
        accepted = await self.app.messages.accept(reading.draft(body, keep=key is not None), key=key)
        return await self.app.messages.show(accepted.id)

    async def wait(self, id_: str) -> Mapping[str, Any]:
        """Stay until a message is over; gives it as it then stands."""
        while (row := await self.app.messages.show(id_))["state"] not in _OVER:  # noqa: ASYNC110
            await asyncio.sleep(_LOOK)
        return row

    async def __aenter__(self) -> Self:
        """Open the database and begin to work."""
        emit = self._emit or log_sink(form=self._settings.log_format, level=self._settings.log_level)
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
        """Finish or give back what is in hand, and close."""
        app, self._app = self._app, None
        if app is not None:
            await app.close()

    @asynccontextmanager
    async def lifespan(self, _application: object = None) -> AsyncIterator[None]:
        """For FastAPI, Starlette, and whatever else takes a lifespan."""
        async with self:
            yield
