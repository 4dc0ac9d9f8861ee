"""A workflow as it is stored: our own JSON with a schema version, changed by making another.

Who said what is kept for every slot of every request, so that a later word can correct an earlier one and
authority is judged by who really said it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from ...model.errors import WrongStore
from ..words import Action, Command, Request, Speaker, Utterance
from .stages import Stage

SCHEMA = 1
SLOTS = ("squad", "date", "start", "end", "action")  # in the order in which they are asked for
LONGEST_THREAD = 40
LONGEST_LINE = 2000


class Slot(NamedTuple):
    """One value and whose word it is."""

    value: str
    by: str  # the speaker's id
    squad: str
    role: str
    at: int


Want = Mapping[str, Slot]  # one request: slot by name, as far as they are known


@dataclass(frozen=True, slots=True)
class Flow:
    """One workflow."""

    id: str
    tenant: str
    conversation: str
    squad: str
    opened_at: int
    topic: str = ""  # the operational days it is about
    stage: Stage = Stage.NEW
    version: int = 0
    wants: tuple[Want, ...] = ()
    asked: str | None = None  # the slot that the open question is about
    attempts: Mapping[str, int] | None = None  # questions asked, by request and slot
    thread: tuple[Utterance, ...] = ()
    plan: str | None = None
    commands: tuple[Command, ...] = ()
    doubts: int = 0  # how often an answer was only perhaps one

    @property
    def requests(self) -> tuple[Request, ...]:
        """What is wanted, as far as it is known."""
        return tuple(request(want) for want in self.wants)

    def said(self, *lines: Utterance) -> Flow:
        """With these lines at the end of its thread."""
        cut = tuple(line._replace(text=line.text[:LONGEST_LINE]) for line in lines)
        return replace(self, thread=(*self.thread, *cut)[-LONGEST_THREAD:])

    def body(self) -> str:
        """What is stored besides the columns."""
        return orjson.dumps(
            {
                "wants": [
                    {name: slot._asdict() for name, slot in want.items() if name in SLOTS}
                    for want in self.wants
                ],
                "attempts": dict(self.attempts or {}),
                "thread": [line._asdict() for line in self.thread],
                "commands": [command._asdict() for command in self.commands],
                "doubts": self.doubts,
            }
        ).decode()


def read(row: Mapping[str, Any]) -> Flow:
    """A workflow from its row; one that was written by a newer program is refused."""
    if row["schema"] > SCHEMA:
        raise WrongStore(
            f"workflow {row['id']} was written by a newer program", remedy="upgrade tidings on this node"
        )
    body = orjson.loads(row["body"])
    return Flow(
        row["id"],
        row["tenant"],
        row["conversation"],
        row["squad"],
        row["opened_at"],
        row["topic"],
        Stage(row["state"]),
        row["version"],
        tuple({name: Slot(**slot) for name, slot in want.items()} for want in body["wants"]),
        row["asked"],
        body["attempts"],
        tuple(Utterance(**line) for line in body["thread"]),
        row["plan"],
        tuple(command(said) for said in body["commands"]),
        body["doubts"],
    )


def command(said: Mapping[str, Any]) -> Command:
    """A command from its JSON."""
    return Command(Action(said["action"]), said["squad"], said["date"], said["start"], said["end"])


def request(want: Want) -> Request:
    """A request without who said it."""
    known = {name: slot.value for name, slot in want.items()}
    action = known.pop("action", None)
    return Request(Action(action) if action else None, **known)


def wants(before: Sequence[Want], requests: Sequence[Request], speaker: Speaker, at: int) -> tuple[Want, ...]:
    """These requests with who said what: a value that stood there before keeps its speaker."""
    return tuple(
        _want(before[place] if place < len(before) else {}, before, asked, speaker, at)
        for place, asked in enumerate(requests)
    )


def _want(own: Want, others: Sequence[Want], asked: Request, speaker: Speaker, at: int) -> Want:
    made: dict[str, Slot] = {}
    for name in SLOTS:
        value = getattr(asked, name)
        if value is None:
            continue
        known = [want[name] for want in (own, *others) if name in want and want[name].value == value]
        made[name] = known[0] if known else Slot(str(value), speaker.id, speaker.squad, speaker.role, at)
    return made
