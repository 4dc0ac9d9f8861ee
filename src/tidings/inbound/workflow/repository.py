"""The book: what is known of a conversation, and the one transaction in which a message is worked through.

State, journal, replies, commands of the calendar, calls for a person and the end of the message are written
together or not at all; whoever comes second finds the hearing taken and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError
from ...model.task import NewTask
from ...model.time import micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ...store.request_batches import BatchedLookup
from ..domain import CalendarCommand, Speaker
from ..effects import ledger
from ..escalation.reasons import Escalation
from ..escalation.writer import EscalationWriter
from ..reply_port import ReplyPort
from .correlation import MessageDecision
from .instance import SCHEMA, Workflow, read
from .plans import ConversationEvent
from .settings import WorkflowSettings
from .state_machine import TERMINAL_STAGES, WorkflowStage, WorkflowTrigger, next_stage


class ConversationMessage(NamedTuple):
    """A message of somebody on the roster, to be worked through."""

    message: str  # its id in the inbox
    tenant: str
    source: str
    conversation: str
    chat: str  # where to answer: the platform's id of the group
    speaker: Speaker
    text: str
    at: int
    verdict: str | None = None  # a person's word: `related` or `new`
    is_last_try: bool = False
    reply_to: str | None = None  # the platform's id of the message it quotes
    place: int | None = None  # in the inbox, where it still has to be ended
    changes: str | None = None  # the message that it is an edit or a delete of


class QuotedMessage(NamedTuple):
    """A message that another one quotes."""

    text: str
    workflow: str | None  # that it went into; of our own words only the text is known


class ConversationState(NamedTuple):
    """What is known before a message is worked through."""

    flows: Sequence[Workflow] = ()  # the open ones of its conversation, oldest first
    is_over: bool = False  # it was worked through before
    is_kept: bool = False  # and is worked through again
    earlier: Sequence[Mapping[str, Any]] = ()  # the journal of the first time
    holder: str | None = None  # the person who holds the conversation
    quoted: QuotedMessage | None = None
    ahead: int = 0  # messages of its squad that are kept ahead of it


@dataclass(slots=True)
class WorkflowEntry:
    """All that one message comes to."""

    spoken: ConversationMessage
    decision: MessageDecision
    reason: str
    held: str | None = None
    of: str | None = None  # the workflow it is about, where it changes none
    added: list[Workflow] = field(default_factory=list)
    changed: list[Workflow] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    commands: list[CalendarCommand] = field(default_factory=list)
    plan: str | None = None
    calls: list[Escalation] = field(default_factory=list)
    also: list[Step] = field(default_factory=list)  # written first, each needed
    happened: list[ConversationEvent] = field(default_factory=list)

    @property
    def workflow(self) -> str | None:
        """The workflow it went into."""
        flows = [*self.added, *self.changed]
        return flows[0].id if flows else self.of


class WorkflowRepository(Protocol):
    """What a pipeline needs to know and to write."""

    async def standing(self, spoken: ConversationMessage) -> ConversationState:
        """What is known of the message and its conversation."""

    async def write(self, entry: WorkflowEntry, standing: ConversationState) -> bool:
        """All of it or nothing; False: somebody else was faster."""


class StoreWorkflowRepository:
    """The book in the database."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: WorkflowSettings,
        voice: ReplyPort,
        caller: EscalationWriter,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._voice = voice
        self._caller = caller
        self._standings = BatchedLookup(self._read_standings)
        self._open = BatchedLookup(self._read_open)

    async def standing(self, spoken: ConversationMessage) -> ConversationState:
        """Two short reads, shared with other conversations."""
        whose = (spoken.tenant, spoken.conversation)
        row = await self._standings.find((spoken.message, *whose, spoken.speaker.squad))
        is_over = row["n"] is not None and row["deferred"] is None
        flows = () if is_over else await self._open.find(whose)
        return ConversationState(
            [read(flow) for flow in flows],
            is_over=is_over,
            is_kept=row["deferred"] is not None,
            earlier=orjson.loads(row["facts"]) if row["facts"] else (),
            holder=row["holder"],
            ahead=row["ahead"],
            quoted=await self._quoted(spoken) if flows and spoken.reply_to else None,
        )

    async def _read_standings(self, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Row]:
        names = ("message", "tenant", "conversation", "squad")
        asked = orjson.dumps([dict(zip(names, key, strict=True)) for key in keys]).decode()
        found = {row["message"]: row for row in await self._store.read("handled_message_state", asked=asked)}
        return {key: found[key[0]] for key in keys}

    async def _read_open(self, keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], list[Row]]:
        asked = orjson.dumps([{"tenant": tenant, "conversation": name} for tenant, name in keys]).decode()
        found: dict[tuple[str, str], list[Row]] = {key: [] for key in keys}
        for row in await self._store.read("workflow_open", asked=asked):
            found[row["tenant"], row["conversation"]].append(row)
        return found

    async def _quoted(self, spoken: ConversationMessage) -> QuotedMessage | None:
        rows = await self._store.read(
            "handled_message_quoted", source=spoken.source, platform_id=spoken.reply_to
        )
        return QuotedMessage(rows[0]["text"], rows[0]["workflow"]) if rows else None

    async def write(self, entry: WorkflowEntry, standing: ConversationState) -> bool:
        """One transaction."""
        now = self._clock.now()
        spoken = entry.spoken
        steps = list(entry.also)
        tasks, rows = await self._said(entry, now)
        if entry.commands and entry.plan:
            plan = ledger.EffectPlan(
                entry.plan, self._settings.calendar, spoken.speaker.name, spoken.conversation, spoken.tenant
            )
            planned, ledger_rows = ledger.plan_effects(plan, entry.commands, now=now)
            tasks, rows = [*tasks, *planned], [*rows, ledger_rows]
        steps.append(self._hearing(entry, standing, now))
        steps += [Step("workflow_add", self.row(flow, now), needed=True) for flow in entry.added]
        steps += [Step("workflow_move", self.row(flow, now), needed=True) for flow in entry.changed]
        steps += _settled(standing.flows, entry.changed, now)
        for call in entry.calls:
            steps += self._caller.steps(call, spoken.tenant, spoken.conversation, spoken.message, now)
        if spoken.place is not None and entry.held is None:
            steps.append(_ended(spoken.place, entry))
        try:
            # Calls count what others may count at the same time: they wait for nobody else's commit.
            await self._store.enqueue(tasks, *rows, also=steps, together=not entry.calls)
        except WriteConflict:
            return False
        if tasks or entry.calls:
            await self._store.hint()
        return True

    async def _said(self, entry: WorkflowEntry, now: int) -> tuple[list[NewTask], list[TableRows]]:
        """The replies as messages; one that cannot be sent is a call for a person, not a failure."""
        tasks: list[NewTask] = []
        rows: list[tuple[Any, ...]] = []
        for text in entry.replies:
            try:
                task, row = await self._voice.prepare(
                    self._settings.replies.get(entry.spoken.source, entry.spoken.source),
                    entry.spoken.chat,
                    text,
                    tenant=entry.spoken.tenant,
                    ordering_key=entry.spoken.conversation,
                    now=now,
                    in_chat=True,
                )
            except CallerError as error:
                issue = f"a reply could not be sent: {error.problem}"
                entry.calls.append(
                    Escalation("unsaid", issue, f"unsaid:{entry.spoken.conversation}", text=text)
                )
                continue
            tasks.append(task)
            rows.append(row)
        return tasks, [TableRows(self._voice.table, self._voice.columns, rows)] if rows else []

    def _hearing(self, entry: WorkflowEntry, standing: ConversationState, now: int) -> Step:
        """The row that says that this message is worked through."""
        spoken = entry.spoken
        lines: list[Row] = (
            [{"what": "changes", "at": now, "message": spoken.changes}] if spoken.changes else []
        )
        lines += [{"what": happened.what, "at": now, **happened.facts} for happened in entry.happened]
        lines += [{"what": "said", "at": now, "text": text} for text in entry.replies]
        lines += [{"what": "planned", "at": now, "plan": entry.plan, **c._asdict()} for c in entry.commands]
        fields = {
            "message": spoken.message,
            "workflow": entry.workflow,
            "decision": entry.decision.value,
            "reason": entry.reason,
            "deferred": entry.held,
            "at": now,
            "facts": orjson.dumps([*standing.earlier, *lines]).decode(),
        }
        if standing.is_kept:
            return Step("handled_message_rerun", fields, needed=True)
        whose = {
            "tenant": spoken.tenant,
            "conversation": spoken.conversation,
            "squad": spoken.speaker.squad,
            "sent_at": spoken.at,
            "speaker": orjson.dumps(
                {**spoken.speaker._asdict(), "source": spoken.source, "chat": spoken.chat}
            ).decode(),
            "text": spoken.text,
        }
        return Step("handled_message_add", {**fields, **whose}, needed=True)

    def row(self, flow: Workflow, now: int) -> dict[str, Any]:
        """A workflow as its row."""
        return flow_row(flow, now, idle=micros(self._settings.idle))


def _settled(before: Sequence[Workflow], changed: Sequence[Workflow], now: int) -> list[Step]:
    """A person is not called any more for what the squad has made clear, or dropped, by itself."""
    called = {flow.id for flow in before if flow.stage is WorkflowStage.NEEDS_HUMAN}
    return [
        Step("case_settled", {"tenant": flow.tenant, "key": f"unclear:{flow.id}", "at": now})
        for flow in changed
        if flow.id in called and flow.stage is not WorkflowStage.NEEDS_HUMAN
    ]


def _ended(place: int, entry: WorkflowEntry) -> Step:
    ended = {"n": place, "ended": "done", "reason": f"{entry.decision}: {entry.reason}"}
    return Step("inbox_end", ended, needed=True)


def withdraw(entry: WorkflowEntry, flow: Workflow, now: int, *, idle: int) -> None:
    """End a workflow whose message was edited or deleted, before anything else of the entry is written."""
    stage = next_stage(flow.stage, WorkflowTrigger.WITHDRAWN)
    entry.also.append(
        Step("workflow_move", flow_row(replace(flow, stage=stage), now, idle=idle), needed=True)
    )
    facts = {"workflow": flow.id, "from": flow.stage, "to": stage, "cause": WorkflowTrigger.WITHDRAWN}
    entry.happened.insert(0, ConversationEvent("state", facts))


def flow_row(flow: Workflow, now: int, *, idle: int) -> dict[str, Any]:
    """A workflow as its row; an open one has a time after which it is idle."""
    is_over = flow.stage in TERMINAL_STAGES
    return {
        "id": flow.id,
        "tenant": flow.tenant,
        "conversation": flow.conversation,
        "squad": flow.squad,
        "topic": flow.topic,
        "state": flow.stage.value,
        "version": flow.version,
        "schema": SCHEMA,
        "asked": flow.asked,
        "plan": flow.plan,
        "opened_at": flow.opened_at,
        "changed_at": now,
        "idle_at": None if is_over else now + idle,
        "closed_at": now if is_over else None,
        "body": flow.body(),
    }
