"""Classes of shift talk, in phrasings that are in none of the corpora: what they ask for, if anything.

Said on Thursday, 8 January 2026, at 10 in the morning, by a member of squad 43.
"""

from __future__ import annotations

from datetime import date

import pytest

from tidings.inbound.language.normalization import without_courtesies
from tidings.inbound.language.numbers import spelled_out
from tidings.inbound.language.parser import ParsedMessage, parse_message
from tidings.inbound.language.shift_words import shift_words
from tidings.inbound.language.subjects import has_strange_subject
from tidings.inbound.language.tokens import LocalMoment, ParserContext

NOW = LocalMoment(date(2026, 1, 8), 10 * 60, date(2026, 1, 8))
SQUADS = ("34", "35", "42", "43", "54")
SHIFTS = shift_words()
FRIDAY = "20260109 1800 0600"


def hear(text: str) -> ParsedMessage:
    return parse_message(text, ParserContext(NOW, "43", SQUADS, SHIFTS))


def told(text: str) -> list[str]:
    """The requests of a text in short: action, squad, date, hours; a dot for what was not said."""
    return sorted(" ".join(slot or "." for slot in request) for request in hear(text).requests)


@pytest.mark.parametrize(
    "text",
    [
        "Squad 43 is a hard no for friday night",
        "we came up dry for friday night",
        "no warm bodies friday night, 43 needs relief for friday night",
        "friday night: not one person signed up, so 43 has no crew",
        "could one of the other squads pick up our friday night?",
        "any squad willing to run friday night for us?",
        "neither of our drivers can make it, so no crew friday night",
        "don't plan on us friday night",
        "please show us as out of service friday night",
        "ain't nobody here friday night for 43",
        "43 has zero availability friday night",
        "it would be great if somebody took our friday night",
    ],
)
def test_no_crew_in_many_words(text: str) -> None:
    """D10: having none, asking others, states and idioms."""
    assert told(text) == [f"no_crew 43 {FRIDAY}"]


@pytest.mark.parametrize(
    "text",
    [
        "43 is cleared to cover friday night",
        "we'd be delighted, put 43 up for friday night",
        "a crew has been arranged for friday night, please list us",
        "scraped together a crew for friday night, throw us on",
        "Marge and I will ride friday night. Please sign us up.",
        "we will be picking up friday night",
        "jot us down for friday night",
    ],
)
def test_a_crew_in_many_words(text: str) -> None:
    """D10: offers, found crews, and wishes to be put on."""
    assert told(text) == [f"add 43 {FRIDAY}"]


@pytest.mark.parametrize(
    "text",
    [
        "please release us from friday night",
        "we want out of our friday night shift",
        "knock 43 off friday night",
        "I'd like our friday night shift deleted",
        "the shift that we signed up for on friday night, cancel it please",
        "our friday night entry was a mistake; please remove it",
        "43 withdraws from friday night",
        "could we come off friday night?",
        "leave us off friday night, would you?",
    ],
)
def test_taking_an_entry_back_in_many_words(text: str) -> None:
    """D10: removing, by order, by wish, and of what was said before."""
    assert told(text) == [f"remove 43 {FRIDAY}"]


@pytest.mark.parametrize(
    ("text", "requests"),
    [
        ("Got a call from 35. They have no crew friday night.", [f"no_crew 35 {FRIDAY}"]),
        ("neither 34 nor 42 has a crew friday night", [f"no_crew 34 {FRIDAY}", f"no_crew 42 {FRIDAY}"]),
        ("can 54 or 35 take friday night for us?", [f"no_crew 43 {FRIDAY}"]),
        ("covering friday night for 54", [f"add 43 {FRIDAY}"]),
        ("42 can't do friday night, 54 picked it up", [f"add 54 {FRIDAY}", f"no_crew 42 {FRIDAY}"]),
        ("swap our friday night for saturday night", ["add 43 20260110 1800 0600", f"remove 43 {FRIDAY}"]),
        ("tonight no crew, tomorrow night crew", [f"add 43 {FRIDAY}", "no_crew 43 20260108 1800 0600"]),
    ],
)
def test_who_does_what_for_whom(text: str, requests: list[str]) -> None:
    """D10: "they" is the squad named before, helpers are not the helped, and a swap is two requests."""
    assert told(text) == requests


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("no crew friday 1800-2200, make that 1800-0600", FRIDAY),
        ("no crew saturday night. Correction: friday night", FRIDAY),
        ("no crew saturday morning, I meant friday night", FRIDAY),
        ("no crew friday 1800-2200. Sorry, 1800-0600.", FRIDAY),
        ("no crew saturday night... no, friday night", FRIDAY),
    ],
)
def test_a_correction_replaces_what_it_corrects(text: str, meant: str) -> None:
    """D10: a day for a day, hours for hours, in the same sentence or the next."""
    assert told(text) == [f"no_crew 43 {meant}"]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("the prom is friday! no crew 1800-0600", FRIDAY),
        ("no crew friday night, the 9th", FRIDAY),
        ("no crew from 6 friday evening til 6 saturday morning", FRIDAY),
        ("no crew friday from eighteen hundred to oh six hundred", FRIDAY),
        ("no crew on friday the ninth from six p m to six a m", FRIDAY),
        ("no crew frday nigth", FRIDAY),
        ("the loaner is due monday, so we are out of service friday night", FRIDAY),
        ("no crew friday, half past six to half past ten in the evening", "20260109 1830 2230"),
        ("no crew tomorrow 8 in the morning till 2 in the afternoon", "20260109 0800 1400"),
    ],
)
def test_when_it_is_meant(text: str, meant: str) -> None:
    """D10: number words, slips, weekday and date, the one day of a message, no day of another clause."""
    assert told(text) == [f"no_crew 43 {meant}"]


@pytest.mark.parametrize(
    "text",
    [
        "if it's any help, 43 will cover friday night",
        "Happy Friday everyone. 43 will cover tomorrow night",
        "hope you are all well, 43 will cover friday night",
        "thanks again for last week, but 43 will cover friday night",
        "would it be possible to put 43 on friday night?",
        "my captain asked me to tell you 43 will cover friday night, thanks for your patience",
    ],
)
def test_politeness_is_neither_a_doubt_nor_a_day(text: str) -> None:
    """D9: "if it helps" is no condition, thanks and wishes hide nothing."""
    assert told(text) == [f"add 43 {FRIDAY}"]


@pytest.mark.parametrize(
    "text",
    [
        "Riverdale has no crew friday night",
        "my sister's squad can't staff friday night",
        "Steve can't do friday night",
        "imagine having no crew on friday night",
        "pretty sure 42 has a crew friday night",
        "if nobody shows up, we are out of service friday night",
        "how do we mark no crew for friday night",
        "copy, no crew for 42 friday night",
        "we have a driver for friday night, need an EMT",
        "nobody likes friday nights",
        "I'd rather have a crew friday night",
        '"no crew friday night" is what the board says',
        "take the night off friday",
        "no coverage on my phone friday night",
        "delete everything on friday night",
        "one of us can do friday night, anyone else?",
    ],
)
def test_what_is_said_of_others_or_beside_the_matter_books_nothing(text: str) -> None:
    """D9: other towns, single people, hypotheticals, echoes, half crews, jokes and sweeping orders."""
    assert told(text) == []


def test_what_contradicts_itself_is_asked_about() -> None:
    """Never a wrong booking: two things said of the same hours leave the hours open, and it is said."""
    heard = hear("please scratch tonight, no crew 2000-0600 tonight, 43")

    assert all(request.start is None for request in heard.requests)
    assert any("which?" in warning for warning in heard.warnings)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("can't cover the first half of friday night", "no_crew 43 20260109 . ."),
        ("43 is out of service until friday", "no_crew 43 . . ."),
        ("No crew. Sorry!", "no_crew 43 . . ."),
    ],
)
def test_a_part_or_an_end_without_hours_is_asked_about(text: str, request_: str) -> None:
    """When in doubt between booking and asking: ask."""
    assert told(text) == [request_]


def test_at_two_it_is_still_last_night_and_at_five_a_new_day() -> None:
    """D10: who writes "tonight" before dawn means the coming night, who writes it at two the one he is in."""
    at_two, at_five = (LocalMoment(date(2026, 1, 8), hour * 60, date(2026, 1, 7)) for hour in (2, 5))
    said = [
        parse_message("no crew tonight", ParserContext(now, "43", SQUADS, SHIFTS)).requests[0].date
        for now in (at_two, at_five)
    ]

    assert said == ["20260107", "20260108"]


def test_the_pure_helpers_do_one_thing_each() -> None:
    """Numbers become digits, courtesies go, a strange subject is seen."""
    assert spelled_out("the twenty first, half past six, forty two") == "the 21th, 6:30, 42"
    assert without_courtesies("if it helps, we will cover").strip(" ,") == "we will cover"
    assert without_courtesies("sorry to bail on you we have no crew").strip() == "we have no crew"
    assert has_strange_subject("riverdale has no crew", "no crew")
    assert not has_strange_subject("saturday has no crew", "no crew")


@pytest.mark.parametrize(
    "text",
    [
        "remove 43 friday night. Saturday stays",
        "remove 43 friday night. We keep saturday night.",
        "take us off friday night, keep us on saturday night",
        "remove our friday 1800-0600. 0600-1800 remains.",
        "pull 43 friday night and leave us on sunday night",
    ],
)
def test_what_stays_is_not_changed(text: str) -> None:
    """D10: beside a change, what is said to stay is neither taken out nor added."""
    assert told(text) == [f"remove 43 {FRIDAY}"]


def test_what_is_of_today_is_no_day_of_a_shift() -> None:
    """ "Today's count" is a count; "today's day shift" is a shift."""
    assert told("as of today's head count no crew friday night") == [f"no_crew 43 {FRIDAY}"]
    assert told("no crew for today’s afternoon shift") == ["no_crew 43 20260108 1200 1800"]


def test_a_full_stop_after_a_day_ends_the_sentence() -> None:
    """ "Fri." is short for it; "friday." is the end of what was said."""
    assert told("no crew Fri. night") == [f"no_crew 43 {FRIDAY}"]
    assert told("we can't cover the night on friday. Day is fine.") == [f"no_crew 43 {FRIDAY}"]


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("covering 54 fri night", f"add 43 {FRIDAY}"),
        ("hey 54 we can take friday night", f"add 43 {FRIDAY}"),
        ("54 is covering friday night", f"add 54 {FRIDAY}"),
        ("🚑❌ fri night", f"no_crew 43 {FRIDAY}"),
        ("🚫🚑 for 42 fri night", f"no_crew 42 {FRIDAY}"),
    ],
)
def test_who_is_helped_or_called_is_not_who_does_it(text: str, request_: str) -> None:
    """D10: without a name it is the sender's own squad; a picture is a word."""
    assert told(text) == [request_]
