"""A workflow as stored: immutable, as JSON with a schema version.

Each slot value records its speaker, so that a later message can correct an earlier one and authorization
checks the person who said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from ...model.errors import StoreUnusable
from ..domain import CalendarCommand, ShiftAction, ShiftRequest, Speaker, Utterance
from .state_machine import WorkflowStage

SCHEMA = 1
SLOTS = ("squad", "date", "start", "end", "action")  # in the order of the questions
LONGEST_THREAD = 40
LONGEST_LINE = 2000


class SlotValue(NamedTuple):
    """A slot value and who said it."""

    value: str
    by: str  # the speaker's id
    squad: str
    role: str
    at: int


RequestSlots = Mapping[str, SlotValue]  # the known slots of one request, by name


@dataclass(frozen=True, slots=True)
class Workflow:
    """One conversation with a goal, owned by a squad."""

    id: str
    tenant: str
    conversation: str
    squad: str
    opened_at: int
    topic: str = ""  # its operational days
    stage: WorkflowStage = WorkflowStage.NEW
    version: int = 0
    wants: tuple[RequestSlots, ...] = ()
    asked: str | None = None  # the slot that the open question is about
    attempts: Mapping[str, int] | None = None  # questions asked, by request and slot
    thread: tuple[Utterance, ...] = ()
    plan: str | None = None
    commands: tuple[CalendarCommand, ...] = ()
    doubts: int = 0  # messages that were possibly answers

    @property
    def requests(self) -> tuple[ShiftRequest, ...]:
        """The requests with the slots known so far."""
        return tuple(request(want) for want in self.wants)

    def said(self, *lines: Utterance) -> Workflow:
        """Return a copy with these lines appended to its thread."""
        cut = tuple(line._replace(text=line.text[:LONGEST_LINE]) for line in lines)
        return replace(self, thread=(*self.thread, *cut)[-LONGEST_THREAD:])

    def body(self) -> str:
        """Serialize everything that has no column."""
        return orjson.dumps(
            {
                "wants": [
                    {name: slot._asdict() for name, slot in want.items() if name in SLOTS} for want in self.wants
                ],
                "attempts": dict(self.attempts or {}),
                "thread": [line._asdict() for line in self.thread],
                "commands": [command._asdict() for command in self.commands],
                "doubts": self.doubts,
            }
        ).decode()


def read(row: Mapping[str, Any]) -> Workflow:
    """Parse a workflow from its row; raises StoreUnusable if a newer version wrote it."""
    if row["schema"] > SCHEMA:
        raise StoreUnusable(
            f"workflow {row['id']} was written by a newer version", remedy="upgrade tidings on this node"
        )
    body = orjson.loads(row["body"])
    return Workflow(
        row["id"],
        row["tenant"],
        row["conversation"],
        row["squad"],
        row["opened_at"],
        row["topic"],
        WorkflowStage(row["state"]),
        row["version"],
        tuple({name: SlotValue(**slot) for name, slot in want.items()} for want in body["wants"]),
        row["asked"],
        body["attempts"],
        tuple(Utterance(**line) for line in body["thread"]),
        row["plan"],
        tuple(command(said) for said in body["commands"]),
        body["doubts"],
    )


def command(said: Mapping[str, Any]) -> CalendarCommand:
    return CalendarCommand(ShiftAction(said["action"]), said["squad"], said["date"], said["start"], said["end"])


def request(want: RequestSlots) -> ShiftRequest:
    """Return a request without its speakers."""
    known = {name: slot.value for name, slot in want.items()}
    action = known.pop("action", None)
    return ShiftRequest(ShiftAction(action) if action else None, **known)


def wants(
    before: Sequence[RequestSlots], requests: Sequence[ShiftRequest], speaker: Speaker, at: int
) -> tuple[RequestSlots, ...]:
    """Attribute requests to the speaker; a value that was known before keeps its speaker."""
    return tuple(
        _want(before[place] if place < len(before) else {}, before, asked, speaker, at)
        for place, asked in enumerate(requests)
    )


def _want(
    own: RequestSlots, others: Sequence[RequestSlots], asked: ShiftRequest, speaker: Speaker, at: int
) -> RequestSlots:
    made: dict[str, SlotValue] = {}
    for name in SLOTS:
        value = getattr(asked, name)
        if value is None:
            continue
        known = [want[name] for want in (own, *others) if name in want and want[name].value == value]
        made[name] = known[0] if known else SlotValue(str(value), speaker.id, speaker.squad, speaker.role, at)
    return made
