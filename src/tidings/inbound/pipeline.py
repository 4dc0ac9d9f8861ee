"""The pipeline: what becomes of one message of a person on the roster.

held conversation → open workflow of the squad → related or new → busy squad → intent → the graph. Everything
it comes to is one entry, written in one transaction; a message that was worked through before is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ..kernel.clock import Clock
from ..model.errors import StoreFull, StoreUnavailable, Temporary
from ..model.outcome import Defer, Done, Outcome, Retry
from ..model.task import Category
from ..model.time import SECOND, micros
from .calendar.base import CalendarAway
from .hearing import Heard
from .models.journal import about
from .models.troubles import ModelBusy
from .people.telling import Call
from .words import Day, Intent, Mind, Relation, Scene
from .workflow import choosing, wording
from .workflow.book import Book, Entry, Quoted, Spoken, Standing, withdraw
from .workflow.choosing import Decision
from .workflow.flow import Flow
from .workflow.graph import Runner
from .workflow.planning import Happened, Plan, Sheet, give_up, is_withdrawal
from .workflow.rules import is_day
from .workflow.settings import WorkflowSettings
from .workflow.stages import ANSWERABLE

MOST_DAYS = 14  # read before the extraction
DOUBTS = 2  # answers that were only perhaps ones, before a person is told
ReadDay = Callable[[str], Awaitable[Day]]


class Pipeline:
    """Works through messages, one at a time for each conversation."""

    def __init__(
        self,
        book: Book,
        clock: Clock,
        settings: WorkflowSettings,
        runner: Runner,
        *,
        rules: Mind,  # asked first: costs nothing
        mind: Mind,  # asked where the rules do not know; may be the same
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

    async def hear(self, item: Heard) -> Outcome:
        """One attempt at a message of the inbox."""
        spoken = Spoken(
            item.id, item.tenant, item.source, item.conversation, item.chat, item.speaker, item.text,
            item.said_at, is_last_try=item.is_last_try, reply_to=item.reply_to, place=item.n,
        )  # fmt: skip
        return await self.work(spoken)

    async def work(self, spoken: Spoken, *, instead_of: Flow | None = None) -> Outcome:
        """One attempt at a message, new or kept, or edited so that it stands in the place of a workflow."""
        try:
            standing = await self._book.standing(spoken)
            if standing.is_over:
                return Done("it was worked through before")
            with about(spoken.message):
                entry = await self._entry(spoken, _without(standing, instead_of))
            if instead_of is not None:
                self._replaced(entry, instead_of)
            if not await self._book.write(entry, standing):
                return Defer(self._clock.now(), "the conversation has changed meanwhile")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)
        except CalendarAway as error:
            return Retry(Category.TEMPORARY, error.problem, after=error.after)
        except ModelBusy as error:
            return Defer(error.until, error.problem)
        except Temporary as error:
            return Retry(Category.TEMPORARY, error.problem)
        return Done(f"{entry.decision}: {entry.reason}")

    async def _entry(self, spoken: Spoken, standing: Standing) -> Entry:
        """Decide; nothing is written."""
        if not spoken.text.strip():
            return Entry(spoken, Decision.EMPTY, "there is no text in it")
        settings = self._settings
        flows = choosing.own(standing.flows, spoken.speaker, settings.commanders)
        first = await self._first(spoken)
        if standing.holder is not None:
            return self._keep(spoken, standing.holder, first)
        quoted = _quoted(flows, standing.quoted)
        choice = choosing.Choice(quoted) if quoted else choosing.choose(flows, spoken.text, first.days)
        doubted: tuple[list[Flow], list[Call]] = ([], [])
        happened: list[Happened] = []
        if choice.flow is not None and spoken.verdict != "new":
            relation = await self._relation(spoken, choice.flow, quotes=quoted is not None)
            if spoken.verdict == "related" or choosing.is_related(relation):
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

    def _replaced(self, entry: Entry, flow: Flow) -> None:
        """The workflow of what was said before is over; if nothing comes in its place, that is said."""
        withdraw(entry, flow, self._clock.now(), idle=micros(self._settings.idle))
        if not entry.replies and not entry.commands and entry.held is None:
            entry.replies.append(wording.withdrawn())

    async def says_the_same(self, before: Spoken, after: Spoken) -> bool:
        """Whether a message asks for the same after it was edited; as far as the rules can tell."""
        if _words(before.text) == _words(after.text):
            return True
        async with self._thinking:
            was = await self._rules.extract(self._scene(before))
            now = await self._rules.extract(self._scene(after))
        return bool(was.requests) and set(was.requests) == set(now.requests) and was.is_loose == now.is_loose

    # -- understanding

    def _scene(self, spoken: Spoken, flow: Flow | None = None, days: Sequence[Day] = ()) -> Scene:
        settings = self._settings
        bare = Scene(spoken.at, settings.zone, settings.squads, spoken.speaker, spoken.text, days=days)
        if flow is None:
            return bare
        return bare._replace(thread=flow.thread, open_requests=flow.requests, asked=flow.asked)

    async def _first(self, spoken: Spoken) -> Intent:
        """The rules' word. One line at a time: thinking is work, and those who only wait go in between."""
        async with self._thinking:
            return await self._rules.intent(self._scene(spoken))

    async def _relation(self, spoken: Spoken, flow: Flow, *, quotes: bool) -> Relation:
        """The rules first; the model where they are not sure."""
        if is_withdrawal(spoken.text):
            return Relation(True, 1.0, "it takes the request back", self._rules.name)
        scene = self._scene(spoken, flow)._replace(quotes=quotes)
        relation = await self._rules.relate(scene)
        if choosing.is_sure(relation) or self._mind is self._rules:
            return relation
        return await self._mind.relate(scene)

    async def _intent(self, spoken: Spoken, first: Intent) -> Intent:
        """The rules' word where they know; otherwise the model's."""
        if first.is_request is not None or self._mind is self._rules:
            return first
        return await self._mind.intent(self._scene(spoken))

    # -- what becomes of it

    def _keep(self, spoken: Spoken, holder: str, intent: Intent) -> Entry:
        """The bot is silent while a person holds the conversation; requests wait until it is given back."""
        if intent.is_request is False:
            return Entry(
                spoken, Decision.NOISE, f"{holder} holds this conversation", happened=[_intent(intent)]
            )
        reason = f"kept until {holder} gives the conversation back"
        return Entry(spoken, Decision.KEPT, reason, held="person", happened=[_intent(intent)])

    def _hold(self, spoken: Spoken, flow: Flow, relation: Relation) -> Entry:
        """Nobody can say whether it goes on with what is open: it must not open a second one."""
        issue = f"it is not clear whether a message belongs to the open request ({relation.reason})"
        call = Call(
            "held", issue, f"held:{spoken.message}", flow.squad, spoken.speaker.name, spoken.text, flow.id
        )
        happened = [_relation(flow, relation)]
        return Entry(spoken, Decision.HELD, issue, held="unclear", calls=[call], happened=happened)

    async def _fresh(
        self, spoken: Spoken, standing: Standing, flows: Sequence[Flow], intent: Intent
    ) -> Entry:
        """A message that belongs to nothing that is open."""
        settings = self._settings
        decision = choosing.band(intent, start_at=settings.start_at, review_at=settings.review_at)
        happened = [_intent(intent)]
        own = [flow for flow in flows if flow.squad == spoken.speaker.squad]
        if decision is not Decision.STARTED:
            entry = Entry(spoken, decision, intent.reason, happened=happened)
            if decision is not Decision.NOISE:
                entry.calls.append(_unsure(spoken, decision, intent))
            return entry
        if choosing.busy(own) or standing.ahead:
            place = standing.ahead + 1
            replies = [] if standing.is_kept else [wording.please_wait(place)]
            return Entry(
                spoken, Decision.QUEUED, f"number {place} behind the squad's work", held="queued",
                replies=replies, happened=happened,
            )  # fmt: skip
        topic = ",".join(sorted(intent.days))
        twin = next((flow for flow in own if flow.topic == topic), None)
        if twin is not None:
            same = Relation(True, 1.0, "the same squad and the same days", "topic")
            entry = await self._resume(spoken, standing, twin, same)
        else:
            entry = await self._start(spoken, own, intent, topic)
        entry.happened[:0] = happened
        return entry

    async def _start(self, spoken: Spoken, own: Sequence[Flow], intent: Intent, topic: str) -> Entry:
        """A new workflow: read the days it names, run the graph."""
        id_, now = self._clock.new_id(), self._clock.now()
        flow = Flow(id_, spoken.tenant, spoken.conversation, spoken.speaker.squad, now, topic)
        plan = await self._plan(spoken, flow, own, intent.days)
        entry = _of_plan(spoken, Decision.STARTED, intent.reason, plan)
        entry.added = [plan.flow]
        entry.happened[:0] = [Happened("opened", {"workflow": id_, "squad": flow.squad, "topic": topic})]
        return entry

    async def _resume(
        self, spoken: Spoken, standing: Standing, flow: Flow, relation: Relation, *, is_guess: bool = False
    ) -> Entry:
        """Go on with an open workflow."""
        others = [other for other in standing.flows if other.id != flow.id and other.squad == flow.squad]
        dates = [day for day in flow.topic.split(",") if day]
        remarks = [wording.several_open(flow.asked)] if is_guess else []
        plan = await self._plan(spoken, flow, others, dates, remarks)
        entry = _of_plan(spoken, Decision.RESUMED, relation.reason, plan)
        entry.changed = [plan.flow]
        entry.happened[:0] = [_relation(flow, relation)]
        return entry

    async def _plan(
        self,
        spoken: Spoken,
        flow: Flow,
        others: Sequence[Flow],
        dates: Sequence[str],
        remarks: Sequence[str] = (),
    ) -> Plan:
        """Run the graph. A calendar that does not answer is asked again; in the end a person is."""
        sheet: Sheet = {
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
        except CalendarAway as error:
            if not spoken.is_last_try:
                raise
            return give_up(sheet, "calendar_down", error.problem, say=wording.calendar_is_down())


def _without(standing: Standing, flow: Flow | None) -> Standing:
    """As if a workflow had never been."""
    if flow is None:
        return standing
    return standing._replace(flows=[other for other in standing.flows if other.id != flow.id], quoted=None)


def _words(text: str) -> list[str]:
    return "".join(c if c.isalnum() else " " for c in text.casefold()).split()


def _of_plan(spoken: Spoken, decision: Decision, reason: str, plan: Plan) -> Entry:
    return Entry(
        spoken,
        decision,
        reason,
        replies=list(plan.replies),
        commands=list(plan.commands),
        plan=plan.flow.plan if plan.commands else None,
        calls=list(plan.calls),
        happened=list(plan.happened),
    )


def _quoted(flows: Sequence[Flow], quoted: Quoted | None) -> Flow | None:
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


def _doubted(spoken: Spoken, flow: Flow, relation: Relation) -> tuple[list[Flow], list[Call]]:
    """An answer that was only perhaps one is counted; the second one is told."""
    if not relation.related:
        return [], []
    flow = replace(flow, doubts=flow.doubts + 1)
    if flow.doubts != DOUBTS:
        return [flow], []
    issue = f"{DOUBTS} messages were perhaps answers to an open request ({relation.reason})"
    key = f"doubtful_answers:{flow.id}"
    call = Call("doubtful_answers", issue, key, flow.squad, spoken.speaker.name, spoken.text, flow.id)
    return [flow], [call]


def _unsure(spoken: Spoken, decision: Decision, intent: Intent) -> Call:
    """What the bands below a start ask of people."""
    reason = "review" if decision is Decision.REVIEW else "intent_unsure"
    issue = f"a message was perhaps a request ({intent.confidence} of 100: {intent.reason})"
    return Call(
        reason, issue, f"{reason}:{spoken.message}", spoken.speaker.squad, spoken.speaker.name, spoken.text
    )


def _intent(intent: Intent) -> Happened:
    return Happened("intent", {**intent._asdict(), "days": list(intent.days)})


def _relation(flow: Flow, relation: Relation) -> Happened:
    return Happened("relation", {**relation._asdict(), "workflow": flow.id})
