"""Times as people give them, and the quirks of the date parser behind them."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.inputs.natural_times import describe_time, parse_in, parse_when
from tidings.model.errors import Invalid
from tidings.model.time import Instant, instant, iso, moment

BERLIN = ZoneInfo("Europe/Berlin")
NEW_YORK = ZoneInfo("America/New_York")
ZULU = ZoneInfo("UTC")


def at(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0, micros: int = 0) -> Instant:
    return instant(datetime(year, month, day, hour, minute, second, micros, tzinfo=UTC))


NOW = at(2026, 11, 16, 8)  # a Monday, nine o'clock in Berlin


def read(text: str, *, now: int = NOW, timezone: ZoneInfo = BERLIN) -> Instant:
    return parse_when(text, now=now, timezone=timezone)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("2026-11-16T09:00:00+01:00", at(2026, 11, 16, 8)),
        ("2026-11-16T08:00:00Z", at(2026, 11, 16, 8)),
        ("2026-11-16t08:00z", at(2026, 11, 16, 8)),
        (" 2026-11-16 08:00:00.250Z ", at(2026, 11, 16, 8, 0, 0, 250_000)),
        ("20261116T0800Z", at(2026, 11, 16, 8)),
        ("2026-W47-1T08:00Z", at(2026, 11, 16, 8)),
        ("2020-01-01T00:00:00-05:00", at(2020, 1, 1, 5)),
        ("2099-12-31T23:59:59Z", at(2099, 12, 31, 23, 59, 59)),
    ],
)
def test_an_iso_time_with_its_zone_is_taken_as_written(text: str, meant: Instant) -> None:
    """B2: also one in the past, which starts at once."""
    assert read(text) == meant


@pytest.mark.parametrize(
    ("text", "offset_form", "zulu_form"),
    [
        ("2026-11-16T09:00", "2026-11-16T09:00:00+01:00", "2026-11-16T09:00:00Z"),
        ("2026-07-01 09:00:00", "2026-07-01T09:00:00+02:00", "2026-07-01T09:00:00Z"),
        ("2026-11-16", "2026-11-16T00:00:00+01:00", "2026-11-16T00:00:00Z"),
    ],
)
def test_an_iso_time_without_zone_is_refused_with_both_ways_to_write_it(
    text: str, offset_form: str, zulu_form: str
) -> None:
    """Nobody could say when it is; the remedy has the configured zone's offset of that day, and Z."""
    with pytest.raises(Invalid, match=r"has no time (zone|of day)") as refused:
        read(text)

    assert refused.value.field == "at"
    assert offset_form in refused.value.remedy
    assert zulu_form in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        *("2026-02-30T09:00Z", "2026-11-16T25:00Z", "2026-13-01T09:00Z", "2026-11-16T09:60Z", "2026-11-31"),
        *("2026-11-16x09:00Z", "2026-11-16T09:00+99:00", "2026-1-1T09:00Z", "2026-11-16T09:00 Berlin"),
        *("25:00", "tomorrow 25:00", "tomorrow 9:60", "tomorrow 13pm", "0am", "30 february 9am", "feb 30 2027 9am"),
    ],
)
def test_a_time_in_an_impossible_form_is_refused(text: str) -> None:
    """With examples of what can be written, and nothing guessed."""
    with pytest.raises(Invalid, match="valid time") as refused:
        read(text)

    assert "2026-11-16T08:00:00Z" in refused.value.remedy


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "0001-01-01T00:00:00+12:00", "9999-12-31T23:59:59-12:00"])
def test_a_year_that_only_a_slip_could_mean_is_refused(text: str) -> None:
    """Such an instant could not even be shown in every zone."""
    with pytest.raises(Invalid, match="between 1970 and 9998"):
        read(text)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("tomorrow 9am", at(2026, 11, 17, 8)),
        ("Tomorrow at 9:00", at(2026, 11, 17, 8)),
        ("9am tomorrow", at(2026, 11, 17, 8)),
        ("tomorrow noon", at(2026, 11, 17, 11)),
        ("tomorrow 9 p.m.", at(2026, 11, 17, 20)),
        ("tomorrow 12am", at(2026, 11, 16, 23)),
        ("tomorrow 12pm", at(2026, 11, 17, 11)),
        ("day after tomorrow 9am", at(2026, 11, 18, 8)),
        ("today 10am", at(2026, 11, 16, 9)),
        ("tonight 8pm", at(2026, 11, 16, 19)),
        ("10:30", at(2026, 11, 16, 9, 30)),
        ("07:30", at(2026, 11, 17, 6, 30)),
        ("friday 17:30", at(2026, 11, 20, 16, 30)),
        ("next friday at noon", at(2026, 11, 20, 11)),
        ("next monday 8:00", at(2026, 11, 23, 7)),
        ("next monday 10:00", at(2026, 11, 23, 9)),
        ("sunday 9:00:30", at(2026, 11, 22, 8, 0, 30)),
        ("in 2 days at 9am", at(2026, 11, 18, 8)),
        ("in a week at 8:00", at(2026, 11, 23, 7)),
        ("dec 24 18:00", at(2026, 12, 24, 17)),
        ("1st December, 9am", at(2026, 12, 1, 8)),
        ("5 may 2027 09:00", at(2027, 5, 5, 7)),
        ("Tue, 24 Nov 2026 09:00", at(2026, 11, 24, 8)),
    ],
)
def test_words_are_read_in_the_given_zone(text: str, meant: Instant) -> None:
    """Nine in the morning is nine where the user lives, winter or summer."""
    assert read(text) == meant


def test_a_weekday_said_on_that_day_is_today_while_the_time_is_still_ahead() -> None:
    """On a Monday at nine, "monday 10:00" is in an hour and "monday 8:00" in a week."""
    assert read("monday 10:00") == at(2026, 11, 16, 9)
    assert read("on monday at 10:00") == at(2026, 11, 16, 9)
    assert read("monday 8:00") == at(2026, 11, 23, 7)


def test_a_date_without_year_is_the_next_one() -> None:
    """Words mean the future."""
    assert read("16 nov 10:00") == at(2026, 11, 16, 9)
    assert read("16 nov 7am") == at(2027, 11, 16, 6)


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("now", timedelta(0)),
        ("in 10 min", timedelta(minutes=10)),
        ("in 10 minutes", timedelta(minutes=10)),
        ("in 1h30m", timedelta(minutes=90)),
        ("in an hour", timedelta(hours=1)),
        ("in half an hour", timedelta(minutes=30)),
        ("1 hour from now", timedelta(hours=1)),
        ("in 2 days", timedelta(days=2)),
        ("IN  90 SECONDS", timedelta(seconds=90)),
    ],
)
def test_a_length_from_now_is_exact(text: str, length: timedelta) -> None:
    """Ten minutes are ten minutes, also over a change of the clocks."""
    for now in (NOW, at(2027, 3, 28, 0, 55), at(2026, 10, 25, 0, 55)):
        assert moment(read(text, now=now)) == moment(now) + length


@pytest.mark.parametrize(
    "text", ["0700-1200", "1000", "5", "0700", "20261116", "1763280000", "2026-11", "2026.5", "-5"]
)
def test_a_bare_number_is_refused(text: str) -> None:
    """The date parser takes 0700-1200 for the year 700 and 5 for the month of May."""
    with pytest.raises(Invalid, match="only a number"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        *("tomorrow 0700-1200", "tomorrow 0930", "tomorrow 9.30", "tomorrow 9", "monday 9", "friday 13", "mon 9h"),
        *("tomorrow", "monday", "next week", "tonight", "nov", "in 10", "in 10 parsecs", "in -5 min", "morgen"),
    ],
)
def test_words_without_a_readable_time_of_day_are_refused(text: str) -> None:
    """The date parser drops what it does not understand and answers with the present hour."""
    with pytest.raises(Invalid, match="no valid time of day"):
        read(text)


@pytest.mark.parametrize(
    "text",
    [
        *("tomorrow 9am CET", "tomorrow 9am +02:00", "tomorrow 9am UTC", "every monday 9am", "friday 13 9am"),
        *("monday and tuesday 9am", "next month 9am", "24 dec 24 9am"),
        *("dec 9am", "9am 2027-01-01", "2027 9am", "ninth 9am", "morgen 9:00"),
    ],
)
def test_words_that_could_be_misread_are_refused(text: str) -> None:
    """A zone that would be ignored, a date of unknown order, a second day, another language."""
    with pytest.raises(Invalid, match="is not understood"):
        read(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("03/04/2027 9:00", "is ambiguous: it may mean 3 April or 4 March"),
        ("tomorrow 01-02-2027 9am", "is ambiguous: it may mean 1 February or 2 January"),
        ("24.12.2026 18:00", "has a date in numbers, whose order differs by country"),
    ],
)
def test_a_date_in_numbers_is_refused_with_its_meanings(text: str, says: str) -> None:
    """Day and month come in a different order in different countries."""
    with pytest.raises(Invalid, match=says) as refused:
        read(text)
    assert "2026-11-16T09:00:00+01:00" in (refused.value.remedy or "")


def test_a_weekday_that_does_not_fit_its_date_is_refused() -> None:
    """The date parser does not notice; 24 November 2026 is a Tuesday."""
    with pytest.raises(Invalid, match="not a valid time"):
        read("mon, 24 nov 2026 09:00")


@pytest.mark.parametrize("text", ["9am 10am", "tomorrow 9am to 5pm", "9:00 to 17:00"])
def test_two_times_are_refused(text: str) -> None:
    """One message, one time."""
    with pytest.raises(Invalid, match="two times"):
        read(text)


@pytest.mark.parametrize("text", ["today 7am", "yesterday 9am", "10 minutes ago", "last monday 9am", "16 nov 2020 9am"])
def test_words_for_the_past_are_refused_with_a_hint(text: str) -> None:
    """B2: a past time on purpose can be given as ISO 8601; a past word is a slip."""
    with pytest.raises(Invalid, match=r"is in the past|ago\.") as refused:
        read(text)

    assert "ISO 8601" in refused.value.remedy


@pytest.mark.parametrize("text", ["", "  ", "\n", "x" * 101])
def test_an_empty_or_endless_time_is_refused(text: str) -> None:
    """In one clear sentence, without repeating what was sent."""
    with pytest.raises(Invalid, match="the time is"):
        read(text)


def test_the_refusal_names_the_field_that_was_given() -> None:
    """The same function reads other times, such as an expiry."""
    with pytest.raises(Invalid) as refused:
        parse_when("25:00", now=NOW, timezone=BERLIN, field="expires_at")

    assert refused.value.field == "expires_at"


def test_words_in_a_daylight_saving_gap_mean_the_first_valid_time() -> None:
    """F21: half past two does not exist on 28 March 2027 in Berlin, nor on 14 March in New York."""
    assert read("28 march 2027 2:30") == at(2027, 3, 28, 1)
    assert read("14 march 2027 2:30", timezone=NEW_YORK) == at(2027, 3, 14, 7)


def test_words_in_a_daylight_saving_overlap_mean_the_first_of_both() -> None:
    """F21: half past two comes twice on 31 October 2027 in Berlin."""
    assert read("31 oct 2027 2:30") == at(2027, 10, 31, 0, 30)


@settings(deadline=None)  # the first word pays for the import
@given(st.integers(at(2000, 1, 1), at(2090, 1, 1)))
def test_words_count_from_the_given_time_and_not_from_the_systems(now: int) -> None:
    """B13: nobody asks the system's clock; tomorrow noon is 12 to 36 hours after any now."""
    found = read("tomorrow noon", now=now, timezone=ZULU)

    assert timedelta(hours=12) <= moment(found) - moment(now) <= timedelta(hours=36)
    assert moment(found).hour == 12


@settings(deadline=None)
@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_and_never_breaks(text: str) -> None:
    """One clear sentence, whatever was typed."""
    try:
        assert read(text) >= 0
    except Invalid as refused:
        assert refused.remedy


@given(st.integers(at(1971, 1, 1), at(2100, 1, 1)), st.timezones())
def test_what_is_shown_can_be_given_again(when: int, timezone: ZoneInfo) -> None:
    """An instant survives being shown in ISO 8601 and read, to the millisecond that is shown."""
    exact = when // 1000 * 1000

    assert read(iso(exact) or "") == exact
    assert read(moment(exact).astimezone(timezone).isoformat()) == exact


def test_the_date_parser_is_imported_only_for_words() -> None:
    """It takes most of a second, which an API that is given ISO times never pays."""
    code = (
        "import sys; from zoneinfo import ZoneInfo; from tidings.inputs.natural_times import parse_when as p;"
        "p('2026-11-16T08:00:00Z', now=0, timezone=ZoneInfo('UTC')); "
        "p('in 10 min', now=0, timezone=ZoneInfo('UTC'));"
        "sys.exit('dateparser' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("text", ["10m", "10 min", "PT10M", "in 10 min", "600s"])
def test_a_length_is_read_in_every_usual_form(text: str) -> None:
    """What `--in` accepts."""
    assert parse_in(text) == timedelta(minutes=10)


@pytest.mark.parametrize("text", ["", "10", "ten minutes", "-5m", "1 month", "200000d"])
def test_a_length_without_unit_or_sense_is_refused(text: str) -> None:
    """Ten of what? With examples."""
    with pytest.raises(Invalid) as refused:
        parse_in(text)

    assert refused.value.field == "in"
    assert "10m" in refused.value.remedy


def test_a_time_is_echoed_in_full() -> None:
    """In the user's zone, in UTC, and from now, so that a misunderstanding is seen at once."""
    later = at(2026, 11, 16, 8, 10)

    assert describe_time(later, BERLIN, now=NOW) == "Mon 16 Nov 2026 09:10:00 CET (2026-11-16T08:10:00Z), in 10 min"
    assert describe_time(NOW, ZULU, now=later) == "Mon 16 Nov 2026 08:00:00 UTC (2026-11-16T08:00:00Z), 10 min ago"
    assert describe_time(NOW, ZULU, now=NOW).endswith(", now")
    assert describe_time(at(2027, 7, 1, 12), BERLIN, now=NOW).startswith(
        "Thu 01 Jul 2027 14:00:00 CEST (2027-07-01T12:00:00Z)"
    )
