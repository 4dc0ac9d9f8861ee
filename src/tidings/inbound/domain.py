"""Domain types: incoming messages, requests, commands, calendar days, and the interpreter port.

Dates are YYYYMMDD, times HHMM on a grid of half hours. An operational day runs from 0600 to 0600: a
night shift belongs to the day on which it starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

HALF_HOURS = 48
_DAY_STARTS = 6 * 60  # minutes after midnight


class IncomingKind(StrEnum):
    """The kind of an incoming message."""

    MESSAGE = "message"
    EDIT = "edit"
    DELETE = "delete"
    SYSTEM = "system"


class IncomingMessage(NamedTuple):
    """A message from a platform, before admission."""

    source: str  # its name in the settings
    id: str  # the platform's id; unique within the source
    conversation: str  # the platform's group or chat
    sender: str  # the platform's id of the sender, never a display name
    name: str  # the sender's current display name
    text: str
    at: int  # the platform's time, in microseconds
    kind: IncomingKind = IncomingKind.MESSAGE
    own: bool = False  # sent by a bot
    reply_to: str | None = None  # id of the message it quotes
    attachments: int = 0
    raw: Mapping[str, Any] | None = None
    original: str | None = None  # id of the message that it edits or deletes
    key: str | None = None  # the sender's own key, which identifies our own messages
    user_id: str | None = None  # the platform's id of a sender whose address may be a phone number
    account: str | None = None  # our own number or session that received it; None: that of the source
    is_elsewhere: bool = False  # no source has this account
    formerly: str | None = None  # the address that the sender had until this message announced the change


class Speaker(NamedTuple):
    """A person on the roster."""

    id: str
    name: str
    squad: str
    role: str  # member, officer, admin


class ConversationMessage(NamedTuple):
    """A message from a person on the roster, as the pipeline handles it."""

    message: str  # its id in the inbox
    tenant: str
    source: str
    conversation: str  # unique over all sources; the ordering key
    chat: str  # the platform's id of the group that gets the reply
    speaker: Speaker  # differs from the sender after an impersonation
    text: str  # the latest edit
    at: int
    verdict: str | None = None  # a person's decision: `related` or `new`
    is_last_try: bool = False
    reply_to: str | None = None  # the platform's id of the message it quotes
    place: int | None = None  # its row number in the inbox if the row must still be ended
    changes: str | None = None  # the message that it edits or deletes
    platform_id: str = ""
    sender: str = ""  # who typed it
    attempt: int = 1
    is_edited: bool = False


class Utterance(NamedTuple):
    """A line of a conversation, as the interpreter sees it."""

    speaker: str
    squad: str | None
    at: int
    text: str
    is_ours: bool = False
    role: str = ""  # the speaker's role, if known


class ShiftAction(StrEnum):
    """The actions of a calendar."""

    NO_CREW = "no_crew"
    ADD = "add"
    REMOVE = "remove"


class CalendarCommand(NamedTuple):
    """A complete request."""

    action: ShiftAction
    squad: str
    date: str
    start: str
    end: str

    @property
    def slots(self) -> frozenset[int]:
        """The half hours it covers, counted from 0600 of its operational day."""
        return frozenset(half_hours(self.start, self.end))


class ShiftRequest(NamedTuple):
    """A request as far as it was understood; None: not stated."""

    action: ShiftAction | None = None
    squad: str | None = None
    date: str | None = None
    start: str | None = None
    end: str | None = None

    @property
    def command(self) -> CalendarCommand | None:
        """The command of a complete request."""
        if self.action and self.squad and self.date and self.start and self.end:
            return CalendarCommand(self.action, self.squad, self.date, self.start, self.end)
        return None


def slot(time: str) -> int:
    """Return the half hour of the operational day that begins at HHMM; 0600 is 0."""
    minutes = int(time[:2]) * 60 + int(time[2:])
    return (minutes - _DAY_STARTS) % (24 * 60) // 30


def half_hours(start: str, end: str) -> range:
    """Return the half hours of the operational day from HHMM to HHMM; 0600 is the end of the day."""
    first, last = slot(start), slot(end)
    return range(first, last if last > first else HALF_HOURS)


class CalendarDay(NamedTuple):
    """One operational day of the calendar: for each squad, the half hours that have a crew."""

    date: str
    crewed: Mapping[str, frozenset[int]]
    raw: Mapping[str, Any] | None = None  # the calendar's own format
    no_crew: Mapping[str, frozenset[int]] = MappingProxyType({})  # the half hours marked as "no crew"


class Intent(NamedTuple):
    """Whether a message is a request. `is_request` None: unknown."""

    is_request: bool | None
    days: Sequence[str]
    confidence: int  # 0 to 100
    reason: str
    source: str  # the interpreter that answered


class WorkflowRelation(NamedTuple):
    """Whether a message belongs to the open workflow. `related` None: unknown."""

    related: bool | None
    confidence: float  # 0 to 1
    reason: str
    source: str


class Extraction(NamedTuple):
    """The requests of a conversation."""

    requests: Sequence[ShiftRequest]
    warnings: Sequence[str]
    missing: Sequence[str]  # any of squad, date, start, end; the most important first
    reasoning: str
    source: str
    is_loose: bool = False  # uncertain: needs a confirmation


class InterpreterContext(NamedTuple):
    """The input of an interpreter. Time is an argument; interpreters read no clock."""

    now: int
    timezone: str
    squads: Sequence[str]
    speaker: Speaker
    text: str
    thread: Sequence[Utterance] = ()  # of the open workflow, oldest first, without `text`
    open_requests: Sequence[ShiftRequest] = ()
    asked: str | None = None  # the slot of the last question
    days: Sequence[CalendarDay] = ()  # calendar days for the extraction
    quotes: bool = False  # the message quotes a line of the thread


class Interpreter(Protocol):
    """Interprets messages by rules, a language model or recorded answers, without side effects."""

    name: str

    async def intent(self, context: InterpreterContext) -> Intent:
        """Classify whether the message is a request."""

    async def relate(self, context: InterpreterContext) -> WorkflowRelation:
        """Decide whether the message continues the open workflow."""

    async def extract(self, context: InterpreterContext) -> Extraction:
        """Extract the requests of the whole thread."""


class CalendarAnswer(NamedTuple):
    """A calendar's answer to a command; it does not prove that the change was made."""

    accepted: bool
    evidence: str  # its change id, or its reason
