"""Builds the workflow service: handlers and actors for workers, cases and conversations for interfaces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ...kernel.actor import Actor
from ...kernel.clock import Clock
from ...kernel.handler import Handler
from ...model.outcome import Outcome
from ...store.port import Step, Store
from ..calendar.port import ShiftCalendar
from ..domain import ConversationMessage, Interpreter
from ..effects.ledger import FOLLOWUP_KIND
from ..escalation.cases import Cases
from ..escalation.failed_messages import EscalatingHandler
from ..escalation.notifier import AdminNotifier
from ..escalation.reasons import Escalation, EscalationWriter
from ..ingestion import KIND as INBOUND_MESSAGE
from ..llm.fallback import FallbackInterpreter
from ..message_handler import ChangeProcessor, InboundMessageHandler, MessageProcessor, NoWorkflowProcessor
from ..pipeline import Pipeline
from ..reply_port import ReplyPort
from ..source_notices import CHANGED, NoticeSteps, SourceNotice, notice_event_steps
from .conversations import Conversations
from .edits import EditProcessor
from .followup import FollowUpHandler
from .graph import ReadDay
from .instance import Workflow
from .replay import MemoryWorkflowRepository, ReplayClock, ReplayComparison, replay
from .repository import StoreWorkflowRepository
from .reruns import RerunHandler
from .settings import WorkflowSettings
from .timers import KIND as RERUN
from .timers import WorkflowTimers


class Interpreters(NamedTuple):
    """The interpreters of the pipeline."""

    rules: Interpreter
    interpreter: Interpreter  # asked when the rules have no answer
    recorded: Interpreter  # recorded model answers, for replays


class LazyPipeline:
    """Builds the pipeline on first use: grammar and graph take seconds to load."""

    def __init__(self, make: Callable[[], Pipeline]) -> None:
        self._make = make
        self._pipeline: Pipeline | None = None

    def pipeline(self) -> Pipeline:
        """Return the pipeline, building it on the first call."""
        if self._pipeline is None:
            self._pipeline = self._make()
        return self._pipeline

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        return await self.pipeline().work(spoken, instead_of=instead_of)

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        return await self.pipeline().is_same_request(before, after)

    async def close(self) -> None:
        """Close the connections to the model."""
        if self._pipeline is not None and isinstance(self._pipeline.interpreter, FallbackInterpreter):
            await self._pipeline.interpreter.close()


@dataclass(frozen=True, slots=True)
class WorkflowService:
    """Workflows: cases, conversations, task handlers, actors and replay."""

    store: Store
    settings: WorkflowSettings
    cases: Cases
    conversations: Conversations
    handlers: Mapping[str, Handler]
    actors: Sequence[Actor]
    interpreters: Callable[[], Interpreters]
    late: LazyPipeline | None  # None where workflows are off

    async def close(self) -> None:
        if self.late is not None:
            await self.late.close()

    def ready(self) -> None:
        """Build the pipeline; raises Misconfigured before the first message instead of with it."""
        if self.late is not None:
            self.late.pipeline()

    async def replay(
        self, conversation: str, *, by_rules: bool = False, tenant: str = "default"
    ) -> list[ReplayComparison]:
        """Replay a past conversation with the recorded model answers, or with the rules alone."""
        rules, _, recorded = self.interpreters()
        interpreter, settings = rules if by_rules else recorded, replace(self.settings, runner="plain")

        def make(repository: MemoryWorkflowRepository, clock: ReplayClock, read_day: ReadDay) -> Pipeline:
            return Pipeline(repository, clock, settings, rules=rules, interpreter=interpreter, read_day=read_day)

        return await replay(self.store, conversation, make, self.settings, tenant=tenant)


def build_workflow_service(
    settings: WorkflowSettings,
    store: Store,
    clock: Clock,
    calendar: ShiftCalendar,
    reply_port: ReplyPort,
    interpreters: Callable[[], Interpreters],
) -> WorkflowService:
    """Build the service. If workflows are disabled, messages are only stored and nothing is escalated."""
    escalations = _escalation_writer(settings, clock)
    cases, conversations = Cases(store, clock, settings, reply_port), Conversations(store)
    processor: MessageProcessor = NoWorkflowProcessor()
    changes: ChangeProcessor | None = None
    late: LazyPipeline | None = None
    handlers: dict[str, Handler] = {FOLLOWUP_KIND: FollowUpHandler(store, clock, settings, reply_port, escalations)}
    actors: list[Actor] = []
    if settings.enabled:
        repository = StoreWorkflowRepository(store, clock, settings, reply_port, escalations)

        def make() -> Pipeline:
            rules, interpreter, _ = interpreters()
            return Pipeline(repository, clock, settings, rules=rules, interpreter=interpreter, read_day=calendar.day)

        processor = late = LazyPipeline(make)
        changes = EditProcessor(store, clock, settings, repository, late)
        handlers[RERUN] = EscalatingHandler(RerunHandler(store, late), escalations, clock)
        actors = [
            WorkflowTimers(store, clock, settings, escalations),
            AdminNotifier(store, clock, reply_port, settings.admins),
        ]
    handler: Handler = InboundMessageHandler(store, processor, changes)
    handlers[INBOUND_MESSAGE] = EscalatingHandler(handler, escalations, clock) if settings.enabled else handler
    return WorkflowService(store, settings, cases, conversations, handlers, actors, interpreters, late)


def source_notice_steps(settings: WorkflowSettings, clock: Clock) -> NoticeSteps:
    """Return how source notices are published: as events, and to admins if workflows are enabled."""
    escalations = _escalation_writer(settings, clock)

    def told(notice: SourceNotice) -> Sequence[Step]:
        if notice.type == CHANGED:
            return notice_event_steps(notice)  # `edits` reports what was done and what was not
        reason = notice.type.replace(".", "_")
        key = f"{reason}:{notice.about or notice.source}"
        call = Escalation(reason, f"source {notice.source}: {notice.problem}", key)
        return [*notice_event_steps(notice), *escalations.steps(call, notice.tenant, notice.source, None, clock.now())]

    return told if settings.enabled else notice_event_steps


def _escalation_writer(settings: WorkflowSettings, clock: Clock) -> EscalationWriter:
    return EscalationWriter(clock.new_id, within=settings.case_reminder_after)
