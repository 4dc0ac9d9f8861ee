"""Workflows put together: handlers and actors for whoever works, cases and conversations for the faces."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...kernel.actor import Actor
from ...kernel.clock import Clock
from ...kernel.handler import Handler
from ...model.outcome import Outcome
from ...store.port import Step, Store
from ..calendar.port import ShiftCalendar
from ..domain import Interpreter
from ..effects.ledger import FOLLOWUP_KIND
from ..escalation.cases import Cases
from ..escalation.failed_messages import EscalatingHandler
from ..escalation.notifier import AdminNotifier
from ..escalation.reasons import Escalation
from ..escalation.writer import EscalationWriter
from ..ingestion import KIND as HEARD
from ..llm.fallback import FallbackInterpreter
from ..message_handler import (
    ChangeProcessor,
    InboundMessageHandler,
    InboxMessage,
    MessageProcessor,
    NoWorkflowProcessor,
)
from ..pipeline import Pipeline
from ..reply_port import ReplyPort
from ..source_notices import CHANGED, NoticeSteps, SourceNotice, notice_event_steps
from .conversations import Conversations
from .edits import EditProcessor
from .followup import FollowUpHandler
from .instance import Workflow
from .langgraph import make_runner
from .replay import MemoryWorkflowRepository, ReadDay, ReplayClock, ReplayComparison, replay
from .repository import ConversationMessage, StoreWorkflowRepository
from .reruns import RerunHandler
from .settings import WorkflowSettings
from .timers import KIND as REHEARING
from .timers import WorkflowTimers


class Interpreters(NamedTuple):
    """Who understands: the rules, whoever is asked after them, and the answers of then for a replay."""

    rules: Interpreter
    mind: Interpreter
    recorded: Interpreter


class LazyPipeline:
    """A pipeline that is made when it is needed: a grammar and a graph take seconds to load."""

    def __init__(self, minds: Callable[[], Interpreters], make: Callable[[Interpreters], Pipeline]) -> None:
        self._minds = minds
        self._make = make
        self._mind: Interpreter | None = None
        self._pipeline: Pipeline | None = None

    def pipeline(self) -> Pipeline:
        """The one pipeline."""
        if self._pipeline is None:
            minds = self._minds()
            self._mind, self._pipeline = minds.mind, self._make(minds)
        return self._pipeline

    async def hear(self, item: InboxMessage) -> Outcome:
        """One attempt at a message of the inbox."""
        return await self.pipeline().hear(item)

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        """One attempt at a message, new, kept or edited."""
        return await self.pipeline().work(spoken, instead_of=instead_of)

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        """Whether a message asks for the same after it was edited."""
        return await self.pipeline().is_same_request(before, after)

    async def close(self) -> None:
        """Let go of the model's connections."""
        if isinstance(self._mind, FallbackInterpreter):
            await self._mind.close()


@dataclass(frozen=True, slots=True)
class WorkflowService:
    """The parts, each with its own rules."""

    store: Store
    settings: WorkflowSettings
    cases: Cases
    conversations: Conversations
    handlers: Mapping[str, Handler]
    actors: Sequence[Actor]
    minds: Callable[[], Interpreters]
    late: LazyPipeline | None  # None where workflows are off

    async def close(self) -> None:
        """Let go of the model's connections."""
        if self.late is not None:
            await self.late.close()

    def ready(self) -> None:
        """For whoever will work: raises Misconfigured for what would only be found out with a message."""
        if self.late is not None:
            self.late.pipeline()

    async def replay(
        self, conversation: str, *, by_rules: bool = False, tenant: str = "default"
    ) -> list[ReplayComparison]:
        """What would become of a past conversation today, by the recorded answers or by the rules alone."""
        minds = self.minds()
        mind = minds.rules if by_rules else minds.recorded

        def make(book: MemoryWorkflowRepository, clock: ReplayClock, read_day: ReadDay) -> Pipeline:
            own = make_runner("plain", mind, read_day)
            return Pipeline(book, clock, self.settings, own, rules=minds.rules, mind=mind, read_day=read_day)

        return await replay(self.store, conversation, make, self.settings, tenant=tenant)


def build_workflow_service(
    settings: WorkflowSettings,
    store: Store,
    clock: Clock,
    calendar: ShiftCalendar,
    voice: ReplyPort,
    minds: Callable[[], Interpreters],
) -> WorkflowService:
    """Put the parts together. Where workflows are off, messages are kept and done, and nobody is called."""
    caller = _caller(settings, clock)
    cases, conversations = Cases(store, clock, settings, voice), Conversations(store)
    hearing: MessageProcessor = NoWorkflowProcessor()
    changes: ChangeProcessor | None = None
    late: LazyPipeline | None = None
    handlers: dict[str, Handler] = {
        FOLLOWUP_KIND: FollowUpHandler(store, clock, settings, voice, caller),
    }
    actors: list[Actor] = []
    if settings.enabled:
        book = StoreWorkflowRepository(store, clock, settings, voice, caller)

        def make(minds: Interpreters) -> Pipeline:
            rules, mind, _ = minds
            run = make_runner(settings.runner, mind, calendar.day)
            return Pipeline(book, clock, settings, run, rules=rules, mind=mind, read_day=calendar.day)

        hearing = late = LazyPipeline(minds, make)
        changes = EditProcessor(store, clock, settings, book, late)
        handlers[REHEARING] = EscalatingHandler(RerunHandler(store, late), caller, clock)
        actors = [
            WorkflowTimers(store, clock, settings, caller),
            AdminNotifier(store, clock, voice, settings.admins),
        ]
    heard: Handler = InboundMessageHandler(store, hearing, changes)
    handlers[HEARD] = EscalatingHandler(heard, caller, clock) if settings.enabled else heard
    return WorkflowService(store, settings, cases, conversations, handlers, actors, minds, late)


def source_notice_steps(settings: WorkflowSettings, clock: Clock) -> NoticeSteps:
    """How sources tell of their troubles: as events, and to the admins where there are any."""
    caller = _caller(settings, clock)

    def told(notice: SourceNotice) -> Sequence[Step]:
        if notice.type == CHANGED:
            return notice_event_steps(notice)  # its afterthought tells what was done and what was not
        reason = notice.type.replace(".", "_")
        key = f"{reason}:{notice.about or notice.source}"
        call = Escalation(reason, f"source {notice.source}: {notice.problem}", key)
        return [
            *notice_event_steps(notice),
            *caller.steps(call, notice.tenant, notice.source, None, clock.now()),
        ]

    return told if settings.enabled else notice_event_steps


def _caller(settings: WorkflowSettings, clock: Clock) -> EscalationWriter:
    return EscalationWriter(clock.new_id, within=settings.case_reminder_after)
