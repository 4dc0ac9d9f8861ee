"""What the pump decides, as values: portions, pace, quiet hours, ends."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.broadcast import (
    BroadcastOptions,
    BroadcastState,
    BroadcastTally,
    QuietHours,
    TimezonePart,
    broadcast_tally,
    load_broadcast_options,
)
from tidings.model.errors import Invalid
from tidings.model.time import DAY, HOUR, MINUTE, SECOND, instant
from tidings.outbound.broadcasts.delivery_windows import (
    CHECK_INTERVAL,
    PACING_HORIZON,
    WINDOW,
    EndBroadcast,
    FeedRecipients,
    FeedState,
    PauseAfterCanary,
    RetryFailedRecipients,
    StartBroadcast,
    WaitUntil,
    decide_feed,
)
from tidings.outbound.broadcasts.quiet_hours import local_start, quiet_from, quiet_until
from tidings.outbound.broadcasts.recipient_parser import parse_recipient
from tidings.outbound.broadcasts.request_parser import parse_broadcast

NOW = 1_800_000_000 * SECOND
NIGHT = QuietHours(22 * 60, 7 * 60)


def tally(total: int = 10_000, **counts: int) -> BroadcastTally:
    """A tally with these words, and so many open."""
    open_ = counts.pop("open", 0)
    filled = {word: counts.get(word, 0) for word in BroadcastTally._fields[2:9]}
    waiting = total - sum(filled.values())
    return BroadcastTally(total, waiting, **filled, open=open_)


def look(**more: Any) -> FeedState:
    """A broadcast of 10,000 under way, nothing taken yet."""
    given_: dict[str, Any] = {
        "now": NOW, "state": "running", "options": BroadcastOptions(), "tally": tally(), "taken": 0,
        "parts": [TimezonePart(0, None, 10_000, 0, 0)], "starts_at": NOW, "due_at": NOW, "changed_at": NOW,
        "grace": DAY,
    }  # fmt: skip
    return FeedState(**(given_ | more))


def at(text: str, timezone: str = "UTC") -> int:
    """A wall-clock time as an instant."""
    return instant(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(timezone)))


def test_a_whole_window_is_taken_first() -> None:
    """At most 5,000 are open at a time."""
    take = decide_feed(look(bulk=WINDOW + 1))

    assert isinstance(take, FeedRecipients)
    assert (take.size, take.due_at, take.gap, take.check_at) == (WINDOW, NOW, 0, NOW + CHECK_INTERVAL)


REFILL = WINDOW * 3 // 4


@pytest.mark.parametrize(("open_", "taken"), [(REFILL, WINDOW - REFILL), (REFILL + 1, 0), (WINDOW, 0)])
def test_the_window_is_refilled_when_a_quarter_of_it_is_gone(open_: int, taken: int) -> None:
    """Not for every single one that ends."""
    verdict = decide_feed(look(tally=tally(open=open_, processing=10), taken=WINDOW))

    assert (verdict.size if isinstance(verdict, FeedRecipients) else 0) == taken


def test_a_small_store_takes_smaller_bites() -> None:
    """One transaction takes what suits the store."""
    take = decide_feed(look(bulk=1000))

    assert isinstance(take, FeedRecipients) and (take.size, take.check_at) == (1000, NOW), "and goes on at once"


def test_while_something_is_at_work_it_looks_again_soon_and_later_when_everything_waits() -> None:
    """An end is seen at once; a retry in five minutes is not looked for twenty times a second."""
    parts = [TimezonePart(0, None, 10, 10, 7)]
    busy = decide_feed(look(tally=tally(10, open=5, processing=1), taken=10, parts=parts))
    idle = decide_feed(look(tally=tally(10, open=5), taken=10, parts=parts, changed_at=NOW - 2 * MINUTE))

    assert busy == WaitUntil(NOW + CHECK_INTERVAL)
    assert idle == WaitUntil(NOW + 5 * SECOND)


@given(st.floats(0.01, 50_000), st.integers(0, 4 * SECOND))
def test_a_rate_is_never_planned_faster_than_it_is(per_second: float, behind: int) -> None:
    """Due times keep their distance from the last one made, whenever the pump comes."""
    paced_to = NOW - 2 * SECOND + behind
    verdict = decide_feed(look(options=BroadcastOptions(per_second=per_second), paced_to=paced_to))
    gap = max(1, round(SECOND / per_second))
    if isinstance(verdict, FeedRecipients):
        assert verdict.due_at >= max(NOW, paced_to + gap)
        assert verdict.gap == gap
        assert verdict.paced_to == verdict.due_at + (verdict.size - 1) * gap
        assert verdict.paced_to <= max(verdict.due_at, NOW + PACING_HORIZON)
    else:
        assert isinstance(verdict, WaitUntil)
        assert paced_to + gap > NOW + PACING_HORIZON
        assert verdict.check_at > NOW


def test_a_new_one_starts_at_its_time_and_expires_when_that_is_missed_by_more_than_the_grace() -> None:
    """B8: counted from the later of due and frozen."""
    assert decide_feed(look(state="ready", starts_at=NOW - DAY)) == StartBroadcast()
    late = decide_feed(look(state="ready", starts_at=NOW - DAY - 1))

    assert isinstance(late, EndBroadcast) and late.state is BroadcastState.EXPIRED


@pytest.mark.parametrize(
    ("counts", "state"),
    [
        ({"sent": 10}, BroadcastState.COMPLETED),
        ({"sent": 1, "failed": 9}, BroadcastState.COMPLETED),
        ({"failed": 10}, BroadcastState.FAILED),
        ({"unknown": 10}, BroadcastState.FAILED),
        ({"expired": 10}, BroadcastState.FAILED),
        ({"skipped": 10}, BroadcastState.COMPLETED),
        ({"skipped": 9, "failed": 1}, BroadcastState.FAILED),
        ({"cancelled": 10}, BroadcastState.COMPLETED),
    ],
)
def test_how_it_ends(counts: dict[str, int], state: BroadcastState) -> None:
    """B1: COMPLETED when all are final, FAILED when none succeeded and somebody failed."""
    end = decide_feed(look(tally=tally(10, **counts), taken=10, parts=[TimezonePart(0, None, 10, 10, 9)]))

    assert isinstance(end, EndBroadcast)
    assert (end.state, end.parks) == (state, False)


@pytest.mark.parametrize(
    ("sent", "failed", "since", "stops"),
    [(15, 4, (0, 0), False), (15, 5, (0, 0), True), (90, 10, (0, 0), False), (90, 11, (0, 0), True),
     (100, 50, (0, 50), False), (100, 80, (0, 50), True), (19, 1, (0, 0), False)],
)  # fmt: skip
def test_a_share_of_errors_stops_it_once_enough_have_ended(
    sent: int, failed: int, since: tuple[int, int], stops: bool
) -> None:
    """At least twenty ended, over the limit; what was before a resume is forgiven."""
    options = BroadcastOptions(error_limit=0.10, since=since)
    verdict = decide_feed(
        look(options=options, tally=tally(sent=sent, failed=failed, open=50), taken=sent + failed + 50)
    )

    assert isinstance(verdict, EndBroadcast) is stops
    if isinstance(verdict, EndBroadcast):
        assert (verdict.state, verdict.parks) == (BroadcastState.FAILED, True)


def test_a_canary_takes_its_few_then_waits_for_them_then_for_a_person() -> None:
    """Not one more before the go."""
    first = decide_feed(look(gate=7))
    assert isinstance(first, FeedRecipients) and first.size == 7
    part = [TimezonePart(0, None, 10_000, 7, 7)]
    assert isinstance(decide_feed(look(gate=7, taken=7, parts=part, tally=tally(open=3, sent=4))), WaitUntil)
    halt = decide_feed(look(gate=7, taken=7, parts=part, tally=tally(sent=6, failed=1)))
    assert isinstance(halt, PauseAfterCanary) and "6 sent, 1 failed" in halt.reason
    assert isinstance(decide_feed(look(gate=None, taken=7, parts=part, tally=tally(sent=6, failed=1))), FeedRecipients)


def test_a_retry_takes_what_the_window_leaves() -> None:
    """However many have failed."""
    done = {"taken": 10_000, "parts": [TimezonePart(0, None, 10_000, 10_000, 1)], "is_retrying": True}
    assert decide_feed(look(tally=tally(failed=9_000, open=1_000), **done)) == RetryFailedRecipients(4_000, NOW, 0)
    assert isinstance(decide_feed(look(tally=tally(failed=6_000, open=4_000), **done)), WaitUntil)
    assert isinstance(decide_feed(look(tally=tally(failed=10_000), **done)), RetryFailedRecipients)


def test_parts_are_taken_in_turn_and_resting_ones_are_left_alone() -> None:
    """Whoever is awake gets it; the look is at the moment the next wakes."""
    noon = at("2027-01-15T12:00")
    parts = [
        TimezonePart(0, "America/Los_Angeles", 100, 0, 0),  # 04:00
        TimezonePart(1, "Europe/Berlin", 30, 0, 0),
        TimezonePart(2, None, 50, 0, 0, starts_at=noon + HOUR),
    ]
    options = BroadcastOptions(quiet_hours=NIGHT)
    take = decide_feed(look(now=noon, due_at=noon, options=options, tally=tally(180), parts=parts))
    assert isinstance(take, FeedRecipients)
    assert [(part.part, n) for part, n in take.portions] == [(1, 30)]
    left = [parts[0], parts[1]._replace(taken=30), parts[2]]
    wait = decide_feed(look(now=noon, due_at=noon, options=options, tally=tally(180, sent=30), parts=left, taken=30))
    assert wait == WaitUntil(noon + MINUTE), "a minute at the most, so that nothing is overslept"


@pytest.mark.parametrize(
    ("now", "timezone", "until"),
    [
        ("2027-01-15T21:59", "UTC", None),
        ("2027-01-15T22:00", "UTC", "2027-01-16T07:00"),
        ("2027-01-16T06:59", "UTC", "2027-01-16T07:00"),
        ("2027-01-16T07:00", "UTC", None),
        ("2027-03-28T01:30", "Europe/Berlin", "2027-03-28T07:00"),  # the hour after is skipped
        ("2027-10-31T02:30", "Europe/Berlin", "2027-10-31T07:00"),  # this hour comes twice
    ],
)
def test_quiet_hours_go_over_midnight_and_over_daylight_saving(now: str, timezone: str, until: str | None) -> None:
    """By the clock on the recipient's wall."""
    expected = None if until is None else at(until, timezone)

    assert quiet_until(NIGHT, timezone, at(now, timezone)) == expected


@given(
    st.integers(0, 2 * 365 * 24 * 60),
    st.integers(0, 1439),
    st.integers(0, 1439),
    st.sampled_from(["UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe", "Pacific/Apia"]),
)
def test_the_end_of_quiet_hours_is_never_quiet_and_never_past(minute: int, begin: int, end: int, timezone: str) -> None:
    """Whatever the zone does with its clocks."""
    if begin == end:
        return
    now, quiet = NOW + minute * MINUTE, QuietHours(begin, end)
    until = quiet_until(quiet, timezone, now)
    if until is None:
        assert quiet_from(quiet, timezone, now) > now
    else:
        assert now < until <= now + 26 * HOUR


def test_a_local_start_shows_the_same_time_on_every_wall() -> None:
    """recipient_timezone: 18:00 in Berlin is meant as 18:00."""
    options = BroadcastOptions(recipient_timezone=True, timezone="Europe/Berlin")
    meant = at("2027-06-01T18:00", "Europe/Berlin")

    assert local_start(meant, "Asia/Tokyo", options) == at("2027-06-01T18:00", "Asia/Tokyo")
    assert local_start(meant, None, options) == meant
    assert local_start(meant, "Asia/Tokyo", BroadcastOptions()) == meant


@given(
    st.lists(st.integers(0, 1000), min_size=7, max_size=7), st.integers(0, 5000), st.sampled_from(list(BroadcastState))
)
def test_a_tally_always_adds_up(ended: list[int], untaken: int, state: BroadcastState) -> None:
    """The parts are the whole, in every state."""
    names = ("processing", "sent", "failed", "unknown", "cancelled", "expired", "skipped")
    row: dict[str, Any] = dict(zip(names, ended, strict=True))
    taken = sum(ended) + 13
    found = broadcast_tally({**row, "state": state, "taken": taken, "total": taken + untaken, "pieces": 1})

    assert sum(found.counts.values()) == found.total
    assert found.open == 13 + row["processing"]
    assert found.waiting == (13 if state in ("cancelled", "expired") else 13 + untaken)


def test_options_are_kept_as_they_were() -> None:
    """To JSON and back."""
    options = BroadcastOptions(2.5, 7, 0.1, 3, NIGHT, "Asia/Tokyo", True, 4, 9, "https://x", True, {"a": 1}, (4, 5))

    assert load_broadcast_options(options.to_json()) == options


@pytest.mark.parametrize(
    ("said", "address", "variables"),
    [
        ("ada", "ada", {}),
        ({"address": "ada"}, "ada", {}),
        ({"to": "ada", "name": "Ada", "variables": {"n": 1}}, "ada", {"name": "Ada", "n": 1}),
        ({"address": "ada", "variables": '{"n": 1}'}, "ada", {"n": 1}),
        ({"address": "ada", "variables": ""}, "ada", {}),
    ],
)
def test_a_recipient_is_an_address_or_an_object(said: object, address: str, variables: dict[str, Any]) -> None:
    """Unknown names are variables."""
    found = parse_recipient(said)

    assert (found.address, dict(found.variables)) == (address, variables)


@pytest.mark.parametrize(
    "said", [7, None, [], {}, {"address": 7}, {"address": "a", "to": "b"}, {"address": "a", "timezone": 3},
             {"address": "a", "variables": "x"}, {"address": "a", "variables": [1]}],
)  # fmt: skip
def test_anything_else_is_refused(said: object) -> None:
    """With what to write instead."""
    with pytest.raises(Invalid) as refusal:
        parse_recipient(said)
    assert refusal.value.remedy


def test_a_plan_has_a_name_even_when_nobody_gave_it_one() -> None:
    """The first words of what it says."""
    body = {"channel": "c", "text": "Water is rising.\nMove " + "x" * 100, "addresses": ["a"]}

    plan = parse_broadcast(body, now=NOW, timezone=ZoneInfo("UTC"))
    assert plan.name.startswith("Water is rising. Move") and len(plan.name) <= 60
