"""An HTTP server (uvicorn) that leaves signal handling to its process."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Iterator
from typing import Any

import uvicorn

from ..wire.connection_limits import BACKLOG, ConnectionLimits, limited_protocol

_SHUTDOWN_TIMEOUT = 3  # seconds for requests in progress


class HttpServer(uvicorn.Server):
    """One of several servers in a process that handles signals itself."""

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
                timeout_graceful_shutdown=_SHUTDOWN_TIMEOUT,
            )
        )
        self._listening = listening
        self._ready = asyncio.Event()
        self._serving: asyncio.Task[None] | None = None

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Install no signal handlers."""
        yield

    async def begin(self) -> asyncio.Task[None]:
        """Serve in the background; return when requests are accepted."""
        self._serving = asyncio.create_task(self.serve(sockets=[self._listening]))
        ready = asyncio.create_task(self._ready.wait())
        await asyncio.wait({ready, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()
        if self._serving.done():
            self._serving.result()
        return self._serving

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the server and signal that it is ready."""
        await super().startup(sockets)
        self._ready.set()

    async def end(self) -> None:
        """Stop accepting connections and finish the requests in progress."""
        self.should_exit = True
        if self._serving is not None:
            await self._serving
