"""HTTP servers that share one process and leave its signals alone."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from ..wire.connection_limits import BACKLOG, ConnectionLimits, limited_protocol

_LAST_ANSWERS = 3  # seconds for what is being answered when the stop comes


class HttpServer(uvicorn.Server):
    """One of several servers: whoever runs them handles the signals for all."""

    def __init__(self, app: Any, listening: socket.socket, limits: ConnectionLimits | None = None) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=limited_protocol(limits or ConnectionLimits()),
                backlog=BACKLOG,
                ws="none",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=_LAST_ANSWERS,
            )
        )
        self._listening = listening
        self._ready = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """None: a signal is for the whole process."""
        yield

    async def begin(self) -> asyncio.Task[None]:
        """Serve in the background; returns when requests are answered."""
        self._serving = asyncio.create_task(self.serve(sockets=[self._listening]))
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            self._serving.result()
        return self._serving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Tell whoever waits that requests are answered."""
        await super().startup(sockets)
        self._ready.set()

    async def end(self) -> None:
        """Accept nothing more, finish what is being answered."""
        self.should_exit = True
        if self._serving is not None:
            await self._serving
