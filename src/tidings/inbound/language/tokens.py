"""The token types. Everything without a meaning is a `Word`."""

from __future__ import annotations

from collections.abc import Mapping
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
    """A time in minutes of the day; an ambiguous one is stored as before noon."""

    at: int
    form: ClockFormat
    written: str
    digits: bool = False  # four of them, as in 1800


class DayMention(NamedTuple):
    """A mentioned day."""

    date: date
    written: str
    rolls: bool = False  # a bare weekday: today's, or next week's if its hours are over
    weekday: bool = False
    implied: Shift | None = None  # "tonight" implies hours


class Act(NamedTuple):
    """Words that state an action. `action` None: everything is fine, nothing is requested."""

    action: ShiftAction | None
    is_plain: bool  # explicit ("no crew"); other phrases ("down") need an owner
    written: str
    absorbs: bool = False  # the next act belongs to it ("need ... covered")
    turns: bool = False  # inverts the previous act ("the night is not")
    takes_object: bool = False  # "cover what?": the next word must fit
    echoes: bool = False  # "54 has it": takes the hours of the previous statement
    is_terse: bool = False  # "we got monday": counts only without other words
    is_denied: bool = False  # "do not add us": the request is unclear


class SquadMention(NamedTuple):
    """A squad by its name; `is_place` after "in" or "on"."""

    name: str
    is_place: bool = False


class Mark(StrEnum):
    """Function words and punctuation."""

    TO = "to"
    DASH = "-"
    UNTIL = "until"
    FROM = "from"
    AT = "at"
    BETWEEN = "between"
    AND = "and"
    COMMA = ","
    THEN = "then"
    PAUSE = ":"  # also a dash between words; does not end the sentence
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
    """A mark with its original text."""

    mark: Mark
    written: str


class ClockSpan(NamedTuple):
    """A range of clock times; one of them may be open. `until` is the day of the end."""

    start: ClockTime | None
    end: ClockTime | None
    until: DayMention | None = None
    follows: bool = False  # "after that": begins at the end of the previous span


TextToken = ClockTime | DayMention | Act | SquadMention | Shift | Word | Marked
HoursMention = ClockSpan | Shift


class LocalMoment(NamedTuple):
    """The local time of a message."""

    today: date
    minute: int
    operational: date  # the operational day, from 0600 to 0600


class ParserContext(NamedTuple):
    """The time of a message, the sender's squad, and the known squads and shift words."""

    now: LocalMoment
    squad: str | None
    squads: tuple[str, ...]
    shifts: Mapping[str, Shift]
