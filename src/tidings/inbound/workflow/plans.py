"""Plans: the nodes of the graph turn a workflow, a message and calendar days into the next state. Pure.

A plan only describes the result: the pipeline commits its state, replies, commands and escalations in one
transaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

from ..calendar.day_grid import line
from ..domain import CalendarCommand, CalendarDay, Extraction, InterpreterContext, ShiftRequest, Utterance
from ..escalation.reasons import Escalation
from . import reply_texts
from .confirmation import CONFIRM, is_changed, is_no, needs_yes
from .instance import SLOTS, RequestSlots, Workflow, request, wants
from .settings import WorkflowSettings
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage
from .validation import ValidationFinding, commands

US = "Tidings"
NOBODY = "unknown"  # the source of an extraction that neither the model nor the rules could give


class ConversationEvent(NamedTuple):
    """One entry of a conversation's journal."""

    what: str
    facts: Mapping[str, Any]


class WorkflowPlan(NamedTuple):
    """The next state of a workflow after one message, with its replies and commands."""

    flow: Workflow
    replies: Sequence[str] = ()
    commands: Sequence[CalendarCommand] = ()
    calls: Sequence[Escalation] = ()
    happened: Sequence[ConversationEvent] = ()


class GraphState(TypedDict, total=False):
    """The state that the nodes of the graph pass on."""

    flow: Workflow
    context: InterpreterContext
    policy: WorkflowSettings
    now: int  # our clock; the interpreter context has the time of the message
    plan_id: str
    taken: frozenset[str]  # topics of the squad's other workflows
    remarks: Sequence[str]  # the first sentences of the reply
    extraction: Extraction
    wants: tuple[RequestSlots, ...]
    is_unclear: bool  # the message answered nothing
    days: Mapping[str, CalendarDay]
    findings: Sequence[ValidationFinding]
    plan: WorkflowPlan


def understood(state: GraphState, extraction: Extraction) -> GraphState:
    """Merge an extraction into the requests. A message that answers nothing leaves them unchanged."""
    flow, context = state["flow"], state["context"]
    known = [squad for squad in (context.speaker.squad, flow.squad) if squad in state["policy"].squads]
    own = known[0] if known else None
    asked = [each._replace(squad=each.squad or own) for each in extraction.requests]
    is_unclear = not asked and bool(flow.wants)
    made = flow.wants if is_unclear else wants(flow.wants, asked, context.speaker, context.now)
    return {"extraction": extraction, "wants": made, "is_unclear": is_unclear}


def after_extract(state: GraphState) -> str:
    """Choose the node after `extract`."""
    is_asked = state["flow"].asked == CONFIRM
    if state["flow"].wants and is_withdrawal(state["context"].text):
        return "withdraw"
    if is_asked and is_no(state["context"].text) and not is_changed(state["flow"], state["wants"]):
        return "withdraw"
    if not state["wants"]:
        return "clarify" if state["extraction"].missing else "nothing"
    if (state["is_unclear"] and not is_asked) or gap(state["wants"]) is not None:
        return "clarify"
    return "read"


def after_validate(state: GraphState) -> str:
    """Choose the node after `validate`: ask for wrong slots, confirm uncertain requests, then execute."""
    findings = state["findings"]
    if any(finding.slot for finding in findings):
        return "clarify"
    if len(findings) < len(state["wants"]):
        is_loose, said = state["extraction"].is_loose, state["context"].text
        return "confirm" if needs_yes(state["flow"], state["wants"], said, is_loose=is_loose) else "execute"
    return "nothing" if all(finding.is_needless for finding in findings) else "refuse"


def gap(asked: Sequence[RequestSlots]) -> tuple[int, str] | None:
    """Return the request and the slot to ask for next, or None if nothing is missing."""
    holes = [(SLOTS.index(name), place) for place, want in enumerate(asked) for name in SLOTS if name not in want]
    if not holes:
        return None
    rank, place = min(holes)
    return place, SLOTS[rank]


def withdraw(state: GraphState) -> WorkflowPlan:
    """Drop the request ("never mind")."""
    return _end(state, [WorkflowTrigger.WITHDRAWN], [reply_texts.WITHDRAWN])


def nothing(state: GraphState) -> WorkflowPlan:
    """End without commands; reply with the remarks, if any."""
    said = reply_texts.reply(reply_texts.remarks(_remarks(state)))
    if state["extraction"].source == NOBODY:
        call = _call(state, "unclear", f"the request was not understood ({state['extraction'].reasoning})")
        return _end(state, [WorkflowTrigger.GAVE_UP], [reply_texts.GIVEN_UP], [call])
    plan = _end(state, [WorkflowTrigger.NOTHING], [said] if said else [])
    if said:
        return plan
    return plan._replace(calls=[_call(state, "review", "a possible request without anything to do")])


def refuse(state: GraphState) -> WorkflowPlan:
    """End because validation refused every request."""
    return _end(state, [WorkflowTrigger.REFUSED], [reply_texts.reply(reply_texts.remarks(_remarks(state)))])


def clarify(state: GraphState) -> WorkflowPlan:
    """Ask for one slot; after too many attempts, escalate instead."""
    flow, policy = state["flow"], state["policy"]
    asked = [dict(want) for want in state["wants"]]
    wrong = next((finding for finding in state.get("findings", ()) if finding.slot), None)
    if wrong is not None and wrong.slot:
        asked[wrong.place].pop(wrong.slot, None)
        place, slot = wrong.place, wrong.slot
    else:
        place, slot = gap(asked) or _again(state, asked)
    attempts = {**(flow.attempts or {})}
    question = f"{place}.{slot}"
    attempts[question] = attempts.get(question, 0) + 1
    flow = replace(flow, wants=tuple(asked), asked=slot, attempts=attempts)
    state = {**state, "flow": flow, "wants": tuple(asked)}
    if attempts[question] > policy.max_questions:
        call = _call(state, "unclear", f"still unclear after {policy.max_questions} questions: {slot}")
        is_news = flow.stage is not WorkflowStage.NEEDS_HUMAN
        return _end(state, [WorkflowTrigger.GAVE_UP], [reply_texts.GIVEN_UP] if is_news else [], [call])
    known = request(asked[place]) if asked else ShiftRequest()
    noted = [reply_texts.without_question(remark) for remark in _remarks(state)]
    text = reply_texts.reply(reply_texts.remarks(noted), reply_texts.question(slot, known, policy))
    return _end(state, [WorkflowTrigger.ASKED], [text])


def confirm(state: GraphState) -> WorkflowPlan:
    """Ask for confirmation; after too many attempts, escalate instead."""
    flow, policy = state["flow"], state["policy"]
    attempts = {**(flow.attempts or {})}
    is_news = flow.asked != CONFIRM or is_changed(flow, state["wants"])
    attempts[CONFIRM] = 1 if is_news else attempts.get(CONFIRM, 0) + 1
    asked: GraphState = {**state, "flow": replace(flow, asked=CONFIRM, attempts=attempts)}
    if attempts[CONFIRM] > policy.max_questions:
        call = _call(asked, "unclear", f"read back {policy.max_questions} times, and nobody said yes")
        return _end(asked, [WorkflowTrigger.GAVE_UP], [reply_texts.GIVEN_UP], [call])
    text = reply_texts.reply(reply_texts.remarks(_remarks(state)), reply_texts.read_back(_ready(state)))
    return _end(asked, [WorkflowTrigger.ASKED], [text])


def _ready(state: GraphState) -> list[CalendarCommand]:
    """Return the complete and allowed commands without duplicates."""
    out = {finding.place for finding in state["findings"]}
    ready = [each for place, each in enumerate(commands(state["wants"])) if each and place not in out]
    return list(dict.fromkeys(ready))


def execute(state: GraphState) -> WorkflowPlan:
    """Send the allowed commands to the calendar."""
    ready = _ready(state)
    remarks = reply_texts.reply(reply_texts.remarks(_remarks(state)))
    flow = replace(state["flow"], plan=state["plan_id"], commands=tuple(ready), asked=None)
    planned: GraphState = {**state, "flow": flow}
    plan = _end(planned, [WorkflowTrigger.PLANNED, WorkflowTrigger.DISPATCHED], [remarks] if remarks else [])
    return plan._replace(commands=ready)


def give_up(state: GraphState, reason: str, issue: str, *, say: str) -> WorkflowPlan:
    """Escalate without changing anything, because a dependency is unavailable."""
    state = {"wants": state["flow"].wants, **state}
    return _end(state, [WorkflowTrigger.GAVE_UP], [say], [_call(state, reason, issue)])


def is_withdrawal(text: str) -> bool:
    """Return whether the whole message withdraws the request; "cancel our Saturday shift" does not."""
    from ..language.threads import is_cancelled  # lazy: the grammar is slow to load

    words = "".join(c if c.isalnum() or c.isspace() else " " for c in text.lower().replace("'", ""))
    return " ".join(words.split()) in _WITHDRAWALS or is_cancelled(text)


_WITHDRAWALS = frozenset(
    f"{first}{rest}"
    for first in ("", "no ", "oh ", "ok ", "sorry ", "actually ", "please ", "sorry ignore that ")
    for rest in (
        "cancel", "cancel that", "cancel it", "cancel this", "never mind", "nevermind", "nvm", "forget it",
        "forget that", "disregard", "disregard that", "scratch that", "ignore that", "drop it", "stop",
        "forget about it", "cancel my request", "cancel the request", "we figured it out",
    )
)  # fmt: skip


def _again(state: GraphState, asked: Sequence[RequestSlots]) -> tuple[int, str]:
    """Repeat the open question."""
    slot = state["flow"].asked or next(iter(state["extraction"].missing), SLOTS[-1])
    return next((place for place, want in enumerate(asked) if slot not in want), 0), slot


def _remarks(state: GraphState) -> list[str]:
    """Collect the warnings of the interpreter and the reasons of validation."""
    found = [finding.reason for finding in state.get("findings", ())]
    said = {_opening(reason) for reason in found}
    warned = [w for w in state["extraction"].warnings if _opening(w) not in said] if "extraction" in state else []
    return list(dict.fromkeys([*state.get("remarks", ()), *warned, *found]))


def _opening(remark: str) -> str:
    """Return the first words, which identify the same remark by the interpreter and by validation."""
    return " ".join("".join(c if c.isalnum() else " " for c in remark.lower()).split()[:5])


def _end(
    state: GraphState, causes: Sequence[WorkflowTrigger], replies: Sequence[str], calls: Sequence[Escalation] = ()
) -> WorkflowPlan:
    """Build the plan: the new state, its thread and its journal."""
    flow, context = state["flow"], state["context"]
    stage, journal = flow.stage, _understanding(state)
    for cause in causes:
        onward = next_stage(stage, cause)
        journal.append(ConversationEvent("state", {"from": stage, "to": onward, "cause": cause}))
        stage = onward
    made = state.get("wants", flow.wants)
    topic = topic_of(made, flow.topic)
    flow = replace(flow, stage=stage, wants=made, topic=flow.topic if topic in state["taken"] else topic)
    flow = flow.said(
        Utterance(context.speaker.name, context.speaker.squad, context.now, context.text, role=context.speaker.role),
        *(Utterance(US, None, context.now, text, is_ours=True) for text in replies),
    )
    return WorkflowPlan(flow, list(replies), (), list(calls), journal)


def _understanding(state: GraphState) -> list[ConversationEvent]:
    """Return the journal entries of what was read and understood."""
    days = state.get("days") or {day.date: day for day in state["context"].days}
    marks = {day.date: {squad: line(day, squad) for squad in (*day.crewed, *day.no_crew)} for day in days.values()}
    lines = [ConversationEvent("days", {"days": marks})] if days else []
    if "extraction" in state:
        found = state["extraction"]
        said = {
            "requests": [each._asdict() for each in found.requests],
            "warnings": list(found.warnings),
            "missing": list(found.missing),
            "reasoning": found.reasoning,
            "source": found.source,
        }
        lines.append(ConversationEvent("understood", said))
    lines += [ConversationEvent("finding", finding._asdict()) for finding in state.get("findings", ())]
    return lines


def topic_of(asked: Sequence[RequestSlots], before: str) -> str:
    """Return the operational days of the requests, or the previous topic while none is known."""
    return ",".join(sorted({want["date"].value for want in asked if "date" in want})) or before


def _call(state: GraphState, reason: str, issue: str) -> Escalation:
    flow, context = state["flow"], state["context"]
    key, speaker = f"{reason}:{flow.id}", context.speaker.name
    return Escalation(reason, issue, key, flow.squad, speaker, context.text, flow.id)
