"""Alerts: each rule is raised and resolved by its real condition, told once, taken on (B11, C11)."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import apsw
import orjson
import pytest

from tidings.kernel.clock import ManualClock, SystemClock
from tidings.model.errors import Conflict, Invalid, NotFound, StoreFull
from tidings.model.message import Draft
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category
from tidings.model.time import HOUR, MINUTE
from tidings.observability import memory_usage
from tidings.observability.events import AlertRaised, AlertResolved
from tidings.outbound.alerts.alert_changes import Measurement, decide_changes
from tidings.outbound.alerts.evaluator import AlertEvaluator, AlertRecipients
from tidings.outbound.alerts.measurements import AlertMeasurements
from tidings.outbound.alerts.rules import RULES, AlertRule, AlertThresholds
from tidings.outbound.alerts.service import AlertService
from tidings.outbound.message_validation import MESSAGE_COLUMNS
from tidings.outbound.messages import MessageService
from tidings.outbound.schedules.occurrence_builder import MessageOccurrenceBuilder
from tidings.outbound.schedules.scheduler import Scheduler
from tidings.outbound.schedules.service import ScheduleService
from tidings.store.port import Row, Step, Store, TableRows
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from .kernel_harness import KernelHarness
from .migration_harness import Moving

BUSY = Retry(Category.TEMPORARY, "answered 503", timedelta(seconds=1))


class Watched:
    """A world with a guard that looks when told to, and tells `ops` on the channel `pager`."""

    def __init__(self, world: KernelHarness, **options: Any) -> None:
        self.world, self.clock, self.store = world, world.clock, world.store
        limits = options.pop("limits", AlertThresholds())
        self.figures = AlertMeasurements(self.store, place=options.pop("place", None), limits=limits)
        recipients = AlertRecipients("pager", ("ops",))
        self.options = {"recipients": recipients, "emit": world.events.append, **options}
        self.guard = self.another()
        self.alerts = AlertService(self.store, self.clock, self.figures)

    def another(self, **more: Any) -> AlertEvaluator:
        """One more guard of the fleet."""
        clock = more.pop("clock", self.clock)
        return AlertEvaluator(self.store, clock, self.world.messages, self.figures, **self.options | more)

    async def look(self, seconds: float = 15) -> set[tuple[str, str]]:
        """Let time pass, look once, and give what is raised: rule and state."""
        self.clock.advance(seconds)
        await self.guard.step()
        return {(row["rule"], row["state"]) for row in (await self.alerts.page()).items}

    async def raised(self, seconds: float = 15) -> set[str]:
        """The rules that are raised after a look."""
        return {rule for rule, _ in await self.look(seconds)}

    async def told(self) -> list[str]:
        """What was told to people, in order."""
        page = await self.world.messages.page(limit=1000, channel="pager")
        return [row["text"] for row in page.items[::-1]]

    async def events(self) -> list[Row]:
        """What is to be told to programs."""
        rows = await self.store.read("outbox_page", limit=100)
        return [{"type": row["type"], **orjson.loads(row["body"])} for row in rows]


async def watched(store: Store, clock: ManualClock, *, slots: int = 100, **options: Any) -> Watched:
    """A house in order, with one node."""
    world = await KernelHarness(store, clock, channels=("main", "pager"), slots=slots).open()
    made = Watched(world, **options)
    assert await made.raised() == set(), "a house in order has no alerts"
    return made


async def pile(world: KernelHarness, count: int) -> None:
    """Many messages that are due at once."""
    now = world.clock.now()
    made = [await world.messages.prepare(Draft("main", f"p{n}", "hi"), now) for n in range(count)]
    for first in range(0, count, world.store.bulk):
        part = made[first : first + world.store.bulk]
        await world.store.enqueue(
            [task for task, _ in part], TableRows("messages", MESSAGE_COLUMNS, [row for _, row in part])
        )


async def drain(world: KernelHarness) -> None:
    """Send all that is due."""
    await world.worker.node.beat()
    while (await world.worker.runner.step()).claimed:
        pass


# -- the rules, each with its real condition


async def test_nobody_looks_for_due_messages(store: Store, clock: ManualClock) -> None:
    """Scheduler silent for 5 min is critical (B11); a process that only accepts notices it."""
    house = await watched(store, clock)
    assert await house.raised(seconds=280) == set()

    assert await house.raised(seconds=15) == {"scheduler_silent"}
    (alert,) = (await house.alerts.page()).items
    assert (alert["severity"], alert["problem"]) == (
        "critical",
        "no process has polled for due messages for 5 min 10 s",
    )
    await house.world.worker.node.leave()
    assert await house.raised() == {"scheduler_silent"}, "an orderly end is silence, too"
    await house.world.worker.node.join()
    assert await house.raised() == set()


async def test_too_much_is_due_and_overdue_and_starts_late(store: Store, clock: ManualClock) -> None:
    """Over 10,000 due (C11), over 1,000 overdue, over 10 % over 60 s late in 5 min (B11)."""
    house = await watched(store, clock, slots=4000)
    await pile(house.world, 10_001)
    assert await house.raised() == {"queue_deep"}
    await house.world.worker.node.beat()
    assert await house.raised(seconds=46) == {"queue_deep", "overdue"}

    await drain(house.world)
    assert await house.raised() == {"late"}
    await house.world.worker.node.beat()
    assert await house.raised(seconds=280) == {"late"}, "the share is of five minutes"
    await house.world.worker.node.beat()
    assert await house.raised(seconds=60) == set()


async def test_thresholds_are_those_of_the_settings(store: Store, clock: ManualClock) -> None:
    """B11: over three due, over two overdue, silence of a minute; what is told names the threshold."""
    limits = AlertThresholds(queue_deep=3, overdue=2, scheduler_silent=timedelta(minutes=1))
    house = await watched(store, clock, limits=limits)
    await pile(house.world, 3)
    assert await house.raised() == set()
    await pile(house.world, 1)
    assert await house.raised() == {"queue_deep"}
    assert await house.raised(seconds=46) == {"queue_deep", "overdue", "scheduler_silent"}
    told = {alert["rule"]: alert["threshold"] for alert in (await house.alerts.page()).items}
    assert told == {"queue_deep": 3, "overdue": 2, "scheduler_silent": 60}
    assert {event["threshold"] for event in await house.events()} == {3, 2, 60}


@pytest.mark.parametrize(
    ("outcome", "rules"),
    [
        (Retry(Category.TEMPORARY, "busy", timedelta(hours=1)), {"errors"}),
        (Reject(Category.PERMANENT, "no such person"), {"errors", "failures"}),
    ],
)
async def test_attempts_end_in_errors_and_messages_fail(
    store: Store, clock: ManualClock, outcome: Outcome, rules: set[str]
) -> None:
    """Errors over 1 % (B11) and failures over 10 % (C11), counted from ten attempts on, over 5 min."""
    house = await watched(store, clock)
    house.world.channel.script = lambda message: outcome if message.recipient == "bad" else Done()
    await house.world.send(to="bad")
    for number in range(7):
        await house.world.send(to=f"p{number}")
    await drain(house.world)
    assert await house.raised() == set(), "eight attempts say nothing"
    await house.world.send(to="bad")
    await house.world.send(to="p8")
    await drain(house.world)

    assert await house.raised() == rules
    await house.world.worker.node.beat()
    assert await house.raised(seconds=280) >= rules
    await house.world.worker.node.beat()
    assert await house.raised(seconds=65) == set()


async def test_the_other_side_fails_for_the_third_time(store: Store, clock: ManualClock) -> None:
    """5xx after 3 tries (C3): two are nothing yet."""
    house = await watched(store, clock)
    house.world.channel.script = lambda _message: BUSY
    await house.world.send()
    for wait in (0, 2):
        await house.world.step(seconds=wait)
        assert await house.raised() == set()
    await house.world.step(seconds=1)

    assert await house.raised() == {"errors_persist"}
    house.world.channel.script = lambda _message: Done()
    await house.world.step(seconds=200)
    await house.world.step(seconds=200)
    assert await house.raised() == set()


async def test_a_worker_uses_up_its_memory(store: Store, clock: ManualClock) -> None:
    """Over 80 % of what the process may have (C11), as it says with its beat; a moment of it is nothing."""
    house = await watched(store, clock)
    worker, has = house.world.node(), memory_usage.used_bytes()
    assert has is not None
    worker._memory_limit = 2 * has

    async def beat() -> None:
        await house.world.worker.node.beat(json.dumps(worker.load))

    await beat()
    assert await house.raised() == set()
    ballast = bytearray(has)
    ballast[:: 1 << 12] = b"x" * len(ballast[:: 1 << 12])
    await beat()
    assert await house.raised() == set(), "it must last a minute"
    assert await house.raised(seconds=60) == {"memory"}
    del ballast
    await beat()
    assert await house.raised() == set()


async def test_a_schedule_does_not_run(store: Store, clock: ManualClock) -> None:
    """An expected run did not happen: nobody ticked, it was refused, or it was missed for good."""
    house = await watched(store, clock)
    world, makers = house.world, {"message": MessageOccurrenceBuilder(house.world.messages)}
    schedules = ScheduleService(store, clock, makers)
    scheduler = Scheduler(store, clock, makers, rest=timedelta(0))

    async def add(**more: Any) -> str:
        body = {"rule": {"every": "1h"}, "message": {"channel": "main", "to": "ada", "text": "hi"}, **more}
        return str((await schedules.create(body, timezone=ZoneInfo("UTC"))).answer["id"])

    async def looked(seconds: float) -> dict[str, str]:
        clock.advance(seconds)
        await world.worker.node.beat()
        assert await house.raised(seconds=1) <= {"run_missed"}
        return {row["subject"]: row["problem"] for row in (await house.alerts.page()).items}

    ticking, skipping = await add(), await add(catch_up="skip")
    assert await looked(3600) == {}
    late = await looked(310)
    assert set(late) == {ticking, skipping} and "should have fired at" in late[ticking]
    await scheduler.step()
    missed = await looked(20)
    assert set(missed) == {skipping} and "did not fire at" in missed[skipping]
    await scheduler.step()
    clock.advance(3600 - 331)
    await scheduler.step()
    assert await looked(15) == {}, "the next run happened"

    without = MessageOccurrenceBuilder(MessageService(store, clock, {}))
    clock.advance(3585)
    await Scheduler(store, clock, {"message": without}, rest=timedelta(0)).step()
    refused = await looked(15)
    assert set(refused) == {ticking, skipping} and "there is no channel 'main'" in refused[ticking]
    await schedules.remove(skipping)
    clock.advance(3600)
    await scheduler.step()
    assert await looked(15) == {}


async def test_a_migration_job_makes_no_progress(
    store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 min without a batch that moved is critical (C11)."""
    house = await watched(store, clock)
    moving = Moving(store, clock, tmp_path, monkeypatch)
    moving.give("people", [{"id": str(number), "name": f"P{number}"} for number in range(5)])
    job = await moving.create({"people": {"fields": {"name": "name"}}})
    await moving.migrations.run(job, by="ada")

    async def looked(minutes: float) -> set[str]:
        clock.advance(minutes=minutes)
        await house.world.worker.node.beat()
        return await house.raised(seconds=15)

    assert await looked(29) == set()
    assert await looked(1) == {"job_stalled"}
    (alert,) = (await house.alerts.page()).items
    assert (alert["subject"], alert["severity"]) == (job, "critical")
    await moving.drive(job)
    assert "job_stalled" not in await looked(1)


async def test_a_channel_stops(store: Store, clock: ManualClock) -> None:
    """Breaker open, paused by the engine, logged out; not by a person."""
    house = await watched(store, clock)
    world = house.world
    world.channel.script = lambda _message: Retry(Category.TEMPORARY, "refused", timedelta(hours=9))
    for number in range(5):
        await world.send(to=f"p{number}")
    await drain(world)
    assert "channel_stopped" not in await house.raised(), "a minute must pass"
    assert "channel_stopped" in await house.raised(seconds=60)
    problem = {row["rule"]: row["problem"] for row in (await house.alerts.page()).items}["channel_stopped"]
    assert problem == "the channel 'main' has an open breaker: 5 failures in a row"
    world.channel.script = lambda _message: Done()
    await world.send()
    await world.step(seconds=60)
    assert "channel_stopped" not in await house.raised(), "the probe went through"

    world.channel.script = lambda _message: Reject(Category.SYSTEM, "the token is wrong", whole_channel=True)
    await world.send()
    await world.step()
    await house.look()
    assert "channel_stopped" in await house.raised(seconds=60)
    await store.write([Step("queue_resume", {"name": "main"})])
    assert "channel_stopped" not in await house.raised()

    await store.write([Step("queue_pause", {"name": "main", "reason": "by hand"})])
    await house.look()
    assert "channel_stopped" not in await house.raised(seconds=60)
    await store.write([Step("queue_pause_by_engine", {"name": "main", "reason": "later"})])
    assert {row["name"]: row["pause_reason"] for row in await store.read("queue_list")}["main"] == "by hand"
    await store.write([Step("queue_resume", {"name": "main"})])

    await store.write([Step("channel_session_join", {"name": "main", "stale": 0})])
    lost = {"name": "main", "session_state": "logged_out", "why": "scan the code", "claimed_at": clock.now()}
    await store.write([Step("channel_session_lost", {**lost, "restart": False})])
    await house.look()
    assert "channel_stopped" in await house.raised(seconds=60)
    await store.write([Step("channel_session_drop", {"name": "main"})])
    assert "channel_stopped" not in await house.raised()


@pytest.fixture
def small_disk(disk: Callable[[str], Path]) -> Path:
    """A disk of 2 MB that can grow."""
    return disk("2m")


def grow(place: Path) -> None:
    """More room."""
    subprocess.run(["mount", "-o", "remount,size=600m", place], check=True)


async def test_the_disk_under_the_database_fills_up(store: Store, clock: ManualClock, small_disk: Path) -> None:
    """Told before nothing can be accepted any more."""
    house = Watched(await KernelHarness(store, clock, channels=("main", "pager")).open(), place=small_disk)
    assert await house.raised() == {"database_full"}
    grow(small_disk)
    assert await house.raised() == set()


async def test_a_write_refused_by_a_full_disk_raises_an_alert_once_there_is_space(
    tmp_path: Path, clock: ManualClock
) -> None:
    """Nothing can be written while the disk is full; the first write after it says so."""
    store = SqliteStore(tmp_path / "t.db", now=clock.now, inline=True)
    await store.open()
    house = await watched(store, clock)
    assert store._connection is not None
    pages = next(iter(store._connection.execute("pragma page_count")))[0]
    await pile(house.world, 10)
    next(iter(store._connection.execute(f"pragma max_page_count = {pages}")))
    with pytest.raises(StoreFull):
        while True:
            await pile(house.world, 500)
    house.guard._take_duty = _full  # type: ignore[method-assign]
    with pytest.raises(StoreFull):
        await house.look()
    next(iter(store._connection.execute("pragma max_page_count = 1000000")))
    del house.guard._take_duty
    assert "database_full" in await house.raised()
    assert "database_full" not in await house.raised(seconds=301)
    await store.close()


async def _full() -> bool:
    raise StoreFull("the disk is full")


async def test_the_database_is_slow(store: Store, clock: ManualClock) -> None:
    """A real lock on the row, or the file, that the guard's small write needs."""
    rule = replace(RULES["database_slow"], over=0.15, hold=timedelta(0))
    house = await watched(store, clock)
    house.guard = house.another(rules=[rule], clock=SystemClock())
    await house.look()
    if isinstance(store, SqliteStore):
        held = threading.Event()
        holder = threading.Thread(target=_hold_file, args=(store.path, held))
        holder.start()
        held.wait()
        assert await house.raised() == {"database_slow"}
        holder.join()
    else:
        assert isinstance(store, PostgresStore)
        async with store._connection() as connection:
            transaction = connection.transaction()
            await transaction.start()
            await connection.execute("select 1 from maintenance where name = 'alerts' for update")
            asyncio.get_running_loop().call_later(0.3, lambda: asyncio.ensure_future(transaction.rollback()))
            assert await house.raised() == {"database_slow"}
    assert await house.raised() == set()


def _hold_file(path: Path, held: threading.Event) -> None:
    connection = apsw.Connection(str(path))
    connection.execute("begin immediate")
    held.set()
    threading.Event().wait(0.3)  # a real lock, really held
    connection.execute("rollback")
    connection.close()


# -- telling and taking on


async def test_an_alert_is_raised_and_resolved_once_by_many_evaluators(store: Store, clock: ManualClock) -> None:
    """People by a message, programs by an event, the log by a line; three guards at the same moment."""
    house = await watched(store, clock)
    fleet = [house.another() for _ in range(3)]
    clock.advance(310)
    for _ in range(2):
        await asyncio.gather(*(guard._evaluate(0.0) for guard in fleet))
    assert [text.splitlines()[0] for text in await house.told()] == [
        "Tidings, critical: no process polls for due messages."
    ]
    assert "tidings docs runbooks/scheduler-silent" in (await house.told())[0]
    (event,) = await house.events()
    assert (event["type"], event["rule"], event["threshold"]) == ("alert.raised", "scheduler_silent", 300)

    await house.world.worker.node.beat()
    for _ in range(2):
        await asyncio.gather(*(guard._evaluate(0.0) for guard in fleet))
    assert (await house.told())[1].startswith("Tidings, resolved: no process polls for due messages.")
    assert [event["type"] for event in await house.events()] == ["alert.raised", "alert.resolved"]
    assert len(house.world.told(AlertRaised)) == len(house.world.told(AlertResolved)) == 1
    await drain(house.world)
    assert len(house.world.channels["pager"].sent) == 2


async def test_one_guard_at_a_time_does_the_duty(store: Store, clock: ManualClock) -> None:
    """The others find it taken; when the first is gone the next one looks."""
    house = await watched(store, clock)
    second = house.another()
    clock.advance(310)
    await house.guard.step()
    assert len(await house.events()) == 1
    await house.world.worker.node.beat()
    await second.step()
    assert len(await house.events()) == 1, "the duty is taken"
    clock.advance(15)
    await second.step()
    assert len(await house.events()) == 2


async def test_somebody_takes_an_alert_on(store: Store, clock: ManualClock) -> None:
    """Everybody sees who; only once, and only while it is open."""
    house = await watched(store, clock)
    await house.look(310)
    (alert,) = (await house.alerts.page()).items
    with pytest.raises(Invalid, match="the name is missing"):
        await house.alerts.acknowledge(alert["id"], " ")
    taken = await house.alerts.acknowledge(alert["id"], "Ada")
    assert (taken["state"], taken["acknowledged_by"]) == ("acknowledged", "Ada")
    with pytest.raises(Conflict, match="acknowledged by Ada"):
        await house.alerts.acknowledge(alert["id"], "Eve")
    assert await house.look() == {("scheduler_silent", "acknowledged")}

    await house.world.worker.node.beat()
    assert await house.look() == set()
    past = (await house.alerts.page(past=True)).items
    assert [(row["state"], row["acknowledged_by"]) for row in past] == [("resolved", "Ada")]
    with pytest.raises(NotFound):
        await house.alerts.acknowledge("no-such", "Ada")
    with pytest.raises(NotFound):
        await house.alerts.show(alert["id"], tenant="other")
    clock.advance(31 * 24 * 3600)
    await house.world.worker.node.beat()
    await house.look()
    assert (await house.alerts.page(past=True)).items == [], "it is forgotten with the history"


async def test_a_failed_alert_notification_is_recorded(store: Store, clock: ManualClock) -> None:
    """A channel that is gone keeps neither the alert nor the others from being known."""
    house = await watched(store, clock, recipients=AlertRecipients("gone", ("ops",)))
    assert await house.raised(310) == {"scheduler_silent"}
    (alert,) = (await house.alerts.page()).items
    assert "there is no channel 'gone'" in alert["notify_error"]
    assert len(await house.events()) == 1


# -- the decision


RULE = AlertRule("r", RULES["late"].severity, "f", 1.0, "too much", timedelta(minutes=1))


def row(state: str, first_at: int = 0, **more: Any) -> Row:
    """An open alert."""
    return {"id": "a", "rule": "r", "subject": "", "state": state, "first_at": first_at, "last_at": first_at} | more


def test_what_could_not_be_read_changes_nothing() -> None:
    """No figure, no verdict; an alert stays as it is."""
    assert not any(decide_changes([RULE], {}, [row("raised")], HOUR))
    assert decide_changes([RULE], {"f": []}, [row("raised")], HOUR).over


def test_it_must_hold_for_its_time() -> None:
    """Pending first, raised when it has lasted, dropped when it was over before."""
    bad = {"f": [Measurement(2, "so")]}
    (new,) = decide_changes([RULE], bad, [], 0).new
    assert not new.is_raised
    assert not decide_changes([RULE], bad, [row("pending")], MINUTE - 1).again[0].is_raised
    assert decide_changes([RULE], bad, [row("pending")], MINUTE).again[0].is_raised
    assert decide_changes([RULE], {"f": [Measurement(1, "so")]}, [row("pending")], MINUTE).dropped


def test_an_alert_of_a_rule_that_nobody_knows_ends_when_nobody_sees_it() -> None:
    """Two releases side by side do not undo each other's alerts."""
    strange = row("raised", rule="of tomorrow")
    assert not decide_changes([RULE], {}, [strange], HOUR).over
    assert decide_changes([RULE], {}, [strange], HOUR + 1).over


def test_each_subject_has_an_alert_of_its_own() -> None:
    """One channel's end is not another's."""
    bad = {"f": [Measurement(2, "so", "one"), Measurement(2, "so", "two")]}
    verdict = decide_changes([RULE], bad, [row("raised", subject="two"), row("raised", subject="three")], 0)
    assert [new.reading.subject for new in verdict.new] == ["one"]
    assert [again.row["subject"] for again in verdict.again] == ["two"]
    assert [over["subject"] for over in verdict.over] == ["three"]
