"""Planning: from a workflow, what was said and the days as read, to the next state and what follows. Pure.

A plan only says what shall be: whoever asked for it writes state, replies, commands and notices in one
transaction, or none of them.
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
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage
from .validation import ValidationFinding, WorkflowPolicy, commands

US = "Tidings"
NOBODY = "unknown"  # the source of an answer that neither a model nor rules could give


class ConversationEvent(NamedTuple):
    """One line of a conversation's journal."""

    what: str
    facts: Mapping[str, Any]


class WorkflowPlan(NamedTuple):
    """What one message makes of a workflow."""

    flow: Workflow
    replies: Sequence[str] = ()
    commands: Sequence[CalendarCommand] = ()
    calls: Sequence[Escalation] = ()  # for a person
    happened: Sequence[ConversationEvent] = ()


class GraphState(TypedDict, total=False):
    """What the nodes of the graph hand on to each other."""

    flow: Workflow
    scene: InterpreterContext
    house: WorkflowPolicy
    now: int  # by our clock; the scene has the time at which it was said
    plan_id: str
    taken: frozenset[str]  # topics of the squad's other workflows
    remarks: Sequence[str]  # to be said before anything else
    extraction: Extraction
    wants: tuple[RequestSlots, ...]
    is_unclear: bool  # the answer told nothing
    days: Mapping[str, CalendarDay]
    findings: Sequence[ValidationFinding]
    plan: WorkflowPlan


def understood(sheet: GraphState, extraction: Extraction) -> GraphState:
    """The requests with who said what. An answer that tells nothing leaves what is known."""
    flow, scene = sheet["flow"], sheet["scene"]
    own = scene.speaker.squad if scene.speaker.squad in sheet["house"].squads else None
    asked = [
        each._replace(squad=each.squad or own or _only(flow.squad, sheet["house"]))
        for each in extraction.requests
    ]
    is_unclear = not asked and bool(flow.wants)
    made = flow.wants if is_unclear else wants(flow.wants, asked, scene.speaker, scene.now)
    return {"extraction": extraction, "wants": made, "is_unclear": is_unclear}


def _only(squad: str, house: WorkflowPolicy) -> str | None:
    return squad if squad in house.squads else None


def after_extract(sheet: GraphState) -> str:
    """Where the graph goes on."""
    is_asked = sheet["flow"].asked == CONFIRM
    if sheet["flow"].wants and is_withdrawal(sheet["scene"].text):
        return "withdraw"
    if is_asked and is_no(sheet["scene"].text) and not is_changed(sheet["flow"], sheet["wants"]):
        return "withdraw"
    if not sheet["wants"]:
        return "clarify" if sheet["extraction"].missing else "nothing"
    if (sheet["is_unclear"] and not is_asked) or gap(sheet["wants"]) is not None:
        return "clarify"
    return "read"


def after_validate(sheet: GraphState) -> str:
    """What can be mended is asked for; what is left is done, or read back if it was said loosely."""
    findings = sheet["findings"]
    if any(finding.slot for finding in findings):
        return "clarify"
    if len(findings) < len(sheet["wants"]):
        is_loose, said = sheet["extraction"].is_loose, sheet["scene"].text
        return "confirm" if needs_yes(sheet["flow"], sheet["wants"], said, is_loose=is_loose) else "execute"
    return "nothing" if all(finding.is_needless for finding in findings) else "refuse"


def gap(asked: Sequence[RequestSlots]) -> tuple[int, str] | None:
    """The most important thing that is missing, and in which request."""
    holes = [
        (SLOTS.index(name), place) for place, want in enumerate(asked) for name in SLOTS if name not in want
    ]
    if not holes:
        return None
    rank, place = min(holes)
    return place, SLOTS[rank]


def withdraw(sheet: GraphState) -> WorkflowPlan:
    """'Never mind.'"""
    return _end(sheet, [WorkflowTrigger.WITHDRAWN], [reply_texts.withdrawn()])


def nothing(sheet: GraphState) -> WorkflowPlan:
    """No actions: what is to be said about it is said, and that was it."""
    said = reply_texts.reply(reply_texts.remarks(_remarks(sheet)))
    if sheet["extraction"].source == NOBODY:
        call = _call(sheet, "unclear", f"nobody could say what is wanted ({sheet['extraction'].reasoning})")
        return _end(sheet, [WorkflowTrigger.GAVE_UP], [reply_texts.given_up()], [call])
    plan = _end(sheet, [WorkflowTrigger.NOTHING], [said] if said else [])
    if said:
        return plan
    return plan._replace(calls=[_call(sheet, "review", "a request in which nothing to do was found")])


def refuse(sheet: GraphState) -> WorkflowPlan:
    """A rule forbids all of it."""
    return _end(sheet, [WorkflowTrigger.REFUSED], [reply_texts.reply(reply_texts.remarks(_remarks(sheet)))])


def clarify(sheet: GraphState) -> WorkflowPlan:
    """Ask for one thing; after the second try a person is asked instead."""
    flow, house = sheet["flow"], sheet["house"]
    asked = [dict(want) for want in sheet["wants"]]
    wrong = next((finding for finding in sheet.get("findings", ()) if finding.slot), None)
    if wrong is not None and wrong.slot:
        asked[wrong.place].pop(wrong.slot, None)
        place, slot = wrong.place, wrong.slot
    else:
        place, slot = gap(asked) or _again(sheet, asked)
    attempts = {**(flow.attempts or {})}
    question = f"{place}.{slot}"
    attempts[question] = attempts.get(question, 0) + 1
    flow = replace(flow, wants=tuple(asked), asked=slot, attempts=attempts)
    sheet = {**sheet, "flow": flow, "wants": tuple(asked)}
    if attempts[question] > house.max_questions:
        call = _call(sheet, "unclear", f"still unclear after {house.max_questions} questions: {slot}")
        is_news = flow.stage is not WorkflowStage.NEEDS_HUMAN
        return _end(sheet, [WorkflowTrigger.GAVE_UP], [reply_texts.given_up()] if is_news else [], [call])
    known = request(asked[place]) if asked else ShiftRequest()
    noted = [reply_texts.without_question(remark) for remark in _remarks(sheet)]
    text = reply_texts.reply(reply_texts.remarks(noted), reply_texts.question(slot, known, house))
    return _end(sheet, [WorkflowTrigger.ASKED], [text])


def confirm(sheet: GraphState) -> WorkflowPlan:
    """Read it back and wait for a yes; who never says it is asked by a person."""
    flow, house = sheet["flow"], sheet["house"]
    attempts = {**(flow.attempts or {})}
    is_news = flow.asked != CONFIRM or is_changed(flow, sheet["wants"])
    attempts[CONFIRM] = 1 if is_news else attempts.get(CONFIRM, 0) + 1
    asked: GraphState = {**sheet, "flow": replace(flow, asked=CONFIRM, attempts=attempts)}
    if attempts[CONFIRM] > house.max_questions:
        call = _call(asked, "unclear", f"read back {house.max_questions} times, and nobody said yes")
        return _end(asked, [WorkflowTrigger.GAVE_UP], [reply_texts.given_up()], [call])
    text = reply_texts.reply(reply_texts.remarks(_remarks(sheet)), reply_texts.read_back(_ready(sheet)))
    return _end(asked, [WorkflowTrigger.ASKED], [text])


def _ready(sheet: GraphState) -> list[CalendarCommand]:
    """All that is complete and allowed, each once."""
    out = {finding.place for finding in sheet["findings"]}
    ready = [each for place, each in enumerate(commands(sheet["wants"])) if each and place not in out]
    return list(dict.fromkeys(ready))


def execute(sheet: GraphState) -> WorkflowPlan:
    """What is ready goes to the calendar."""
    ready = _ready(sheet)
    remarks = reply_texts.reply(reply_texts.remarks(_remarks(sheet)))
    flow = replace(sheet["flow"], plan=sheet["plan_id"], commands=tuple(ready), asked=None)
    planned: GraphState = {**sheet, "flow": flow}
    plan = _end(planned, [WorkflowTrigger.PLANNED, WorkflowTrigger.DISPATCHED], [remarks] if remarks else [])
    return plan._replace(commands=ready)


def give_up(sheet: GraphState, reason: str, issue: str, *, say: str) -> WorkflowPlan:
    """Something that is needed does not answer: nothing is changed, and a person is asked."""
    sheet = {"wants": sheet["flow"].wants, **sheet}
    return _end(sheet, [WorkflowTrigger.GAVE_UP], [say], [_call(sheet, reason, issue)])


def is_withdrawal(text: str) -> bool:
    """The whole message says that it is not wanted any more; 'cancel our Saturday shift' is a request."""
    from ..language.threads import is_cancelled  # a grammar, which only whoever works needs

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


def _again(sheet: GraphState, asked: Sequence[RequestSlots]) -> tuple[int, str]:
    """The question that is open, once more."""
    slot = sheet["flow"].asked or next(iter(sheet["extraction"].missing), SLOTS[-1])
    return next((place for place, want in enumerate(asked) if slot not in want), 0), slot


def _remarks(sheet: GraphState) -> list[str]:
    """What is to be said besides: warnings of the understanding, and reasons of the rules."""
    found = [finding.reason for finding in sheet.get("findings", ())]
    said = {_opening(reason) for reason in found}
    warned = (
        [w for w in sheet["extraction"].warnings if _opening(w) not in said] if "extraction" in sheet else []
    )
    return list(dict.fromkeys([*sheet.get("remarks", ()), *warned, *found]))


def _opening(remark: str) -> str:
    """By which two remarks about the same thing are known: a mind and a rule may both have seen it."""
    return " ".join("".join(c if c.isalnum() else " " for c in remark.lower()).split()[:5])


def _end(
    sheet: GraphState,
    causes: Sequence[WorkflowTrigger],
    replies: Sequence[str],
    calls: Sequence[Escalation] = (),
) -> WorkflowPlan:
    """The new state with what was said, and its journal."""
    flow, scene = sheet["flow"], sheet["scene"]
    stage, journal = flow.stage, _understanding(sheet)
    for cause in causes:
        onward = next_stage(stage, cause)
        journal.append(ConversationEvent("state", {"from": stage, "to": onward, "cause": cause}))
        stage = onward
    made = sheet.get("wants", flow.wants)
    topic = topic_of(made, flow.topic)
    flow = replace(flow, stage=stage, wants=made, topic=flow.topic if topic in sheet["taken"] else topic)
    flow = flow.said(
        Utterance(scene.speaker.name, scene.speaker.squad, scene.now, scene.text, role=scene.speaker.role),
        *(Utterance(US, None, scene.now, text, is_ours=True) for text in replies),
    )
    return WorkflowPlan(flow, list(replies), (), list(calls), journal)


def _understanding(sheet: GraphState) -> list[ConversationEvent]:
    """What was read and understood on the way, for the journal."""
    days = sheet.get("days") or {day.date: day for day in sheet["scene"].days}
    lines = (
        [ConversationEvent("days", {"days": {day.date: _day(day) for day in days.values()}})] if days else []
    )
    if "extraction" in sheet:
        found = sheet["extraction"]
        said = {
            "requests": [each._asdict() for each in found.requests],
            "warnings": list(found.warnings),
            "missing": list(found.missing),
            "reasoning": found.reasoning,
            "source": found.source,
        }
        lines.append(ConversationEvent("understood", said))
    lines += [ConversationEvent("finding", finding._asdict()) for finding in sheet.get("findings", ())]
    return lines


def _day(day: CalendarDay) -> dict[str, str]:
    return {squad: line(day, squad) for squad in dict.fromkeys([*day.crewed, *day.no_crew])}


def topic_of(asked: Sequence[RequestSlots], before: str) -> str:
    """The operational days that a workflow is about; what it was about before while none is known."""
    return ",".join(sorted({want["date"].value for want in asked if "date" in want})) or before


def _call(sheet: GraphState, reason: str, issue: str) -> Escalation:
    flow, scene = sheet["flow"], sheet["scene"]
    return Escalation(
        reason,
        issue,
        squad=flow.squad,
        speaker=scene.speaker.name,
        text=scene.text,
        workflow=flow.id,
        key=f"{reason}:{flow.id}",
    )
