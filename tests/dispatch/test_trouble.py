"""What keeps us from the broker is said in words that help (F40). A real broker says no in its own ways."""

from __future__ import annotations

import pytest

from tidings.dispatch.link import Link
from tidings.dispatch.trouble import trouble
from tidings.kernel.clock import SystemClock
from tidings.model.errors import Misconfigured

from .conftest import CHANNEL, Fleet

pytestmark = pytest.mark.xdist_group("rabbitmq")


@pytest.mark.parametrize(
    ("right", "wrong", "problem"),
    [("guest:guest", "guest:wrong", "user or password"), ("/", "/nowhere", "virtual host 'nowhere'")],
)
async def test_what_never_gets_better_is_refused_at_the_start(
    broker: str, right: str, wrong: str, problem: str
) -> None:
    """One sentence that names the setting, instead of a process that waits for ever."""
    head, found, tail = broker.rpartition(right)
    assert found
    link = Link(head + wrong + tail, SystemClock(), emit=lambda _: None, channels=(CHANNEL,), name="test")

    with pytest.raises(Misconfigured, match=problem) as refused:
        await link.start()

    assert refused.value.field == "broker" and refused.value.remedy


async def test_a_transport_that_comes_before_its_dispatcher_says_what_it_waits_for(fleet: Fleet) -> None:
    """Not that the broker was silent: it said that nobody has made the queue."""
    transport = await fleet.transport(fleet.sender())
    waits_for = transport.problem

    await fleet.dispatcher()
    await fleet.until(lambda: transport.problem is None)

    assert waits_for is not None and f"no tidings.parcels.{CHANNEL} yet" in waits_for


def test_anything_else_is_told_as_it_came() -> None:
    """With its class, for some of them have no words."""
    assert "TimeoutError: no answer in time" in trouble(TimeoutError(), "amqp://host/").problem
