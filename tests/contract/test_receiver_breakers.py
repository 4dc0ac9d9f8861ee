"""A breaker and a Retry-After for each destination of a webhook channel (A5)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel.breaker import BreakerRule
from tidings.kernel.clock import ManualClock
from tidings.kernel.receiver_breakers import ReceiverBreakers
from tidings.model.message import Draft
from tidings.outbound.destination_breakers import MAX_DESTINATIONS, Destination, DestinationBreakers
from tidings.store.port import Step, Store

from .receiver import Act, Receiver, answer, receiving

HOOKS = {"hooks": ChannelSettings("webhook", {"allow_private": True, "allow_http": True, "deadline": "20s"})}


def failing(status: int = 500, **headers: str) -> Act:
    return answer(status, b"no", **headers)


class Office:
    """One node with a webhook channel, in virtual time."""

    def __init__(self, app: App, clock: ManualClock) -> None:
        self.app, self.clock = app, clock
        self.destinations = next(one for one in app.actors if isinstance(one, DestinationBreakers))

    async def send(self, url: str, tenant: str = "default") -> str:
        """Accept one message."""
        return (await self.app.messages.accept(Draft("hooks", url, "hello", tenant=tenant))).id

    async def work(self, *, seconds: float = 0) -> None:
        """Let time pass, and do everything that can be done then."""
        self.clock.advance(seconds)
        await self.app.worker.node.beat()
        await self.destinations.step()
        for _ in range(30):
            if not (await self.app.worker.runner.step()).claimed:
                break
        await self.destinations.step()

    async def show(self, id_: str, tenant: str = "default") -> dict[str, Any]:
        """How a message stands."""
        return dict(await self.app.messages.show(id_, tenant=tenant))

    async def left_alone(self) -> list[tuple[str, str, str, int]]:
        """What the API and the dashboard show of the channel."""
        [row] = [row for row in await self.app.outbound.channels.all() if row["name"] == "hooks"]
        assert row["breaker"] == "closed" and row["state"] == "open"
        return [(one["tenant"], one["host"], one["state"], one["consecutive_failures"]) for one in row["destinations"]]

    async def break_it(self, receiver: Receiver, tenant: str = "default") -> None:
        """Five messages fail."""
        receiver.script(*[failing()] * 5)
        for _ in range(5):
            await self.send(f"{receiver.url}/x", tenant)
        await self.work()
        assert len(receiver.requests) == 5


@asynccontextmanager
async def office(store: Store, clock: ManualClock) -> AsyncIterator[Office]:
    app = build(Settings(channels=HOOKS, sandbox=False), clock=clock, store=store)
    assert store.may_work()
    for lane in app.lanes.values():
        await store.write(lane.join())
    await app.worker.node.join()
    yield Office(app, clock)
    for channel in app.channels.values():
        await channel.close()


@pytest.fixture
async def receivers() -> AsyncIterator[tuple[Receiver, Receiver]]:
    """Two receivers."""
    async with receiving() as bad, receiving() as good:
        yield bad, good


async def test_one_tenants_failing_receiver_holds_up_nobody_else(
    store: Store, clock: ManualClock, receivers: tuple[Receiver, Receiver]
) -> None:
    """Its own messages wait and spend no attempt; other receivers, and other tenants there, get theirs."""
    bad, good = receivers
    async with office(store, clock) as here:
        await here.break_it(bad, "bakery")
        host = bad.url.removeprefix("http://")
        assert await here.left_alone() == [("bakery", host, "waiting", 5)]

        waiting = await here.send(f"{bad.url}/y", "bakery")
        fine = [await here.send(f"{good.url}/x", "bakery"), await here.send(f"{bad.url}/x")]
        await here.work()

        assert (await here.show(fine[0], "bakery"))["state"] == "sent"
        assert (await here.show(fine[1]))["state"] == "sent"
        shown = await here.show(waiting, "bakery")
        assert (shown["state"], shown["attempts"]) == ("pending", 0)
        why = await here.app.outbound.why(waiting, tenant="bakery")
        assert f"no attempts to {host} until" in why.answer and "5 failures in a row" in why.answer
        assert "HTTP 500" in why.answer and why.until is not None


async def test_after_its_time_one_message_is_the_probe_and_a_success_lets_the_others_go(
    store: Store, clock: ManualClock, receivers: tuple[Receiver, Receiver]
) -> None:
    """A failed probe keeps the others waiting for another minute."""
    bad, _ = receivers
    async with office(store, clock) as here:
        await here.break_it(bad)
        for _ in range(3):
            await here.send(f"{bad.url}/z")
        await here.work()
        bad.script(failing())
        await here.work(seconds=61)
        assert len(bad.requests) == 6, "one probe, which failed"
        assert [state for *_, state, _ in await here.left_alone()] == ["waiting"]

        await here.work(seconds=61)
        assert len(bad.requests) == 7, "one probe, which was taken"
        for _ in range(20):
            await here.work(seconds=31)
        assert await here.left_alone() == []
        messages = await here.app.messages.page()
        assert {row["state"] for row in messages.items} == {"sent"}


async def test_a_receiver_that_asks_to_wait_is_left_alone_by_all_of_its_messages(
    store: Store, clock: ManualClock, receivers: tuple[Receiver, Receiver]
) -> None:
    """Retry-After holds for the destination, not only for the message that was told."""
    bad, good = receivers
    bad.script(failing(429, retry_after="300"))
    async with office(store, clock) as here:
        first = await here.send(f"{bad.url}/x")
        await here.work()
        others = [await here.send(f"{bad.url}/y"), await here.send(f"{good.url}/x")]
        await here.work(seconds=100)
        assert [(await here.show(id_))["state"] for id_ in others] == ["pending", "sent"]
        assert len(bad.requests) == 1

        await here.work(seconds=210)
        await here.work(seconds=10)
        assert [(await here.show(id_))["state"] for id_ in (first, *others)] == ["sent"] * 3
        assert await here.left_alone() == []


async def test_what_one_process_found_is_known_to_the_others_and_after_a_restart(
    store: Store, clock: ManualClock, receivers: tuple[Receiver, Receiver]
) -> None:
    """And a person who resumes the channel lifts it for all of them."""
    bad, _ = receivers
    async with office(store, clock) as here:
        await here.break_it(bad)
    async with office(store, clock) as later:
        id_ = await later.send(f"{bad.url}/x")
        await later.work()
        assert (await later.show(id_))["state"] == "pending" and len(bad.requests) == 5

        await later.app.outbound.channels.resume("hooks")
        fresh = await later.send(f"{bad.url}/z")
        await later.work()
        assert (await later.show(fresh))["state"] == "sent"


async def test_the_number_of_rows_is_bounded(store: Store, clock: ManualClock) -> None:
    """A tenant with many dead receivers cannot fill the table: the oldest go."""
    async with office(store, clock) as here:
        await store.write(
            [
                Step(
                    "destination_wait",
                    {"queue": "hooks", "tenant": "t", "host": f"h{n}", "failures": 5, "since": 1,
                     "until": clock.now() + n, "reason": "r"},
                )
                for n in range(MAX_DESTINATIONS + 20)
            ]
        )  # fmt: skip
        await here.destinations.step()
        place = Destination("hooks", "t", "last")
        here.destinations._unwritten[place] = here.destinations._breakers.asked(place, timedelta(minutes=1), "because")
        await here.destinations.step()

        rows = await store.read("destination_list")
        assert len(rows) == MAX_DESTINATIONS and {"last", f"h{MAX_DESTINATIONS + 19}"} <= {row["host"] for row in rows}


def test_attempts_that_began_before_the_breaker_opened_do_not_prolong_it() -> None:
    """A hundred in flight are one outage, not a hundred probes; a probe that failed is counted."""
    clock = ManualClock()
    breakers: ReceiverBreakers[str] = ReceiverBreakers(
        BreakerRule(5, timedelta(seconds=60)), clock.now, longest=timedelta(hours=1)
    )
    for _ in range(100):
        breakers.failed("a", "down")
    wait = breakers.blocked("a")
    assert wait is not None and (wait.failures, wait.until) == (5, clock.now() + 60_000_000)

    clock.advance(60)
    assert breakers.blocked("a") is None and breakers.blocked("a") is not None
    breakers.failed("a", "down")
    wait = breakers.blocked("a")
    assert wait is not None and (wait.failures, wait.until) == (6, clock.now() + 120_000_000)
    assert breakers.succeeded("a") and breakers.blocked("a") is None
