"""What schedules promise, in virtual time, on both databases (A8, E4, E5, E6)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import orjson
import pytest

from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, Invalid, NotFound, StoreUnavailable
from tidings.model.time import DAY, HOUR, MINUTE, instant, iso
from tidings.outbound.events.subscription_cache import SubscriptionCache
from tidings.outbound.schedules.occurrence_builder import (
    MessageOccurrenceBuilder,
    Occurrence,
    OccurrenceBuilder,
    PreparedOccurrence,
)
from tidings.outbound.schedules.scheduler import Scheduler
from tidings.outbound.schedules.service import ScheduleService
from tidings.store.port import Row, Step, Store, TableRows
from tidings.store.postgres import PostgresStore

from ..encryption import cipher
from .kernel_harness import KernelHarness

BERLIN = ZoneInfo("Europe/Berlin")
UTC = ZoneInfo("UTC")
MESSAGE = {"channel": "main", "to": "ada", "text": "good morning"}


class Plans:
    """A world with a scheduler that ticks when told to."""

    def __init__(self, world: KernelHarness, makers: Mapping[str, OccurrenceBuilder] | None = None) -> None:
        self.world, self.clock, self.store = world, world.clock, world.store
        self.makers = dict(makers or {"message": MessageOccurrenceBuilder(world.messages)})
        self.schedules = ScheduleService(self.store, self.clock, self.makers)
        self.scheduler = self.another()

    def another(self, store: Store | None = None, **options: Any) -> Scheduler:
        """One more scheduler of the fleet."""
        return Scheduler(store or self.store, self.clock, self.makers, **{"rest": timedelta(0)} | options)

    async def add(self, rule: Mapping[str, Any], **more: Any) -> str:
        """A schedule of a message; gives its id."""
        body = {"rule": dict(rule), "message": MESSAGE, **more}
        return str((await self.schedules.create(body, timezone=UTC)).answer["id"])

    async def tick(self, seconds: float = 0) -> float:
        """Let time pass, then tick once."""
        self.clock.advance(seconds)
        return await self.scheduler.step()

    async def messages(self) -> list[Row]:
        """All messages there are, oldest first."""
        return (await self.world.messages.page(limit=1000)).items[::-1]

    async def times(self) -> list[str]:
        """For when they were scheduled."""
        return sorted(row["scheduled_at"] for row in await self.messages())

    async def log(self, id_: str) -> list[tuple[str, str]]:
        """Instant and outcome of each occurrence, oldest first."""
        page = await self.schedules.occurrences(id_, limit=1000)
        return [(line["at"], line["outcome"]) for line in page.items[::-1]]

    async def show(self, id_: str) -> Row:
        """The schedule as people see it."""
        return await self.schedules.show(id_)


@pytest.fixture
async def plans(store: Store, clock: ManualClock) -> Plans:
    """An empty house with a scheduler."""
    return Plans(await KernelHarness(store, clock).open())


def later(clock: ManualClock, micros: int) -> str:
    """An instant from now, as it is shown."""
    return str(iso(clock.now() + micros))


# -- firing


async def test_a_schedule_makes_a_message_at_each_instant_and_plans_the_next(plans: Plans) -> None:
    """A8: after one occurrence, the next is planned; B3: the due time is the occurrence's own."""
    id_ = await plans.add({"every": "10m"})
    first, second = later(plans.clock, 10 * MINUTE), later(plans.clock, 20 * MINUTE)

    assert await plans.tick(599) == 1.0
    assert await plans.messages() == []
    await plans.tick(1)
    shown = await plans.show(id_)
    assert (shown["last_at"], shown["next_at"], shown["runs"]) == (first, second, 1)
    await plans.tick(600)

    assert await plans.times() == [first, second]
    assert await plans.log(id_) == [(first, "created"), (second, "created")]
    await plans.world.step()
    assert [message.text for message in plans.world.channel.sent] == ["good morning"] * 2


async def test_a_tick_sleeps_exactly_until_the_next_instant(plans: Plans) -> None:
    """Rule 11: not longer than a second, because hints may be lost, and never past the instant."""
    assert await plans.tick() == 1.0
    await plans.add({"every": "10s"})
    assert await plans.tick() == 1.0
    assert await plans.tick(9.75) == pytest.approx(0.25)


async def test_the_tick_rests_between_hints(plans: Plans) -> None:
    """A thousand hints a second do not make a thousand queries."""
    scheduler = plans.another(rest=timedelta(milliseconds=100))
    await scheduler.step()
    plans.clock.advance(0.03)
    assert await scheduler.step() == pytest.approx(0.07)
    plans.clock.advance(0.08)
    assert await scheduler.step() == 1.0


async def test_a_schedule_in_its_own_zone_is_right_over_the_change_of_the_clocks(plans: Plans) -> None:
    """A8: nine o'clock stays nine o'clock; 02:30 in the gap becomes 03:00."""
    plans.clock.advance_to(instant(datetime(2027, 3, 26, 23, tzinfo=UTC)))
    await plans.add({"daily": "02:30, 09:00"}, timezone="Europe/Berlin", catch_up="all", catch_up_window="7d")
    plans.clock.advance_to(instant(datetime(2027, 3, 29, 0, tzinfo=UTC)))
    await plans.tick()

    local = [datetime.fromisoformat(at).astimezone(BERLIN).strftime("%d %H:%M") for at in await plans.times()]
    assert local == ["27 02:30", "27 09:00", "28 03:00", "28 09:00"]


async def test_a_count_ends_it(plans: Plans) -> None:
    """A8: after so many it ends, and that is seen."""
    id_ = await plans.add({"every": "1m"}, count=2)
    for _ in range(4):
        await plans.tick(60)

    shown = await plans.show(id_)
    assert (shown["state"], shown["runs"], shown["next_at"]) == ("ended", 2, None)
    assert len(await plans.messages()) == 2


async def test_an_end_date_ends_it(plans: Plans) -> None:
    """A8: nothing after the end; the end itself is included."""
    id_ = await plans.add({"every": "1h"}, end=later(plans.clock, 2 * HOUR))
    for _ in range(4):
        await plans.tick(3600)

    assert (await plans.show(id_))["state"] == "ended"
    assert len(await plans.messages()) == 2


async def test_a_day_to_skip_is_skipped_and_said(plans: Plans) -> None:
    """The next run shown is the true one; the log says what was left out."""
    id_ = await plans.add({"daily": "09:00"}, excluded_dates=["2027-01-16"])
    await plans.tick(3600)
    assert (await plans.show(id_))["next_at"] == "2027-01-17T09:00:00.000Z"
    await plans.tick(48 * 3600)

    assert await plans.log(id_) == [
        ("2027-01-15T09:00:00.000Z", "created"),
        ("2027-01-16T09:00:00.000Z", "skipped"),
        ("2027-01-17T09:00:00.000Z", "created"),
    ]


# -- missed


@pytest.mark.parametrize(
    ("policy", "made", "missed"),
    [("skip", [], [1, 2, 3, 4, 5]), ("latest", [5], [1, 2, 3, 4]), ("all", [4, 5], [1, 2, 3])],
)
async def test_missed_occurrences_are_dealt_with_as_asked(
    plans: Plans, policy: str, made: list[int], missed: list[int]
) -> None:
    """E6: run once, coalesced, within the grace; or all within it; or none. Each has its line in the log."""
    begin = plans.clock.now()
    id_ = await plans.add({"every": "1h"}, catch_up=policy, catch_up_window="2h")
    await plans.tick(5 * 3600 + 600)

    assert await plans.times() == [iso(begin + n * HOUR) for n in made]
    expected = {iso(begin + n * HOUR): "created" for n in made} | {iso(begin + n * HOUR): "missed" for n in missed}
    assert dict(await plans.log(id_)) == expected
    assert (await plans.show(id_))["next_at"] == iso(begin + 6 * HOUR)


async def test_latest_is_the_default_with_an_hour_of_grace(plans: Plans) -> None:
    """E6."""
    shown = await plans.show(await plans.add({"every": "1m"}))
    assert (shown["catch_up"], shown["catch_up_window"]) == ("latest", "1h")
    await plans.tick(3600)
    assert len(await plans.messages()) == 1


async def test_what_is_late_expires_with_the_grace_and_what_is_on_time_as_usual(plans: Plans) -> None:
    """B8: a missed occurrence's grace comes before the usual one; the message's own before both."""
    begin = plans.clock.now()
    await plans.add({"every": "1h"}, end=iso(begin + HOUR))
    await plans.add({"every": "1h"}, end=iso(begin + HOUR), message=MESSAGE | {"expires_in": "45m"})
    await plans.tick(3600 + 1800)
    await plans.add({"every": "1h"})
    await plans.tick(3600)

    expiries = [row["expires_at"] for row in await plans.messages()]
    assert sorted(expiries[:2]) == [iso(begin + HOUR + 45 * MINUTE), iso(begin + 2 * HOUR)]
    assert expiries[2] == iso(begin + 2 * HOUR + 30 * MINUTE + DAY)


async def test_very_many_missed_ones_are_one_line_and_little_work(plans: Plans) -> None:
    """A year of seconds: no year of work, no million rows."""
    id_ = await plans.add({"every": "1s"})
    await plans.tick(365 * 86_400)

    log = await plans.log(id_)
    assert [outcome for _, outcome in log] == ["missed", "created"]
    assert "1,000 or more" in (await plans.schedules.occurrences(id_)).items[1]["detail"]


async def test_all_of_very_many_are_made_a_portion_at_a_time(plans: Plans) -> None:
    """No transaction is long, and none is left out or made twice."""
    await plans.add({"every": "1s"}, catch_up="all", catch_up_window="300s", count=450)
    await plans.tick(1000)
    plans.clock.advance(151)
    await plans.tick()

    times = await plans.times()
    assert len(times) == len(set(times)) == 450


# -- once


async def test_a_clock_set_back_makes_no_occurrence_twice(plans: Plans) -> None:
    """E4: fire, set the clock back an hour, restart, fire: nothing."""
    id_ = await plans.add({"every": "10m"})
    await plans.tick(600)
    plans.clock.jump(-3600)
    plans.scheduler = plans.another()
    for _ in range(6):
        await plans.tick(600)
    assert len(await plans.messages()) == 1
    await plans.tick(600)

    assert len(await plans.messages()) == 2
    assert len(set(await plans.log(id_))) == 2


async def test_a_clock_set_back_does_not_keep_a_dead_scheduler_its_turn(plans: Plans) -> None:
    """A turn that ends in an hour is of a clock that was set back, and worth nothing."""
    await plans.add({"every": "10m"}, start=later(plans.clock, -DAY))
    plans.clock.advance(600)
    await plans.another().step()
    plans.clock.jump(-3600)
    await plans.add({"every": "10m"}, start=later(plans.clock, MINUTE))
    await plans.tick(60)

    assert len(await plans.messages()) == 2


async def test_an_occurrence_that_has_run_is_not_run_again(plans: Plans) -> None:
    """E4: whatever else went wrong, its row is there: nothing is made, and the schedule goes on."""
    id_ = await plans.add({"every": "10m"})
    ran = [
        {"schedule": id_, "at": plans.clock.now() + 10 * MINUTE, "outcome": "created", "created": "x", "detail": None}
    ]
    await plans.store.write([Step("occurrence_add", {"lines": orjson.dumps(ran).decode()})])
    other = await plans.add({"every": "10m"})
    await plans.tick(600)

    assert len(await plans.messages()) == 1
    assert len(await plans.log(other)) == 1
    assert (await plans.show(id_))["next_at"] == later(plans.clock, 10 * MINUTE)


@pytest.mark.parametrize("hold", [0, 2])
async def test_four_schedulers_make_each_occurrence_once(postgres_url: str, clock: ManualClock, hold: int) -> None:
    """E4, B5: with turns and without, on one database, all at once."""
    stores = [PostgresStore(postgres_url, now=clock.now, connections=2) for _ in range(4)]
    for one in stores:
        await one.open()
    plans = Plans(await KernelHarness(stores[0], clock).open())
    ids = [await plans.add({"every": f"{seconds}s"}) for seconds in range(10, 40)]
    fleet = [plans.another(one, hold=timedelta(seconds=hold)) for one in stores]
    for _ in range(6):
        clock.advance(10)
        await asyncio.gather(*(scheduler.step() for scheduler in fleet))
        await fleet[0].step()
    logs = [line for id_ in ids for line in await plans.log(id_) if line[1] == "created"]
    counts = [(await plans.show(id_))["runs"] for id_ in ids]
    made = await plans.messages()
    for one in stores:
        await one.close()

    assert len(made) == len(logs) == sum(counts) > 60


async def test_a_transaction_that_fails_leaves_nothing_of_itself(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """E5: message, log, last and next run change together or not at all; the next tick does it."""
    id_ = await plans.add({"every": "10m"})
    before = await plans.show(id_)
    whole = plans.store.enqueue

    async def broken(tasks: Any, *rows: TableRows, once: Any = None, also: Any = ()) -> Any:
        await whole(tasks, *rows, once=once, also=[*also, Step("no_such_statement", {})])

    monkeypatch.setattr(plans.store, "enqueue", broken)
    with pytest.raises(KeyError):
        await plans.tick(600)
    monkeypatch.undo()

    after = await plans.show(id_)
    assert {**after, "next": None} == {**before, "next": None}
    assert (await plans.messages(), await plans.log(id_)) == ([], [])
    await plans.tick()
    assert len(await plans.messages()) == 1


async def test_a_database_that_is_away_is_no_fault_of_a_schedule(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """E1: nothing is refused because of it; it is made when the database is back."""
    id_ = await plans.add({"every": "10m"})

    async def away(*_: Any, **__: Any) -> Any:
        raise StoreUnavailable("gone")

    monkeypatch.setattr(plans.store, "enqueue", away)
    with pytest.raises(StoreUnavailable):
        await plans.tick(600)
    monkeypatch.undo()
    await plans.tick(30)

    assert [outcome for _, outcome in await plans.log(id_)] == ["created"]


# -- what cannot be made


class Moody:
    """A maker that does as told."""

    def __init__(self, inner: OccurrenceBuilder) -> None:
        self.inner = inner
        self.mood: Exception | None = None

    async def prepare(self, body: Mapping[str, Any], occasion: Occurrence) -> PreparedOccurrence:
        if self.mood is not None and body["to"] == "bob":
            raise self.mood
        return await self.inner.prepare(body, occasion)


@pytest.mark.parametrize("mood", [Conflict("no such channel"), RuntimeError("boom")])
async def test_what_cannot_be_made_is_refused_and_the_schedule_goes_on(
    store: Store, clock: ManualClock, mood: Exception
) -> None:
    """The reason is in the log and on the schedule; the others are not held up; it mends itself."""
    world = await KernelHarness(store, clock).open()
    maker = Moody(MessageOccurrenceBuilder(world.messages))
    plans = Plans(world, {"message": maker})
    bad = await plans.add({"every": "10m"}, message=MESSAGE | {"to": "bob"})
    good = await plans.add({"every": "10m"})
    maker.mood = mood
    await plans.tick(600)

    shown = await plans.show(bad)
    assert (shown["state"], shown["runs"]) == ("active", 0)
    assert str(mood) in shown["problem"]
    assert [outcome for _, outcome in await plans.log(bad)] == ["refused"]
    assert [outcome for _, outcome in await plans.log(good)] == ["created"]
    maker.mood = None
    await plans.tick(600)
    assert (await plans.show(bad))["problem"] is None
    assert [outcome for _, outcome in await plans.log(bad)] == ["refused", "created"]


async def test_a_broadcast_occurrence_is_created_by_the_node_that_can(store: Store, clock: ManualClock) -> None:
    """What a maker prepares is written with the occurrence, its conditional steps among it."""
    world = await KernelHarness(store, clock).open()

    class Lots:
        async def prepare(self, body: Mapping[str, Any], occasion: Occurrence) -> PreparedOccurrence:
            found = Step("now", {})
            duty = {"name": f"{body['name']}-{occasion.at}"}
            return PreparedOccurrence(f"b-{occasion.at}", steps=[found, Step("maintenance_join", duty, only_if=0)])

    plans = Plans(world, {"message": MessageOccurrenceBuilder(world.messages), "broadcast": Lots()})
    body = {"rule": {"every": "10m"}, "broadcast": {"name": "news"}}
    id_ = (await plans.schedules.create(body, timezone=UTC)).answer["id"]
    await plans.add({"every": "10m"})
    await plans.tick(600)

    assert (await plans.show(id_))["last_created"] == f"b-{clock.now()}"
    taken = {"name": f"news-{clock.now()}", "every": 1, "node": 1}
    assert (await store.write([Step("maintenance_take", taken)]))[0]


async def test_a_rule_that_nobody_understands_any_more_stops_only_itself(plans: Plans) -> None:
    """A damaged row is paused with its reason, and the others go on."""
    bad, good = await plans.add({"every": "10m"}), await plans.add({"every": "10m"})
    row = (await plans.store.read("schedule_find", id=bad, tenant="default"))[0]
    await plans.store.write(
        [Step("schedule_edit", {**row, "channel": None, "recipient": None, "rule": '{"moon": "full"}', "at": 0})]
    )
    await plans.tick(600)

    shown = (await plans.schedules.page()).items
    assert {row["id"]: row["state"] for row in shown} == {bad: "paused", good: "active"}
    assert (await plans.show(bad))["problem"] is not None
    assert len(await plans.log(good)) == 1


class Everybody(SubscriptionCache):
    """Somebody who wants to be told of everything."""

    def has_subscriber(self, tenant: str, types: Sequence[str]) -> bool:
        return tenant == "default" and bool(types)


async def test_missed_refused_and_ended_schedules_publish_events(store: Store, clock: ManualClock) -> None:
    """Events out, written with the change that they tell of; nothing where nobody listens."""
    world = await KernelHarness(store, clock).open()
    maker = Moody(MessageOccurrenceBuilder(world.messages))
    plans = Plans(world, {"message": maker})
    id_ = await plans.add({"every": "1h"}, count=1, catch_up="skip", message=MESSAGE | {"to": "bob"})
    await plans.tick(3700)
    assert await store.read("outbox_page", limit=10) == []
    plans.scheduler = plans.another(listeners=Everybody(store, cipher(store)))
    await plans.tick(3600)
    maker.mood = Conflict("no such channel")
    await plans.tick(3500)
    maker.mood = None
    await plans.tick(3600)

    told = [(row["type"], row["subject"]) for row in await store.read("outbox_page", limit=10)]
    assert told == [("schedule.missed", id_), ("schedule.refused", id_), ("schedule.ended", id_)]


# -- what a person may do


async def test_an_edit_takes_effect_at_once(plans: Plans) -> None:
    """A new rule counts from now; what was planned by the old one is not made."""
    id_ = await plans.add({"every": "10m"})
    plans.clock.advance(590)
    shown = await plans.schedules.edit(id_, {"rule": {"every": "1h"}})
    assert shown["next_at"] == later(plans.clock, HOUR)
    await plans.tick(60)

    assert await plans.messages() == []


async def test_an_edit_of_the_text_leaves_the_time_alone(plans: Plans) -> None:
    """Even of one that is overdue: it is made, with the new text."""
    id_ = await plans.add({"every": "10m"})
    plans.clock.advance(900)
    await plans.schedules.edit(id_, {"message": MESSAGE | {"text": "good evening"}})
    await plans.tick()

    assert [row["text"] for row in await plans.messages()] == ["good evening"]


async def test_null_takes_a_field_away(plans: Plans) -> None:
    """An end that is not wanted any more."""
    id_ = await plans.add({"every": "10m"}, end=later(plans.clock, DAY), count=3, excluded_dates=["2027-02-01"])
    shown = await plans.schedules.edit(id_, {"end": None, "count": None, "excluded_dates": None})

    assert (shown["end"], shown["count"], shown["excluded_dates"]) == (None, None, [])
    assert shown["next_at"] == later(plans.clock, 10 * MINUTE)


async def test_an_edit_that_meets_a_tick_is_made_on_what_the_tick_left(
    plans: Plans, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice at once: one of them is first, the other sees what it did."""
    id_ = await plans.add({"every": "10m"})
    plans.clock.advance(600)
    whole, met = plans.store.write, list[float]()

    async def meets(steps: Any) -> Any:
        if steps[0].name == "schedule_edit" and not met:
            met.append(await plans.scheduler.step())
        return await whole(steps)

    monkeypatch.setattr(plans.store, "write", meets)
    shown = await plans.schedules.edit(id_, {"name": "renamed"})

    assert (shown["name"], shown["runs"]) == ("renamed", 1)
    assert len(await plans.messages()) == 1


async def test_a_tick_that_meets_an_edit_makes_nothing_of_it(plans: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other way round: what was edited away between reading and writing is not made."""
    id_ = await plans.add({"every": "10m"})
    other = await plans.add({"every": "10m"})
    plans.clock.advance(600)
    whole, met = plans.store.enqueue, list[bool]()

    async def meets(*args: Any, **more: Any) -> Any:
        if not met:
            met.append(True)
            await plans.schedules.edit(id_, {"rule": {"every": "3h"}})
        return await whole(*args, **more)

    monkeypatch.setattr(plans.store, "enqueue", meets)
    await plans.scheduler.step()

    assert await plans.log(id_) == []
    assert len(await plans.log(other)) == len(await plans.messages()) == 1


async def test_a_pause_makes_nothing_and_resuming_makes_up_for_nothing(plans: Plans) -> None:
    """A8: pause and resume."""
    id_ = await plans.add({"every": "10m"}, catch_up="all")
    assert (await plans.schedules.pause(id_))["next_at"] is None
    await plans.tick(3000)
    assert await plans.messages() == []
    begin = plans.clock.now()
    await plans.schedules.resume(id_)
    await plans.tick(600)

    assert await plans.times() == [iso(begin + 10 * MINUTE)]
    with pytest.raises(Conflict, match="already active"):
        await plans.schedules.resume(id_)


async def test_one_that_has_ended_goes_on_when_it_is_given_more(plans: Plans) -> None:
    """Its count is raised, and it is resumed."""
    id_ = await plans.add({"every": "10m"}, count=1)
    await plans.tick(600)
    with pytest.raises(Conflict, match="made all 1"):
        await plans.schedules.resume(id_)
    await plans.schedules.edit(id_, {"count": 2})
    await plans.schedules.resume(id_)
    await plans.tick(600)

    assert (await plans.show(id_))["state"] == "ended"
    assert len(await plans.messages()) == 2


async def test_run_makes_one_now_and_the_rule_goes_on(plans: Plans) -> None:
    """B4: with a key it is made once, however often it is asked for."""
    id_ = await plans.add({"every": "10m"})
    plans.clock.advance(60)
    first = await plans.schedules.run(id_, key="k")
    again = await plans.schedules.run(id_, key="k")
    assert (again.answer, again.replayed) == (first.answer, True)
    shown = await plans.show(id_)
    assert (shown["last_created"], shown["runs"]) == (first.answer["id"], 0)
    await plans.tick(540)

    assert len(await plans.messages()) == 2
    assert [outcome for _, outcome in await plans.log(id_)] == ["created", "created"]


async def test_a_removed_schedule_is_gone_and_what_it_made_stays(plans: Plans) -> None:
    """With its log; a second time there is nothing to remove."""
    id_ = await plans.add({"every": "10m"})
    await plans.tick(600)
    await plans.schedules.remove(id_)
    await plans.tick(6000)

    assert len(await plans.messages()) == 1
    with pytest.raises(NotFound):
        await plans.schedules.remove(id_)
    assert await plans.store.read("occurrence_page", schedule=id_, before=1 << 60, limit=10) == []


async def test_the_same_creation_twice_is_one_schedule(plans: Plans) -> None:
    """B4: the first answer again; another body is refused."""
    body = {"rule": {"every": "10m"}, "message": MESSAGE}
    first = await plans.schedules.create(body, timezone=UTC, key="k")
    plans.clock.advance(700)
    again = await plans.schedules.create(body, timezone=UTC, key="k")

    assert (again.answer, again.replayed) == (first.answer, True)
    with pytest.raises(Invalid, match="another body"):
        await plans.schedules.create(body | {"name": "x"}, timezone=UTC, key="k")
    assert len((await plans.schedules.page()).items) == 1


async def test_lists_are_paged_newest_first_and_by_state(plans: Plans) -> None:
    """Every schedule once."""
    ids = []
    for _ in range(5):
        plans.clock.advance(1)
        ids.append(await plans.add({"every": "1h"}))
    await plans.schedules.pause(ids[2])
    first = await plans.schedules.page(limit=3)
    second = await plans.schedules.page(limit=3, after=first.next)

    assert [row["id"] for row in first.items + second.items] == ids[::-1]
    assert second.next is None
    assert [row["id"] for row in (await plans.schedules.page(state="paused")).items] == [ids[2]]


async def test_another_tenant_sees_nothing_of_it(plans: Plans) -> None:
    """Neither shows, changes nor ends it."""
    id_ = await plans.add({"every": "1h"})
    with pytest.raises(NotFound):
        await plans.schedules.show(id_, tenant="other")
    with pytest.raises(NotFound):
        await plans.schedules.edit(id_, {"name": "mine"}, tenant="other")
    assert (await plans.schedules.page(tenant="other")).items == []


async def test_the_log_is_forgotten_by_age(plans: Plans) -> None:
    """Rule 17: bounded, like every history; what keeps an occurrence from running twice is younger."""
    plans.scheduler = plans.another(keep=timedelta(days=2))
    id_ = await plans.add({"every": "1d"})
    for _ in range(5):
        await plans.tick(86_400)
    await plans.tick(7200)

    assert len(await plans.log(id_)) == 2


async def test_a_preview_is_what_will_be_made(plans: Plans) -> None:
    """The next n firings, with the note where a rule for the clocks applied; a count cuts it short."""
    plans.clock.advance_to(instant(datetime(2027, 10, 30, tzinfo=UTC)))
    id_ = await plans.add({"daily": "02:30"}, timezone="Europe/Berlin", count=3)
    shown = await plans.schedules.preview(id_, 10)
    for _ in range(73):
        await plans.tick(3600)

    assert [row["at"] for row in shown] == await plans.times()
    assert [row["local"] for row in shown] == [
        "2027-10-30T02:30:00+02:00",
        "2027-10-31T02:30:00+02:00",
        "2027-11-01T02:30:00+01:00",
    ]
    assert [row["note"] is not None for row in shown] == [False, True, False]


BAD = [
    pytest.param({"timezone": "Europe/Berln"}, "timezone", "Europe/Berlin", id="unknown zone"),
    pytest.param({"timezone": "berlin"}, "timezone", "Europe/Berlin", id="a town only"),
    pytest.param({"timezone": "../../etc/passwd"}, "timezone", "such as UTC", id="a path"),
    pytest.param({"rule": {"cron": "0 0 31 2 *"}}, "rule", "its months", id="31 February"),
    pytest.param({"rule": {"cron": "0 25 * * *"}}, "rule", "0-23", id="25 o'clock"),
    pytest.param({"rule": {"cron": "* * *"}}, "rule", "write 5", id="three fields"),
    pytest.param({"rule": {"cron": "@fortnightly"}}, "rule", "@daily", id="unknown alias"),
    pytest.param({"rule": {"every": "10"}}, "rule", "90m", id="length without a unit"),
    pytest.param({"rule": {"every": "0s"}}, "rule", "1s", id="no length"),
    pytest.param({"rule": {"rrule": "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30"}}, "rule", "check", id="never"),
    pytest.param({"rule": {"rrule": "FREQ=SOMETIMES"}}, "rule", "YEARLY", id="unknown frequency"),
    pytest.param({"rule": {"moon": "full"}}, "rule", "cron, every", id="unknown kind"),
    pytest.param({"rule": {}}, "rule", "cron, every", id="empty rule"),
    pytest.param({"rule": {"cron": "@daily", "every": "1h"}}, "rule", "one of", id="two rules"),
    pytest.param({"rule": "daily"}, "rule", "for example", id="rule is a text"),
    pytest.param({"start": "2027-03-01", "end": "2027-02-01"}, "end", "later end", id="end before start"),
    pytest.param({"end": "2026-01-01"}, "end", "future", id="end in the past"),
    pytest.param({"end": "2027-13-01"}, "end", "2026-12-01", id="impossible end"),
    pytest.param({"count": 0}, "count", "1 to", id="count 0"),
    pytest.param({"count": -1}, "count", "1 to", id="negative count"),
    pytest.param({"excluded_dates": ["tomorrow"]}, "excluded_dates", "2026-12-25", id="day in words"),
    pytest.param({"catch_up": "never"}, "catch_up", "skip, latest, all", id="unknown policy"),
    pytest.param({"catch_up_window": "1y"}, "catch_up_window", "30s", id="unknown length"),
    pytest.param({"catch_up_window": "90d"}, "catch_up_window", "31d", id="long grace"),
    pytest.param({"name": ""}, "name", "1 to 200", id="empty name"),
    pytest.param({"message": None}, "message", "either", id="nothing to make"),
    pytest.param({"broadcast": {}}, "message", "either", id="two things to make"),
    pytest.param({"message": MESSAGE | {"channel": "x"}}, "message.channel", "main", id="unknown channel"),
    pytest.param({"message": MESSAGE | {"at": "now"}}, "message.at", "expires_in", id="a time of its own"),
    pytest.param({"message": MESSAGE | {"txt": "?"}}, "message.txt", "text", id="unknown field within"),
    pytest.param({"message": {"channel": "main", "text": "x"}}, "message.to", "recipient", id="nobody"),
    pytest.param({"rul": {}}, "rul", "rule", id="unknown field"),
]


@pytest.mark.parametrize(("change", "field", "remedy"), BAD)
async def test_what_cannot_be_understood_is_refused_with_a_remedy(
    plans: Plans, change: dict[str, Any], field: str, remedy: str
) -> None:
    """One clear sentence, the field, what to do; nothing is changed."""
    body = {"rule": {"every": "10m"}, "message": MESSAGE} | change
    with pytest.raises(Invalid) as refused:
        await plans.schedules.create(body, timezone=UTC)

    assert refused.value.field == field
    assert remedy in refused.value.remedy
    assert (await plans.schedules.page()).items == []


async def test_a_bad_edit_changes_nothing(plans: Plans) -> None:
    """The schedule is as it was."""
    id_ = await plans.add({"every": "10m"})
    before = await plans.show(id_)
    for change in ({"timezone": "Mars"}, {"rule": {"cron": "x"}}, {"count": 0}, {"message": None}, {"nme": "x"}):
        with pytest.raises(Invalid):
            await plans.schedules.edit(id_, change)

    assert await plans.show(id_) == before
