"""The pipeline: what becomes of one message of a person on the roster.

held conversation → open workflow of the squad → related or new → busy squad → intent → the graph. Everything
it comes to is one entry, written in one transaction; a message that was worked through before is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ..kernel.clock import Clock
from ..model.errors import StoreFull, StoreUnavailable, TemporaryError
from ..model.outcome import Defer, Done, Outcome, Retry
from ..model.task import Category
from ..model.time import SECOND, micros
from .calendar.port import CalendarUnavailable
from .domain import CalendarDay, Intent, Interpreter, InterpreterContext, WorkflowRelation
from .escalation.reasons import Escalation
from .llm.errors import ModelThrottled
from .llm.journal import trace_calls
from .message_handler import InboxMessage
from .workflow import correlation, reply_texts
from .workflow.correlation import MessageDecision
from .workflow.graph import WorkflowRunner
from .workflow.instance import Workflow
from .workflow.plans import ConversationEvent, GraphState, WorkflowPlan, give_up, is_withdrawal
from .workflow.repository import (
    ConversationMessage,
    ConversationState,
    QuotedMessage,
    WorkflowEntry,
    WorkflowRepository,
    withdraw,
)
from .workflow.settings import WorkflowSettings
from .workflow.state_machine import ANSWERABLE
from .workflow.validation import is_day

MOST_DAYS = 14  # read before the extraction
DOUBTS = 2  # answers that were only perhaps ones, before a person is told
ReadDay = Callable[[str], Awaitable[CalendarDay]]


class Pipeline:
    """Works through messages, one at a time for each conversation."""

    def __init__(
        self,
        book: WorkflowRepository,
        clock: Clock,
        settings: WorkflowSettings,
        runner: WorkflowRunner,
        *,
        rules: Interpreter,  # asked first: costs nothing
        mind: Interpreter,  # asked where the rules do not know; may be the same
        read_day: ReadDay,
    ) -> None:
        self._book = book
        self._clock = clock
        self._settings = settings
        self._runner = runner
        self._rules = rules
        self._mind = mind
        self._read_day = read_day
        self._thinking = asyncio.Lock()

    async def hear(self, item: InboxMessage) -> Outcome:
        """One attempt at a message of the inbox."""
        spoken = ConversationMessage(
            item.id, item.tenant, item.source, item.conversation, item.chat, item.speaker, item.text,
            item.sent_at, is_last_try=item.is_last_try, reply_to=item.reply_to, place=item.n,
        )  # fmt: skip
        return await self.work(spoken)

    async def work(self, spoken: ConversationMessage, *, instead_of: Workflow | None = None) -> Outcome:
        """One attempt at a message, new or kept, or edited so that it stands in the place of a workflow."""
        try:
            standing = await self._book.standing(spoken)
            if standing.is_over:
                return Done("it was worked through before")
            with trace_calls(spoken.message):
                entry = await self._entry(spoken, _without(standing, instead_of))
            if instead_of is not None:
                self._replaced(entry, instead_of)
            if not await self._book.write(entry, standing):
                return Defer(self._clock.now(), "the conversation has changed meanwhile")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)
        except CalendarUnavailable as error:
            return Retry(Category.TEMPORARY, error.problem, after=error.after)
        except ModelThrottled as error:
            return Defer(error.until, error.problem)
        except TemporaryError as error:
            return Retry(Category.TEMPORARY, error.problem)
        return Done(f"{entry.decision}: {entry.reason}")

    async def _entry(self, spoken: ConversationMessage, standing: ConversationState) -> WorkflowEntry:
        """Decide; nothing is written."""
        if not spoken.text.strip():
            return WorkflowEntry(spoken, MessageDecision.EMPTY, "there is no text in it")
        settings = self._settings
        flows = correlation.own(standing.flows, spoken.speaker, settings.commanders)
        first = await self._first(spoken)
        if standing.holder is not None:
            return self._keep(spoken, standing.holder, first)
        quoted = _quoted(flows, standing.quoted)
        choice = (
            correlation.WorkflowMatch(quoted)
            if quoted
            else correlation.choose(flows, spoken.text, first.days)
        )
        doubted: tuple[list[Workflow], list[Escalation]] = ([], [])
        happened: list[ConversationEvent] = []
        if choice.flow is not None and spoken.verdict != "new":
            relation = await self._relation(spoken, choice.flow, quotes=quoted is not None)
            if spoken.verdict == "related" or correlation.is_related(relation):
                return await self._resume(spoken, standing, choice.flow, relation, is_guess=choice.is_guess)
            if relation.related is None and relation.source != self._rules.name:
                return self._hold(spoken, choice.flow, relation)
            doubted = _doubted(spoken, choice.flow, relation)
            happened = [_relation(choice.flow, relation)]
        intent = await self._intent(spoken, first)
        entry = await self._fresh(spoken, standing, flows, intent)
        entry.changed += [flow for flow in doubted[0] if flow.id != entry.workflow]
        entry.calls += doubted[1]
        entry.happened[:0] = happened
        return entry

    def _replaced(self, entry: WorkflowEntry, flow: Workflow) -> None:
        """The workflow of what was said before is over; if nothing comes in its place, that is said."""
        withdraw(entry, flow, self._clock.now(), idle=micros(self._settings.idle))
        if not entry.replies and not entry.commands and entry.held is None:
            entry.replies.append(reply_texts.withdrawn())

    async def is_same_request(self, before: ConversationMessage, after: ConversationMessage) -> bool:
        """Whether a message asks for the same after it was edited; as far as the rules can tell."""
        if _words(before.text) == _words(after.text):
            return True
        async with self._thinking:
            was = await self._rules.extract(self._scene(before))
            now = await self._rules.extract(self._scene(after))
        return bool(was.requests) and set(was.requests) == set(now.requests) and was.is_loose == now.is_loose

    # -- understanding

    def _scene(
        self, spoken: ConversationMessage, flow: Workflow | None = None, days: Sequence[CalendarDay] = ()
    ) -> InterpreterContext:
        settings = self._settings
        bare = InterpreterContext(
            spoken.at, settings.timezone, settings.squads, spoken.speaker, spoken.text, days=days
        )
        if flow is None:
            return bare
        return bare._replace(thread=flow.thread, open_requests=flow.requests, asked=flow.asked)

    async def _first(self, spoken: ConversationMessage) -> Intent:
        """The rules' word. One line at a time: thinking is work, and those who only wait go in between."""
        async with self._thinking:
            return await self._rules.intent(self._scene(spoken))

    async def _relation(
        self, spoken: ConversationMessage, flow: Workflow, *, quotes: bool
    ) -> WorkflowRelation:
        """The rules first; the model where they are not sure."""
        if is_withdrawal(spoken.text):
            return WorkflowRelation(True, 1.0, "it takes the request back", self._rules.name)
        scene = self._scene(spoken, flow)._replace(quotes=quotes)
        relation = await self._rules.relate(scene)
        if correlation.is_sure(relation) or self._mind is self._rules:
            return relation
        return await self._mind.relate(scene)

    async def _intent(self, spoken: ConversationMessage, first: Intent) -> Intent:
        """The rules' word where they know; otherwise the model's."""
        if first.is_request is not None or self._mind is self._rules:
            return first
        return await self._mind.intent(self._scene(spoken))

    # -- what becomes of it

    def _keep(self, spoken: ConversationMessage, holder: str, intent: Intent) -> WorkflowEntry:
        """The bot is silent while a person holds the conversation; requests wait until it is given back."""
        if intent.is_request is False:
            return WorkflowEntry(
                spoken, MessageDecision.NOISE, f"{holder} holds this conversation", happened=[_intent(intent)]
            )
        reason = f"kept until {holder} gives the conversation back"
        return WorkflowEntry(spoken, MessageDecision.KEPT, reason, held="person", happened=[_intent(intent)])

    def _hold(self, spoken: ConversationMessage, flow: Workflow, relation: WorkflowRelation) -> WorkflowEntry:
        """Nobody can say whether it goes on with what is open: it must not open a second one."""
        issue = f"it is not clear whether a message belongs to the open request ({relation.reason})"
        call = Escalation(
            "held", issue, f"held:{spoken.message}", flow.squad, spoken.speaker.name, spoken.text, flow.id
        )
        happened = [_relation(flow, relation)]
        return WorkflowEntry(
            spoken, MessageDecision.HELD, issue, held="unclear", calls=[call], happened=happened
        )

    async def _fresh(
        self,
        spoken: ConversationMessage,
        standing: ConversationState,
        flows: Sequence[Workflow],
        intent: Intent,
    ) -> WorkflowEntry:
        """A message that belongs to nothing that is open."""
        settings = self._settings
        decision = correlation.band(
            intent, start_at=settings.start_at, review_threshold=settings.review_threshold
        )
        happened = [_intent(intent)]
        own = [flow for flow in flows if flow.squad == spoken.speaker.squad]
        if decision is not MessageDecision.STARTED:
            entry = WorkflowEntry(spoken, decision, intent.reason, happened=happened)
            if decision is not MessageDecision.NOISE:
                entry.calls.append(_unsure(spoken, decision, intent))
            return entry
        if correlation.busy(own) or standing.ahead:
            place = standing.ahead + 1
            replies = [] if standing.is_kept else [reply_texts.please_wait(place)]
            return WorkflowEntry(
                spoken, MessageDecision.QUEUED, f"number {place} behind the squad's work", held="queued",
                replies=replies, happened=happened,
            )  # fmt: skip
        topic = ",".join(sorted(intent.days))
        twin = next((flow for flow in own if flow.topic == topic), None)
        if twin is not None:
            same = WorkflowRelation(True, 1.0, "the same squad and the same days", "topic")
            entry = await self._resume(spoken, standing, twin, same)
        else:
            entry = await self._start(spoken, own, intent, topic)
        entry.happened[:0] = happened
        return entry

    async def _start(
        self, spoken: ConversationMessage, own: Sequence[Workflow], intent: Intent, topic: str
    ) -> WorkflowEntry:
        """A new workflow: read the days it names, run the graph."""
        id_, now = self._clock.new_id(), self._clock.now()
        flow = Workflow(id_, spoken.tenant, spoken.conversation, spoken.speaker.squad, now, topic)
        plan = await self._plan(spoken, flow, own, intent.days)
        entry = _of_plan(spoken, MessageDecision.STARTED, intent.reason, plan)
        entry.added = [plan.flow]
        entry.happened[:0] = [
            ConversationEvent("opened", {"workflow": id_, "squad": flow.squad, "topic": topic})
        ]
        return entry

    async def _resume(
        self,
        spoken: ConversationMessage,
        standing: ConversationState,
        flow: Workflow,
        relation: WorkflowRelation,
        *,
        is_guess: bool = False,
    ) -> WorkflowEntry:
        """Go on with an open workflow."""
        others = [other for other in standing.flows if other.id != flow.id and other.squad == flow.squad]
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
        """Run the graph. A calendar that does not answer is asked again; in the end a person is."""
        sheet: GraphState = {
            "flow": flow,
            "scene": self._scene(spoken, flow),
            "house": self._settings.house,
            "now": self._clock.now(),
            "plan_id": self._clock.new_id(),
            "taken": frozenset(other.topic for other in others),
            "remarks": remarks,
        }
        try:
            days = [await self._read_day(date) for date in dates[:MOST_DAYS] if is_day(date)]
            sheet["scene"] = self._scene(spoken, flow, days)
            return await self._runner.run(sheet)
        except CalendarUnavailable as error:
            if not spoken.is_last_try:
                raise
            return give_up(sheet, "calendar_down", error.problem, say=reply_texts.calendar_is_down())


def _without(standing: ConversationState, flow: Workflow | None) -> ConversationState:
    """As if a workflow had never been."""
    if flow is None:
        return standing
    return standing._replace(flows=[other for other in standing.flows if other.id != flow.id], quoted=None)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


def _of_plan(
    spoken: ConversationMessage, decision: MessageDecision, reason: str, plan: WorkflowPlan
) -> WorkflowEntry:
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
    """The open workflow that a quoted line belongs to; of our own words, by what we said."""
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
    """An answer that was only perhaps one is counted; the second one is told."""
    if not relation.related:
        return [], []
    flow = replace(flow, doubts=flow.doubts + 1)
    if flow.doubts != DOUBTS:
        return [flow], []
    issue = f"{DOUBTS} messages were perhaps answers to an open request ({relation.reason})"
    key = f"doubtful_answers:{flow.id}"
    call = Escalation("doubtful_answers", issue, key, flow.squad, spoken.speaker.name, spoken.text, flow.id)
    return [flow], [call]


def _unsure(spoken: ConversationMessage, decision: MessageDecision, intent: Intent) -> Escalation:
    """What the bands below a start ask of people."""
    reason = "review" if decision is MessageDecision.REVIEW else "intent_unsure"
    issue = f"a message was perhaps a request ({intent.confidence} of 100: {intent.reason})"
    return Escalation(
        reason, issue, f"{reason}:{spoken.message}", spoken.speaker.squad, spoken.speaker.name, spoken.text
    )


def _intent(intent: Intent) -> ConversationEvent:
    return ConversationEvent("intent", {**intent._asdict(), "days": list(intent.days)})


def _relation(flow: Workflow, relation: WorkflowRelation) -> ConversationEvent:
    return ConversationEvent("relation", {**relation._asdict(), "workflow": flow.id})
