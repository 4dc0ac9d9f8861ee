"""Replay: handles a past conversation again, as a dry run, and compares commands and replies.

Nothing is written. Calendar days and time are those of the first run, and the commands of a plan count as
done.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from ...kernel.clock import SystemClock
from ...model.errors import TidingsError, error_text
from ...model.outcome import Done
from ...model.time import Instant, iso, micros
from ...store.port import Row, Store
from ..calendar.day_grid import day_of
from ..domain import CalendarCommand, CalendarDay, ConversationMessage
from .conversations import explain_missing_conversation
from .correlation import MessageDecision
from .graph import ReadDay
from .instance import Workflow, command
from .reply_texts import please_wait
from .repository import ConversationState, MessagePipeline, WorkflowEntry
from .reruns import message_from_row, original_of
from .settings import WorkflowSettings
from .state_machine import TERMINAL_STAGES, WorkflowStage, WorkflowTrigger, next_stage

PAGE = 500
_WAIT = please_wait(1).partition(":")[0]


class ReplayOutcome(NamedTuple):
    """The decision, commands and replies of one message."""

    decision: str
    commands: Sequence[CalendarCommand]
    replies: Sequence[str]


class ReplayComparison(NamedTuple):
    """One message with its outcome in the past and now."""

    message: str
    at: str | None
    name: str
    text: str
    then: ReplayOutcome
    now: ReplayOutcome

    @property
    def is_changed(self) -> bool:
        """Whether the commands or the replies differ."""
        return (self.then.commands, self.then.replies) != (self.now.commands, self.now.replies)

    def plainly(self) -> Row:
        """Return the comparison as plain values for JSON."""
        sides = {
            name: {**side._asdict(), "commands": [each._asdict() for each in side.commands]}
            for name, side in (("then", self.then), ("now", self.now))
        }
        return {**self._asdict(), **sides, "changed": self.is_changed}


class MemoryWorkflowRepository:
    """A workflow repository in memory, for one replay."""

    def __init__(self, idle: int) -> None:
        self._idle = idle
        self._flows: dict[str, tuple[Workflow, int]] = {}
        self._of: dict[str, str | None] = {}  # the workflow of each message
        self.last: WorkflowEntry | None = None

    def dropped(self, message: str) -> Workflow | None:
        """Remove and return the open workflow of a message."""
        flow, _ = self._flows.pop(self._of.get(message) or "", (None, 0))
        return flow

    async def state(self, spoken: ConversationMessage) -> ConversationState:
        """Return the workflows that are open at the time of the message."""
        self._flows = {id_: (flow, at) for id_, (flow, at) in self._flows.items() if spoken.at < at + self._idle}
        return ConversationState([flow for flow, _ in self._flows.values()])

    async def write(self, entry: WorkflowEntry, state: ConversationState) -> bool:
        """Store the new state; the commands of a plan count as done immediately."""
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
    """A clock that shows the time at which a past message was handled."""

    def __init__(self) -> None:
        super().__init__()
        self.at = 0
        self._made = 0

    def now(self) -> Instant:
        return Instant(self.at)

    def new_id(self) -> str:
        self._made += 1
        return f"replay-{self._made:06d}"


MakePipeline = Callable[[MemoryWorkflowRepository, ReplayClock, ReadDay], MessagePipeline]


async def replay(
    store: Store, conversation: str, make: MakePipeline, settings: WorkflowSettings, *, tenant: str = "default"
) -> list[ReplayComparison]:
    """Replay every message of a conversation, in its original order."""
    handled_messages = await _read_handled_messages(store, conversation, tenant)
    repository, clock = MemoryWorkflowRepository(micros(settings.idle_timeout)), ReplayClock()
    days: dict[str, CalendarDay] = {}

    async def read_day(date: str) -> CalendarDay:
        return days.get(date, CalendarDay(date, {}))

    pipeline = make(repository, clock, read_day)
    compared: list[ReplayComparison] = []
    for handled in handled_messages:
        facts = orjson.loads(handled["facts"])
        days.clear()
        days.update(_days(facts))
        clock.at, repository.last = handled["at"], None
        spoken = message_from_row(handled)._replace(changes=original_of(handled))
        instead_of = repository.dropped(spoken.changes) if spoken.changes and _is_replaced(facts) else None
        if handled["decision"] == MessageDecision.CHANGED:
            continue  # an edit or deletion that did not run the pipeline
        try:
            outcome = await pipeline.work(spoken, instead_of=instead_of)
            why = "" if isinstance(outcome, Done) else str(outcome)
        except TidingsError as error:  # no recorded answer to this question
            why = error_text(error)
        name = spoken.speaker.name
        now, entry = ReplayOutcome(f"no answer ({why})", [], []), repository.last
        if entry is not None:
            now = ReplayOutcome(entry.decision.value, list(entry.commands), list(entry.replies))
        compared.append(ReplayComparison(spoken.message, iso(spoken.at), name, spoken.text, _then(handled, facts), now))
    return compared


async def _read_handled_messages(store: Store, conversation: str, tenant: str) -> list[Row]:
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


def _is_replaced(facts: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the edit replaced the workflow of the original message."""
    return any(fact["what"] == "state" and "workflow" in fact for fact in facts)


def _then(handled: Row, facts: Sequence[Mapping[str, Any]]) -> ReplayOutcome:
    """Return the recorded outcome, without "please wait" replies, which depend on timing."""
    said = [fact["text"] for fact in facts if fact["what"] == "said" and not fact["text"].startswith(_WAIT)]
    return ReplayOutcome(handled["decision"], [command(fact) for fact in facts if fact["what"] == "planned"], said)


def _days(facts: Sequence[Mapping[str, Any]]) -> dict[str, CalendarDay]:
    """Return the calendar days as they were read in the first run."""
    found: dict[str, CalendarDay] = {}
    for fact in facts:
        if fact["what"] == "days":
            found |= {date: day_of(date, lines) for date, lines in fact["days"].items()}
    return found


def changed(compared: Sequence[ReplayComparison]) -> list[ReplayComparison]:
    """Return the messages whose outcome differs."""
    return [each for each in compared if each.is_changed]
