"""The words of inbound: what was said, what was understood, what is asked of the calendar.

Dates are YYYYMMDD, times HHMM on a grid of half hours. An operational day runs from 0600 to 0600: a
night shift belongs to the day it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

HALF_HOURS = 48
_DAY_STARTS = 6 * 60  # minutes after midnight


class IncomingKind(StrEnum):
    """What a platform tells of."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    SYSTEM = "system"


class IncomingMessage(NamedTuple):
    """One thing a platform told us, before anything is decided about it."""

    source: str  # by its name in the settings
    id: str  # the platform's; unique within its source
    conversation: str  # the platform's group or chat
    sender: str  # the platform's id of the sender, never a display name
    name: str  # what the sender is called just now
    text: str
    at: int  # the platform's time, in microseconds
    kind: IncomingKind = IncomingKind.MESSAGE
    own: bool = False  # our own bot's
    reply_to: str | None = None  # id of the message it quotes
    attachments: int = 0
    raw: Mapping[str, Any] | None = None
    original: str | None = None  # id of the message that an edit or a delete is about
    key: str | None = None  # what its sender named it: our own sends are known by it


class Speaker(NamedTuple):
    """A person on the roster."""

    id: str
    name: str
    squad: str
    role: str  # member, officer, admin


class Utterance(NamedTuple):
    """A line of a conversation, as the understanding sees it."""

    speaker: str
    squad: str | None
    at: int
    text: str
    is_ours: bool = False
    role: str = ""  # the speaker's, where it is known


class ShiftAction(StrEnum):
    """What can be asked of the calendar; a closed list."""

    NO_CREW = "no_crew"
    ADD = "add"
    REMOVE = "remove"


class ShiftRequest(NamedTuple):
    """What somebody wants, as far as it was understood; None: not said."""

    action: ShiftAction | None = None
    squad: str | None = None
    date: str | None = None
    start: str | None = None
    end: str | None = None


class CalendarCommand(NamedTuple):
    """A request with everything it needs."""

    action: ShiftAction
    squad: str
    date: str
    start: str
    end: str

    @property
    def slots(self) -> frozenset[int]:
        """The half hours it touches, counted from 0600 of its operational day."""
        first, last = slot(self.start), slot(self.end)
        return frozenset(range(first, last if last > first else HALF_HOURS))


def slot(time: str) -> int:
    """The half hour of the operational day that begins at HHMM; 0600 is 0, and as an end 0600 is the last."""
    minutes = int(time[:2]) * 60 + int(time[2:])
    return (minutes - _DAY_STARTS) % (24 * 60) // 30


class CalendarDay(NamedTuple):
    """What the calendar says of one operational day: for each squad, the half hours that have a crew."""

    date: str
    crewed: Mapping[str, frozenset[int]]
    raw: Mapping[str, Any] | None = None  # as the calendar said it
    no_crew: Mapping[str, frozenset[int]] = MappingProxyType({})  # the half hours marked as without one


class Intent(NamedTuple):
    """Is it a request? `is_request` None: the rules do not know."""

    is_request: bool | None
    days: Sequence[str]
    confidence: int  # 0 to 100
    reason: str
    source: str  # which driver said so


class WorkflowRelation(NamedTuple):
    """Does it belong to what is open? `related` None: the rules do not know."""

    related: bool | None
    confidence: float  # 0 to 1
    reason: str
    source: str


class Extraction(NamedTuple):
    """What a conversation asks for."""

    requests: Sequence[ShiftRequest]
    warnings: Sequence[str]
    missing: Sequence[str]  # of squad, date, start, end; the most important first
    reasoning: str
    source: str
    is_loose: bool = False  # said in such words that it has to be read back before it is booked


class InterpreterContext(NamedTuple):
    """What the understanding may look at. Time is an argument: nothing asks a clock."""

    now: int
    timezone: str
    squads: Sequence[str]
    speaker: Speaker
    text: str
    thread: Sequence[Utterance] = ()  # of the open workflow, oldest first, without `text`
    open_requests: Sequence[ShiftRequest] = ()  # as far as they are known
    asked: str | None = None  # the parameter that was asked for last
    days: Sequence[CalendarDay] = ()  # as read before, for the extraction
    quotes: bool = False  # it quotes a line of the thread


class Interpreter(Protocol):
    """Understanding: rules, a language model, or recorded answers. It reads and answers, and does nothing."""

    name: str

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Is this a request?"""

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Does this go on with the open workflow?"""

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """What exactly is wanted, of the whole thread?"""


class CalendarAnswer(NamedTuple):
    """What a calendar answered to a command; no proof that it was done."""

    accepted: bool
    evidence: str  # its change id, or its reason


class Calendar(Protocol):
    """A shift calendar. Only `apply` writes; whether it did is seen by reading."""

    name: str

    async def day(self, date: str) -> CalendarDay:
        """One operational day as it is."""

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        """The day as it would be."""

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        """Do it. `key` is the same on every try."""
