"""Several URLs of one RabbitMQ cluster: the link uses one that works, and moves when it is lost (F48)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import orjson
import pytest

from tidings.dispatch.broker_errors import broker_address
from tidings.dispatch.rabbitmq import BrokerConnection
from tidings.doctor import FindingSeverity, check_broker
from tidings.kernel.clock import SystemClock
from tidings.model.errors import Misconfigured
from tidings.observability.events import BrokerLost, BrokerReached, Event

from ..time_limits import within
from .conftest import CHANNEL, SOON, Fleet, accept, runtime_of

pytestmark = pytest.mark.xdist_group("rabbitmq")

DEAD = "amqp://guest:CANARY@127.0.0.1:1/"


class Chosen(SystemClock):
    """A clock whose chance is chosen: the share of the list after which the first URL is tried."""

    def __init__(self, chance: float) -> None:
        super().__init__()
        self.chance = lambda: chance  # type: ignore[method-assign]


class Relay:
    """The broker under another address, which can go away with its connections."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._writers: list[asyncio.StreamWriter] = []
        self._server: asyncio.Server | None = None

    async def start(self) -> str:
        """Listen; gives the URL."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port = self._server.sockets[0].getsockname()[1]
        return self._url.replace(f":{urlsplit(self._url).port}", f":{port}")

    def stop(self) -> None:
        """Close the port and cut every connection."""
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        parts = urlsplit(self._url)
        there, back = await asyncio.open_connection(parts.hostname, parts.port)
        self._writers += [writer, back]
        await asyncio.gather(_copy(reader, back), _copy(there, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
    writer.transport.abort()


@pytest.fixture
async def relay(broker: str) -> AsyncIterator[tuple[str, Relay]]:
    made = Relay(broker)
    yield await made.start(), made
    made.stop()


@asynccontextmanager
async def linked(link: BrokerConnection) -> AsyncIterator[BrokerConnection]:
    await link.start()
    try:
        yield link
    finally:
        await link.stop()


@pytest.fixture(params=[0.0, 0.99], ids=["first", "last"])
def clock(request: pytest.FixtureRequest) -> SystemClock:
    return Chosen(request.param)


async def test_a_dead_broker_of_several_does_not_keep_the_link_from_the_others(broker: str, clock: SystemClock) -> None:
    """Wherever it begins; the event says which one is used, without its password."""
    told: list[Event] = []
    link = BrokerConnection((DEAD, broker), clock, emit=told.append, channels=(CHANNEL,), name="test")
    async with linked(link):
        assert link.is_up and link.problem is None and link.address == broker_address(broker)
    assert told == [BrokerReached(broker_address(broker))]


async def test_where_the_link_begins_is_chance(broker: str, relay: tuple[str, Relay]) -> None:
    """So that a fleet spreads over its cluster."""
    used = set()
    for chance in (0.0, 0.99):
        link = BrokerConnection(
            (broker, relay[0]), Chosen(chance), emit=lambda _: None, channels=(CHANNEL,), name="test"
        )
        async with linked(link):
            used.add(link.address)
    assert used == {broker_address(broker), broker_address(relay[0])}


async def test_a_fleet_moves_to_another_broker_when_its_own_is_lost(
    fleet: Fleet, broker: str, relay: tuple[str, Relay]
) -> None:
    """Dispatcher and transport go on by themselves, and what is accepted afterwards is sent."""
    url, proxy = relay
    fleet.urls = (url, broker)
    fleet.clock = lambda: Chosen(0.99)  # the first of two
    app = await fleet.dispatcher()
    sender = fleet.sender()
    transport = await fleet.transport(sender)
    await fleet.all_are(app, await accept(app, "before"))
    before = {runtime_of(app)._broker.address, transport._broker.address}
    proxy.stop()
    await fleet.until(lambda: BrokerReached(broker_address(broker)) in fleet.events)
    await fleet.all_are(app, await accept(app, "after"))

    assert before == {broker_address(url)}
    assert {runtime_of(app)._broker.address, transport._broker.address} == {broker_address(broker)}
    assert runtime_of(app).status()["broker_at"] == broker_address(broker)
    assert any(isinstance(event, BrokerLost) and broker_address(url) in event.reason for event in fleet.events)
    assert sender.sent == ["before", "after"]


async def test_a_permanent_problem_prevents_the_start_even_if_another_broker_is_down(broker: str) -> None:
    """The error names each broker by host and port, and repeats no password."""
    wrong = broker.replace("guest:guest", "guest:CANARY")
    link = BrokerConnection((DEAD, wrong), SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test")
    with pytest.raises(Misconfigured, match="user or password") as refused:
        await link.start()
    assert "127.0.0.1:1: RabbitMQ does not respond" in refused.value.problem
    assert broker_address(wrong) in refused.value.problem and "CANARY" not in str(refused.value)


async def test_a_link_without_any_broker_goes_on_trying_all(broker: str, relay: tuple[str, Relay]) -> None:
    """Both are dead at the start, and one comes up."""
    told: list[Event] = []
    up = asyncio.Event()
    url, proxy = relay
    proxy.stop()
    link = BrokerConnection((DEAD, url), Chosen(0.0), emit=told.append, channels=(CHANNEL,), name="test", came=up.set)
    async with linked(link), within(SOON):
        assert not link.is_up and link.address is None and link.problem is not None
        assert broker_address(DEAD) in link.problem and broker_address(url) in link.problem
        server = await asyncio.start_server(proxy._serve, "127.0.0.1", urlsplit(url).port)
        await up.wait()
        assert link.address == broker_address(url)
        server.close()
    assert isinstance(told[0], BrokerLost) and BrokerReached(broker_address(url)) in told


def test_the_doctor_names_the_brokers_in_use() -> None:
    """Of several, those that dispatchers are connected to."""
    rows = [
        {"name": f"dispatcher@{at}", "state": "live", "info": orjson.dumps({"broker_at": at})}
        for at in ("b:5671", "a:5671")
    ]
    finding = check_broker(rows, {"phone"})[0]
    assert finding.status is FindingSeverity.OK
    assert finding.message == "every dispatcher reaches RabbitMQ (a:5671, b:5671)"
