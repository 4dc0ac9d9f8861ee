"""The shift grammar: what squads write, and what it means on a calendar of operational days (D10)."""

from __future__ import annotations

import time
from datetime import date, timedelta

import pytest
from tests.time_limits import Limit

from tidings.inbound.domain import CalendarCommand, ShiftAction, ShiftRequest
from tidings.inbound.language.parser import ParsedMessage, parse_message
from tidings.inbound.language.shift_words import minutes, shift_words
from tidings.inbound.language.tokens import LocalMoment, ParserContext
from tidings.model.errors import Invalid

SQUADS = ("34", "35", "42", "43", "54")
SATURDAY = LocalMoment(date(2026, 1, 3), 21 * 60 + 8, date(2026, 1, 3))
THURSDAY = LocalMoment(date(2026, 1, 8), 10 * 60, date(2026, 1, 8))
SMALL_HOURS = LocalMoment(date(2026, 1, 4), 2 * 60, date(2026, 1, 3))
SHIFTS = shift_words()


def hear(text: str, now: LocalMoment = SATURDAY, squad: str | None = "43") -> ParsedMessage:
    return parse_message(text, ParserContext(now, squad, SQUADS, SHIFTS))


def told(text: str, now: LocalMoment = SATURDAY) -> list[str]:
    """The requests of a text in short: action, squad, date, hours; a dot for what was not said."""
    return [" ".join(slot or "." for slot in request) for request in hear(text, now).requests]


@pytest.mark.parametrize(
    ("hours", "start", "end"),
    [
        ("0700-1200", "0700", "1200"),
        ("1800 0600", "1800", "0600"),
        ("1800 hrs to 2200 hrs", "1800", "2200"),
        ("06:30 - 9:30", "0630", "0930"),
        ("6p to 6a", "1800", "0600"),
        ("1-4am", "0100", "0400"),
        ("1 - 4am", "0100", "0400"),
        ("10pm to 1am", "2200", "0100"),
        ("6:30pm to 11:30pm", "1830", "2330"),
        ("noon - 1500", "1200", "1500"),
        ("6pm until midnight", "1800", "0000"),
        ("midnight to 0600", "0000", "0600"),
        ("between 0800 and 1200", "0800", "1200"),
        ("10am till 2", "1000", "1400"),
        ("9 to 5", "0900", "1700"),
        ("9 to 1500", "0900", "1500"),
        ("10 to 2pm", "1000", "1400"),
        ("2400-0600", "0000", "0600"),
        ("from noon till 10 at night", "1200", "2200"),
        ("day shift", "0600", "1800"),
        ("night shift", "1800", "0600"),
        ("morning", "0600", "1200"),
        ("afternoon", "1200", "1800"),
        ("evening", "1800", "0000"),
        ("all day", "0600", "0600"),
        ("overnight", "1800", "0600"),
    ],
)
def test_hours_of_every_kind_are_read(hours: str, start: str, end: str) -> None:
    """D10: military, am and pm, words, and the shift words of the settings."""
    assert told(f"no crew tonight {hours}" if minutes(start) < 360 else f"no crew sunday {hours}") == [
        f"no_crew 43 {'20260103' if minutes(start) < 360 else '20260104'} {start} {end}"
    ]


@pytest.mark.parametrize(
    ("day", "meant"),
    [
        ("today", ["20260108"]),
        ("tomorrow", ["20260109"]),
        ("day after tomorrow", ["20260110"]),
        ("thursday", ["20260108"]),
        ("sat", ["20260110"]),
        ("next friday", ["20260116"]),
        ("the 5th", ["20260205"]),
        ("the 12th", ["20260112"]),
        ("1/15", ["20260115"]),
        ("Jan 15", ["20260115"]),
        ("15th of january", ["20260115"]),
        ("January 15th, 2027", ["20270115"]),
        ("2026-02-03", ["20260203"]),
        ("monday the 12th", ["20260112"]),
        ("a week from today", ["20260115"]),
        ("fri-sun", ["20260109", "20260110", "20260111"]),
        ("mon thru wed", ["20260112", "20260113", "20260114"]),
        ("saturday and sunday", ["20260110", "20260111"]),
        ("this weekend, both days,", ["20260110", "20260111"]),
        ("next weekend", ["20260117", "20260118"]),
        ("not saturday, sunday", ["20260111"]),
        ("saturday, I mean sunday", ["20260111"]),
        ("mon and wed next week", ["20260112", "20260114"]),
    ],
)
def test_days_of_every_kind_are_read(day: str, meant: list[str]) -> None:
    """D10: weekdays, dates, ranges and negation, counted from Thursday 8 January 2026."""
    assert told(f"no crew {day} 1800-0600", THURSDAY) == [f"no_crew 43 {one} 1800 0600" for one in meant]


def test_a_weekday_is_today_until_its_hours_are_over() -> None:
    """Saturday night on a Saturday evening is tonight; Saturday morning is next week's."""
    assert told("no crew saturday night") == ["no_crew 43 20260103 1800 0600"]
    assert told("no crew saturday morning") == ["no_crew 43 20260110 0600 1200"]


def test_the_night_belongs_to_the_day_it_starts() -> None:
    """D10: at two in the morning it is still Saturday; the early hours belong to the day that is named."""
    assert told("no crew tonight", SMALL_HOURS) == ["no_crew 43 20260103 1800 0600"]
    assert told("no crew saturday night", SMALL_HOURS) == ["no_crew 43 20260103 1800 0600"]
    assert told("no crew tonight from 10pm to 1am") == ["no_crew 43 20260103 2200 0100"]

    early = hear("no crew sunday 0100-0400")

    assert [r.date for r in early.requests] == ["20260104"]
    assert early.warnings == ("I read 0100 to 0400 as the night of Sunday, early on Monday",)


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("no crew sunday 1800-0800", ["20260104 1800 0600", "20260105 0600 0800"]),
        ("no crew from sunday 1800 to monday 1200", ["20260104 1800 0600", "20260105 0600 1200"]),
        ("no crew 2200 tonight to 0800 tomorrow", ["20260103 2200 0600", "20260104 0600 0800"]),
        ("no crew monday 5am to 8am", ["20260104 0500 0600", "20260105 0600 0800"]),
        (
            "no crew sunday 0600-0700. 1200-1800 and 1800-0000",
            ["20260104 0600 0700", "20260104 1200 1800", "20260104 1800 0000"],
        ),
        ("no crew friday 1800-0000 and sunday 0600-1200", ["20260109 1800 0000", "20260104 0600 1200"]),
        ("no crew sunday morning and evening", ["20260104 0600 1200", "20260104 1800 0000"]),
        ("no crew tonight and tomorrow 0600-1200", ["20260103 1800 0600", "20260104 0600 1200"]),
    ],
)
def test_windows_are_joined_and_cut_at_six(text: str, meant: list[str]) -> None:
    """A window over 0600 is two of two operational days; several windows are several requests."""
    assert told(text) == [f"no_crew 43 {one}" for one in meant]


@pytest.mark.parametrize(
    ("text", "requests", "warning"),
    [
        ("no crew tonight 0715-0745", ["no_crew 43 20260103 . ."], "not on the hour or half hour"),
        ("no crew sunday 1500-1300", ["no_crew 43 20260104 . ."], "ends before it begins"),
        ("no crew sunday 1800-1800", ["no_crew 43 20260104 . ."], "ends before it begins"),
        ("no crew sunday 7 to 9", ["no_crew 43 20260104 . ."], "in the morning or in the evening"),
        ("no crew sunday till 7", ["no_crew 43 20260104 . ."], "in the morning or in the evening"),
        ("no crew 1/1 0600-1800", ["no_crew 43 . 0600 1800"], "Thursday 1 January is over"),
        ("no crew today 0600-1200", ["no_crew 43 . 0600 1200"], "Saturday 3 January is over"),
        ("no crew 2/30 0600-1800", ["no_crew 43 . 0600 1800"], "'2/30' is not a valid date"),
        ("no crew friday the 10th 0600-1800", ["no_crew 43 . 0600 1800"], "'the 10th' is not a Friday"),
        ("no crew for squad 77 tonight", ["no_crew 77 20260103 1800 0600"], "there is no squad 77"),
        ("99 has no crew tonight", ["no_crew 99 20260103 1800 0600"], "there is no squad 99"),
        ("no crew sunday", ["no_crew 43 20260104 . ."], None),
        ("no crew 1800-0600", ["no_crew 43 . 1800 0600"], None),
        ("no crew sunday after 2200", ["no_crew 43 20260104 2200 ."], None),
    ],
)
def test_missing_or_impossible_values_stay_open(text: str, requests: list[str], warning: str | None) -> None:
    """Nothing is guessed: a gap is asked about, a strange value is named. A bare day has no hours."""
    heard = hear(text)

    assert told(text) == requests
    assert [warning in said for said in heard.warnings] == [True] if warning else heard.warnings == ()


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("42 and 35 have no crew tonight", ["no_crew 42", "no_crew 35"]),
        ("squad 42 has a crew tonight", ["add 42"]),
        ("our crew is out tonight", ["no_crew 43"]),
        ("scratch 42 tonight", ["remove 42"]),
        ("take us off tonight", ["remove 43"]),
        ("43 has no crew tonight. 54 will cover.", ["no_crew 43", "add 54"]),
        ("42 just phoned. They have no crew tonight.", ["no_crew 42"]),
        ("42 no crew tonight, 35 in service tonight", ["no_crew 42", "add 35"]),
        ("they have no crew tonight", []),
    ],
)
def test_the_squad_is_the_one_named_or_the_senders_own(text: str, requests: list[str]) -> None:
    """D10: no squad named is the sender's own; "they" is nobody's."""
    assert told(text) == [f"{one} 20260103 1800 0600" for one in requests]


@pytest.mark.parametrize(
    "text",
    [
        "we are not down tonight",
        "we do not need coverage tonight 1800-0600",
        "no crew is needed tonight 1800-0600",
        "we no longer need coverage tonight",
        "no shortage of crew tonight",
        "don't add us tonight",
        "please do not take us off tonight",
        "cancel the no crew for tonight",
        "42 does not have no crew tonight",
        "the radio in 42 is down tonight",
        "if Bob is late, we have no crew tonight",
        "we had no crew last night",
        "can 42 cover 1800-0600 tonight?",
        "we can cover the cost of pizza tonight",
        "I can't make it tonight",
    ],
)
def test_negations_questions_and_doubts_are_not_requests(text: str) -> None:
    """A double negation, a question, a thing that is down: a wrong booking would be worse than none."""
    assert told(text) == []


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("42 needs coverage tonight, 54 has it", ["no_crew 42", "add 54"]),
        ("42 can't do tonight so 54 will", ["no_crew 42", "add 54"]),
        ("54 will take 42's night tonight", ["add 54"]),
        ("could another squad cover us tonight?", ["no_crew 43"]),
        ("who can cover us tonight? no crew here", ["no_crew 43"]),
        ("we are crewless 2nite", ["no_crew 43"]),
        ("no covrage tonihgt", ["no_crew 43"]),
        ("got people for tonight, we're in", ["add 43"]),
        ("nix tonight for 43", ["remove 43"]),
        ("tonight's shift for 43 needs to come off the calendar", ["remove 43"]),
        ("somebody put us on tonight and that was wrong, please remove", ["remove 43"]),
        ("engine 7 is out of service tonight", []),
        ("tom can cover tonight", []),
        ("we only have a driver for tonight", []),
    ],
)
def test_many_words_say_the_same(text: str, requests: list[str]) -> None:
    """D10: short forms, slips, asking others for cover; other units, lone people, half crews are none."""
    assert told(text) == [f"{one} 20260103 1800 0600" for one in requests]


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("no crew thanksgiving night", ["no_crew 43 20261126 1800 0600"]),
        ("no crew memorial day (5/25) day shift", ["no_crew 43 20260525 0600 1800"]),
        ("no crew easter sunday all day", ["no_crew 43 20260405 0600 0600"]),
        ("no crew jan 9, 10 and 11 nights", [f"no_crew 43 202601{day} 1800 0600" for day in ("09", "10", "11")]),
        ("no crew mon/wed nights", [f"no_crew 43 202601{day} 1800 0600" for day in ("05", "07")]),
        ("move us from mon night to tues night", ["remove 43 20260105 1800 0600", "add 43 20260106 1800 0600"]),
        ("no crew tonight 6:30 to 10:30", ["no_crew 43 20260103 1830 2230"]),
        ("no crew tonight at 2200", ["no_crew 43 20260103 . ."]),
        ("we have no crew", ["no_crew 43 . . ."]),
    ],
)
def test_days_and_hours_in_other_words(text: str, requests: list[str]) -> None:
    """D10: holidays, lists of dates, a move; an hour that fits nowhere leaves the hours open."""
    assert told(text) == requests


@pytest.mark.parametrize(
    "phrase",
    ["have a crew", "have coverage", "cover", "staff", "be in service", "have a full crew", "put a crew together"],
)
@pytest.mark.parametrize(
    "no", ["can not", "can't", "cannot", "cant", "won't", "wont", "will not", "are not able to", "do not", "can hardly"]
)
def test_a_no_is_never_read_as_a_yes(phrase: str, no: str) -> None:
    """The opposite of what was said would be the worst of all bookings."""
    assert all("add" not in request for request in told(f"we {no} {phrase} tonight"))


TEMPLATES = (
    "no crew {day} {start}-{end}",
    "42 does not have a crew {day} from {start} to {end}",
    "we have a crew from {start} until {end} on {day}",
    "{day} {start}-{end} no crew",
    "please remove us {day}, {start} to {end}",
    "{day}: can't cover between {start} and {end}",
    "we can cover {start} to {end}, {day}",
)


def clocks(hour: int) -> list[str]:
    """An hour in every way to write it."""
    return [f"{hour:02d}00", f"{hour:02d}:00", f"{hour % 12 or 12}{'ap'[hour // 12]}m"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_every_hour_of_the_week_is_one_window_of_one_day(template: str) -> None:
    """D10: in every phrase, said at any hour: one operational day, on the grid, two half hours an hour."""
    monday = date(2026, 3, 9)
    for hour in range(7 * 24):
        said, at = monday + timedelta(days=hour % 5), hour * 5 % 24
        now = LocalMoment(said, at * 60, said if at >= 6 else said - timedelta(days=1))
        day, start = now.operational + timedelta(days=1 + hour // 24 % 6), hour % 24
        length = 1 + hour % min(6, (5 - start) % 24 + 1)
        way = hour % 3
        first, last = clocks(start)[way], clocks((start + length) % 24)[way]
        text = template.format(day=f"{day:%A}", start=first, end=last)

        (request,) = hear(text, now).requests

        assert request.date == f"{day:%Y%m%d}", (text, now)
        command = CalendarCommand(ShiftAction.ADD, "42", *(slot or "" for slot in request[2:]))
        assert (command.start, len(command.slots)) == (f"{start:02d}00", 2 * length), (text, now)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   \n ",
        "🚑🚑🚑",
        "ليس لدينا طاقم الليلة",
        "keine Besatzung heute Nacht",
        "no crew " * 1_250,
        "1800-0600 " * 1_000,
        "not " * 2_500 + "crew",
        "a" * 10_000,
        "42 " * 3_000,
        "-/.,?!:;'" * 1_000,
        "no crew 99/99/9999 00000-99999 32nd 0th",
        "no crew 0/0 24:61-99:99",
        "no crew the 31st of february 2026",
    ],
)
def test_anything_can_be_read_in_no_time(text: str) -> None:
    """Long, empty, foreign or strange text neither fails nor takes long."""
    limit = Limit(2.0, clock=time.thread_time)

    hear(text)

    assert not limit.is_over()


def test_shift_words_are_a_setting() -> None:
    """D10: the hours of "night" are this house's, and a word of its own is understood."""
    shifts = shift_words({"night": ("1900", "0700"), "swing": ("1400", "2200")})
    setting = ParserContext(THURSDAY, "43", SQUADS, shifts)

    assert parse_message("no crew tomorrow swing", setting).requests == (
        ShiftRequest(ShiftAction.NO_CREW, "43", "20260109", "1400", "2200"),
    )
    assert parse_message("no crew tomorrow night", setting).requests == (
        ShiftRequest(ShiftAction.NO_CREW, "43", "20260109", "1900", "0600"),
        ShiftRequest(ShiftAction.NO_CREW, "43", "20260110", "0600", "0700"),
    )


@pytest.mark.parametrize(("name", "start"), [("night", "1815"), ("night", "2500"), ("n1ght", "1800"), ("night", "6pm")])
def test_a_shift_word_off_the_grid_is_refused(name: str, start: str) -> None:
    """The settings are held to the same grid as the messages."""
    with pytest.raises(Invalid, match="shift"):
        shift_words({name: (start, "0600")})


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("no crew on 99 saturday night", "no_crew 99 20260103 1800 0600"),
        ("we have a crew Mon Jan 5 night", "add 43 20260105 1800 0600"),
        ("we have a crew wed Feb 4 night", "add 43 20260204 1800 0600"),
        ("we have a crew 2/4 night", "add 43 20260204 1800 0600"),
        ("we have a crew 4 tonight", "add 43 20260103 1800 0600"),
    ],
)
def test_an_unknown_squad_is_not_the_senders_and_a_four_after_a_month_is_a_day(text: str, request_: str) -> None:
    """Bad input: unknown squad, odd dates; never a wrong booking."""
    assert told(text) == [request_]
