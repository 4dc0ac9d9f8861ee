"""The sandbox as a real server on loopback, for channels that speak a provider's protocol."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tidings.sandbox import create_sandbox
from tidings.sandbox.environment import SandboxEnvironment
from tidings.sandbox.ledger import SandboxEntry
from tidings.sandbox.simulator import SandboxSimulator

from ... import servers


class Seen(NamedTuple):
    """One request as it arrived."""

    method: str
    path: str  # with its query
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body, read."""
        return orjson.loads(self.body)


class Sandbox:
    """The simulated providers, what they were asked, and the hand that breaks them."""

    def __init__(self, world: SandboxSimulator, url: str) -> None:
        self.world = world
        self.url = url
        self.requests: list[Seen] = []

    def break_(self, kind: str, **more: Any) -> None:
        """Set a fault, as by command."""
        self.world.break_({"kind": kind, **more})

    @property
    def ledger(self) -> list[SandboxEntry]:
        """What the providers wrote down, oldest first."""
        return list(self.world.recent)


class _Recorder:
    """Keeps every request, byte for byte, on its way in."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.sandbox: Sandbox | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or self.sandbox is None:
            await self._app(scope, receive, send)
            return
        request = await receive()
        body, more = request.get("body", b""), request.get("more_body", False)
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        query = scope["query_string"].decode()
        path = scope["path"] + (f"?{query}" if query else "")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        self.sandbox.requests.append(Seen(scope["method"], path, headers, body))
        whole: Message | None = {"type": "http.request", "body": body, "more_body": False}
        # The line can only be cut through the server's own request cycle, which is behind `receive`.
        await self._app(scope, _Replay(receive, whole).receive, send)


class _Replay:
    def __init__(self, receive: Receive, first: Message | None) -> None:
        self._receive = receive
        self._first = first
        cycle = getattr(receive, "__self__", None)
        self.transport = getattr(cycle, "transport", None)

    async def receive(self) -> Message:
        first, self._first = self._first, None
        return first if first is not None else await self._receive()


@asynccontextmanager
async def serving(ledger: Path | None = None, environment: SandboxEnvironment | None = None) -> AsyncIterator[Sandbox]:
    """The sandbox on a free port."""
    app = create_sandbox(ledger, environment=environment)
    recorder = _Recorder(app)
    async with servers.serving(recorder) as url:
        recorder.sandbox = Sandbox(app.state.world, url)
        try:
            yield recorder.sandbox
        finally:
            app.state.world.close()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """All simulated providers behind one address."""
    async with serving() as ready:
        yield ready
