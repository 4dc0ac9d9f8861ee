"""Harness for API and dashboard tests: an engine in virtual time, without a socket."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any, cast

import httpx
import pytest

from tidings.api import create_api
from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.dashboard import Dashboard, add_dashboard
from tidings.kernel.clock import ManualClock
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome
from tidings.outbound.channels.noop import NoopChannel, NoopSettings
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from ..encryption import KEY as ENCRYPTION_KEY

KEY = "0123456789abcdef0123456789abcdef"
CHANNELS = {
    "out": ChannelSettings("noop"),
    "careful": ChannelSettings("noop", {"on_unknown": "hold"}),
    "console": ChannelSettings("console"),
}


class ScriptedNoopChannel(NoopChannel):
    """A channel that answers as the test says."""

    script: Callable[[Message], Outcome] = staticmethod(lambda _message: Done("receipt-1"))

    async def send(self, message: Message) -> Outcome:
        return self.script(message)


class AppHarness:
    """One engine, its faces, and time moved by hand."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self.app = app
        self.clock = clock
        self.api = create_api(app)
        self.pages: Dashboard = add_dashboard(self.api, app)
        self.http = self.client()

    def client(self, **headers: str) -> httpx.AsyncClient:
        """A caller with these headers."""
        return httpx.AsyncClient(
            transport=httpx.ASGITransport(self.api), base_url="http://localhost", headers=headers, timeout=None
        )

    def script(self, channel: str, script: Callable[[Message], Outcome]) -> None:
        """What this channel answers from now on."""
        cast(Any, self.app.channels[channel]).script = script

    async def accept(self, **fields: Any) -> str:
        """Accept a message through the API; gives its id."""
        answer = await self.http.post("/v1/messages", json={"channel": "out", "to": "ada", "text": "hello"} | fields)
        assert answer.status_code == 201, answer.text
        return str(answer.json()["id"])

    async def show(self, id_: str) -> dict[str, Any]:
        """One message, as the API shows it."""
        shown: dict[str, Any] = (await self.http.get(f"/v1/messages/{id_}")).json()
        return shown

    async def everything(self) -> list[dict[str, Any]]:
        """All messages there are."""
        items: list[dict[str, Any]] = (await self.http.get("/v1/messages", params={"limit": 1000})).json()["items"]
        return items

    async def work(self) -> None:
        """Send all that is due now; time may have passed since the last beat."""
        await self.app.worker.node.beat()
        await self.act()
        while (await self.app.worker.runner.step()).claimed:
            await self.act()

    async def act(self) -> None:
        """One step of every actor."""
        for actor in self.app.actors:
            await actor.step()


@asynccontextmanager
async def house(database: str, **settings: Any) -> AsyncIterator[AppHarness]:
    """An engine on an empty database, opened, with one node that works when told to."""
    clock = ManualClock()
    usual = {"database": database, "channels": CHANNELS, "encryption_keys": (ENCRYPTION_KEY,)}
    chosen = Settings(**usual | settings)
    path = chosen.database_path
    store: Store = (
        PostgresStore(database, now=clock.now, connections=4)
        if path is None
        else SqliteStore(path, now=clock.now, inline=True)
    )
    app = build(chosen, clock=clock, store=store)
    for name, channel in app.channels.items():
        if isinstance(channel, NoopChannel):
            on_unknown = channel.traits.on_unknown
            cast(Any, app.channels)[name] = ScriptedNoopChannel(NoopSettings(on_unknown=on_unknown))
    await app.open()
    await app.worker.node.join()
    built = AppHarness(app, clock)
    try:
        yield built
    finally:
        await built.http.aclose()
        await app.close()


def in_one_house(
    names: str | tuple[str, ...], cases: Iterable[Any]
) -> Callable[[Callable[..., Awaitable[None]]], Callable[..., Awaitable[None]]]:
    """Parametrize a test, but run all cases in the same house, which takes longer to build than a request."""
    keys = (names,) if isinstance(names, str) else names

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., Awaitable[None]]:
        async def each(home: AppHarness, subtests: pytest.Subtests) -> None:
            for case in cases:
                values = (case,) if isinstance(names, str) else getattr(case, "values", case)
                fields = dict(zip(keys, values, strict=True))
                with subtests.test(**fields):
                    await test(home, **fields)

        for name in ("__name__", "__qualname__", "__module__", "__doc__"):
            setattr(each, name, getattr(test, name))
        vars(each).update(vars(test))  # marks
        return each

    return decorate
