"""A broker for the tests of dispatch, clean before each of them, and an engine that dispatches through it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from tidings import app as engine
from tidings.app import App
from tidings.config import ChannelSettings, Settings
from tidings.dispatch import rabbitmq
from tidings.dispatch.dispatcher_runtime import DispatcherRuntime
from tidings.dispatch.rabbitmq import BrokerConnection
from tidings.dispatch.roles import ProcessRole, ProcessShare
from tidings.dispatch.transport import Transport
from tidings.dispatch.wire_format import ClaimKey
from tidings.kernel.clock import SystemClock
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome
from tidings.observability.events import Event

from ..time_limits import within
from .cleaning import clean

CHANNEL = "way"
SOON = 15.0  # quiet seconds after which something that must happen counts as not happening


class Sender:
    """The far side of a channel: it notes what is sent, and answers as told, or when it is let."""

    def __init__(self, pulse: asyncio.Event, answer: Callable[[Message], Outcome]) -> None:
        self._pulse = pulse
        self.sent: list[str] = []
        self.looked_up: list[str] = []
        self.found: Outcome = Done("found")
        self.gate = asyncio.Event()
        self.gate.set()
        self._answer = answer

    async def send(self, message: Message) -> Outcome:
        self.sent.append(message.recipient)
        self._pulse.set()
        await self.gate.wait()
        return self._answer(message)

    async def lookup(self, message: Message) -> Outcome:
        self.looked_up.append(message.recipient)
        self._pulse.set()
        return self.found


@dataclass
class Fleet:
    """Dispatchers and transports on one broker and one database; whatever was started is stopped."""

    urls: tuple[str, ...]
    folder: Path
    clock: Callable[[], SystemClock] = SystemClock
    events: list[Event] = field(default_factory=list)
    pulse: asyncio.Event = field(default_factory=asyncio.Event)
    apps: list[App] = field(default_factory=list)
    transports: list[Transport] = field(default_factory=list)
    senders: list[Sender] = field(default_factory=list)
    dead: list[Transport] = field(default_factory=list)

    def emit(self, event: Event) -> None:
        self.events.append(event)
        self.pulse.set()

    async def until(self, condition: Callable[[], Any]) -> None:
        """Wait until something holds; it is looked at whenever a fact is told or something is sent."""
        async with within(SOON):
            while True:
                held = condition()
                if await held if isawaitable(held) else held:
                    return
                self.pulse.clear()
                await self.pulse.wait()

    async def all_are(self, app: App, ids: list[str], state: str = "sent") -> None:
        """Wait until all of these stand so."""

        async def stand() -> bool:
            return {state} == set(await states(app, ids))

        await self.until(stand)

    def sender(self, answer: Callable[[Message], Outcome] = lambda _: Done("r")) -> Sender:
        """The far side of the channel."""
        self.senders.append(sender := Sender(self.pulse, answer))
        return sender

    async def dispatcher(self, **options: Any) -> App:
        """An engine that hands out; `channel` and settings may be given."""
        channel = {"deadline": "1s", **options.pop("channel", {})}
        settings = Settings(
            database=f"sqlite:///{self.folder}/tidings.db",
            channels={CHANNEL: ChannelSettings("noop", channel)},
            sandbox=False,
            node_timeout=timedelta(seconds=1),
            heartbeat_interval=timedelta(milliseconds=200),
            **{"broker": self.urls, "broker_message_ttl": timedelta(seconds=5), **options},
        )
        share = ProcessShare(frozenset({ProcessRole.DISPATCHER}))
        app = engine.build(settings, clock=self.clock(), emit=self.emit, share=share)
        self.apps.append(app)
        await app.open()
        assert app.dispatcher is not None
        await app.dispatcher.start()
        app.worker.start()
        return app

    async def transport(self, sender: Sender, slots: int = 50) -> Transport:
        """A transport; it knows the broker and nothing else."""
        clock = self.clock()

        def connect(came: Callable[[], None], went: Callable[[], None]) -> BrokerConnection:
            return BrokerConnection(
                self.urls, clock, emit=self.emit, channels=(CHANNEL,), name="transport",
                declares=False, came=came, went=went,
            )  # fmt: skip

        made = Transport({CHANNEL: sender}, clock, connect, slots=slots, emit=self.emit)
        self.transports.append(made)
        await made.start()
        return made

    async def die(self, transport: Transport) -> None:
        """As if it had been killed: nothing is told any more, and its connection is gone."""
        self.transports.remove(transport)
        self.dead.append(transport)
        for loop in transport._loops:
            loop.cancel()
        await transport._broker.stop()
        transport._broker._publishing = None

    async def vanish(self, app: App) -> None:
        """As if a dispatcher had been killed: nothing is settled or given back any more."""
        self.apps.remove(app)
        for loop in (*app.worker._loops, *app.worker.runner._loops, app.worker._running):
            if loop is not None:
                loop.cancel()
        assert app.dispatcher is not None
        await app.dispatcher._broker.stop()
        await app.store.close()

    async def close(self) -> None:
        for sender in self.senders:
            sender.gate.set()
        for transport in self.transports:
            await transport.stop(1)
        for transport in self.dead:
            await transport._executor.quiet()
            transport._executor.close()
        for app in self.apps:
            await app.close()


async def accept(app: App, *recipients: str, **more: Any) -> list[str]:
    """Have messages accepted; gives their ids."""

    async def drafts() -> AsyncIterator[tuple[int, Draft]]:
        for number, to in enumerate(recipients):
            yield number, Draft(CHANNEL, to, "hello", **more)

    ids = [line.id async for lines in app.messages.accept_many(drafts()) for line in lines]
    accepted = [id_ for id_ in ids if id_ is not None]
    assert len(accepted) == len(recipients), "some were refused"
    return accepted


def token_of(app: App, task: int, claim: int = 1) -> ClaimKey:
    """What a genuine report calls a claim."""
    return task, claim, runtime_of(app)._context.tokens.of(CHANNEL, task, claim)


def runtime_of(app: App) -> DispatcherRuntime:
    """Return the runtime of a dispatcher."""
    assert app.dispatcher is not None
    return app.dispatcher


async def states(app: App, ids: list[str]) -> list[str]:
    """How these messages stand."""
    return [(await app.messages.show(id_))["state"] for id_ in ids]


@pytest.fixture
async def broker(rabbit_url: str) -> str:
    """The broker's URL; what earlier tests left is gone."""
    await clean(rabbit_url, CHANNEL)
    return rabbit_url


@pytest.fixture
async def fleet(broker: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Fleet]:
    monkeypatch.setattr(rabbitmq, "QUEUE_SETTLE_TIME", 0.0)  # nobody kills the broker here
    made = Fleet((broker,), tmp_path)
    yield made
    await made.close()
