"""The workflow repository: reads the state of a conversation and commits a handled message.

State, journal, replies, calendar commands, escalations and the end of the message share one transaction. A
second run of the same message conflicts with its row and writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError
from ...model.outcome import Outcome
from ...model.task import NewTask
from ...model.time import micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ...store.request_batches import BatchedLookup
from ..domain import CalendarCommand, ConversationMessage
from ..effects import ledger
from ..escalation.reasons import Escalation, EscalationWriter
from ..message_handler import end_message_step
from ..reply_port import ReplyPort
from .correlation import MessageDecision
from .instance import SCHEMA, Workflow, read
from .plans import ConversationEvent
from .settings import WorkflowSettings
from .state_machine import TERMINAL_STAGES, WorkflowStage, WorkflowTrigger, next_stage


class QuotedMessage(NamedTuple):
    """A message that another one quotes."""

    text: str
    workflow: str | None  # None for our own replies, which are matched by text


class ConversationState(NamedTuple):
    """The state of a conversation before a message is handled."""

    flows: Sequence[Workflow] = ()  # its open workflows, oldest first
    is_over: bool = False  # the message was handled before
    is_kept: bool = False  # the message was deferred and is now handled again
    earlier: Sequence[Mapping[str, Any]] = ()  # the journal of the first run
    holder: str | None = None  # the person who holds the conversation
    quoted: QuotedMessage | None = None
    ahead: int = 0  # deferred messages of its squad ahead of it


@dataclass(slots=True)
class WorkflowEntry:
    """Everything that one message leads to, committed in one transaction."""

    spoken: ConversationMessage
    decision: MessageDecision
    reason: str
    held: str | None = None
    of: str | None = None  # its workflow, if the entry does not change it
    added: list[Workflow] = field(default_factory=list)
    changed: list[Workflow] = field(default_factory=list)
    replies: list[str] = field(default_factory=list)
    commands: list[CalendarCommand] = field(default_factory=list)
    plan: str | None = None
    calls: list[Escalation] = field(default_factory=list)
    also: list[Step] = field(default_factory=list)  # written first; each must succeed
    happened: list[ConversationEvent] = field(default_factory=list)

    @property
    def workflow(self) -> str | None:
        """The id of its workflow."""
        flows = [*self.added, *self.changed]
        return flows[0].id if flows else self.of


class MessagePipeline(Protocol):
    """The pipeline, as edits, re-runs and replays use it."""

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        """Handle one message."""

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        """Return whether the edited message asks for the same."""


class WorkflowRepository(Protocol):
    """What the pipeline reads and writes."""

    async def state(self, spoken: ConversationMessage) -> ConversationState:
        """Read the state of the message and its conversation."""

    async def write(self, entry: WorkflowEntry, state: ConversationState) -> bool:
        """Commit the entry; False if another process was faster and nothing was written."""


class StoreWorkflowRepository:
    """The workflow repository in the database."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: WorkflowSettings,
        reply_port: ReplyPort,
        escalations: EscalationWriter,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._reply_port = reply_port
        self._escalations = escalations
        self._states = BatchedLookup(self._read_states)
        self._open = BatchedLookup(self._read_open)

    async def state(self, spoken: ConversationMessage) -> ConversationState:
        """Read the state with two queries, batched with those of other conversations."""
        whose = (spoken.tenant, spoken.conversation)
        row = await self._states.find((spoken.message, *whose, spoken.speaker.squad))
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

    async def _read_states(self, keys: Sequence[tuple[str, ...]]) -> dict[tuple[str, ...], Row]:
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
        rows = await self._store.read("handled_message_quoted", source=spoken.source, platform_id=spoken.reply_to)
        return QuotedMessage(rows[0]["text"], rows[0]["workflow"]) if rows else None

    async def write(self, entry: WorkflowEntry, state: ConversationState) -> bool:
        """Commit the entry in one transaction; False if another process was faster."""
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
        steps.append(self._handled_message(entry, state, now))
        steps += [workflow_step(flow, now, self._settings, "workflow_add") for flow in entry.added]
        steps += [workflow_step(flow, now, self._settings) for flow in entry.changed]
        steps += _settled(state.flows, entry.changed, now)
        for call in entry.calls:
            steps += self._escalations.steps(call, spoken.tenant, spoken.conversation, spoken.message, now)
        if spoken.place is not None and entry.held is None:
            steps.append(end_message_step(spoken, f"{entry.decision}: {entry.reason}"))
        try:
            # Escalations update shared counters, so they do not wait for a batched commit.
            await self._store.enqueue(tasks, *rows, also=steps, together=not entry.calls)
        except WriteConflict:
            return False
        if tasks or entry.calls:
            await self._store.hint()
        return True

    async def _said(self, entry: WorkflowEntry, now: int) -> tuple[list[NewTask], list[TableRows]]:
        """Prepare the replies; one that cannot be sent becomes an escalation, not a failure."""
        tasks: list[NewTask] = []
        rows: list[tuple[Any, ...]] = []
        for text in entry.replies:
            try:
                to = entry.spoken._asdict()
                task, row = await prepare_reply(self._reply_port, self._settings, to, text, now)
            except CallerError as error:
                issue = f"a reply could not be sent: {error.problem}"
                entry.calls.append(Escalation("unsaid", issue, f"unsaid:{entry.spoken.conversation}", text=text))
                continue
            tasks.append(task)
            rows.append(row)
        return tasks, [TableRows(self._reply_port.table, self._reply_port.columns, rows)] if rows else []

    def _handled_message(self, entry: WorkflowEntry, state: ConversationState, now: int) -> Step:
        """Build the row that marks this message as handled."""
        spoken = entry.spoken
        lines: list[Row] = [{"what": "changes", "at": now, "message": spoken.changes}] if spoken.changes else []
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
            "facts": orjson.dumps([*state.earlier, *lines]).decode(),
        }
        if state.is_kept:
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


def journal_step(whose: Row, now: int, what: str, facts: Mapping[str, Any]) -> Step:
    """Return the step that adds an entry to the journal of a conversation."""
    columns = {name: whose[name] for name in ("tenant", "conversation", "workflow", "message")}
    return Step("step_add", {**columns, "at": now, "what": what, "facts": orjson.dumps(facts).decode()})


def workflow_journal_step(flow: Workflow, now: int, what: str, facts: Mapping[str, Any]) -> Step:
    """Return the step that adds an entry about a workflow to the journal of its conversation."""
    whose = {"tenant": flow.tenant, "conversation": flow.conversation, "workflow": flow.id, "message": None}
    return journal_step(whose, now, what, facts)


async def prepare_reply(
    port: ReplyPort, settings: WorkflowSettings, to: Mapping[str, str], text: str, now: int
) -> tuple[NewTask, tuple[Any, ...]]:
    """Prepare a reply to a chat (`source`, `chat`, `tenant`, `conversation`); raises CallerError."""
    channel = settings.replies.get(to["source"], to["source"])
    key = to["conversation"]
    return await port.prepare(channel, to["chat"], text, tenant=to["tenant"], ordering_key=key, now=now, in_chat=True)


def _settled(before: Sequence[Workflow], changed: Sequence[Workflow], now: int) -> list[Step]:
    """Settle the cases of workflows that the squad has clarified or dropped without help."""
    called = {flow.id for flow in before if flow.stage is WorkflowStage.NEEDS_HUMAN}
    return [
        Step("case_settled", {"tenant": flow.tenant, "key": f"unclear:{flow.id}", "at": now})
        for flow in changed
        if flow.id in called and flow.stage is not WorkflowStage.NEEDS_HUMAN
    ]


def withdraw(entry: WorkflowEntry, flow: Workflow, now: int, settings: WorkflowSettings) -> None:
    """End the workflow of an edited or deleted message, before the rest of the entry is written."""
    stage = next_stage(flow.stage, WorkflowTrigger.WITHDRAWN)
    entry.also.append(workflow_step(replace(flow, stage=stage), now, settings))
    facts = {"workflow": flow.id, "from": flow.stage, "to": stage, "cause": WorkflowTrigger.WITHDRAWN}
    entry.happened.insert(0, ConversationEvent("state", facts))


def workflow_step(flow: Workflow, now: int, settings: WorkflowSettings, name: str = "workflow_move") -> Step:
    """Return the step that stores a workflow."""
    return Step(name, flow_row(flow, now, idle=micros(settings.idle_timeout)), needed=True)


def flow_row(flow: Workflow, now: int, *, idle: int) -> dict[str, Any]:
    """Return the row of a workflow; an open one has an idle timeout."""
    is_over = flow.stage in TERMINAL_STAGES
    columns = (
        "id", "tenant", "conversation", "squad", "topic", "version", "asked", "plan", "opened_at"
    )  # fmt: skip
    return {
        **{name: getattr(flow, name) for name in columns},
        "state": flow.stage.value,
        "schema": SCHEMA,
        "changed_at": now,
        "idle_at": None if is_over else now + idle,
        "closed_at": now if is_over else None,
        "body": flow.body(),
    }
