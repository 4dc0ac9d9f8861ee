"""From rules to instants: compared with other engines and with brute force, over changes of the clocks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from itertools import islice
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

import orjson
import pytest
from dateutil import rrule as dateutil
from hypothesis import given
from hypothesis import strategies as st

from tidings.inputs.timezones import parse_timezone, resolve_wall_time, wall_time
from tidings.model.errors import Invalid
from tidings.model.time import DAY, HOUR, MINUTE, SECOND, instant, moment
from tidings.outbound.schedules import rrules
from tidings.outbound.schedules.catch_up import ALL, LATEST, MAX_MADE, SKIP, ScheduleState, plan_occurrences
from tidings.outbound.schedules.recurrence import WEEKDAYS, Interval, RecurrenceRule, RecurrenceSeries, compile_rule
from tidings.outbound.schedules.rule_descriptions import describe_rule
from tidings.outbound.schedules.rule_parser import parse_rule, serialize_rule

BERLIN = ZoneInfo("Europe/Berlin")
ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "America/Sao_Paulo", "Australia/Lord_Howe", "Asia/Kathmandu",
    "Pacific/Apia", "Africa/Casablanca", "America/St_Johns", "Asia/Tehran", "Europe/Dublin", "Africa/Cairo",
    "America/Havana", "Pacific/Chatham", "Antarctica/Troll", "America/Asuncion",
)  # fmt: skip
YEAR_1995 = datetime(1995, 1, 1)  # noqa: DTZ001  (a wall clock's)
YEAR_2000 = datetime(2000, 1, 1)  # noqa: DTZ001  (a wall clock's)
YEAR_2040 = datetime(2040, 1, 1)  # noqa: DTZ001  (a wall clock's)
YEAR_2045 = datetime(2045, 1, 1)  # noqa: DTZ001  (a wall clock's)
DAYS = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")


def compiled(rule: dict[str, Any], timezone: ZoneInfo, *, anchor: int = 0) -> RecurrenceRule:
    """A rule as a caller writes it."""
    return compile_rule(parse_rule(rule, anchor=anchor), timezone)


def local(rule: dict[str, Any], timezone: str, after: str, n: int, **more: Any) -> list[str]:
    """The next firings as a wall clock shows them, with the offset."""
    there = ZoneInfo(timezone)
    begin = instant(datetime.fromisoformat(after).replace(tzinfo=there))
    firings = islice(compiled(rule, there, **more).after(begin), n)
    return [moment(firing.at).astimezone(there).strftime("%m-%d %H:%M %z") for firing in firings]


# -- five hundred generated cases against other engines


def settled(times: Iterator[datetime], timezone: ZoneInfo, after: int, n: int) -> list[int]:
    """Wall-clock times of another engine under our two rules, found by walking: no arithmetic of ours."""
    found: list[int] = []
    for there in times:
        at = _walked(there, timezone)
        if at > max([after, *found[-1:]]):
            found.append(at)
            if len(found) == n:
                break
    return found


def _walked(there: datetime, timezone: ZoneInfo) -> int:
    """The first instant at which the clock shows this time; in a gap, the first minute after it."""
    begin = there.replace(tzinfo=UTC)
    offsets = {(begin + timedelta(hours=n)).astimezone(timezone).utcoffset() for n in range(-30, 31)}
    shown = [begin - offset for offset in offsets if offset is not None]
    exact = [at for at in shown if at.astimezone(timezone).replace(tzinfo=None) == there]
    if exact:
        return instant(min(exact))
    at = begin.replace(second=0) - timedelta(hours=15)
    while at.astimezone(timezone).replace(tzinfo=None) < there:
        at += timedelta(minutes=1)
    return instant(at)


def begins(rng: random.Random, timezone: ZoneInfo) -> datetime:
    """A time between 2000 and 2040, every other one just before a change of the clocks."""
    there = YEAR_2000 + timedelta(seconds=rng.randrange(39 * 365 * 86_400))
    if rng.random() < 0.5:
        return there
    for _ in range(370):
        before, after = (there + timedelta(days=n) for n in (0, 1))
        if before.replace(tzinfo=timezone).utcoffset() != after.replace(tzinfo=timezone).utcoffset():
            return there - timedelta(hours=rng.randrange(30))
        there += timedelta(days=1)
    return there


def a_field(rng: random.Random, low: int, high: int, stars: float) -> str:
    """One field of a cron rule."""
    kind = rng.random()
    if kind < stars:
        return "*"
    if kind < stars + 0.15:
        return f"*/{rng.randint(2, max(2, high // 2))}"
    if kind < stars + 0.3:
        first = rng.randint(low, high - 1)
        return f"{first}-{rng.randint(first, high)}"
    return ",".join(map(str, sorted({rng.randint(low, high) for _ in range(rng.randint(1, 3))})))


def members(text: str, low: int, high: int) -> list[int]:
    """The values of a field; read here once more, so that a misreading is seen."""
    found: set[int] = set()
    for term in text.split(","):
        span, _, step = term.partition("/")
        first, _, last = span.partition("-")
        ends = (low, high) if span == "*" else (int(first), int(last or first))
        found |= set(range(ends[0], ends[1] + 1, int(step or 1)))
    return sorted(found)


def by_dateutil(fields: list[str], begin: datetime) -> Iterator[datetime]:
    """A cron rule said as RRULE: days by month day and weekday together, or either where both are named."""
    seconds, minutes, hours = (members(text, 0, high) for text, high in zip(fields[:3], (59, 59, 23), strict=True))
    days, weekdays = members(fields[3], 1, 31), [(n - 1) % 7 for n in members(fields[5], 0, 6)]
    rule = partial(
        dateutil.rrule, dateutil.DAILY, dtstart=begin + timedelta(seconds=1),
        bymonth=members(fields[4], 1, 12), byhour=hours, byminute=minutes, bysecond=seconds,
    )  # fmt: skip
    if fields[3].startswith("*") or fields[5].startswith("*"):
        return iter(rule(bymonthday=days, byweekday=weekdays))
    both = dateutil.rruleset()
    both.rrule(rule(bymonthday=days))
    both.rrule(rule(byweekday=weekdays))
    return iter(both)


@pytest.mark.parametrize("seed", range(10))
def test_cron_fires_when_dateutil_says(seed: int) -> None:
    """25 generated rules, zones and times each, 5 and 6 fields: equal, gaps and overlaps as stated (A8)."""
    rng, compared = random.Random(seed), 0
    while compared < 25:
        fields = [
            a_field(rng, 0, 59, 0.0) if rng.random() < 0.3 else "0",
            a_field(rng, 0, 59, 0.1), a_field(rng, 0, 23, 0.0), a_field(rng, 1, 31, 0.6),
            a_field(rng, 1, 12, 0.7), a_field(rng, 0, 6, 0.6),
        ]  # fmt: skip
        timezone = ZoneInfo(rng.choice(ZONES))
        begin = begins(rng, timezone)
        text = " ".join(fields if fields[0] != "0" or rng.random() < 0.2 else fields[1:])
        if len(members(fields[2], 0, 23)) == 24:
            continue
        try:
            rule = compiled({"cron": text}, timezone)
        except Invalid:
            continue  # 31 February and its like, which dateutil would look for until the year 9999
        after = resolve_wall_time(begin, timezone).at
        ours = [firing.at for firing in islice(rule.after(after), 12)]

        assert ours == settled(by_dateutil(fields, begin), timezone, after, 12), (text, timezone, begin)
        compared += 1


@pytest.mark.parametrize("seed", range(5))
def test_cron_for_every_hour_fires_whenever_the_clock_matches(seed: int) -> None:
    """10 generated rules each, around changes of the clocks: every matching instant, by brute force (A8)."""
    rng = random.Random(seed)
    for _ in range(10):
        minutes, weekdays = a_field(rng, 0, 59, 0.2), a_field(rng, 0, 6, 0.7)
        timezone = ZoneInfo(rng.choice(ZONES))
        after = resolve_wall_time(begins(rng, timezone), timezone).at // MINUTE * MINUTE
        rule = compiled({"cron": f"{minutes} * * * {weekdays}"}, timezone)
        wanted = (members(minutes, 0, 59), members(weekdays, 0, 6))
        expected = []
        for at in range(after + MINUTE, after + 2 * DAY, MINUTE):
            there = wall_time(at, timezone)
            if there.minute in wanted[0] and there.isoweekday() % 7 in wanted[1]:
                expected.append(at)
        expected = [at for at in expected if wall_time(at, timezone).second == 0]

        assert [f.at for f in islice(rule.after(after), len(expected))] == expected, (minutes, weekdays, timezone)


def an_rrule(rng: random.Random) -> str:
    """A generated RRULE of any frequency."""
    freq = rng.choice(rrules.FREQUENCIES)
    parts = [f"FREQ={freq}"]

    def pick(chance: float, name: str, low: int, high: int, most: int, *, signed: bool = False) -> None:
        if rng.random() < chance:
            signs = (1, -1) if signed else (1,)
            values = {rng.choice(signs) * rng.randint(low, high) for _ in range(rng.randint(1, most))}
            parts.append(f"{name}={','.join(map(str, sorted(values)))}")

    pick(0.5, "INTERVAL", 1, 13, 1)
    pick(0.3, "BYMONTH", 1, 12, 4)
    if freq != "WEEKLY":
        pick(0.3, "BYMONTHDAY", 1, 31, 3, signed=True)
    if freq == "YEARLY":
        pick(0.1, "BYYEARDAY", 1, 366, 4, signed=True)
        pick(0.15, "BYWEEKNO", 1, 53, 3, signed=True)
    if rng.random() < 0.5:
        places = ["1", "2", "-1"] if freq in ("YEARLY", "MONTHLY") and "BYWEEKNO" not in str(parts) else [""]
        places = places if rng.random() < 0.5 else [""]
        parts.append("BYDAY=" + ",".join({rng.choice(places) + rng.choice(DAYS) for _ in range(2)}))
    pick(0.4, "BYHOUR", 0, 23, 3)
    pick(0.4, "BYMINUTE", 0, 59, 3)
    pick(0.3, "BYSECOND", 0, 59, 2)
    if freq in ("YEARLY", "MONTHLY", "WEEKLY") and "BYDAY" in str(parts):
        pick(0.3, "BYSETPOS", 1, 3, 2, signed=True)
        if rng.random() < 0.3:
            parts.append(f"WKST={rng.choice(DAYS)}")
    return ";".join(parts)


@pytest.mark.parametrize("seed", range(10))
def test_rrule_fires_when_dateutil_says(seed: int) -> None:
    """25 generated rules, zones and times each, asked from their begin and from the middle: equal (A8)."""
    rng, compared = random.Random(100 + seed), 0
    while compared < 25:
        text, timezone = an_rrule(rng), ZoneInfo(rng.choice(ZONES))
        begin = begins(rng, timezone)
        rule = compiled({"rrule": text}, timezone, anchor=resolve_wall_time(begin, timezone).at)
        begin = wall_time(resolve_wall_time(begin, timezone).at, timezone)
        after = resolve_wall_time(begin, timezone).at - SECOND
        ours = [firing.at for firing in islice(rule.after(after), 10)]
        if len(ours) < 10:
            continue  # so rare, or never: dateutil would look for it until the year 9999
        theirs = settled(iter(dateutil.rrulestr(text, dtstart=begin)), timezone, after, 10)

        assert ours == theirs, (text, timezone, begin)
        assert [firing.at for firing in islice(rule.after(ours[4]), 5)] == ours[5:], (text, timezone, begin)
        compared += 1


def test_a_mixed_byday_is_either() -> None:
    """RFC 5545: Mondays, and the first Friday too; here dateutil is wrong, so it is told twice."""
    both = local({"rrule": "FREQ=MONTHLY;BYDAY=MO,1FR;BYHOUR=9;BYMINUTE=0"}, "UTC", "2027-02-01T12:00", 6)
    assert [at[:5] for at in both] == ["02-05", "02-08", "02-15", "02-22", "03-01", "03-05"]


# -- changes of the clocks, as stated


@pytest.mark.parametrize(
    "rule",
    [
        {"cron": "30 2 * * *"}, {"cron": "0 30 2 * * *"}, {"daily": "02:30"},
        {"weekly": "mon,tue,wed,thu,fri,sat,sun 02:30"}, {"rrule": "FREQ=DAILY;BYHOUR=2;BYMINUTE=30"},
    ],
    ids=str,
)  # fmt: skip
def test_in_a_gap_it_fires_at_the_first_valid_time_and_of_two_only_once(rule: dict[str, Any]) -> None:
    """Whichever way the rule is written."""
    assert local(rule, "Europe/Berlin", "2027-03-27T12:00", 2) == ["03-28 03:00 +0200", "03-29 02:30 +0200"]
    assert local(rule, "Europe/Berlin", "2027-10-30T12:00", 2) == ["10-31 02:30 +0200", "11-01 02:30 +0100"]


def test_several_times_in_one_gap_are_one_firing() -> None:
    """02:00, 02:15 and 02:30 do not exist; 03:00 exists once."""
    assert local({"daily": "02:00, 02:15, 02:30, 03:00"}, "Europe/Berlin", "2027-03-28T01:00", 2) == [
        "03-28 03:00 +0200",
        "03-29 02:00 +0200",
    ]


def test_a_step_of_hours_follows_the_wall() -> None:
    """Every second hour: two o'clock is made up for in the gap, and not doubled in the overlap."""
    rule = {"cron": "0 */2 * * *"}
    assert local(rule, "Europe/Berlin", "2027-03-28T00:30", 2) == ["03-28 03:00 +0200", "03-28 04:00 +0200"]
    assert local(rule, "Europe/Berlin", "2027-10-31T00:30", 2) == ["10-31 02:00 +0200", "10-31 04:00 +0100"]


def test_every_hour_and_intervals_count_on() -> None:
    """Elapsed time: no hour without a firing, and none doubled."""
    hourly = ["10-31 02:00 +0200", "10-31 02:00 +0100", "10-31 03:00 +0100"]
    assert local({"cron": "@hourly"}, "Europe/Berlin", "2027-10-31T01:30", 3) == hourly
    anchor = instant(datetime(2027, 10, 31, 0, tzinfo=BERLIN))
    assert local({"every": "1h"}, "Europe/Berlin", "2027-10-31T01:30", 3, anchor=anchor) == hourly


def test_gaps_of_half_an_hour_and_of_a_whole_day() -> None:
    """Lord Howe moves by thirty minutes; Samoa left out 30 December 2011."""
    assert local({"daily": "02:15"}, "Australia/Lord_Howe", "2027-10-02T12:00", 1) == ["10-03 02:30 +1100"]
    assert local({"daily": "09:00"}, "Pacific/Apia", "2011-12-29T10:00", 2) == [
        "12-31 00:00 +1400",
        "12-31 09:00 +1400",
    ]


def test_what_was_decided_is_noted() -> None:
    """A preview says where a rule applied."""
    rule = compiled({"daily": "02:30"}, BERLIN)
    gap = next(rule.after(instant(datetime(2027, 3, 27, 12, tzinfo=BERLIN))))
    twice = next(rule.after(instant(datetime(2027, 10, 30, 12, tzinfo=BERLIN))))
    plain = next(rule.after(instant(datetime(2027, 6, 1, tzinfo=BERLIN))))

    assert "forward" in str(gap.note) and "02:30 does not exist" in str(gap.note)
    assert "back" in str(twice.note) and "02:30 occurs twice" in str(twice.note)
    assert plain.note is None


@given(st.datetimes(YEAR_1995, YEAR_2045), st.datetimes(YEAR_1995, YEAR_2045), st.sampled_from(ZONES))
def test_settling_keeps_the_order(one: datetime, other: datetime, name: str) -> None:
    """An earlier time on the wall is never a later instant, so firings come in order."""
    timezone = ZoneInfo(name)
    first, second = sorted((one, other))
    assert resolve_wall_time(first, timezone).at <= resolve_wall_time(second, timezone).at
    if resolve_wall_time(first, timezone).note is None:
        assert wall_time(resolve_wall_time(first, timezone).at, timezone) == first


# -- days


def test_a_day_that_a_month_does_not_have_is_skipped_or_the_last() -> None:
    """Skipped unless asked for: monthly on the 31st, yearly on 29 February."""
    skip = local({"monthly": "31 09:00"}, "UTC", "2027-01-31T10:00", 2)
    assert [at[:5] for at in skip] == ["03-31", "05-31"]
    last = local({"monthly": {"on": [31], "at": "09:00", "short_months": "last"}}, "UTC", "2027-01-31T10:00", 2)
    assert [at[:5] for at in last] == ["02-28", "03-31"]
    leap = local({"yearly": "02-29 09:00"}, "UTC", "2027-01-01T00:00", 1)
    assert leap == ["02-29 09:00 +0000"]
    short = {"yearly": {"on": ["02-29"], "at": ["09:00"], "short_months": "last"}}
    assert [at[:5] for at in local(short, "UTC", "2027-01-01T00:00", 2)] == ["02-28", "02-29"]


@pytest.mark.parametrize(
    ("on", "expected"),
    [
        ("last", ["01-31", "02-28", "03-31"]),
        ("first monday", ["01-04", "02-01", "03-01"]),
        ("last friday", ["01-29", "02-26", "03-26"]),
        ("1, 15", ["01-01", "01-15", "02-01"]),
    ],
)
def test_days_of_a_month_in_words(on: str, expected: list[str]) -> None:
    """Numbers, the last day, and weekdays by their place."""
    found = local({"monthly": f"{on} 09:00"}, "UTC", "2027-01-01T00:00", 3)
    assert [at[:5] for at in found] == expected


@given(
    st.sets(st.sampled_from(WEEKDAYS), min_size=1),
    st.sets(st.times(), min_size=1, max_size=4),
    st.datetimes(YEAR_2000, YEAR_2040),
    st.sampled_from(ZONES),
)
def test_weekly_is_daily_on_its_days(days: set[str], clocks: set[time], begin: datetime, name: str) -> None:
    """Against the same thing said as RRULE, through two engines of our own and one of dateutil's."""
    timezone = ZoneInfo(name)
    at = sorted({clock.strftime("%H:%M") for clock in clocks})
    after = resolve_wall_time(begin, timezone).at
    weekly = compiled({"weekly": {"on": sorted(days), "at": at}}, timezone)
    numbers = [WEEKDAYS.index(day) for day in days]
    times = sorted(
        datetime.combine(begin.date() + timedelta(days=n), time.fromisoformat(clock))
        for n in range(15)
        for clock in at
        if (begin.date() + timedelta(days=n)).weekday() in numbers
    )
    expected = settled(iter(times), timezone, after, 2)
    assert [firing.at for firing in islice(weekly.after(after), len(expected))] == expected


# -- bounds


def series(rule: dict[str, Any], timezone: ZoneInfo = BERLIN, **bounds: Any) -> RecurrenceSeries:
    return RecurrenceSeries(compiled(rule, timezone), timezone, **bounds)


def test_start_and_end_are_included_and_days_are_skipped() -> None:
    """From the start to the end, but for some days."""
    start, end = (instant(datetime(2027, 1, day, 9, tzinfo=BERLIN)) for day in (10, 14))
    days = series({"daily": "09:00"}, start=start, end=end, excluded=frozenset({date(2027, 1, 12)}))

    assert [moment(firing.at).day for firing in days.after(0)] == [10, 11, 13, 14]
    assert days.skipped(0, end, 5) == [instant(datetime(2027, 1, 12, 9, tzinfo=BERLIN))]


def test_a_skipped_day_of_seconds_is_passed_over_at_once() -> None:
    """Not second by second."""
    skip = frozenset({date(2027, 1, 1) + timedelta(days=n) for n in range(300)})
    dense = RecurrenceSeries(Interval(SECOND, 0), BERLIN, excluded=skip)
    first = dense.first_after(instant(datetime(2027, 1, 1, 5, tzinfo=BERLIN)))

    assert first is not None
    assert moment(first.at).astimezone(BERLIN).isoformat() == "2027-10-28T00:00:00+02:00"


def test_count_and_until_of_an_rrule_end_it() -> None:
    """COUNT counts from its begin, wherever one asks; UNTIL may be in UTC or on the wall."""
    anchor = instant(datetime(2027, 1, 1, 9, tzinfo=BERLIN))
    counted = compiled({"rrule": "FREQ=DAILY;COUNT=3"}, BERLIN, anchor=anchor)
    assert len(list(counted.after(anchor - 1))) == 3
    assert len(list(counted.after(anchor))) == 2
    for until, n in (("20270103T080000Z", 3), ("20270103T085959", 2), ("20270103", 3), ("20270103T075959Z", 2)):
        bounded = compiled({"rrule": f"FREQ=DAILY;UNTIL={until}"}, BERLIN, anchor=anchor)
        assert len(list(bounded.after(anchor - 1))) == n, until


NEVER = (
    "FREQ=SECONDLY;BYHOUR=3;BYMONTH=2;BYMONTHDAY=30", "FREQ=DAILY;BYMONTH=2;BYMONTHDAY=30",
    "FREQ=YEARLY;BYMONTH=4;BYMONTHDAY=31", "FREQ=SECONDLY;INTERVAL=86400;BYHOUR=5",
    "FREQ=WEEKLY;BYDAY=MO;BYSETPOS=4", "FREQ=MINUTELY;INTERVAL=60;BYMINUTE=7",
)  # fmt: skip


@pytest.mark.timeout(10)
@pytest.mark.parametrize("text", NEVER)
def test_a_rule_that_never_fires_is_given_up_soon(text: str) -> None:
    """No call hangs in one, however it is written."""
    assert next(compiled({"rrule": text}, BERLIN).after(0), None) is None


@pytest.mark.parametrize(
    "text",
    [
        "FREQ=DAILY;BYDAY=1MO", "FREQ=WEEKLY;BYMONTHDAY=3", "FREQ=MONTHLY;BYWEEKNO=3", "FREQ=DAILY;COUNT=0",
        "FREQ=DAILY;INTERVAL=0", "FREQ=DAILY;COUNT=3;UNTIL=20270101", "FREQ=DAILY;FREQ=DAILY", "INTERVAL=2",
        "FREQ=DAILY;BYHOUR=24", "FREQ=DAILY;BYSECOND=60", "FREQ=DAILY;BYDAY=XX", "FREQ=DAILY;BYMONTH=-1",
        "FREQ=DAILY;UNTIL=soon", "FREQ=DAILY;X=1", "FREQ=DAILY;", "DTSTART:20270101T000000\nRRULE:FREQ=DAILY",
        "FREQ=MONTHLY;BYSETPOS=1", "FREQ=HOURLY;BYDAY=MO;BYSETPOS=1", "FREQ=DAILY;COUNT=99999999999",
    ],
)  # fmt: skip
def test_an_rrule_that_cannot_be_read_is_refused_by_name(text: str) -> None:
    """With a remedy, and the field."""
    with pytest.raises(Invalid) as refused:
        rrules.parse(text)
    assert refused.value.remedy and refused.value.field == "rule"


@given(st.text(max_size=40), st.sampled_from(["cron", "every", "daily", "weekly", "monthly", "yearly", "rrule"]))
def test_junk_is_refused_and_never_an_error_of_ours(text: str, kind: str) -> None:
    """Whatever is written, the answer is a rule or a sentence."""
    try:
        stored = parse_rule({kind: text}, anchor=0)
    except Invalid as refused:
        assert refused.field == "rule" and refused.remedy
    else:
        assert describe_rule(stored)


@pytest.mark.parametrize("name", ["Europe/Berln", "europe/berlin", "Berlin", "berlin", "Europe/Berlin "])
def test_an_unknown_time_zone_suggests_similar_names(name: str) -> None:
    """Capitals, slips and bare towns."""
    with pytest.raises(Invalid, match="Europe/Berlin"):
        parse_timezone(name)


def test_every_zone_is_known() -> None:
    """By its own name, and none that leads out of the folder of zones."""
    assert all(parse_timezone(name).key == name for name in sorted(available_timezones())[::25])
    for name in ("", "../etc/passwd", "/etc/localtime", "\0", "UTC\n", "x" * 10_000):
        with pytest.raises(Invalid):
            parse_timezone(name)


# -- words


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"cron": "0 9 * * 1-5"}, "at 09:00 on Monday through Friday"),
        ({"cron": "@daily"}, "at 00:00 every day"),
        ({"every": "90m"}, "every 1 h 30 min"),
        ({"daily": "9:00, 18:30"}, "every day at 09:00 and 18:30"),
        ({"weekly": "Fri, mon at 09:00"}, "every Monday and Friday at 09:00"),
        ({"weekly": "mon,tue,wed,thu,fri 09:00"}, "Monday to Friday at 09:00"),
        ({"monthly": "1, 22, last 9:00"}, "on the 1st, 22nd and last day of every month at 09:00"),
        ({"yearly": "12-24 18:00"}, "every year on 24 December at 18:00"),
        ({"rrule": "freq=weekly"}, "by the rule FREQ=WEEKLY"),
    ],
    ids=str,
)
def test_a_rule_in_words(rule: dict[str, Any], words: str) -> None:
    """So that a slip is seen before it fires."""
    assert describe_rule(parse_rule(rule, anchor=0)) == words


def test_a_rule_is_shown_as_it_can_be_written_again() -> None:
    """What is shown makes the same rule."""
    for rule in ({"cron": "@daily"}, {"every": "90m"}, {"weekly": "mon 9:00"}, {"monthly": "31, last 9:00"}):
        stored = parse_rule(rule, anchor=7, excluded=["2027-01-01"])
        again = parse_rule(serialize_rule(stored), anchor=7, excluded=["2027-01-01"])
        assert orjson.loads(again) == orjson.loads(stored)


# -- planning


def standing(policy: str, *, grace: int = HOUR, left: int | None = None, length: int = 10 * MINUTE) -> ScheduleState:
    return ScheduleState(RecurrenceSeries(Interval(length, 0), BERLIN), length, policy, grace, left)


@given(
    st.sampled_from([SKIP, LATEST, ALL]),
    st.integers(1, 400),
    st.integers(0, 300),
    st.integers(1, 200),
    st.one_of(st.none(), st.integers(1, 5)),
)
def test_every_instant_is_dealt_with_once(policy: str, length: int, late: int, grace: int, left: int | None) -> None:
    """Made, missed, or still to come: none is lost between two plans, and none is in two of them."""
    before = standing(policy, grace=grace * MINUTE, left=left, length=length * MINUTE)
    now = before.next_at + late * MINUTE
    planned = plan_occurrences(before, now)

    dealt = sorted([*planned.make, *(line.at for line in planned.lines)])
    due = [at for at in range(length * MINUTE, now + 1, length * MINUTE) if at <= planned.last_at]
    assert len(set(dealt)) == len(dealt)
    assert set(dealt) <= set(due)
    if len(due) - len(planned.make) <= 20:
        assert dealt == due
    assert planned.next_at == planned.last_at + length * MINUTE
    assert all(now - at < grace * MINUTE for at in planned.make)
    assert len(planned.make) <= (left or MAX_MADE)
    if policy != ALL:
        assert len(planned.make) <= 1
    if planned.next_at is not None and planned.next_at <= now:
        assert len(planned.make) in (MAX_MADE, left)


def test_what_was_announced_is_kept() -> None:
    """Even if the rule says otherwise now (the rules of a zone were changed by its government)."""
    announced = standing(LATEST)._replace(next_at=7 * MINUTE)
    assert plan_occurrences(announced, 7 * MINUTE).make == [7 * MINUTE]
    assert plan_occurrences(announced, 7 * MINUTE).next_at == 10 * MINUTE
