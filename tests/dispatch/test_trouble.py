"""What keeps us from the broker is said in words that help (F40). A real broker says no in its own ways."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from tidings.dispatch.broker_errors import describe_error
from tidings.dispatch.broker_messages import BrokerMessage
from tidings.dispatch.rabbitmq import BrokerConnection, batch_queue
from tidings.doctor import FindingSeverity, check_broker
from tidings.kernel.clock import SystemClock
from tidings.model.errors import Misconfigured

from ..time_limits import within
from .conftest import CHANNEL, SOON, Fleet, accept

pytestmark = pytest.mark.xdist_group("rabbitmq")


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [("guest:guest", "guest:wrong", "user or password"), ("/", "/nowhere", "virtual host 'nowhere'")],
)
async def test_permanent_broker_problems_prevent_the_start(broker: str, right: str, wrong: str, problem: str) -> None:
    """One sentence that names the setting, instead of a process that waits for ever."""
    head, found, tail = broker.rpartition(right)
    assert found
    link = BrokerConnection(
        (head + wrong + tail,), SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test"
    )

    with pytest.raises(Misconfigured, match=problem) as refused:
        await link.start()

    assert refused.value.field == "broker" and refused.value.remedy


async def test_a_transport_started_before_its_dispatcher_reports_the_missing_queue(fleet: Fleet) -> None:
    """Not that the broker was silent: it said that nobody has made the queue."""
    transport = await fleet.transport(fleet.sender())
    waits_for = transport.problem

    await fleet.dispatcher()
    await fleet.until(lambda: transport.problem is None)

    assert waits_for is not None and f"no tidings.batches.{CHANNEL} yet" in waits_for


async def test_a_missing_queue_does_not_prevent_the_others(fleet: Fleet, broker: str) -> None:
    """A transport whose file names one channel more than any dispatcher has still serves those that are."""
    came: asyncio.Queue[BrokerMessage] = asyncio.Queue()

    async def take(batch: list[BrokerMessage]) -> None:
        for incoming in batch:
            came.put_nowait(incoming)

    app = await fleet.dispatcher()
    link = BrokerConnection((broker,), SystemClock(), emit=fleet.emit, channels=(), name="test", declares=False)
    for channel in ("mail", CHANNEL):
        await link.read(batch_queue(channel), take, prefetch=1)
    await link.start()
    await accept(app, "a")
    async with within(SOON):
        await came.get()
    problem = link.problem
    await link.stop()

    assert problem is not None and "no tidings.batches.mail yet" in problem


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(111, "Connection refused"), "(Connection refused)"),
        (TimeoutError(), "(timed out)"),
        (ValueError("odd"), "(ValueError: odd)"),
    ],
)
def test_other_broker_errors_are_reported_as_they_are(error: Exception, words: str) -> None:
    """Without the numbers and classes that say nothing to whoever runs the broker."""
    assert f"RabbitMQ does not respond {words}" == describe_error(error, "amqp://host/").problem


@pytest.mark.parametrize(
    ("nodes", "status", "said"),
    [
        ([], FindingSeverity.WARNING, "no dispatcher is running for phone"),
        (
            [("dispatcher@a:1", "RabbitMQ does not respond (x)")],
            FindingSeverity.ERROR,
            "dispatcher@a:1: RabbitMQ does not",
        ),
        ([("dispatcher@a:1", "connected")], FindingSeverity.OK, "reaches"),
    ],
)
def test_the_doctor_tells_how_the_broker_stands(
    nodes: list[tuple[str, str]], status: FindingSeverity, said: str
) -> None:
    """`tidings doctor` must not call an engine fine that can give nothing away."""
    rows = [{"name": name, "state": "live", "info": orjson.dumps({"broker": word})} for name, word in nodes]

    finding = check_broker(rows, {"phone"})[0]

    assert finding.status is status and said in finding.message
    assert not check_broker(rows, ())
