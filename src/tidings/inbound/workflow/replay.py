"""Replay: a past conversation worked through again, offline, to see what would change (nothing is written).

The days are those that were read then, the time is the time of then, and the commands of a plan count as
done. Compared are what matters outside: the commands and the replies.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

import orjson

from ...kernel.clock import SystemClock
from ...model.errors import TidingsError, error_text
from ...model.outcome import Done
from ...model.time import Instant, iso, micros
from ...store.port import Row, Store
from ..calendar.day_grid import day_of
from ..domain import CalendarCommand, CalendarDay
from .conversations import explain_missing_conversation
from .correlation import MessageDecision
from .instance import Workflow, command
from .reply_texts import please_wait
from .repository import ConversationMessage, ConversationState, WorkflowEntry
from .reruns import message_from_row
from .settings import WorkflowSettings
from .state_machine import TERMINAL_STAGES, WorkflowStage, WorkflowTrigger, next_stage

PAGE = 500
_WAIT = please_wait(1).partition(":")[0]


class ReplayOutcome(NamedTuple):
    """What one message came to."""

    decision: str
    commands: Sequence[CalendarCommand]
    replies: Sequence[str]


class ReplayComparison(NamedTuple):
    """One message, then and now."""

    message: str
    at: str | None
    name: str
    text: str
    then: ReplayOutcome
    now: ReplayOutcome

    @property
    def is_changed(self) -> bool:
        """Whether something outside would be different."""
        return (self.then.commands, self.then.replies) != (self.now.commands, self.now.replies)

    def plainly(self) -> Row:
        """For programs."""
        sides = {
            name: {
                "decision": side.decision,
                "commands": [each._asdict() for each in side.commands],
                "replies": list(side.replies),
            }
            for name, side in (("then", self.then), ("now", self.now))
        }
        fields = {"message": self.message, "at": self.at, "name": self.name, "text": self.text}
        return {**fields, **sides, "changed": self.is_changed}


class ReplayPipeline(Protocol):
    """A pipeline."""

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Any:
        """Work through one message."""


class MemoryWorkflowRepository:
    """A book that forgets: what a replay needs to know, for as long as it runs."""

    def __init__(self, idle: int) -> None:
        self._idle = idle
        self._flows: dict[str, tuple[Workflow, int]] = {}
        self._of: dict[str, str | None] = {}  # the workflow of each message
        self.last: WorkflowEntry | None = None

    def dropped(self, message: str) -> Workflow | None:
        """The open workflow of a message, which is over now."""
        flow, _ = self._flows.pop(self._of.get(message) or "", (None, 0))
        return flow

    async def standing(self, spoken: ConversationMessage) -> ConversationState:
        """The workflows that are open at that time."""
        self._flows = {
            id_: (flow, at) for id_, (flow, at) in self._flows.items() if spoken.at < at + self._idle
        }
        return ConversationState([flow for flow, _ in self._flows.values()])

    async def write(self, entry: WorkflowEntry, standing: ConversationState) -> bool:
        """Keep the state; the commands of a plan are done at once."""
        self.last = entry
        self._of[entry.spoken.changes or entry.spoken.message] = entry.workflow
        for flow in (*entry.added, *entry.changed):
            stage = (
                next_stage(flow.stage, WorkflowTrigger.ALL_DONE)
                if flow.stage is WorkflowStage.EXECUTING
                else flow.stage
            )
            self._flows.pop(flow.id, None)
            if stage not in TERMINAL_STAGES:
                self._flows[flow.id] = (replace(flow, stage=stage, version=flow.version + 1), entry.spoken.at)
        return True


class ReplayClock(SystemClock):
    """The time of a message that was said long ago."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0
        self._made = 0

    def now(self) -> Instant:
        """When it was worked through."""
        return Instant(self.at)

    def new_id(self) -> str:
        """Ids in their order."""
        self._made += 1
        return f"replay-{self._made:06d}"


ReadDay = Callable[[str], Awaitable[CalendarDay]]
MakePipeline = Callable[[MemoryWorkflowRepository, ReplayClock, ReadDay], ReplayPipeline]


async def replay(
    store: Store,
    conversation: str,
    make: MakePipeline,
    settings: WorkflowSettings,
    *,
    tenant: str = "default",
) -> list[ReplayComparison]:
    """Every message of a conversation, in the order in which it was said."""
    handled_messages = await _hearings(store, conversation, tenant)
    book, clock = MemoryWorkflowRepository(micros(settings.idle)), ReplayClock()
    days: dict[str, CalendarDay] = {}

    async def read_day(date: str) -> CalendarDay:
        return days.get(date, CalendarDay(date, {}))

    pipeline = make(book, clock, read_day)
    compared: list[ReplayComparison] = []
    for hearing in handled_messages:
        facts = orjson.loads(hearing["facts"])
        days.clear()
        days.update(_days(facts))
        clock.at, book.last = hearing["at"], None
        spoken = message_from_row(hearing)._replace(changes=_edited(facts))
        instead_of = book.dropped(spoken.changes) if spoken.changes and _is_replaced(facts) else None
        if hearing["decision"] == MessageDecision.CHANGED:
            continue  # nothing was worked through again: the edit or the delete came too late
        try:
            outcome = await pipeline.work(spoken, instead_of=instead_of)
            why = "" if isinstance(outcome, Done) else str(outcome)
        except TidingsError as error:  # a recorded mind that was never asked this
            why = error_text(error)
        name = spoken.speaker.name
        now = _side(book.last) if book.last is not None else ReplayOutcome(f"no answer ({why})", [], [])
        compared.append(
            ReplayComparison(spoken.message, iso(spoken.at), name, spoken.text, _then(hearing, facts), now)
        )
    return compared


async def _hearings(store: Store, conversation: str, tenant: str) -> list[Row]:
    handled_messages: list[Row] = []
    while True:
        after = handled_messages[-1]["n"] if handled_messages else 0
        page = await store.read(
            "handled_message_page", tenant=tenant, conversation=conversation, after=after, limit=PAGE
        )
        handled_messages += page
        if len(page) < PAGE:
            break
    if not handled_messages:
        raise await explain_missing_conversation(store, conversation, tenant)
    return handled_messages


def _edited(facts: Sequence[Mapping[str, Any]]) -> str | None:
    """The message that this one is an edit or a delete of."""
    return next((fact["message"] for fact in facts if fact["what"] == "changes"), None)


def _is_replaced(facts: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the workflow of that message ended with it."""
    return any(fact["what"] == "state" and "workflow" in fact for fact in facts)


def _then(hearing: Row, facts: Sequence[Mapping[str, Any]]) -> ReplayOutcome:
    """What it came to; that somebody had to wait is not a difference."""
    said = [fact["text"] for fact in facts if fact["what"] == "said" and not fact["text"].startswith(_WAIT)]
    return ReplayOutcome(
        hearing["decision"], [command(fact) for fact in facts if fact["what"] == "planned"], said
    )


def _side(entry: WorkflowEntry) -> ReplayOutcome:
    return ReplayOutcome(entry.decision.value, list(entry.commands), list(entry.replies))


def _days(facts: Sequence[Mapping[str, Any]]) -> dict[str, CalendarDay]:
    """The days as they were read then."""
    found: dict[str, CalendarDay] = {}
    for fact in facts:
        if fact["what"] == "days":
            found |= {date: _day(date, lines) for date, lines in fact["days"].items()}
    return found


def _day(date: str, lines: Mapping[str, Any]) -> CalendarDay:
    if lines.keys() == {"crewed", "no_crew"}:  # as it was written at first
        return CalendarDay(date, _slots(lines["crewed"]), no_crew=_slots(lines["no_crew"]))
    return day_of(date, lines)


def _slots(squads: Mapping[str, Sequence[int]]) -> dict[str, frozenset[int]]:
    return {squad: frozenset(slots) for squad, slots in squads.items()}


def changed(compared: Sequence[ReplayComparison]) -> list[ReplayComparison]:
    """Those that would be different."""
    return [each for each in compared if each.is_changed]
