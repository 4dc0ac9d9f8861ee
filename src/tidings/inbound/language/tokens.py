"""The pieces that a text is cut into. What is no piece is a `Word`, and counts only as noise."""

from __future__ import annotations

from datetime import date
from enum import StrEnum
from typing import NamedTuple

from ..domain import ShiftAction
from .shift_words import Shift


class ClockFormat(StrEnum):
    """How a time was written."""

    EXACT = "exact"  # 1800, 18:00, 6pm, noon
    BARE = "bare"  # 6, 6:30: morning or evening


class ClockTime(NamedTuple):
    """A time of the clock in minutes; a bare one is kept as in the first half of the day."""

    at: int
    form: ClockFormat
    written: str
    digits: bool = False  # four of them, as in 1800


class DayMention(NamedTuple):
    """A day that somebody named."""

    date: date
    written: str
    rolls: bool = False  # a bare weekday: today's, or next week's if its hours are over
    weekday: bool = False
    implied: Shift | None = None  # "tonight" says its hours, too


class Act(NamedTuple):
    """Words that say what is wanted. `action` None: all is well, nothing is wanted."""

    action: ShiftAction | None
    is_plain: bool  # names the matter itself ("no crew"); otherwise ("down") an owner is needed
    written: str
    absorbs: bool = False  # the next one belongs to it ("need ... covered")
    turns: bool = False  # the opposite of what was said before ("the night is not")
    takes_object: bool = False  # "cover what?": the word after it must fit
    echoes: bool = False  # "54 has it": the hours are those that were said before
    is_terse: bool = False  # "we got monday": only if nothing else is said
    is_denied: bool = False  # "do not add us": who knows what is wanted then


class Phrase(NamedTuple):
    """A pattern for the scanner and what it says."""

    pattern: str
    act: Act


def plain(action: ShiftAction, *patterns: str, takes_object: bool = False) -> list[Phrase]:
    """Phrases that name the matter."""
    return [Phrase(p, Act(action, True, "", takes_object=takes_object)) for p in patterns]


def loose(action: ShiftAction, *patterns: str, absorbs: bool = False) -> list[Phrase]:
    """Phrases that need an owner."""
    return [Phrase(p, Act(action, False, "", absorbs=absorbs)) for p in patterns]


def echo(action: ShiftAction, *patterns: str) -> list[Phrase]:
    """ "54 has it": the hours are those that were said before."""
    return [Phrase(p, Act(action, False, "", echoes=True)) for p in patterns]


class SquadMention(NamedTuple):
    """A squad by its name; `is_place` after "in" or "on"."""

    name: str
    is_place: bool = False


class Mark(StrEnum):
    """Small words with a job."""

    TO = "to"
    DASH = "-"
    UNTIL = "until"
    FROM = "from"
    AT = "at"
    BETWEEN = "between"
    AND = "and"
    COMMA = ","
    THEN = "then"
    PAUSE = ":"  # also a dash between words: a new thought, but no new sentence
    STOP = "."
    ASKED = "?"
    NOT = "not"
    MEANT = "meant"  # "I mean": what follows replaces
    AFTER_THAT = "after that"
    US = "us"
    THEY = "they"
    ME = "me"
    NEXT_WEEK = "next week"
    CREW = "crew"
    FOREIGN = "foreign"  # an engine, a medic, another county's station


class Word(NamedTuple):
    """Anything else."""

    text: str
    is_filler: bool = False


class Marked(NamedTuple):
    """A mark and how it was written."""

    mark: Mark
    written: str


class ClockSpan(NamedTuple):
    """A clock time to another; one of them may be open. `until` is a day named with the end."""

    start: ClockTime | None
    end: ClockTime | None
    until: DayMention | None = None
    follows: bool = False  # "after that": begins where the one before ended


TextToken = ClockTime | DayMention | Act | SquadMention | Shift | Word | Marked
HoursMention = ClockSpan | Shift


class LocalMoment(NamedTuple):
    """The hour at which something is said, on the clock of its speaker."""

    today: date
    minute: int
    operational: date  # the day whose 0600 to 0600 it is
