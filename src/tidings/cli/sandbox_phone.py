"""The pretend phone beside the engine: its own port, the same process, its ledger in the data folder.

Several engines on one machine share one phone. The one that has the port runs it; when it dies, another
takes the port, so messages find a phone as long as one engine lives.
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
_TAKE_OVER = 0.05  # seconds between two tries for the port; the work is taken over later than that
_REMEDY = "stop what listens there, choose another port with TIDINGS_SANDBOX_PORT, or start with --no-sandbox"


def is_sandbox_needed(settings: Settings) -> bool:
    """Whether a channel points at this machine's phone."""
    return settings.sandbox and any(
        _uses_phone(channel, settings.sandbox_port) for channel in settings.channels.values()
    )


def mail_port_of(settings: Settings) -> int | None:
    """The port of the pretend mail server, if a channel points at it: the next one after the phone's."""
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
    """Beside the SQLite file, or in ./data."""
    path = settings.database_path
    return (path.parent if path else Path("data")) / LEDGER


class SandboxPhone:
    """The phone's server, or the wait for its port."""

    def __init__(
        self, port: int, ledger: Path, *, mail_port: int | None = None, connections: int = 1000
    ) -> None:
        self._ledger = ledger
        self._mail_port = mail_port
        self._connections = connections
        self._server: HttpServer | None = None
        self._world: Any = None
        self._waiting: asyncio.Task[None] | None = None
        self._listening = _listen_or_share(port)
        self.port = port if self._listening is None else port_of(self._listening)

    @property
    def is_ours(self) -> bool:
        """Whether this process runs it."""
        return self._listening is not None

    @property
    def url(self) -> str:
        """Where it can be looked at."""
        return f"http://{HOST}:{self.port}"

    async def start(self) -> None:
        """Run it, or wait for the one who runs it to go."""
        if self._listening is not None:
            await self._serve(self._listening)
        else:
            self._waiting = asyncio.create_task(self._take_over())

    async def stop(self) -> None:
        """Close the pages, then the port."""
        if self._waiting is not None:
            self._waiting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._waiting
        if self._world is not None:
            self._world.feed.close()
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
        self._world = app.state.world
        self._server = HttpServer(app, listening, ConnectionLimits(connections=self._connections))
        await self._server.begin()

    async def _take_over(self) -> None:
        while self._listening is None:
            await asyncio.sleep(_TAKE_OVER)
            with contextlib.suppress(PortInUse):
                self._listening = listen(HOST, self.port, remedy=_REMEDY)
        try:
            await self._serve(self._listening)
        except TidingsError as error:  # nobody waits for this task: it must say so itself
            logging.getLogger("tidings.phone").warning("the pretend phone cannot be taken over: %s", error)


def _listen_or_share(port: int) -> socket.socket | None:
    """The port, or None when a phone has it already."""
    try:
        return listen(HOST, port, remedy=_REMEDY)
    except PortInUse:
        if not _is_phone(port):
            raise
        return None


def _is_phone(port: int) -> bool:
    """Whether a pretend phone answers there."""
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
