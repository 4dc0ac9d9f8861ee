"""The session monitor: channels wait while their session is lost, and resume when it is back (E7, B8)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import Any

import orjson
import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.runner import RunnerStep
from tidings.kernel.worker import Worker
from tidings.model.message import Message
from tidings.model.outcome import Done, Offline, Outcome, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.model.time import HOUR, MINUTE, SECOND
from tidings.observability.events import ChannelLoggedOut, ChannelStopped, ChannelUnreachable, TasksExpired
from tidings.outbound.alerts.measurements import stopped
from tidings.outbound.channel_control import ChannelControl
from tidings.outbound.channels.base import ChannelTraits
from tidings.outbound.channels.session import SessionCheck, SessionStatus
from tidings.outbound.events.subscription_cache import SubscriptionCache
from tidings.outbound.messages import MessageService
from tidings.outbound.sessions.session_monitor import LEASE, SessionMonitor
from tidings.store.port import Row, Step, Store

from ..encryption import cipher
from .kernel_harness import KernelHarness, ScriptedChannel

UP = SessionCheck(SessionStatus.CONNECTED, "WORKING")
DOWN = SessionCheck(SessionStatus.RECONNECTING, "STARTING")
OUT = SessionCheck(SessionStatus.LOGGED_OUT, "SCAN_QR_CODE")
STOPPED = SessionCheck(SessionStatus.RECONNECTING, "STOPPED", is_down=True)
FAILED = SessionCheck(SessionStatus.RECONNECTING, "FAILED", is_down=True, restart=True)
REJECTED = SessionCheck(SessionStatus.RECONNECTING, "the server rejects the API key", is_down=True, rejected=True)


class Session(ScriptedChannel):
    """A channel whose session is as the test says; it counts checks, reconnects and restarts."""

    def __init__(self, **traits: Any) -> None:
        given = {"in_order": True, "on_unknown": OnUnknown.RESEND, **traits}
        super().__init__(
            ChannelTraits(why_on_unknown="a test", deadline=timedelta(seconds=10), **given), lambda _message: Done()
        )
        self.session = UP
        self.checks = 0
        self.reconnects = 0
        self.restarts = 0
        self.while_checking: Callable[[], Any] | None = None

    async def status(self) -> SessionCheck:
        """As the test says."""
        self.checks += 1
        if self.while_checking is not None:
            await self.while_checking()
        return self.session

    async def reconnect(self, *, restart: bool = False) -> None:
        """Count."""
        self.restarts += restart
        self.reconnects += not restart


class SessionWorld(KernelHarness):
    """A world whose only channel holds a session, and its monitor."""

    def __init__(self, store: Store, clock: ManualClock, **traits: Any) -> None:
        super().__init__(store, clock, has_session=True, on_unknown=traits.get("on_unknown", OnUnknown.RESEND))
        self.session = Session(**traits)
        self.channels = {"main": self.session}
        self.channel = self.session
        self.messages = MessageService(store, clock, self.channels)
        self.listeners = SubscriptionCache(store, cipher(store))
        self.worker = self.node(50)
        self.monitor = self.another_monitor()
        self.control = ChannelControl(store, self.channels, self.lanes)

    def another_monitor(self) -> SessionMonitor:
        """As another node would have it."""
        return SessionMonitor(self.store, self.clock, self.channels, listeners=self.listeners, emit=self.events.append)

    async def pass_time(self, seconds: float) -> None:
        """Second by second, as the actor's loop would."""
        for _ in range(round(seconds)):
            self.clock.advance(1)
            await self.monitor.step()

    async def channel_row(self) -> Row:
        """The channel as people see it."""
        return await self.control.one("main")


async def session_world(store: Store, clock: ManualClock, *, checked: bool = True, **traits: Any) -> SessionWorld:
    """Opened, and checked once unless the test wants to."""
    made = SessionWorld(store, clock, **traits)
    await made.open()
    if checked:
        await made.monitor.step()
    return made


async def drain(world: SessionWorld) -> int:
    """Step until nothing is claimed any more; how many were."""
    claimed = 0
    while stepped := (await world.step()).claimed:
        claimed += stepped
    return claimed


async def test_the_session_is_checked_at_start_before_anything_is_sent(store: Store, clock: ManualClock) -> None:
    """E7: due messages wait for the first check, and `why` says so."""
    world = await session_world(store, clock, checked=False)
    id_ = await world.send()

    assert await world.step() == RunnerStep(0, 0, 0)
    assert "nobody has looked yet" in (await world.why(id_)).answer
    assert (await store.next_due(["main"])).at is None

    await world.monitor.step()

    assert (await world.channel_row())["state"] == "open"
    assert (await world.step()).settled == 1


async def test_a_session_that_was_not_monitored_for_a_minute_is_checked_again(store: Store, clock: ManualClock) -> None:
    """After a long stop the row may be wrong; one that is being kept is left alone by a start."""
    world = await session_world(store, clock)
    await store.write(world.lanes["main"].join())
    assert (await world.channel_row())["session_state"] == "connected"

    clock.advance(90)
    await store.write(world.lanes["main"].join())
    assert (await world.channel_row())["session_state"] == "reconnecting"


async def test_what_is_due_while_reconnecting_waits_and_goes_out_in_order(store: Store, clock: ManualClock) -> None:
    """E7: no try is spent, no task is touched; on reconnect in order of due time per recipient, without an
    order key of its own."""
    world = await session_world(store, clock)
    world.session.session = DOWN
    await world.pass_time(15)
    sent = [await world.send(f"person-{n % 3}", at=clock.now() + (30 - n) * SECOND // 10) for n in range(30)]
    await world.pass_time(20)
    assert await world.step() == RunnerStep(0, 0, 0)
    shown = await world.show(sent[0])
    assert (shown["state"], shown["attempts"], shown["history"]) == ("pending", 0, [])
    assert (await world.channel_row())["state"] == "reconnecting"

    world.session.session = UP
    await world.pass_time(1)

    assert await drain(world) == 30
    for person in range(3):
        expected = [id_ for n, id_ in enumerate(sent) if n % 3 == person]
        assert [m.id for m in world.session.sent if m.recipient == f"person-{person}"] == expected[::-1]
    assert (await world.show(sent[7]))["attempts"] == 1


async def test_a_send_that_meets_the_loss_stops_the_channel_at_once(store: Store, clock: ManualClock) -> None:
    """E7: no message fails for it; its due time and its tries stay as they were."""
    world = await session_world(store, clock)
    world.session.script = lambda _message: Offline("client is not ready")
    first = await world.send("ada", at=clock.now() - SECOND)
    second = await world.send("bob")

    assert (await world.step()).claimed == 2
    assert await world.step() == RunnerStep(0, 0, 0)

    row, shown = await world.channel_row(), await world.show(first)
    assert (row["state"], row["session_reason"]) == ("reconnecting", "client is not ready")
    assert (shown["state"], shown["attempts"], row["consecutive_failures"]) == ("pending", 0, 0)
    assert "reconnecting" in (await world.why(second)).answer
    assert world.told(ChannelStopped) == [ChannelStopped("main", "reconnecting", "client is not ready")]

    world.session.script = lambda _message: Done()
    checks = world.session.checks
    await world.pass_time(4)
    assert world.session.checks == checks, "the word of a send is believed for 5 s"
    await world.pass_time(2)
    assert await drain(world) == 2
    assert world.session.ids[2:] == [first, second]


async def test_a_result_from_before_the_reconnect_says_nothing_new(store: Store, clock: ManualClock) -> None:
    """A slow send of the old connection does not stop the new one."""
    world = await session_world(store, clock)
    claimed_at = clock.now()
    world.session.session = DOWN
    await world.pass_time(16)
    world.session.session = UP
    await world.pass_time(2)
    late = {"name": "main", "session_state": "reconnecting", "why": "late", "claimed_at": claimed_at, "restart": False}
    assert (await store.write([Step("channel_session_lost", late)])) == [[]]
    assert (await world.channel_row())["session_state"] == "connected"


async def test_logged_out_waits_for_a_person_with_an_alert(store: Store, clock: ManualClock) -> None:
    """E7: never reconnects by itself; linked again, what waited goes out without another command."""
    world = await session_world(store, clock, reconnect_wait=timedelta(hours=1))
    world.session.session = OUT
    await world.pass_time(16)
    id_ = await world.send()
    await world.pass_time(60)

    assert world.session.reconnects == 0
    assert world.told(ChannelLoggedOut) == [ChannelLoggedOut("main", "SCAN_QR_CODE")]
    assert (await world.channel_row())["state"] == "logged_out"
    why = await world.why(id_)
    assert why.remedy == "link it again: tidings channels qr main"
    assert (await world.step()).claimed == 0

    world.session.session = UP
    await world.pass_time(5)
    assert await drain(world) == 1


async def test_a_send_may_find_that_it_is_logged_out(store: Store, clock: ManualClock) -> None:
    """Also while somebody thinks that it reconnects."""
    world = await session_world(store, clock)
    world.session.script = lambda _message: Offline("UNPAIRED: a person is needed", needs_person=True)
    await world.send()
    await world.step()
    assert (await world.channel_row())["state"] == "logged_out"
    await world.monitor.step()
    assert world.told(ChannelLoggedOut) == [ChannelLoggedOut("main", "UNPAIRED: a person is needed")]


class TestTooOld:
    """Those that waited longer than `reconnect_wait` expire on reconnect, with that reason (E7, B8)."""

    async def test_they_expire_before_the_others_go_out(self, store: Store, clock: ManualClock) -> None:
        """Five minutes by default; the message's own expiry comes first, and is not shortened."""
        world = await session_world(store, clock)
        world.session.session = DOWN
        await world.pass_time(15)
        old = await world.send("ada", "old")
        behind = await world.send("ada", "old too, and behind the first one of its key")
        own = await world.send("bob", "own expiry", expires_at=clock.now() + HOUR)
        await world.pass_time(2)
        young = await world.send("ada", "young")
        clock.advance(298)
        await world.pass_time(1)
        assert (await world.show(old))["state"] == "pending"

        world.session.session = UP
        await world.pass_time(1)
        await drain(world)

        states = {name: (await world.show(id_))["state"] for name, id_ in
                  {"old": old, "behind": behind, "own": own, "young": young}.items()}  # fmt: skip
        assert states == {"old": "expired", "behind": "expired", "own": "sent", "young": "sent"}
        assert "its channel was not connected for over 5 min" in (await world.why(old)).answer
        assert world.told(TasksExpired) == [TasksExpired(2)]

    async def test_a_short_loss_expires_nothing(self, store: Store, clock: ManualClock) -> None:
        """What has waited for something else before is not counted against the session."""
        world = await session_world(store, clock)
        await world.control.pause("main")
        id_ = await world.send()
        clock.advance(1000)
        await world.pass_time(1)
        world.session.session = DOWN
        await world.pass_time(30)
        await world.control.resume("main")
        world.session.session = UP
        await world.pass_time(1)
        assert await drain(world) == 1
        assert (await world.show(id_))["state"] == "sent"

    async def test_its_own_expiry_ends_it_while_the_session_is_away(self, store: Store, clock: ManualClock) -> None:
        """The sweeper walks what stands still."""
        world = await session_world(store, clock)
        world.session.session = DOWN
        await world.pass_time(15)
        id_ = await world.send(expires_at=clock.now() + MINUTE)
        clock.advance(300)
        assert await world.worker.expirer.step() == 1
        assert (await world.show(id_))["state"] == "expired"

    @pytest.mark.parametrize("down", [STOPPED, FAILED, OUT], ids=lambda check: str(check.why))
    async def test_after_more_than_a_reconnect_the_ordinary_expiry_applies(
        self, store: Store, clock: ManualClock, down: SessionCheck
    ) -> None:
        """E7: a session that was stopped, failed or logged out, even for a moment, leaves its messages be."""
        world = await session_world(store, clock)
        world.session.session = DOWN
        await world.pass_time(15)
        waited = await world.send("ada", "waited")
        world.session.session = down
        await world.pass_time(5)
        world.session.session = DOWN
        clock.advance(3600)
        await world.pass_time(1)
        world.session.session = UP
        await world.pass_time(1)
        assert await drain(world) == 1
        assert (await world.show(waited))["state"] == "sent"

        world.session.session = DOWN
        await world.pass_time(15)
        again = await world.send("ada", "the next outage counts for itself")
        clock.advance(360)
        world.session.session = UP
        await world.pass_time(2)
        assert (await world.show(again))["state"] == "expired"

    async def test_a_stopped_session_keeps_its_messages_for_a_day(self, store: Store, clock: ManualClock) -> None:
        """B8: the general expiry of 24 h, with an alert from the first minute."""
        world = await session_world(store, clock)
        world.session.session = STOPPED
        await world.pass_time(16)
        id_ = await world.send()
        clock.advance(23 * 3600)
        await world.worker.expirer.step()
        assert (await world.show(id_))["state"] == "pending"
        assert [found.subject for found in stopped(await store.read("queue_list"))] == ["main"]
        clock.advance(3700)
        await world.worker.expirer.step()
        assert (await world.show(id_))["state"] == "expired"


class TestRecovery:
    """A stopped session is started, a failed one restarted; only a logout waits for a person (E7)."""

    async def test_a_stopped_session_is_started_with_backoff(self, store: Store, clock: ManualClock) -> None:
        """5, 10, 20, 40, 60 s; an admin is told after five failures, and it is never called logged out."""
        world = await session_world(store, clock)
        world.session.session = STOPPED
        await world.pass_time(16)
        starts = []
        for second in range(200):
            before = world.session.reconnects
            await world.pass_time(1)
            starts += [second] * (world.session.reconnects - before)
        assert [after - before for before, after in pairwise(starts)] == [10, 20, 40, 60, 60]
        assert world.session.restarts == 0
        assert world.told(ChannelUnreachable) == [ChannelUnreachable("main", 5, "STOPPED")]
        assert world.told(ChannelLoggedOut) == []

    async def test_a_stopped_session_is_started_as_soon_as_tidings_starts(
        self, store: Store, clock: ManualClock
    ) -> None:
        """After a restart of the whole machine nobody has to do anything."""
        world = await session_world(store, clock, checked=False)
        world.session.session = STOPPED
        await world.monitor.step()
        assert world.session.reconnects == 1

    async def test_a_failed_session_is_restarted_once_and_again_after_an_hour(
        self, store: Store, clock: ManualClock
    ) -> None:
        """A restart storm helps nobody; meanwhile an admin has been told."""
        world = await session_world(store, clock)
        world.session.session = FAILED
        await world.pass_time(300)
        assert (world.session.restarts, world.session.reconnects) == (1, 0)
        assert len(world.told(ChannelUnreachable)) == 1
        clock.advance(3600)
        await world.pass_time(61)
        assert world.session.restarts == 2

    async def test_a_session_that_only_seems_to_work_is_restarted(self, store: Store, clock: ManualClock) -> None:
        """Its messages stay uncertain; the others wait for the restart. If that does not help, it backs off."""
        world = await session_world(store, clock, on_unknown=OnUnknown.HOLD)
        world.session.script = lambda _message: Unknown("HTTP 500", session_failed=True)
        first, second = await world.send("ada"), await world.send("ada")
        assert (await world.step()).claimed == 1
        assert (await world.step()).claimed == 0, "the channel waits"
        await world.pass_time(1)
        assert (world.session.restarts, (await world.channel_row())["state"]) == (1, "reconnecting")
        assert (await world.show(first))["unknown"]

        await world.pass_time(6)
        assert (await world.step()).claimed == 1
        assert (await world.show(second))["unknown"]
        await world.pass_time(9)
        assert (await world.channel_row())["state"] == "reconnecting", "10 s the second time"
        assert world.session.restarts == 1

    async def test_a_session_that_is_stopped_for_seconds_is_not_reported(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Some servers say STOPPED for up to 15 s by mistake: messages wait, nobody is woken."""
        world = await session_world(store, clock)
        await subscribe(store, clock)
        await world.listeners.refresh()
        world.session.session = STOPPED
        await world.pass_time(29)
        id_ = await world.send()
        assert (await world.step()).claimed == 0
        world.session.session = UP
        await world.pass_time(1)
        assert await drain(world) == 1
        assert (await world.show(id_))["state"] == "sent"
        assert await store.read("outbox_page", limit=10) == []

    async def test_a_rejected_key_pauses_the_channel(self, store: Store, clock: ManualClock) -> None:
        """A4: a bad credential pauses the channel, its work stays pending; no session is started with it."""
        world = await session_world(store, clock)
        world.session.session = REJECTED
        await world.pass_time(40)
        id_ = await world.send()
        row = await world.channel_row()
        assert (row["state"], row["pause_reason"]) == ("paused", "the server rejects the API key")
        assert world.told(ChannelStopped) == [ChannelStopped("main", "paused", "the server rejects the API key")]
        assert (world.session.reconnects, world.session.restarts) == (0, 0)

        world.session.session = UP
        await world.pass_time(5)
        assert (await world.step()).claimed == 0
        await world.control.resume("main")
        assert await drain(world) == 1
        assert (await world.show(id_))["state"] == "sent"


class TestTwoNodes:
    """Nodes meet only in the database: one of them looks at a time, both see the state (rule 18)."""

    async def test_one_of_two_monitors_checks(self, store: Store, clock: ManualClock) -> None:
        """Whoever moves the row."""
        world = await session_world(store, clock)
        clock.advance(15)
        before = world.session.checks
        await asyncio.gather(world.monitor.step(), world.another_monitor().step())
        assert world.session.checks == before + 1

    async def test_both_skip_the_channel(self, store: Store, clock: ManualClock) -> None:
        """What one has found holds for the other's claims."""
        world = await session_world(store, clock)
        other: Worker = world.node()
        await other.node.join()
        world.session.session = DOWN
        await world.pass_time(15)
        await world.send()
        assert (await other.runner.step()).claimed == 0
        assert (await world.worker.runner.step()).claimed == 0

    async def test_a_monitor_that_dies_during_a_check_is_replaced(self, store: Store, clock: ManualClock) -> None:
        """When its lease is over; and its late word changes nothing."""
        world = await session_world(store, clock)
        clock.advance(15)
        hanging = asyncio.Event()
        checking = asyncio.Event()

        async def hang() -> None:
            checking.set()
            await hanging.wait()

        world.session.while_checking = hang
        dead = asyncio.create_task(world.monitor.step())
        await checking.wait()
        world.session.while_checking = None
        world.session.session = OUT
        other = world.another_monitor()
        checks = world.session.checks
        await other.step()
        assert world.session.checks == checks, "the lease still runs"

        clock.advance(LEASE / SECOND)
        await other.step()
        assert (await world.channel_row())["session_state"] == "logged_out"

        world.session.session = UP
        hanging.set()
        await dead
        assert (await world.channel_row())["session_state"] == "logged_out", "an overtaken check writes nothing"


async def test_an_admin_is_notified_after_five_failures(store: Store, clock: ManualClock) -> None:
    """E7: an event for subscribers, written with the change, and a line in the log."""
    world = await session_world(store, clock)
    await subscribe(store, clock)
    await world.listeners.refresh()
    world.session.session = DOWN
    await world.pass_time(160)
    world.session.session = UP
    await world.pass_time(1)

    assert world.session.reconnects == 5
    assert world.told(ChannelUnreachable) == [ChannelUnreachable("main", 5, "STARTING")]
    told = await store.read("outbox_page", limit=10)
    assert [row["type"] for row in told] == ["channel.reconnecting", "channel.unreachable", "channel.connected"]
    assert {row["subject"] for row in told} == {"main"}
    body = orjson.loads(told[1]["body"])
    assert (body["channel"], body["state"], body["failures"]) == ("main", "reconnecting", 5)
    assert (await world.channel_row())["reconnects"] == 6


async def test_a_resumed_channel_is_checked_immediately(store: Store, clock: ManualClock) -> None:
    """It cannot connect what is not connected, but nobody has to wait for the next look."""
    world = await session_world(store, clock)
    checks = world.session.checks
    await world.monitor.step()
    assert world.session.checks == checks
    await world.control.resume("main")
    await world.monitor.step()
    assert world.session.checks == checks + 1


async def test_a_session_that_comes_back_finds_its_breaker_closed(store: Store, clock: ManualClock) -> None:
    """It was about the old connection; a minute of waiting would miss what is due."""
    world = await session_world(store, clock)
    world.session.script = lambda _message: Retry(Category.TEMPORARY, "Evaluation failed")
    for n in range(5):
        await world.send(f"person-{n}")
    await world.step()
    assert (await world.channel_row())["breaker"] == "open"
    world.session.session = DOWN
    await world.pass_time(16)
    world.session.session, world.session.script = UP, lambda _message: Done()
    await world.pass_time(1)
    assert (await world.channel_row())["breaker"] == "closed"
    await world.send("zoe")
    assert (await world.step()).claimed == 1


async def test_a_channel_without_a_session_has_no_link(store: Store, clock: ManualClock) -> None:
    """Offline from a channel that nobody keeps waits a little, without a try spent."""
    world = await KernelHarness(store, clock, offline).open()
    id_ = await world.send()
    await world.step()
    row = next(row for row in await store.read("queue_list") if row["name"] == "main")
    assert (row["session_state"], row["block_reason"]) == (None, "not there")
    assert (await world.show(id_))["attempts"] == 0
    assert (await world.step(seconds=4)).claimed == 0
    assert (await world.step(seconds=2)).claimed == 1


def offline(_message: Message) -> Outcome:
    """Nobody is there."""
    return Offline("not there")


async def subscribe(store: Store, clock: ManualClock) -> None:
    """Somebody who wants to hear of channels."""
    from tidings.outbound.events.subscriptions import SubscriptionService
    from tidings.wire.ssrf_guard import SsrfRules

    subscriptions = SubscriptionService(store, clock, cipher(store), SsrfRules(allow_private=True, allow_http=True))
    await subscriptions.add({"url": "http://127.0.0.1:9/hook", "events": ["channel.*"]})
