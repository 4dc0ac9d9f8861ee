"""The simulated phone in the `serve` process: its own port, its ledger in the data folder.

Engines on one machine share one phone. The engine that has the port runs it; when it dies, another engine
takes the port over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..config import ChannelSettings, Settings
from ..model.errors import TidingsError
from .ports import PortInUse, listen, port_of

if TYPE_CHECKING:
    from .http_server import HttpServer

HOST = "127.0.0.1"
LEDGER = "sandbox.jsonl"
_RETRY_INTERVAL = 0.05  # seconds between two attempts to get the port
_REMEDY = "stop the other process, set TIDINGS_SANDBOX_PORT to another port, or start with --no-sandbox"


def is_sandbox_needed(settings: Settings) -> bool:
    """Return whether a channel uses the phone of this machine."""
    return settings.sandbox and any(
        _uses_phone(channel, settings.sandbox_port) for channel in settings.channels.values()
    )


def mail_port_of(settings: Settings) -> int | None:
    """Return the port of the simulated mail server (the phone's + 1) if a channel uses it."""
    port = settings.sandbox_port + 1
    wanted = any(_sends_mail_here(channel, port) for channel in settings.channels.values())
    return port if wanted and settings.sandbox_port else None


def _uses_phone(channel: ChannelSettings, port: int) -> bool:
    if channel.kind == "sandbox":
        return _points_here(channel.options.get("url"), port)
    given = channel.options.get("base_url", channel.options.get("url"))
    return (given is not None and _points_here(given, port)) or _sends_mail_here(channel, port + 1)


def _sends_mail_here(channel: ChannelSettings, port: int) -> bool:
    options = channel.options
    here = options.get("host") in (HOST, "localhost", "::1")
    return channel.kind == "email" and here and str(options.get("port")) == str(port)


def ledger_of(settings: Settings) -> Path:
    """Return the path of the ledger: next to the SQLite file, or in ./data."""
    path = settings.database_path
    return (path.parent if path else Path("data")) / LEDGER


class SandboxPhone:
    """The server of the phone; waits for the port while another process has it."""

    def __init__(self, port: int, ledger: Path, *, mail_port: int | None = None, connections: int = 1000) -> None:
        self._ledger = ledger
        self._mail_port = mail_port
        self._connections = connections
        self._server: HttpServer | None = None
        self._simulator: Any = None
        self._waiting: asyncio.Task[None] | None = None
        self._listening = _listen_or_share(port)
        self.port = port if self._listening is None else port_of(self._listening)

    @property
    def is_ours(self) -> bool:
        """Whether this process runs the phone."""
        return self._listening is not None

    @property
    def url(self) -> str:
        """The address of the phone."""
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Serve the phone, or wait for its port in the background."""
        if self._listening is not None:
            await self._serve(self._listening)
        else:
            self._waiting = asyncio.create_task(self._take_over())

    async def stop(self) -> None:
        """Close the live streams, then the port."""
        if self._waiting is not None:
            self._waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._waiting
        if self._simulator is not None:
            self._simulator.feed.close()
        if self._server is not None:
            await self._server.end()
        elif self._listening is not None:
            self._listening.close()

    async def _serve(self, listening: socket.socket) -> None:
        from ..sandbox import create_sandbox
        from ..wire.connection_limits import ConnectionLimits
        from .http_server import HttpServer

        mail = None if self._mail_port is None else listen(HOST, self._mail_port, remedy=_REMEDY)
        app = create_sandbox(self._ledger, mail=mail)
        self._simulator = app.state.world
        self._server = HttpServer(app, listening, ConnectionLimits(connections=self._connections))
        await self._server.begin()

    async def _take_over(self) -> None:
        while self._listening is None:
            await asyncio.sleep(_RETRY_INTERVAL)
            with contextlib.suppress(PortInUse):
                self._listening = listen(HOST, self.port, remedy=_REMEDY)
        try:
            await self._serve(self._listening)
        except TidingsError as error:  # nothing awaits this task
            logging.getLogger("tidings.phone").warning("cannot take over the simulated phone: %s", error)


def _listen_or_share(port: int) -> socket.socket | None:
    """Return the listening socket, or None if another phone has the port."""
    try:
        return listen(HOST, port, remedy=_REMEDY)
    except PortInUse:
        if not _is_phone(port):
            raise
        return None


def _is_phone(port: int) -> bool:
    """Return whether a simulated phone answers on the port."""
    from http.client import HTTPConnection, HTTPException

    connection = HTTPConnection(HOST, port, timeout=2)
    try:
        connection.request("GET", "/sandbox/faults")
        answer = connection.getresponse()
        return answer.status == 200 and b'"faults"' in answer.read(65_536)
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def _points_here(url: object, port: int) -> bool:
    if url is None:
        return True
    try:
        parts = urlsplit(str(url))
        return parts.hostname in (HOST, "localhost", "::1") and parts.port == port
    except ValueError:
        return False
