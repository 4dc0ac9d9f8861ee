"""Roll-out: observe, shadow, a share of people, and the way back (B14); on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernel.clock import ManualClock
from tidings.kernel.retention import RetentionPruner
from tidings.model.errors import Conflict, Invalid, NotFound
from tidings.model.outcome import Skip
from tidings.model.time import DAY, HOUR, MINUTE, SECOND, iso
from tidings.observability.events import AttemptFailed
from tidings.outbound.contacts.uploads import NumberedRow
from tidings.outbound.rollout.service import RolloutService
from tidings.outbound.rollout.shadow import ShadowRecord, compare_records, content_digest
from tidings.outbound.send_checks import check_send, rollout_bucket
from tidings.store.port import ClaimRequest, Store

from .kernel_harness import KernelHarness

UTC = ZoneInfo("UTC")
HELLO = content_digest({"text": "hello"})


async def opened(store: Store, clock: ManualClock) -> tuple[KernelHarness, RolloutService]:
    """An engine with one channel, `main`."""
    return await KernelHarness(store, clock).open(), RolloutService(store)


async def lines(*rows: dict[str, object]) -> AsyncIterator[NumberedRow]:
    """A report."""
    for number, row in enumerate(rows, 2):
        yield number, row


async def test_an_observing_channel_sends_nothing_and_counts_everything(store: Store, clock: ManualClock) -> None:
    """Messages end as skipped with the reason; metrics count them (B14)."""
    world, rollout = await opened(store, clock)
    await rollout.set("main", mode="observe")
    ids = [await world.send(f"p{n}") for n in range(3)]
    await world.step()

    assert world.channel.sent == []
    for id_ in ids:
        assert (await world.show(id_))["state"] == "skipped"
        assert "observe mode" in (await world.why(id_)).answer
    assert world.told(AttemptFailed) == []  # nothing was tried, so nothing failed
    counted = await store.read("attempt_tally_sums", since=0)
    assert [(row["outcome"], row["n"]) for row in counted] == [("skipped", 3)]


async def test_each_step_has_a_way_back_and_is_recorded(store: Store, clock: ManualClock) -> None:
    """B14: observe, ten percent, back to observe, back again; who looks sees what was switched, and why."""
    world, rollout = await opened(store, clock)
    await rollout.set("main", mode="observe", reason="first look")
    await rollout.set("main", mode="live", share=10)
    assert (await rollout.back("main"))["mode"] == "observe"
    shown = await rollout.set("main", mode="live", share=100)
    await rollout.set("main", mode="live", share=100)  # nothing changes, nothing is recorded

    assert (shown["mode"], shown["share"]) == ("live", 100)
    assert [(past["mode"], past["share"], past["reason"]) for past in shown["past"]] == [
        ("live", 100, None),
        ("observe", 100, "reverted from live, 10 %"),
        ("live", 10, None),
        ("observe", 100, "first look"),
    ]
    assert len((await rollout.show("main"))["past"]) == 4
    id_ = await world.send()
    await world.step()
    assert world.channel.ids == [id_]


async def test_a_share_serves_always_the_same_people(store: Store, clock: ManualClock) -> None:
    """10 % of the recipients; 50 % includes them; 100 % is everybody (B14)."""
    world, rollout = await opened(store, clock)
    people = [f"+97798000{n:05}" for n in range(400)]
    served: dict[int, set[str]] = {}
    for share in (10, 50, 100, 10):
        await rollout.set("main", mode="live", share=share)
        for person in people:
            await world.send(person)
        while (await world.step()).claimed:
            pass
        now = {message.recipient for message in world.channel.sent}
        assert served.setdefault(share, now) == now
        world.channel.sent.clear()

    assert served[10] < served[50] < served[100] == set(people)
    assert 20 <= len(served[10]) <= 60
    left_out = next(person for person in people if person not in served[10])
    id_ = await world.send(left_out)
    await world.step()
    assert (await world.show(id_))["state"] == "skipped"
    assert "10 %" in (await world.why(id_)).answer


@given(st.text(min_size=1, max_size=40), st.integers(0, 100), st.integers(0, 100))
def test_recipients_of_a_smaller_rollout_share_stay_in_a_larger_one(recipient: str, one: int, other: int) -> None:
    """And 0 % is nobody, 100 % everybody."""
    small, large = sorted((one, other))

    def is_served(share: int) -> bool:
        return check_send(recipient, None, "live", share, None, now=lambda: 0) is None

    assert not is_served(small) or is_served(large)
    assert not is_served(0) and is_served(100)
    assert 0 <= rollout_bucket(recipient) < 100


def test_an_opt_out_is_reported_before_the_rollout_mode() -> None:
    """The reason that a person can do something about comes first."""
    found = check_send("ada", None, "observe", 100, "asked us to stop", now=lambda: 0)

    assert isinstance(found, Skip)
    assert "asked us to stop" in found.why


async def test_a_shadow_notes_what_it_would_have_sent(store: Store, clock: ManualClock) -> None:
    """Once for each message, with its time and content, and nothing goes out."""
    world, rollout = await opened(store, clock)
    await rollout.set("main", mode="shadow")
    at = clock.now() + MINUTE
    id_ = await world.send("ada", at=at)
    await world.step(seconds=65)

    assert world.channel.sent == []
    assert (await world.show(id_))["state"] == "skipped"
    (row,) = await shadows(store, clock)
    assert (row["side"], row["recipient"], row["digest"], row["at"], row["ref"]) == (("ours", "ada", HELLO, at, id_))


async def shadows(store: Store, clock: ManualClock) -> list[dict[str, object]]:
    """All that was noted on `main`."""
    place = {"recipient": "", "at": 0, "id": 0}
    return await store.read("shadow_page", channel="main", since=0, until=clock.now() + DAY, **place, limit=1000)


async def test_a_shadow_that_dies_half_way_is_noted_once(store: Store, clock: ManualClock) -> None:
    """Noted before it is settled: the second try finds its own note."""
    world, rollout = await opened(store, clock)
    await rollout.set("main", mode="shadow")
    await world.send()
    delivery = world.worker._handlers["message"]
    claimed = await store.claim(world.worker.node.id, ClaimRequest({"main": 1}, 1))
    await delivery.load(claimed.tasks)
    await delivery.load(claimed.tasks)

    assert len(await shadows(store, clock)) == 1


async def test_a_report_is_compared_and_every_kind_of_difference_listed(store: Store, clock: ManualClock) -> None:
    """Only ours, only theirs, another content, another time; the rest agrees (B14)."""
    world, rollout = await opened(store, clock)
    await rollout.set("main", mode="shadow")
    began = clock.now()
    for to in ("same", "ours", "content", "time"):
        await world.send(to)
    await world.step()
    at = began + 20 * SECOND
    report: list[dict[str, object]] = [
        {"to": "same", "text": "hello", "at": iso(at), "ref": "1"},
        {"to": "theirs", "text": "hello", "at": iso(at), "ref": "2"},
        {"to": "content", "text": "Hello!", "at": str(at // SECOND), "ref": "3"},
        {"to": "time", "text": " hello\r\n", "at": (at + 10 * MINUTE) // 1000, "ref": "4"},
    ]
    told = await rollout.report("main", lines(*report), timezone=UTC)
    again = await rollout.report("main", lines(*report), timezone=UTC)
    found = await rollout.compare("main", since=began - HOUR, until=began + HOUR)

    assert (told["taken"], told["known"], told["refused"]) == (4, 0, 0)
    assert (again["taken"], again["known"]) == (0, 4)
    assert found.counts == {
        "ours": 4, "theirs": 4, "same": 1,
        "only_ours": 1, "only_theirs": 1, "other_content": 1, "other_time": 1,
    }  # fmt: skip
    assert {(entry["kind"], entry["to"]) for entry in found.differences} == {
        ("only_ours", "ours"), ("only_theirs", "theirs"),
        ("other_content", "content"), ("other_time", "time"),
    }  # fmt: skip
    late = next(entry for entry in found.differences if entry["kind"] == "other_time")
    assert late["apart_s"] == 620
    wider = await rollout.compare("main", since=began - HOUR, until=began + HOUR, tolerance=timedelta(minutes=15))
    assert (wider.counts["same"], wider.counts["other_time"]) == (2, 0)
    short = await rollout.compare("main", since=began - HOUR, until=began + HOUR, limit=2)
    assert (len(short.differences), short.more) == (2, True)


async def test_bad_rows_of_a_report_are_listed_and_good_rows_imported(store: Store, clock: ManualClock) -> None:
    """With their line, the field and what to do."""
    _, rollout = await opened(store, clock)
    told = await rollout.report(
        "main",
        lines(
            {"to": "ada", "text": "hello", "at": "2026-11-16T09:00:00Z"},
            {"text": "hello", "at": "2026-11-16T09:00:00Z"},
            {"to": "ada", "at": "2026-11-16T09:00:00Z"},
            {"to": "ada", "text": "hello", "at": "soon"},
            {"to": "ada", "text": "hello"},
            {"to": "ada", "data": "{", "at": "2026-11-16T09:00:00Z"},
        ),
        timezone=UTC,
    )

    assert (told["taken"], told["refused"]) == (1, 5)
    assert [(bad["line"], bad["field"]) for bad in told["bad"]] == [
        (3, "to"), (4, "text"), (5, "at"), (6, "at"), (7, "data"),
    ]  # fmt: skip
    assert all(bad["remedy"] for bad in told["bad"])


async def test_two_reports_that_overlap_by_pages_are_taken_once(store: Store, clock: ManualClock) -> None:
    """Rows without a ref are known by all that they say; over a thousand are taken in pages."""
    _, rollout = await opened(store, clock)
    rows: list[dict[str, object]] = [{"to": f"p{n}", "text": "hello", "at": iso(clock.now())} for n in range(2500)]
    first = await rollout.report("main", lines(*rows[:1500]), timezone=UTC)
    second = await rollout.report("main", lines(*rows[1000:]), timezone=UTC)
    found = await rollout.compare("main", since=clock.now() - HOUR, until=clock.now() + HOUR, limit=10)

    assert (first["taken"], second["taken"], second["known"]) == (1500, 1000, 500)
    assert (found.counts["only_theirs"], len(found.differences), found.more) == (2500, 10, True)


moments = st.integers(0, 40).map(lambda n: n * MINUTE)
sent = st.lists(st.builds(ShadowRecord, moments, st.sampled_from("abc"), st.none()), max_size=12)


@given(sent, sent)
def test_nothing_is_lost_and_nothing_counted_twice_in_a_comparison(
    ours: list[ShadowRecord], theirs: list[ShadowRecord]
) -> None:
    """Each side's messages are in exactly one pair or difference; a side compared with itself agrees."""
    ours, theirs = sorted(ours, key=lambda one: one.at), sorted(theirs, key=lambda one: one.at)
    same, differences = compare_records(ours, theirs, timedelta(minutes=2))

    assert same + sum(difference.ours is not None for difference in differences) == len(ours)
    assert same + sum(difference.theirs is not None for difference in differences) == len(theirs)
    assert compare_records(ours, ours, timedelta(0)) == (len(ours), [])


def test_the_same_reminder_every_day_is_not_mixed_up() -> None:
    """One that they forgot is missing on their side, and the others still pair up."""
    ours = [ShadowRecord(day * DAY, "a", None) for day in range(5)]
    theirs = [one for one in ours if one.at != 2 * DAY]
    same, differences = compare_records(ours, theirs, timedelta(minutes=1))

    assert same == 4
    assert [(one.kind, one.at) for one in differences] == [("only_ours", 2 * DAY)]


async def test_old_shadows_are_forgotten(store: Store, clock: ManualClock) -> None:
    """A page at a time."""
    _, rollout = await opened(store, clock)
    await rollout.report("main", lines({"to": "a", "text": "x", "at": iso(clock.now())}), timezone=UTC)
    clock.advance(31 * 86_400)
    await rollout.report("main", lines({"to": "b", "text": "x", "at": iso(clock.now())}), timezone=UTC)
    await RetentionPruner("shadows", store, clock, {"shadow_prune": timedelta(days=30)}).step()

    assert [row["recipient"] for row in await shadows(store, clock)] == ["b"]


async def test_a_wrong_switch_is_refused_and_changes_nothing(store: Store, clock: ManualClock) -> None:
    """One sentence naming the field."""
    _, rollout = await opened(store, clock)
    for change, field in (
        ({"mode": "halb"}, "mode"),
        ({"share": 101}, "share"),
        ({"share": -1}, "share"),
        ({}, "mode"),
        ({"mode": "observe", "reason": "x\ny"}, "reason"),
    ):
        with pytest.raises(Invalid) as refused:
            await rollout.set("main", **change)
        assert refused.value.field == field
    with pytest.raises(NotFound, match="no channel 'nowhere'"):
        await rollout.set("nowhere", mode="observe")
    with pytest.raises(NotFound):
        await rollout.set("events", mode="observe")
    with pytest.raises(Conflict, match="was never changed"):
        await rollout.back("main")
    with pytest.raises(Invalid, match="not after"):
        await rollout.compare("main", since=10, until=10)
    assert (await rollout.show("main"))["past"] == []
