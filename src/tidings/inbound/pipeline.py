"""The pipeline: decides what one message leads to and commits it.

held conversation → open workflow of the squad → related or new → busy squad → intent → the graph. The result
is one entry, committed in one transaction; a message that was handled before is skipped.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ..kernel.clock import Clock
from ..model.errors import StoreFull, StoreUnavailable, TemporaryError
from ..model.outcome import Defer, Done, Outcome, Retry
from ..model.task import Category
from ..model.time import SECOND
from .calendar.port import CalendarUnavailable
from .domain import CalendarDay, ConversationMessage, Intent, Interpreter, InterpreterContext, WorkflowRelation
from .escalation.reasons import Escalation
from .llm.errors import ModelThrottled
from .llm.journal import trace_calls
from .workflow import correlation, reply_texts
from .workflow.correlation import MessageDecision
from .workflow.graph import ReadDay, make_runner
from .workflow.instance import Workflow
from .workflow.plans import ConversationEvent, GraphState, WorkflowPlan, give_up, is_withdrawal
from .workflow.repository import ConversationState, QuotedMessage, WorkflowEntry, WorkflowRepository, withdraw
from .workflow.settings import WorkflowSettings
from .workflow.state_machine import ANSWERABLE, BUSY
from .workflow.validation import is_day

MOST_DAYS = 14  # calendar days read before the extraction
DOUBTS = 2  # possible answers before an escalation


class Pipeline:
    """Handles messages, one at a time per conversation."""

    def __init__(
        self,
        repository: WorkflowRepository,
        clock: Clock,
        settings: WorkflowSettings,
        *,
        rules: Interpreter,  # asked first: free
        interpreter: Interpreter,  # asked if the rules have no answer; may be the same
        read_day: ReadDay,
    ) -> None:
        self._repository = repository
        self._clock = clock
        self._settings = settings
        self._runner = make_runner(settings.runner, interpreter, read_day)
        self._rules = rules
        self.interpreter = interpreter
        self._read_day = read_day
        self._rules_lock = asyncio.Lock()

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        """Handle a new, released or edited message; an edit may replace a workflow (`instead_of`)."""
        try:
            state = await self._repository.state(spoken)
            if state.is_over:
                return Done("it was handled before")
            with trace_calls(spoken.message):
                entry = await self._entry(spoken, _without(state, instead_of))
            if instead_of is not None:
                self._replaced(entry, instead_of)
            if not await self._repository.write(entry, state):
                return Defer(self._clock.now(), "the conversation changed in the meantime")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)
        except CalendarUnavailable as error:
            return Retry(Category.TEMPORARY, error.problem, after=error.after)
        except ModelThrottled as error:
            return Defer(error.until, error.problem)
        except TemporaryError as error:
            return Retry(Category.TEMPORARY, error.problem)
        return Done(f"{entry.decision}: {entry.reason}")

    async def _entry(self, spoken: ConversationMessage, state: ConversationState) -> WorkflowEntry:
        """Decide what the message leads to, without writing."""
        if not spoken.text.strip():
            return WorkflowEntry(spoken, MessageDecision.EMPTY, "the message has no text")
        settings = self._settings
        flows = correlation.own(state.flows, spoken.speaker, settings.commanders)
        first = await self._first(spoken)
        if state.holder is not None:
            return self._keep(spoken, state.holder, first)
        quoted = _quoted(flows, state.quoted)
        choice = correlation.choose(flows, spoken.text, first.days)
        choice = correlation.WorkflowMatch(quoted) if quoted else choice
        doubted: tuple[list[Workflow], list[Escalation]] = ([], [])
        happened: list[ConversationEvent] = []
        if choice.flow is not None and spoken.verdict != "new":
            relation = await self._relation(spoken, choice.flow, quotes=quoted is not None)
            if spoken.verdict == "related" or correlation.is_related(relation):
                return await self._resume(spoken, state, choice.flow, relation, is_guess=choice.is_guess)
            if relation.related is None and relation.source != self._rules.name:
                return self._hold(spoken, choice.flow, relation)
            doubted = _doubted(spoken, choice.flow, relation)
            happened = [_relation(choice.flow, relation)]
        intent = await self._intent(spoken, first)
        entry = await self._fresh(spoken, state, flows, intent)
        entry.changed += [flow for flow in doubted[0] if flow.id != entry.workflow]
        entry.calls += doubted[1]
        entry.happened[:0] = happened
        return entry

    def _replaced(self, entry: WorkflowEntry, flow: Workflow) -> None:
        """End the replaced workflow; if the edit leads to nothing, reply that the request was dropped."""
        withdraw(entry, flow, self._clock.now(), self._settings)
        if not entry.replies and not entry.commands and entry.held is None:
            entry.replies.append(reply_texts.WITHDRAWN)

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        """Return whether the edited message asks for the same, according to the rules."""
        if _words(before.text) == _words(after.text):
            return True
        async with self._rules_lock:
            was = await self._rules.extract(self._context(before))
            now = await self._rules.extract(self._context(after))
        return bool(was.requests) and set(was.requests) == set(now.requests) and was.is_loose == now.is_loose

    # -- interpretation

    def _context(
        self, spoken: ConversationMessage, flow: Workflow | None = None, days: Sequence[CalendarDay] = ()
    ) -> InterpreterContext:
        settings = self._settings
        bare = InterpreterContext(spoken.at, settings.timezone, settings.squads, spoken.speaker, spoken.text, days=days)
        if flow is None:
            return bare
        return bare._replace(thread=flow.thread, open_requests=flow.requests, asked=flow.asked)

    async def _first(self, spoken: ConversationMessage) -> Intent:
        """Ask the rules, one message at a time, because parsing occupies the event loop."""
        async with self._rules_lock:
            return await self._rules.intent(self._context(spoken))

    async def _relation(self, spoken: ConversationMessage, flow: Workflow, *, quotes: bool) -> WorkflowRelation:
        """Ask the rules first, and the model if they are not confident."""
        if is_withdrawal(spoken.text):
            return WorkflowRelation(True, 1.0, "it withdraws the request", self._rules.name)
        context = self._context(spoken, flow)._replace(quotes=quotes)
        relation = await self._rules.relate(context)
        if correlation.is_sure(relation) or self.interpreter is self._rules:
            return relation
        return await self.interpreter.relate(context)

    async def _intent(self, spoken: ConversationMessage, first: Intent) -> Intent:
        """Return the rules' answer if they have one, otherwise the model's."""
        if first.is_request is not None or self.interpreter is self._rules:
            return first
        return await self.interpreter.intent(self._context(spoken))

    # -- decisions

    def _keep(self, spoken: ConversationMessage, holder: str, intent: Intent) -> WorkflowEntry:
        """Defer requests while a person holds the conversation; the bot does not reply."""
        if intent.is_request is False:
            return WorkflowEntry(
                spoken, MessageDecision.NOISE, f"{holder} holds this conversation", happened=[_intent(intent)]
            )
        reason = f"deferred until {holder} hands the conversation back"
        return WorkflowEntry(spoken, MessageDecision.KEPT, reason, held="person", happened=[_intent(intent)])

    def _hold(self, spoken: ConversationMessage, flow: Workflow, relation: WorkflowRelation) -> WorkflowEntry:
        """Hold a message for a person: if it belongs to the open request, it must not start another."""
        issue = f"it is unclear whether a message belongs to the open request ({relation.reason})"
        call = Escalation(
            "held", issue, f"held:{spoken.message}", flow.squad, spoken.speaker.name, spoken.text, flow.id
        )
        happened = [_relation(flow, relation)]
        return WorkflowEntry(spoken, MessageDecision.HELD, issue, held="unclear", calls=[call], happened=happened)

    async def _fresh(
        self, spoken: ConversationMessage, state: ConversationState, flows: Sequence[Workflow], intent: Intent
    ) -> WorkflowEntry:
        """Decide about a message that belongs to no open workflow."""
        settings = self._settings
        decision = correlation.band(
            intent, start_threshold=settings.start_threshold, review_threshold=settings.review_threshold
        )
        happened = [_intent(intent)]
        own = [flow for flow in flows if flow.squad == spoken.speaker.squad]
        if decision is not MessageDecision.STARTED:
            entry = WorkflowEntry(spoken, decision, intent.reason, happened=happened)
            if decision is not MessageDecision.NOISE:
                entry.calls.append(_unsure(spoken, decision, intent))
            return entry
        if state.ahead or any(flow.stage in BUSY for flow in own):
            place = state.ahead + 1
            replies = [] if state.is_kept else [reply_texts.please_wait(place)]
            return WorkflowEntry(
                spoken, MessageDecision.QUEUED, f"number {place} in the squad's queue", held="queued",
                replies=replies, happened=happened,
            )  # fmt: skip
        topic = ",".join(sorted(intent.days))
        twin = next((flow for flow in own if flow.topic == topic), None)
        if twin is not None:
            same = WorkflowRelation(True, 1.0, "the same squad and the same days", "topic")
            entry = await self._resume(spoken, state, twin, same)
        else:
            entry = await self._start(spoken, own, intent, topic)
        entry.happened[:0] = happened
        return entry

    async def _start(
        self, spoken: ConversationMessage, own: Sequence[Workflow], intent: Intent, topic: str
    ) -> WorkflowEntry:
        """Start a workflow: read the calendar days and run the graph."""
        id_, now = self._clock.new_id(), self._clock.now()
        flow = Workflow(id_, spoken.tenant, spoken.conversation, spoken.speaker.squad, now, topic)
        plan = await self._plan(spoken, flow, own, intent.days)
        entry = _of_plan(spoken, MessageDecision.STARTED, intent.reason, plan)
        entry.added = [plan.flow]
        entry.happened[:0] = [ConversationEvent("opened", {"workflow": id_, "squad": flow.squad, "topic": topic})]
        return entry

    async def _resume(
        self,
        spoken: ConversationMessage,
        state: ConversationState,
        flow: Workflow,
        relation: WorkflowRelation,
        *,
        is_guess: bool = False,
    ) -> WorkflowEntry:
        """Continue an open workflow."""
        others = [other for other in state.flows if other.id != flow.id and other.squad == flow.squad]
        dates = [day for day in flow.topic.split(",") if day]
        remarks = [reply_texts.several_open(flow.asked)] if is_guess else []
        plan = await self._plan(spoken, flow, others, dates, remarks)
        entry = _of_plan(spoken, MessageDecision.RESUMED, relation.reason, plan)
        entry.changed = [plan.flow]
        entry.happened[:0] = [_relation(flow, relation)]
        return entry

    async def _plan(
        self,
        spoken: ConversationMessage,
        flow: Workflow,
        others: Sequence[Workflow],
        dates: Sequence[str],
        remarks: Sequence[str] = (),
    ) -> WorkflowPlan:
        """Run the graph. If the calendar is unavailable, retry; on the last attempt, escalate."""
        graph_state: GraphState = {
            "flow": flow,
            "context": self._context(spoken, flow),
            "policy": self._settings,
            "now": self._clock.now(),
            "plan_id": self._clock.new_id(),
            "taken": frozenset(other.topic for other in others),
            "remarks": remarks,
        }
        try:
            days = [await self._read_day(date) for date in dates[:MOST_DAYS] if is_day(date)]
            graph_state["context"] = self._context(spoken, flow, days)
            return await self._runner.run(graph_state)
        except CalendarUnavailable as error:
            if not spoken.is_last_try:
                raise
            return give_up(graph_state, "calendar_down", error.problem, say=reply_texts.CALENDAR_IS_DOWN)


def _without(state: ConversationState, flow: Workflow | None) -> ConversationState:
    """Return the state without one workflow."""
    if flow is None:
        return state
    return state._replace(flows=[other for other in state.flows if other.id != flow.id], quoted=None)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


def _of_plan(spoken: ConversationMessage, decision: MessageDecision, reason: str, plan: WorkflowPlan) -> WorkflowEntry:
    return WorkflowEntry(
        spoken,
        decision,
        reason,
        replies=list(plan.replies),
        commands=list(plan.commands),
        plan=plan.flow.plan if plan.commands else None,
        calls=list(plan.calls),
        happened=list(plan.happened),
    )


def _quoted(flows: Sequence[Workflow], quoted: QuotedMessage | None) -> Workflow | None:
    """Return the open workflow of a quoted message; our own replies are matched by text."""
    if quoted is None:
        return None
    return next(
        (
            flow
            for flow in flows
            if flow.stage in ANSWERABLE
            and (flow.id == quoted.workflow or any(o.is_ours and o.text == quoted.text for o in flow.thread))
        ),
        None,
    )


def _doubted(
    spoken: ConversationMessage, flow: Workflow, relation: WorkflowRelation
) -> tuple[list[Workflow], list[Escalation]]:
    """Count a possible answer; escalate the second one."""
    if not relation.related:
        return [], []
    flow = replace(flow, doubts=flow.doubts + 1)
    if flow.doubts != DOUBTS:
        return [flow], []
    issue = f"{DOUBTS} messages may have been answers to an open request ({relation.reason})"
    key = f"doubtful_answers:{flow.id}"
    call = Escalation("doubtful_answers", issue, key, flow.squad, spoken.speaker.name, spoken.text, flow.id)
    return [flow], [call]


def _unsure(spoken: ConversationMessage, decision: MessageDecision, intent: Intent) -> Escalation:
    """Build the escalation of a message whose confidence is too low to start a workflow."""
    reason = "review" if decision is MessageDecision.REVIEW else "intent_unsure"
    issue = f"a message may be a request ({intent.confidence} of 100: {intent.reason})"
    return Escalation(
        reason, issue, f"{reason}:{spoken.message}", spoken.speaker.squad, spoken.speaker.name, spoken.text
    )


def _intent(intent: Intent) -> ConversationEvent:
    return ConversationEvent("intent", {**intent._asdict(), "days": list(intent.days)})


def _relation(flow: Workflow, relation: WorkflowRelation) -> ConversationEvent:
    return ConversationEvent("relation", {**relation._asdict(), "workflow": flow.id})
