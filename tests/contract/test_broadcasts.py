"""What broadcasts promise, in virtual time, on both databases."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import orjson
import pytest

from tidings.kernel.clock import ManualClock
from tidings.kernel.retention import RetentionPruner
from tidings.model.broadcast import TALLY_WORDS, load_broadcast_options
from tidings.model.errors import Conflict, InProgress, Invalid, NotFound, StoreUnavailable
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.model.time import DAY, HOUR, MINUTE, iso, moment
from tidings.outbound.broadcasts import delivery_windows
from tidings.outbound.schedules.occurrence_builder import Occurrence
from tidings.store.port import Step, Store, TableRows

from .broadcast_harness import BroadcastHarness, people, stream


def failing(*to: str) -> Callable[[Message], Outcome]:
    """A script that refuses some recipients for good."""
    return lambda m: Reject(Category.PERMANENT, "no such person") if m.recipient in to else Done(f"r-{m.id}")


@pytest.fixture
async def house(store: Store, clock: ManualClock) -> BroadcastHarness:
    """An open house."""
    made = BroadcastHarness(store, clock)
    await made.open()
    return made


# -- the life of one


async def test_a_broadcast_sends_one_message_to_each_address(house: BroadcastHarness) -> None:
    """B1: IMMEDIATE starts at once and is COMPLETED when all recipients have ended; each counted once."""
    id_ = await house.cast(*people(120))
    assert (await house.look(id_))["state"] == "running"
    await house.run()

    shown = await house.look(id_)
    assert (shown["state"], shown["counts"]["sent"], shown["total"]) == ("completed", 120, 120)
    assert sorted(house.to) == people(120)
    assert [row["state"] for row in await house.roll(id_)] == ["sent"] * 120
    assert shown["started_at"] and shown["ended_at"] and shown["frozen_at"]


async def test_at_most_a_window_is_open_and_the_tally_is_exact_on_the_way(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks are taken from the frozen rows a window at a time; the parts always add up to the whole."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 40)
    house = BroadcastHarness(store, clock, slots=15)
    await house.open()
    id_ = await house.cast(*people(200))
    most, seen = 0, set[int]()
    for _ in range(60):
        await house.pump.step()
        clock.advance(0.06)
        row = (await store.read("broadcast_find", id=id_, tenant="default"))[0]
        counts = (await house.look(id_))["counts"]
        ended = sum(n for word, n in counts.items() if word not in ("waiting", "processing"))
        most, seen = max(most, row["taken"] - ended), seen | {counts["sent"]}
        await house.step()

    assert (await house.look(id_))["state"] == "completed"
    assert most == 40
    assert len(seen) > 8
    assert house.to == people(200)


@pytest.mark.parametrize("trigger", ["MANUAL", "manual", "Manual"])
async def test_a_manual_one_waits_for_its_call_and_fifty_calls_start_it_once(
    house: BroadcastHarness, trigger: str
) -> None:
    """B1: trigger twice, or fifty times at once, starts it once."""
    id_ = await house.cast(*people(30), trigger=trigger)
    await house.run(seconds=3600)
    assert (await house.look(id_))["state"] == "ready"
    assert not house.to

    shown = await asyncio.gather(*(house.broadcasts.trigger(id_) for _ in range(50)))
    await house.run()

    assert {row["started_at"] for row in shown} == {shown[0]["started_at"]}
    assert house.to == people(30)
    assert [told for told, _ in await house.outbox()].count("broadcast.started") == 1
    await house.broadcasts.trigger(id_)
    await house.run()
    assert house.to == people(30)


async def test_a_scheduled_broadcast_starts_automatically_at_its_time(house: BroadcastHarness) -> None:
    """B2, B3: not before its time, within a second of it; the due time and the real one are both kept."""
    at = house.clock.now() + HOUR
    id_ = await house.cast(trigger="SCHEDULED", at=iso(at))
    await house.run(seconds=3598)
    assert not house.to
    delay = await house.pump.step()
    assert delay <= 1.0, "the pump sleeps no longer than a second"
    house.clock.advance_to(at)
    await house.run()

    shown = await house.look(id_)
    assert len(house.to) == 5
    assert shown["scheduled_at"] == iso(at)
    assert shown["started_at"] == iso(at)


async def test_a_time_in_the_past_starts_at_once_if_the_caller_asks_for_it(house: BroadcastHarness) -> None:
    """B2, B8: refused by default; on purpose it goes out, and expiry counts from the later of due and accepted."""
    past = iso(house.clock.now() - 3 * DAY)
    with pytest.raises(Invalid, match=r"was 3 d ago.*\"past\": \"send\".*--past send") as refused:
        await house.cast(at=past)
    assert refused.value.field == "at"
    assert not (await house.broadcasts.page()).items

    id_ = await house.cast(at=past, past="send")
    slightly_late = await house.cast(at=iso(house.clock.now() - 4 * MINUTE))
    await house.run()

    assert (await house.look(slightly_late))["state"] == "completed"

    assert (await house.look(id_))["state"] == "completed"


async def test_a_start_missed_by_more_than_expire_after_expires_with_an_event(house: BroadcastHarness) -> None:
    """B8: older than 24 h becomes EXPIRED, with every recipient, and a webhook tells the client."""
    id_ = await house.cast(*people(7), at=iso(house.clock.now() + HOUR), webhook="https://example.org/hook")
    house.clock.advance(hours=26)
    await house.run()

    shown = await house.look(id_)
    assert (shown["state"], shown["counts"]["expired"]) == ("expired", 7)
    assert not house.to
    assert ("broadcast.expired", "https://example.org/hook") in await house.outbox()
    with pytest.raises(Conflict, match="expired"):
        await house.broadcasts.trigger(id_)


async def test_a_run_that_stood_still_for_more_than_the_grace_is_not_taken_up_again(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B8: when nothing ran for more than a day, the rest is expired instead of surprising people."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 10)
    house = BroadcastHarness(store, clock)
    await house.open()
    id_ = await house.cast(*people(50))
    await house.pump.step()
    clock.advance(hours=30)
    await house.run()

    shown = await house.look(id_)
    assert shown["state"] == "expired"
    assert shown["counts"]["expired"] == 50
    assert not house.to


async def test_a_broadcast_of_which_none_succeeds_has_failed(store: Store, clock: ManualClock) -> None:
    """B1: FAILED when none succeeded; retried when the cause is mended, it is COMPLETED (B7)."""
    house = BroadcastHarness(store, clock, failing(*people(5)))
    await house.open()
    id_ = await house.cast(webhook="https://example.org/done")
    await house.run()
    shown = await house.look(id_)
    assert (shown["state"], shown["reason"], shown["counts"]["failed"]) == ("failed", "none succeeded", 5)
    assert ("broadcast.failed", "https://example.org/done") in await house.outbox()

    house.channel.script = lambda _m: Done()
    assert (await house.broadcasts.retry(id_))["retrying"] == 5
    await house.run()

    assert (await house.look(id_))["state"] == "completed"
    assert (await house.counts(id_)) == {"sent": 5}


async def test_the_completion_event_is_published_once_by_many_feeders(house: BroadcastHarness) -> None:
    """Completion is one conditional move with its event in the same transaction."""
    id_ = await house.cast(webhook="https://example.org/done")
    pumps = [house.another_pump() for _ in range(4)]
    for _ in range(20):
        await asyncio.gather(*(pump.step() for pump in pumps))
        await house.step(seconds=0.06)

    assert (await house.look(id_))["state"] == "completed"
    told = await house.outbox()
    assert told.count(("broadcast.completed", "https://example.org/done")) == 1
    assert len(house.to) == 5


async def test_four_pumps_at_once_take_everybody_once(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B5: several instances never take the same recipient twice, and lose none."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 30)
    house = BroadcastHarness(store, clock)
    await house.open()
    id_ = await house.cast(*people(300))
    pumps = [house.another_pump() for _ in range(4)]
    for _ in range(80):
        await asyncio.gather(*(pump.step() for pump in pumps))
        await house.look(id_)
        await house.step(seconds=0.06)

    assert (await house.look(id_))["state"] == "completed"
    assert sorted(house.to) == people(300)


# -- recipients


async def test_duplicates_are_removed_and_reported_with_their_rows(house: BroadcastHarness) -> None:
    """The same address gets it once; how many and which rows is told."""
    made = await house.broadcast_creator.create(
        {"channel": "main", "text": "hi", "addresses": ["ada", "bob", "ada", " bob ", "EVE@X.org", "eve@x.org"]}
    )
    await house.run()

    assert (made.answer["total"], made.answer["duplicates"], made.answer["rows"]) == (3, 3, 6)
    assert [row["row"] for row in made.answer["samples"]["duplicates"]] == [3, 4, 6]
    assert sorted(house.to) == ["ada", "bob", "eve@x.org"]


async def test_one_bad_row_refuses_all_and_says_which(house: BroadcastHarness) -> None:
    """Nothing half done: the rows are named, nothing is written."""
    with pytest.raises(Invalid, match=r"row 2: the address is empty.*row 4: unknown time zone"):
        await house.cast("ada", " ", "bob", {"address": "eve", "timezone": "Europe/Berln"})

    assert not (await house.broadcasts.page()).items


async def test_bad_rows_can_be_left_out_and_are_reported(house: BroadcastHarness) -> None:
    """With skip_bad one bad address does not reject the whole."""
    made = await house.broadcast_creator.create(
        {"channel": "main", "text": "hi", "addresses": ["ada", "", 7, "bob"], "skip_bad": True}
    )
    await house.run()

    assert (made.answer["total"], made.answer["refused"]) == (2, 2)
    assert [row["row"] for row in made.answer["samples"]["refused"]] == [2, 3]
    assert house.to == ["ada", "bob"]


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"addresses": []}, "addresses", "empty"),
        ({"addresses": None}, "addresses", "recipients are missing"),
        ({"list": "x"}, "addresses", "both given"),
        ({"channel": "nope"}, "channel", "no channel 'nope'"),
        ({"channel": "events"}, "channel", "no channel"),
        ({"text": ""}, "text", "empty"),
        ({"trigger": "SOON"}, "trigger", "no trigger 'SOON'"),
        ({"trigger": "SCHEDULED"}, "at", "needs a time"),
        ({"trigger": "MANUAL", "in": "1h"}, "at", "MANUAL takes no time"),
        ({"at": "2027-01-16T09:00"}, "at", "has no time zone"),
        ({"at": "2099-01-01T00:00Z"}, "at", "ten years"),
        ({"maxAttempts": 0}, "maxAttempts", "maxAttempts is 0"),
        ({"attemptIntervalMinutes": -1}, "attemptIntervalMinutes", "is -1"),
        ({"spread": 11}, "spread", "spread is 11"),
        ({"per_second": 0}, "per_second", "per_second is 0"),
        ({"error_limit": 101}, "error_limit", "error_limit is 101"),
        ({"canary": 0}, "canary", "canary is 0"),
        ({"quiet_hours": {"from": "22:00"}}, "quiet_hours", "two times of day"),
        ({"quiet_hours": {"from": "22:00", "to": "22:00"}}, "quiet_hours", "never end"),
        ({"quiet_hours": {"from": "25:00", "to": "07:00"}}, "quiet_hours", "two times of day"),
        ({"timezone": "Mars/Base"}, "timezone", "unknown time zone"),
        ({"webhook": "http://127.0.0.1/x"}, "webhook", "webhook URL is not allowed"),
        ({"template": "x"}, "template", "both a template and content"),
        ({"variables": {}}, "variables", "without a template"),
        ({"xref": "a\nb"}, "xref", "control characters"),
        ({"adresses": []}, "adresses", "unknown field"),
    ],
)
async def test_bad_input_is_refused_in_one_clear_sentence(
    house: BroadcastHarness, fields: dict[str, Any], field: str, words: str
) -> None:
    """What is wrong, of which field, what to do; nothing changes."""
    body = {"channel": "main", "text": "hi", "addresses": ["ada"]} | fields
    with pytest.raises(Invalid) as refusal:
        await house.broadcast_creator.create(body)

    assert refusal.value.field == field
    assert words in refusal.value.problem
    assert refusal.value.remedy
    assert not (await house.broadcasts.page()).items


async def test_an_upload_is_frozen_all_or_nothing(house: BroadcastHarness) -> None:
    """While it loads nothing is sent; its end freezes it, and it starts."""
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    await house.run(seconds=60)
    assert (await house.look(id_))["state"] == "loading"

    shown = await house.broadcast_creator.upload(id_, stream(*people(12), "p000003"))
    assert (shown["state"], shown["total"], shown["duplicates"]) == ("running", 12, 1)
    await house.run()

    assert house.to == people(12)
    with pytest.raises(Conflict, match="recipients of this broadcast are complete"):
        await house.broadcast_creator.upload(id_, stream("more"))


UPLOAD = {"channel": "main", "text": "hello", "recipients": "upload"}


async def broken(*rows: Any, after: int) -> AsyncIterator[tuple[int, Any]]:
    """An upload that breaks off."""
    async for number, row in stream(*rows):
        if number > after:
            raise StoreUnavailable("the line went dead")
        yield number, row


async def test_a_broken_upload_sends_nothing_and_goes_on_where_it_stopped(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same rows again: what is in already is skipped, the rest comes in, each recipient once."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    rows = [*people(25), "p000002", *people(20, 25)]
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    for after in (0, 7, 33):
        with pytest.raises(StoreUnavailable):
            await house.broadcast_creator.upload(id_, broken(*rows, after=after))
        await house.run(seconds=1)
        assert not house.to
    assert (await house.look(id_))["rows"] == 30

    shown = await house.broadcast_creator.upload(id_, stream(*rows))
    await house.run()

    assert (shown["total"], shown["duplicates"], shown["rows"]) == (45, 1, 46)
    assert house.to == people(45)


async def test_another_upload_in_place_of_a_broken_one_is_refused(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The running digest tells: nothing is mixed, and the first can still go on."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    with pytest.raises(StoreUnavailable):
        await house.broadcast_creator.upload(id_, broken(*people(25), after=15))
    for other in (["zoe", *people(24)], people(5), [*people(9), "zoe", *people(10, 10)]):
        with pytest.raises(Invalid, match="differs from the one that was started"):
            await house.broadcast_creator.upload(id_, stream(*other))

    await house.broadcast_creator.upload(id_, stream(*people(25)))
    await house.run()
    assert house.to == people(25)


async def test_two_uploads_at_once_do_not_mix(house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """One is told that the other is under way; every row is in once."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    done = await asyncio.gather(
        *(house.another_freezer().upload(id_, stream(*people(95))) for _ in range(4)), return_exceptions=True
    )

    assert sum(isinstance(one, dict) for one in done) >= 1
    assert all(isinstance(one, dict | InProgress | Conflict) for one in done), done
    await house.run()
    assert house.to == people(95)


async def test_too_few_rows_are_noticed_before_anything_is_sent(house: BroadcastHarness) -> None:
    """A file cut short by its sender looks whole to us; `expected` tells."""
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    with pytest.raises(Invalid, match="5 rows were received but 6 expected"):
        await house.broadcast_creator.upload(id_, stream(*people(5)), expected=6)
    await house.run(seconds=5)
    assert not house.to

    await house.broadcast_creator.upload(id_, stream(*people(6)), expected=6)
    await house.run()
    assert house.to == people(6)


async def test_an_empty_upload_is_refused_and_can_be_cancelled(house: BroadcastHarness) -> None:
    """Nobody to send it to: told, nothing sent, and the broadcast can be given up."""
    id_ = str((await house.broadcast_creator.create(UPLOAD)).answer["id"])
    with pytest.raises(Invalid, match="no recipients"):
        await house.broadcast_creator.upload(id_, stream())
    with pytest.raises(Invalid, match="no recipients"):
        await house.broadcast_creator.freeze(id_)

    assert (await house.broadcasts.cancel(id_))["state"] == "cancelled"
    with pytest.raises(Conflict):
        await house.broadcast_creator.upload(id_, stream("ada"))


async def test_a_list_of_contacts_is_frozen_as_it_is_now(house: BroadcastHarness) -> None:
    """Contacts with an address on the channel, their attributes as variables of the template."""
    await house.templates.create(
        {"name": "hi", "text": "Hi {{ contact.name }} of {{ city }}", "variables": {"city": "text"}}
    )
    ids = []
    for name in ("Ada", "Bob"):
        house.clock.advance(1)
        body = {"name": name, "addresses": {"main": name.lower()}, "attributes": {"city": f"{name}town"}}
        ids.append((await house.contacts.create(body)).answer["id"])
    await house.audience.create({"name": "all"})
    await house.audience.add("all", ids)

    id_ = await house.cast(addresses=None, list="all", text=None, template="hi")
    await house.audience.drop("all", ids)
    await house.run()

    assert [m.text for m in house.channel.sent] == ["Hi Ada of Adatown", "Hi Bob of Bobtown"]
    assert [row["contact"] for row in await house.roll(id_)] == ids


async def test_a_template_is_rendered_for_each_and_a_missing_variable_refuses_all(house: BroadcastHarness) -> None:
    """Per-recipient variables; what is missing is told before anything is sent."""
    await house.templates.create(
        {"name": "hi", "text": "Hi {{ name }}, {{ town }}", "variables": {"name": "text", "town": "text"}}
    )
    rows = [{"address": "ada", "name": "Ada"}, {"address": "bob", "variables": {"name": "Bob", "town": "Ulm"}}]
    fields: dict[str, Any] = {"text": None, "template": "hi", "variables": {"town": "Bonn"}}
    with pytest.raises(Invalid, match=r"row 3: .*name"):
        await house.cast(*rows, "eve", **fields)
    id_ = await house.cast(*rows, **fields)
    await house.run()

    assert [m.text for m in house.channel.sent] == ["Hi Ada, Bonn", "Hi Bob, Ulm"]
    assert (await house.roll(id_))[0]["variables"] == {"name": "Ada"}


# -- repeats


async def test_fifty_calls_with_one_key_make_one_broadcast(house: BroadcastHarness) -> None:
    """B4: the same answer, or 409 while the twin is under way."""
    body = {"channel": "main", "text": "hi", "addresses": people(40)}
    done = await asyncio.gather(
        *(house.broadcast_creator.create(body, key="once") for _ in range(50)), return_exceptions=True
    )
    good = [one for one in done if not isinstance(one, BaseException)]

    assert good
    assert all(isinstance(one, InProgress | Conflict) for one in done if isinstance(one, BaseException)), done
    assert len((await house.broadcasts.page()).items) == 1
    again = await house.broadcast_creator.create(body, key="once")
    assert again.replayed
    assert again.answer == next(one.answer for one in good if not one.replayed)
    await house.run()
    assert house.to == people(40)


async def test_a_key_with_another_body_is_refused(house: BroadcastHarness) -> None:
    """B4: 422, nothing made."""
    body = {"channel": "main", "text": "hi", "addresses": ["ada"]}
    await house.broadcast_creator.create(body, key="k")
    with pytest.raises(Invalid, match="another body"):
        await house.broadcast_creator.create(body | {"text": "ho"}, key="k")

    assert len((await house.broadcasts.page()).items) == 1


async def test_a_call_that_died_half_way_is_finished_by_its_repeat(
    house: BroadcastHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """B4: the broadcast of the first call is loaded to its end and frozen, once."""
    monkeypatch.setattr(type(house.store), "bulk", 10)
    body = {"channel": "main", "text": "hi", "addresses": people(35)}
    keep, calls = house.store.keep, []

    async def dying(rows: TableRows, **more: Any) -> Any:
        calls.append(len(rows.values))
        if len(calls) == 3:
            raise StoreUnavailable("gone")
        return await keep(rows, **more)

    monkeypatch.setattr(house.store, "keep", dying)
    with pytest.raises(StoreUnavailable):
        await house.broadcast_creator.create(body, key="k")
    await house.run(seconds=10)
    assert not house.to

    made = await house.broadcast_creator.create(body, key="k")
    await house.run()

    assert made.answer["total"] == 35
    assert house.to == people(35)
    assert len((await house.broadcasts.page()).items) == 1


# -- pause, resume, cancel, retry


async def half_done(store: Store, clock: ManualClock, n: int = 60, **more: Any) -> tuple[BroadcastHarness, str]:
    """A house whose broadcast has been taken, and partly sent."""
    house = BroadcastHarness(store, clock, slots=10, **more)
    await house.open()
    id_ = await house.cast(*people(n))
    await house.pump.step()
    await house.step(seconds=0.06)
    return house, id_


async def test_a_paused_broadcast_sends_nothing_and_loses_nothing(store: Store, clock: ManualClock) -> None:
    """Pause parks what is open; resume brings it back with the time it stood still on top (B1)."""
    house, id_ = await half_done(store, clock)
    before = await store.read("group_open", group_id=1, after=0, parked=None, limit=100)
    await house.broadcasts.pause(id_, reason="wait")
    sent = len(house.to)
    for _ in range(5):
        await house.run(seconds=10 * 3600)
    shown = await house.look(id_)
    assert (shown["state"], shown["reason"]) == ("paused", "wait")
    assert len(house.to) == sent == 10
    assert await house.counts(id_) == {"waiting": 50, "sent": 10}
    assert len(before) == 50

    await house.broadcasts.resume(id_)
    await house.run()

    assert (await house.look(id_))["state"] == "completed"
    assert house.to == people(60)
    assert [told for told, _ in await house.outbox()] == [
        "broadcast.started", "broadcast.paused", "broadcast.resumed", "broadcast.completed",
    ]  # fmt: skip


async def test_a_message_says_that_its_broadcast_is_paused(store: Store, clock: ManualClock) -> None:
    """What is set aside is explained, with the way back; brought back, it is due as before."""
    house, id_ = await half_done(store, clock)
    await house.broadcasts.pause(id_)
    await house.run(seconds=1)
    waiting = (await house.broadcasts.recipients(id_, state="waiting")).items[0]
    said = await house.why(waiting["id"])
    assert (said.answer, said.remedy) == (
        f"its broadcast {id_} is paused, or was stopped by its error limit",
        f"resume it: tidings broadcasts resume {id_}",
    )
    await house.broadcasts.resume(id_)
    await house.pump.step()

    assert (await house.why(waiting["id"])).answer == "due; it starts as soon as a slot is free"


async def test_what_comes_back_while_it_is_paused_waits_too(store: Store, clock: ManualClock) -> None:
    """In flight at the pause: it ends as it would, and a try that failed is parked with the others."""
    house = BroadcastHarness(store, clock, lambda _m: Retry(Category.TEMPORARY, "busy"))
    await house.open()
    id_ = await house.cast("ada")
    await house.pump.step()
    claimed = await store.claim(house.worker.node.id, wish())
    await house.broadcasts.pause(id_)
    await house.pump.step()
    assert await house.counts(id_) == {"processing": 1}
    from tidings.model.task import TaskState, Transition

    task = claimed.tasks[0]
    back = Transition(task.id, task.claim_no, TaskState.PENDING, 1, clock.now() + MINUTE, Category.TEMPORARY, "busy")
    await store.settle(house.worker.node.id, [back])
    for _ in range(10):
        await house.run(seconds=30)
    assert not house.to

    house.channel.script = lambda _m: Done()
    await house.broadcasts.resume(id_)
    await house.run()
    assert house.to == ["ada"]


def wish() -> Any:
    from tidings.store.port import ClaimRequest

    return ClaimRequest({"main": 10}, 10)


@pytest.mark.parametrize("dies_after", range(1, 7))
async def test_a_pump_that_dies_anywhere_in_a_pause_or_a_resume_leaves_all_in_order(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch, dies_after: int
) -> None:
    """Whatever it had written, the next one goes on; nobody is lost, nobody gets it twice."""
    house, id_ = await half_done(store, clock)
    write, calls = store.write, [0]

    async def dying(steps: Any) -> Any:
        calls[0] += 1
        if calls[0] == dies_after:
            raise StoreUnavailable("killed")
        return await write(steps)

    for wanted in (house.broadcasts.pause, house.broadcasts.resume):
        await wanted(id_)
        calls[0] = 0
        for _ in range(3):
            monkeypatch.setattr(store, "write", dying)
            with contextlib.suppress(StoreUnavailable):
                await house.pump.step()
            monkeypatch.setattr(store, "write", write)
            await house.look(id_)
        clock.advance(2)
        await house.run()
    await house.run(seconds=10)

    assert (await house.look(id_))["state"] == "completed"
    assert sorted(house.to) == people(60)


async def test_cancelling_ends_everything_that_waits_with_a_line_in_its_history(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken is cancelled task by task (A7), what never was counts so too; nothing more goes."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 40)
    house, id_ = await half_done(store, clock, 100)
    shown = await house.broadcasts.cancel(id_, reason="a mistake")
    assert (shown["state"], shown["reason"]) == ("cancelled", "a mistake")
    await house.look(id_)
    await house.run(seconds=1)

    assert await house.counts(id_) == {"sent": 10, "cancelled": 90}
    assert len(house.to) == 10
    states = [row["state"] for row in await house.roll(id_)]
    assert (states.count("cancelled"), states.count("sent")) == (90, 10)
    one = next(row for row in await house.roll(id_) if row["state"] == "cancelled")
    history = (await house.show(one["id"]))["history"]
    assert [(line["from"], line["to"], line["detail"]) for line in history] == [
        ("pending", "cancelled", "its broadcast was cancelled")
    ]
    for refused in (house.broadcasts.resume, house.broadcasts.pause, house.broadcasts.trigger):
        with pytest.raises(Conflict, match="cancelled"):
            await refused(id_)
    assert (await house.broadcasts.cancel(id_))["state"] == "cancelled"


async def test_recipients_who_never_got_a_task_are_forgotten_in_time_and_still_counted(house: BroadcastHarness) -> None:
    """Pruning: a cancelled broadcast must not keep its addresses for ever; its tally stays exact."""
    id_ = await house.cast(*people(40), per_second=10)
    await house.pump.step()
    await house.broadcasts.cancel(id_)
    await house.run()
    other = await house.cast(*people(3), trigger="MANUAL")
    taken = (await house.store.read("broadcast_find", id=id_, tenant="default"))[0]["taken"]
    assert 0 < taken < 40
    pruner = RetentionPruner("frozen recipients", house.store, house.clock, {"frozen_prune": timedelta(days=90)})
    house.clock.advance(89 * 86_400)
    await pruner.step()
    assert len(await house.roll(id_)) == 40, "not yet"
    house.clock.advance(2 * 86_400)
    await pruner.step()
    assert len(await house.roll(id_)) == taken, "those go with their tasks"
    assert await house.counts(id_) == {"cancelled": 40}
    assert len(await house.roll(other)) == 3, "one that waits keeps them"


async def test_one_at_work_when_it_is_cancelled_is_asked_to_end(store: Store, clock: ManualClock) -> None:
    """A try that fails then is not repeated, and counts as cancelled."""
    house, id_ = await half_done(store, clock, 5)
    house.channel.script = lambda _m: Retry(Category.TEMPORARY, "busy")
    id_ = await house.cast("ada")
    await house.pump.step()
    claimed = await store.claim(house.worker.node.id, wish())
    await house.broadcasts.cancel(id_)
    await house.pump.step()
    from tidings.model.task import TaskState, Transition

    task = claimed.tasks[0]
    back = Transition(task.id, task.claim_no, TaskState.PENDING, 1, clock.now(), Category.TEMPORARY, "busy")
    await store.settle(house.worker.node.id, [back])
    await house.run(seconds=3)

    assert await house.counts(id_) == {"cancelled": 1}


async def test_only_the_failed_ones_are_retried(store: Store, clock: ManualClock) -> None:
    """B7: retry all of a broadcast; those in doubt only when asked for."""
    house = BroadcastHarness(store, clock, on_unknown=OnUnknown.HOLD)
    await house.open()
    doubtful, bad = people(2), people(3, 2)

    def script(message: Message) -> Outcome:
        if message.recipient in doubtful:
            return Unknown("no answer")
        return Reject(Category.PERMANENT, "gone") if message.recipient in bad else Done()

    house.channel.script = script
    id_ = await house.cast(*people(30))
    other = await house.cast(*bad)
    await house.run()
    assert await house.counts(id_) == {"sent": 25, "failed": 3, "unknown": 2}
    assert (await house.look(id_))["state"] == "completed"
    house.channel.script = lambda _m: Done()
    house.channel.sent.clear()

    assert (await house.broadcasts.retry(id_))["retrying"] == 3
    await house.look(id_)
    await house.run()
    assert sorted(house.to) == bad
    assert await house.counts(id_) == {"sent": 28, "unknown": 2}
    assert await house.counts(other) == {"failed": 3}
    with pytest.raises(Conflict, match="none of its recipients has failed"):
        await house.broadcasts.retry(id_)

    await house.broadcasts.retry(id_, unknown=True)
    await house.run()
    assert await house.counts(id_) == {"sent": 30}
    history = (await house.show((await house.roll(id_))[0]["id"]))["history"]
    assert "retried with its broadcast" in [line["detail"] for line in history]


async def test_a_retry_of_many_keeps_the_window(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many failed, a window at a time starts afresh; what fails again is not met twice."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 20)
    house = BroadcastHarness(store, clock, lambda _m: Reject(Category.PERMANENT, "gone"))
    await house.open()
    id_ = await house.cast(*people(90))
    await house.run(rounds=100)
    house.channel.sent.clear()
    await house.broadcasts.retry(id_)
    for _ in range(100):
        await house.pump.step()
        counts = (await house.look(id_))["counts"]
        assert counts["waiting"] + counts["processing"] <= 20
        await house.step(seconds=0.06)

    assert sorted(house.to) == people(90)
    assert (await house.look(id_))["state"] == "failed"


async def test_a_retry_is_not_stopped_by_the_errors_that_it_mends(store: Store, clock: ManualClock) -> None:
    """A person who retries forgives what has failed so far; the limit holds for what comes after."""
    house = BroadcastHarness(store, clock, lambda _m: Reject(Category.PERMANENT, "gone"))
    await house.open()
    id_ = await house.cast(*people(30), error_limit=10)
    await house.run()
    assert (await house.look(id_))["state"] == "failed"
    house.channel.script = lambda _m: Done()
    await house.broadcasts.retry(id_)
    await house.run()

    assert await house.counts(id_) == {"sent": 30}
    assert (await house.look(id_))["state"] == "completed"


async def test_errors_that_stop_it_in_the_middle_of_a_retry_stop_the_retry_too(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing hangs between the two: it is stopped, and what was open is resumed to its end."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 20)
    house = BroadcastHarness(store, clock, failing(*people(30)), slots=10)
    await house.open()
    id_ = await house.cast(*people(100))
    await house.run(rounds=60)
    assert await house.counts(id_) == {"failed": 30, "sent": 70}
    await house.broadcasts.retry(id_)
    await house.pump.step()
    row = (await store.read("broadcast_find", id=id_, tenant="default"))[0]
    options = replace(load_broadcast_options(row["options"]), error_limit=0.01, since=(0, 0)).to_json()
    await store.write(
        [Step("broadcast_options", {"group_id": row["group_id"], "options": options, "version": row["version"]})]
    )
    await house.run(seconds=1, rounds=60)
    shown = await house.look(id_)
    assert shown["state"] == "failed"
    assert 0 < shown["counts"]["waiting"] <= 20, "what the retry had begun is set aside"
    await house.broadcasts.resume(id_)
    await house.run(seconds=1, rounds=60)

    assert await house.counts(id_) == {"failed": 30, "sent": 70}
    assert (await house.look(id_))["state"] == "completed"


async def test_a_message_of_a_broadcast_can_be_cancelled_and_retried_alone(store: Store, clock: ManualClock) -> None:
    """One recipient is a message like any other; the tally follows it (B7)."""
    house = BroadcastHarness(store, clock, failing("p000001"))
    await house.open()
    id_ = await house.cast(*people(3), trigger="SCHEDULED", **{"in": "1h"})
    await house.run(seconds=3600)
    assert await house.counts(id_) == {"sent": 2, "failed": 1}
    house.channel.script = lambda _m: Done()
    [dead] = [row for row in await house.roll(id_) if row["state"] == "failed"]
    await house.messages.retry(dead["id"])
    assert await house.counts(id_) == {"sent": 2, "waiting": 1}
    await house.run(seconds=1)

    assert await house.counts(id_) == {"sent": 3}


# -- options


async def test_the_first_few_go_alone_and_the_rest_waits_for_a_go(house: BroadcastHarness) -> None:
    """Canary: n are sent, then it is paused with the reason until somebody resumes it."""
    id_ = await house.cast(*people(50), canary=7)
    await house.run()
    shown = await house.look(id_)
    assert (shown["state"], len(house.to)) == ("paused", 7)
    assert "canary of 7 is done (7 sent, 0 failed)" in shown["reason"]
    await house.run(seconds=3600)
    assert len(house.to) == 7

    await house.broadcasts.resume(id_)
    await house.run()
    assert house.to == people(50)


async def test_too_many_errors_stop_it_and_a_resume_goes_on(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FAILED with the reason, open ones set aside; the way back is to resume, and errors count anew."""
    monkeypatch.setattr(delivery_windows, "WINDOW", 60)
    house = BroadcastHarness(store, clock, lambda _m: Reject(Category.PERMANENT, "gone"), slots=10)
    await house.open()
    id_ = await house.cast(*people(200), error_limit=20)
    for _ in range(20):
        await house.pump.step()
        await house.step(seconds=0.06)
    shown = await house.look(id_)
    assert shown["state"] == "failed"
    assert "more than 20%" in shown["reason"]
    assert 20 <= len(house.to) < 60
    assert shown["counts"]["waiting"] == 200 - len(house.to)
    lost = len(house.to)
    await house.run(seconds=3600)
    assert len(house.to) == lost

    house.channel.script = lambda _m: Done()
    await house.broadcasts.resume(id_)
    await house.run()
    assert await house.counts(id_) == {"failed": lost, "sent": 200 - lost}
    assert (await house.look(id_))["state"] == "completed"


async def test_a_few_errors_do_not_stop_it(store: Store, clock: ManualClock) -> None:
    """Below the limit, or before twenty have ended, nothing happens."""
    house = BroadcastHarness(store, clock, failing(*people(5), *people(5, 95)))
    await house.open()
    id_ = await house.cast(*people(100), error_limit=10)
    await house.run()

    assert await house.counts(id_) == {"failed": 10, "sent": 90}
    assert (await house.look(id_))["state"] == "completed"


async def test_a_rate_paces_the_starts_and_can_be_changed_on_the_way(house: BroadcastHarness) -> None:
    """per_second: due times one behind the other, no burst; another rate holds from the next ones on."""
    id_ = await house.cast(*people(100), per_second=10)
    for _ in range(100):
        await house.pump.step()
        await house.step(seconds=0.05)
    sent = len(house.to)
    assert 48 <= sent <= 52, "five seconds at ten a second"

    await house.broadcasts.change(id_, {"per_second": None})
    await house.run(seconds=3)
    assert len(house.to) == 100
    with pytest.raises(Conflict):
        await house.broadcasts.change(id_, {"per_second": 5})


async def test_a_slow_rate_sends_one_at_a_time(house: BroadcastHarness) -> None:
    """One in ten seconds is possible too."""
    await house.cast(*people(3), per_second=0.1)
    sent = []
    for _ in range(25):
        await house.pump.step()
        await house.step(seconds=1)
        sent.append(len(house.to))

    assert sent[0] == 1 and sent[-1] == 3
    assert 9 <= sent.count(1) <= 11


async def test_starts_are_spread_over_the_seconds_asked_for(house: BroadcastHarness) -> None:
    """B13: 0-10 s of jitter, so that a minute's boundary does not stampede."""
    await house.cast(*people(100), spread=10)
    await house.pump.step()
    sent = []
    for _ in range(11):
        for _ in range(4):
            await house.worker.runner.step()
        sent.append(len(house.to))
        await house.worker.node.beat()
        house.clock.advance(1)

    assert sent[0] <= 15
    assert all(35 <= count <= 65 for count in sent[4:6])
    assert sent[-1] == 100


async def test_the_number_of_tries_and_the_time_between_them_are_the_broadcasts_own(
    store: Store, clock: ManualClock
) -> None:
    """B6: maxAttempts counts the first; attemptIntervalMinutes is waited each time."""
    house = BroadcastHarness(store, clock, lambda _m: Retry(Category.TEMPORARY, "busy"))
    await house.open()
    id_ = await house.cast("ada", maxAttempts=3, attemptIntervalMinutes=2)
    await house.run()
    for attempts in (1, 2):
        assert len(house.to) == attempts
        await house.run(seconds=115)
        assert len(house.to) == attempts
        await house.run(seconds=5)
    assert len(house.to) == 3

    await house.run(seconds=3600)
    assert (len(house.to), (await house.look(id_))["state"]) == (3, "failed")


async def test_nobody_is_written_to_in_quiet_hours(house: BroadcastHarness) -> None:
    """Quiet by the recipient's own clock; whoever is awake gets it now, the others when they wake."""
    start = house.clock.now()  # 2027-01-15 08:00 UTC
    assert iso(start) == "2027-01-15T08:00:00.000Z"
    rows = [
        {"address": "berlin", "timezone": "Europe/Berlin"},  # 09:00
        {"address": "tokyo", "timezone": "Asia/Tokyo"},  # 17:00
        {"address": "york", "timezone": "America/New_York"},  # 03:00: quiet until 07:00, 12:00 UTC
        "nobody knows",  # as the broadcast: UTC 08:00
    ]
    id_ = await house.cast(*rows, quiet_hours={"from": "22:00", "to": "07:00"})
    await house.run()
    assert sorted(house.to) == ["berlin", "nobody knows", "tokyo"]
    assert (await house.look(id_))["state"] == "running"
    await house.run(seconds=3.8 * 3600)
    assert len(house.to) == 3
    house.clock.advance_to(start + 4 * HOUR)
    await house.run(seconds=1)

    assert house.to[3] == "york"
    assert (await house.look(id_))["state"] == "completed"
    assert {part["timezone"] for part in (await house.look(id_))["parts"]} == {
        None, "Europe/Berlin", "Asia/Tokyo", "America/New_York",
    }  # fmt: skip


async def test_what_was_taken_before_the_quiet_hours_waits_too(store: Store, clock: ManualClock) -> None:
    """A try that would be repeated at night is put off until morning, with a line that says why."""
    house = BroadcastHarness(store, clock, lambda _m: Retry(Category.TEMPORARY, "busy"))
    await house.open()
    id_ = await house.cast("ada", attemptIntervalMinutes=60, quiet_hours={"from": "08:30", "to": "12:00"})
    await house.run()
    assert len(house.to) == 1
    for _ in range(30):
        await house.run(seconds=120)
    assert len(house.to) == 1, "09:00 is quiet"
    row = (await house.roll(id_))[0]
    assert row["next_attempt_at"] == "2027-01-15T12:00:00.000Z"
    assert "quiet hours" in row["detail"]
    house.channel.script = lambda _m: Done()
    house.clock.advance_to(clock.now() + 4 * HOUR)
    await house.run()

    assert await house.counts(id_) == {"sent": 1}


async def test_everybody_gets_it_at_the_same_time_of_day(house: BroadcastHarness) -> None:
    """recipient_timezone: 18:00 is 18:00 in each zone; a part that is past it starts at once."""
    rows = [
        {"address": "berlin", "timezone": "Europe/Berlin"},  # 17:00 UTC
        {"address": "york", "timezone": "America/New_York"},  # 23:00 UTC
        {"address": "kathmandu", "timezone": "Asia/Kathmandu"},  # 12:15 UTC
        "unknown",  # the broadcast's zone: 18:00 UTC
    ]
    await house.cast(*rows, at="2027-01-15T18:00:00Z", recipient_timezone=True, timezone="UTC")
    seen: dict[str, int] = {}
    for _ in range(16 * 4):
        await house.run(seconds=900)
        for address in house.to:
            seen.setdefault(address, moment(house.clock.now()).hour)

    assert seen == {"kathmandu": 12, "berlin": 17, "unknown": 18, "york": 23}


async def test_priority_goes_before_other_messages(house: BroadcastHarness) -> None:
    """A2 holds for broadcasts too."""
    await house.cast(*people(3), priority=9)
    await house.pump.step()
    await house.send("urgent", priority=0)
    await house.step(seconds=0.1)

    assert house.to == ["urgent", *people(3)]


async def test_opted_out_recipients_are_skipped_and_counted(house: BroadcastHarness) -> None:
    """Opt-outs are judged when it is sent; the tally says skipped."""
    id_ = await house.cast(*people(4))
    params = {"tenant": "default", "address": "p000002", "channel": "", "reason": "unsubscribed"}
    from tidings.outbound.contacts.suppressions import SuppressionService

    await SuppressionService(house.store, house.clock, ["main"]).create(
        {"address": params["address"], "reason": params["reason"]}
    )
    await house.run()

    assert await house.counts(id_) == {"sent": 3, "skipped": 1}
    assert (await house.look(id_))["state"] == "completed"


# -- looking


async def test_lists_counts_and_reports_add_up(store: Store, clock: ManualClock) -> None:
    """Newest first with a cursor; counts of many at once; reports by xref."""
    house = BroadcastHarness(store, clock, failing("p000000"))
    await house.open()
    ids = []
    for number in range(5):
        ids.append(await house.cast(*people(number + 1), xref="a" if number < 3 else "b"))
        clock.advance(1)
    manual = await house.cast(trigger="manual", xref="b")
    await house.run()

    page = await house.broadcasts.page(limit=4)
    rest = await house.broadcasts.page(limit=4, after=page.next)
    assert [row["id"] for row in page.items + rest.items] == [manual, *reversed(ids)]
    assert rest.next is None
    assert [row["id"] for row in (await house.broadcasts.page(xref="a")).items] == ids[2::-1]
    assert [row["id"] for row in (await house.broadcasts.page(state="READY")).items] == [manual]
    counted = await house.broadcasts.counts([ids[1], "nope", manual])
    assert [(row["id"], row["counts"]["sent"], row["counts"]["waiting"]) for row in counted] == [
        (ids[1], 1, 0), (manual, 0, 5),
    ]  # fmt: skip
    reports = {row["xref"]: row for row in (await house.broadcasts.reports()).items}
    sums = {name: (r["broadcasts"], r["total"], r["counts"]["sent"]) for name, r in reports.items()}
    assert sums == {"a": (3, 6, 3), "b": (3, 14, 7)}
    assert reports["b"]["states"] == {"completed": 2, "ready": 1}


async def test_the_roll_pages_through_everybody_in_order(house: BroadcastHarness) -> None:
    """By keys, over the borders of parts; a filter by state finds its own."""
    rows = [{"address": name, "timezone": ["UTC", "Asia/Tokyo"][n % 2]} for n, name in enumerate(people(25))]
    id_ = await house.cast(*rows, recipient_timezone=True)
    seen, after = [], None
    while True:
        page = await house.broadcasts.recipients(id_, limit=4, after=after)
        seen += [row["address"] for row in page.items]
        after = page.next
        if after is None:
            break
    assert sorted(seen) == people(25)
    await house.run()
    assert len((await house.broadcasts.recipients(id_, state="SENT", limit=100)).items) == 25
    assert not (await house.broadcasts.recipients(id_, state="failed")).items
    with pytest.raises(Invalid, match="no state"):
        await house.broadcasts.recipients(id_, state="gone")
    with pytest.raises(Invalid, match="invalid cursor"):
        await house.broadcasts.recipients(id_, after="7")


async def test_a_recipient_shows_its_tries_and_what_the_other_side_said(store: Store, clock: ManualClock) -> None:
    """Per-recipient rows with the raw answer: receipt or error."""
    house = BroadcastHarness(store, clock, failing("bob"))
    await house.open()
    id_ = await house.cast("ada", "bob")
    await house.run()

    ada, bob = await house.roll(id_)
    assert (ada["state"], ada["attempts"], ada["detail"]) == ("sent", 1, f"r-{ada['id']}")
    assert (bob["state"], bob["category"], bob["detail"]) == ("failed", "permanent", "no such person")


async def test_a_broadcast_has_nothing_that_does_not_exist(house: BroadcastHarness) -> None:
    """404 for every call on an unknown id."""
    for call in (
        house.broadcasts.show, house.broadcasts.trigger, house.broadcasts.pause, house.broadcasts.resume,
        house.broadcasts.cancel, house.broadcasts.retry, house.broadcasts.recipients,
        house.broadcast_creator.freeze,
    ):  # fmt: skip
        with pytest.raises(NotFound):
            await call("nope")


# -- schedules


async def test_a_schedule_makes_a_broadcast_that_loads_itself(house: BroadcastHarness) -> None:
    """E5: the row is written with the occurrence; the pump takes the recipients in and starts it."""
    occasion = Occurrence("s1", house.clock.now(), house.clock.now())
    body = {"channel": "main", "text": "daily", "addresses": people(12)}
    made = await house.broadcast_creator.prepare(body, occasion)
    await house.store.enqueue([], also=made.steps)
    assert (await house.look(made.id))["state"] == "loading"
    await house.run()
    await house.run(seconds=1)

    shown = await house.look(made.id)
    assert (shown["state"], shown["counts"]["sent"], shown["schedule"]) == ("completed", 12, "s1")
    again = await house.broadcast_creator.prepare(body, occasion)
    with pytest.raises(Exception, match=r"(?i)unique"):
        await house.store.enqueue([], also=again.steps)
    with pytest.raises(Invalid, match="not allowed in a schedule"):
        await house.broadcast_creator.prepare(body | {"trigger": "MANUAL"}, occasion)


async def test_a_scheduled_broadcast_whose_list_is_empty_fails_with_its_reason(house: BroadcastHarness) -> None:
    """Nothing is sent, somebody is told."""
    await house.audience.create({"name": "none"})
    occasion = Occurrence("s1", house.clock.now(), house.clock.now())
    made = await house.broadcast_creator.prepare({"channel": "main", "text": "daily", "list": "none"}, occasion)
    await house.store.enqueue([], also=made.steps)
    await house.run()

    shown = await house.look(made.id)
    assert shown["state"] == "failed"
    assert "there are no recipients" in shown["reason"]
    assert "broadcast.failed" in [told for told, _ in await house.outbox()]


# -- the books


async def test_the_counts_are_summed_up_without_a_change(store: Store, clock: ManualClock) -> None:
    """PostgreSQL appends differences; packing them leaves the tally as it was."""
    house = BroadcastHarness(store, clock, failing(*people(9)))
    await house.open()
    id_ = await house.cast(*people(60), per_second=50)
    for _ in range(40):
        await house.pump.step()
        await house.step(seconds=0.05)
    before = await house.counts(id_)
    if store.dialect == "postgres":
        assert await pieces(store) > 2
        await store.write([Step("group_pack", {"group_id": 1})])
        assert await pieces(store) == 2

    assert await house.counts(id_) == before == {"failed": 9, "sent": 51}


async def pieces(store: Store) -> int:
    rows = await store.read("broadcast_tally", group_ids=orjson.dumps([1]).decode())
    return int(rows[0]["pieces"])


def test_the_words_of_a_tally_are_those_of_the_promise() -> None:
    """frozen = waiting + processing + sent + failed + held + cancelled + expired + skipped."""
    assert TALLY_WORDS == ("waiting", "processing", "sent", "failed", "unknown", "cancelled", "expired", "skipped")
