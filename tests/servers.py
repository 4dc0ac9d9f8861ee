"""An ASGI application on loopback for the length of a block, started and stopped without a wait."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.types import ASGIApp


class _Server(uvicorn.Server):
    """uvicorn looks ten times a second whether it should stop, and sleeps while it does; this one is told."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.stopping = asyncio.Event()

    async def main_loop(self) -> None:
        await self.on_tick(0)
        await self.stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for connection in list(self.server_state.connections):
            connection.shutdown()
        if self.server_state.tasks:
            await asyncio.wait(self.server_state.tasks, timeout=10)


@asynccontextmanager
async def serving(app: ASGIApp, *, taken: socket.socket | None = None) -> AsyncIterator[str]:
    """Serve an application on a free port, or on a socket that listens; yields its URL."""
    with taken or socket.socket() as listening:
        if taken is None:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
        server = _Server(uvicorn.Config(app, log_level="error", access_log=False, lifespan="off"))
        running = asyncio.create_task(server.serve(sockets=[listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.stopping.set()
            await running


def is_running(pid: int) -> bool:
    """Whether it runs; a zombie does not."""
    stat = Path(f"/proc/{pid}/stat")
    return stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z"
