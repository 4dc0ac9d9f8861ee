"""Workflows as decisions: stages, rules of the house, both runners of the graph, words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidings.inbound import source_notices
from tidings.inbound.domain import (
    CalendarCommand,
    CalendarDay,
    Extraction,
    Intent,
    InterpreterContext,
    ShiftAction,
    ShiftRequest,
    Speaker,
    Utterance,
    WorkflowRelation,
)
from tidings.inbound.escalation.reasons import REASONS, format_escalation
from tidings.inbound.workflow import reply_texts
from tidings.inbound.workflow.correlation import MessageDecision, band, choose
from tidings.inbound.workflow.graph import BRANCHES, NEXT, LangGraphRunner, PlainRunner, nodes
from tidings.inbound.workflow.instance import SlotValue, Workflow, read
from tidings.inbound.workflow.plans import GraphState, WorkflowPlan, is_withdrawal
from tidings.inbound.workflow.repository import flow_row
from tidings.inbound.workflow.settings import WorkflowSettings
from tidings.inbound.workflow.state_machine import (
    TERMINAL_STAGES,
    TRANSITIONS,
    WorkflowStage,
    WorkflowTrigger,
    next_stage,
)
from tidings.inbound.workflow.validation import validate_requests
from tidings.model.errors import StoreUnusable
from tidings.model.time import SECOND
from tidings.store.migrations import load_migrations

NOW = 1_800_000_000 * SECOND  # Friday 15 January 2027, 08:00 UTC
SAT = "20270116"
HOUSE = WorkflowSettings(squads=("34", "42"), timezone="UTC")
ANN, ADA = Speaker("ann", "Ann", "34", "member"), Speaker("ada", "Ada", "34", "officer")


def test_every_stage_handles_every_trigger() -> None:
    """The table of moves is total (D6)."""
    assert set(TRANSITIONS) == set(WorkflowStage)
    assert all(set(moves) == set(WorkflowTrigger) for moves in TRANSITIONS.values())


def test_every_non_terminal_stage_times_out() -> None:
    """From every stage an end can be reached, and by time alone, too; an end stays one (D6)."""
    for stage in WorkflowStage:
        assert next_stage(stage, *([WorkflowTrigger.IDLE] * len(WorkflowStage))) in TERMINAL_STAGES
        reached, last = {stage}, set[WorkflowStage]()
        while reached != last:
            last, reached = reached, reached | {to for each in reached for to in TRANSITIONS[each].values()}
        assert reached & TERMINAL_STAGES
    assert all(set(TRANSITIONS[stage].values()) == {stage} for stage in TERMINAL_STAGES)


def test_every_stage_can_be_reached_from_new() -> None:
    """No word that nobody uses."""
    reached, last = {WorkflowStage.NEW}, set[WorkflowStage]()
    while reached != last:
        last, reached = reached, reached | {to for each in reached for to in TRANSITIONS[each].values()}
    assert reached == set(WorkflowStage)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_schema_knows_the_same_stages(dialect: str) -> None:
    """The CHECK repeats them."""
    sql = next(m.sql for m in load_migrations(dialect) if m.name == "0001_schema")
    assert all(f"'{stage}'" in sql for stage in WorkflowStage)


def test_the_graph_leads_only_to_nodes_that_are_there() -> None:
    """Its edges are data, for both runners."""
    made = nodes(Told(Extraction((), (), (), "", "t")), _empty)
    targets = {to for places in BRANCHES.values() for to in places}
    targets |= {to for to in NEXT.values() if isinstance(to, str)}
    assert {*NEXT, *targets} == set(made)


class Told:
    """A mind that says what it was told to."""

    name = "told"

    def __init__(self, *extractions: Extraction) -> None:
        self._extractions = list(extractions)

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Not asked here."""
        raise NotImplementedError

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Not asked here."""
        raise NotImplementedError

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """The next one."""
        return self._extractions.pop(0)


async def _empty(date: str) -> CalendarDay:
    return CalendarDay(date, {})


FULL = ShiftRequest(ShiftAction.ADD, "34", SAT, "1800", "0600")
CASES: Sequence[tuple[Sequence[ShiftRequest], WorkflowStage, int]] = [
    ([FULL], WorkflowStage.EXECUTING, 1),
    ([FULL, FULL], WorkflowStage.EXECUTING, 1),
    ([FULL._replace(squad=None)], WorkflowStage.EXECUTING, 1),
    ([FULL._replace(start=None, end=None)], WorkflowStage.WAITING, 0),
    ([FULL, FULL._replace(date=None)], WorkflowStage.WAITING, 0),
    ([FULL._replace(squad="42")], WorkflowStage.FAILED, 0),
    ([FULL, FULL._replace(squad="42")], WorkflowStage.EXECUTING, 1),
    ([FULL._replace(action=ShiftAction.REMOVE)], WorkflowStage.COMPLETED, 0),
    ([FULL, FULL._replace(action=ShiftAction.NO_CREW)], WorkflowStage.WAITING, 0),
    ([], WorkflowStage.COMPLETED, 0),
]


@pytest.mark.parametrize(("requests", "stage", "commands"), CASES)
async def test_both_runners_make_the_same_plan(
    requests: Sequence[ShiftRequest], stage: WorkflowStage, commands: int
) -> None:
    """The graph can be run with LangGraph or without (reference, form C)."""
    found = Extraction(requests, (), (), "", "told")
    plain = await PlainRunner(Told(found), _empty).run(_sheet())
    graph = await LangGraphRunner(Told(found), _empty).run(_sheet())

    assert plain == graph
    assert (plain.flow.stage, len(plain.commands)) == (stage, commands)


async def test_a_request_without_an_interpretation_is_escalated() -> None:
    """Degrade to rules, then to a person; never guess (D13)."""
    plan = await PlainRunner(Told(Extraction((), (), (), "both are down", "unknown")), _empty).run(_sheet())

    assert plan.flow.stage is WorkflowStage.NEEDS_HUMAN
    assert [call.reason for call in plan.calls] == ["unclear"]


async def test_questions_are_counted_per_slot() -> None:
    """Attempts per question, not per workflow (D12)."""
    nothing = Extraction([ShiftRequest(ShiftAction.ADD, "34")], (), (), "", "told")
    dated = Extraction([ShiftRequest(ShiftAction.ADD, "34", SAT)], (), (), "", "told")
    runner = PlainRunner(Told(nothing, nothing, dated, dated, dated), _empty)
    asked, flow = [], _flow()
    for _ in range(5):
        plan: WorkflowPlan = await runner.run(_sheet(flow))
        flow = plan.flow
        asked.append((flow.asked, flow.stage.value))

    assert asked == [
        ("date", "waiting_for_input"),
        ("date", "waiting_for_input"),
        ("start", "waiting_for_input"),
        ("start", "waiting_for_input"),
        ("start", "needs_human"),
    ]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({}, None),
        ({"squad": "99"}, "unknown_squad"),
        ({"date": "20270230"}, "no_such_date"),
        ({"start": "2460"}, "no_such_time"),
        ({"start": "1815"}, "off_grid"),
        ({"start": "1800", "end": "1700"}, "end_before_start"),
        ({"start": "0600", "end": "0600"}, None),
        ({"start": "0000", "end": "0600"}, None),
        ({"date": "20270114"}, "past"),
        ({"date": "20270114", "start": "0600", "end": "0600"}, "past"),
        ({"date": "20270115", "start": "0600", "end": "0800"}, "past"),
        ({"date": "20270115", "start": "0600", "end": "0830"}, None),
        ({"date": "20290101"}, "too_far"),
        ({"squad": "42"}, "no_authority"),
    ],
)
def test_requests_are_validated(change: dict[str, str], rule: str | None) -> None:
    """Each with its reason; a night belongs to the day it starts (D10)."""
    found = validate_requests([_want(change)], _days(change), ANN, "34", HOUSE, NOW)

    assert [finding.rule for finding in found] == ([rule] if rule else [])


@pytest.mark.parametrize(
    ("action", "crewed", "marked", "rule"),
    [
        ("add", range(24, 48), (), "double_booking"),
        ("add", range(24, 30), (), None),
        ("remove", (), (), "not_there"),
        ("remove", range(24, 30), (), None),
        ("no_crew", (), (), None),
        ("no_crew", (), range(24, 48), "marked_already"),
    ],
)
def test_needless_requests_are_found(
    action: str, crewed: Sequence[int], marked: Sequence[int], rule: str | None
) -> None:
    """Double booking, and taking out what is not there."""
    days = {SAT: CalendarDay(SAT, {"34": frozenset(crewed)}, no_crew={"34": frozenset(marked)})}
    found = validate_requests([_want({"action": action})], days, ANN, "34", HOUSE, NOW)

    assert [finding.rule for finding in found] == ([rule] if rule else [])


def test_a_member_may_continue_an_officers_request_but_not_extend_it() -> None:
    """Authority is judged by who named the squad (D5)."""
    by_officer = {**_want({}), "squad": SlotValue("42", "ada", "34", "officer", NOW)}
    by_member = {**_want({}), "squad": SlotValue("42", "ann", "34", "member", NOW)}

    assert validate_requests([by_officer], _days({}), ANN, "34", HOUSE, NOW) == []
    assert [f.rule for f in validate_requests([by_member], _days({}), ANN, "34", HOUSE, NOW)] == ["no_authority"]
    assert validate_requests([by_member], _days({}), ADA, "34", HOUSE, NOW) == []


@pytest.mark.parametrize(
    ("text", "is_it"),
    [
        ("Never mind.", True),
        ("cancel that!", True),
        ("Sorry, ignore that", True),
        ("cancel our Saturday night shift", False),
        ("we stop at 1800", False),
    ],
)
def test_a_withdrawal_is_the_whole_message(text: str, is_it: bool) -> None:
    """A request to cancel a shift is a request."""
    assert is_withdrawal(text) is is_it


@pytest.mark.parametrize(
    ("is_request", "confidence", "decision"),
    [
        (True, 50, MessageDecision.STARTED),
        (True, 49, MessageDecision.REVIEW),
        (True, 30, MessageDecision.REVIEW),
        (True, 29, MessageDecision.UNSURE),
        (None, 45, MessageDecision.REVIEW),
        (None, 90, MessageDecision.REVIEW),
        (False, 99, MessageDecision.NOISE),
    ],
)
def test_intent_bands_by_confidence(is_request: bool | None, confidence: int, decision: MessageDecision) -> None:
    """50 and more start, 30 to 49 are listed, less is told; what nobody knows never starts (D9)."""
    assert band(Intent(is_request, (), confidence, "", "t"), start_threshold=50, review_threshold=30) is decision


def test_several_open_workflows_are_matched_by_day_and_question() -> None:
    """With a warning where it was a guess (D6)."""
    first = replace(_flow("1"), stage=WorkflowStage.WAITING, topic="20270116", asked="start")
    second = replace(_flow("2"), stage=WorkflowStage.WAITING, topic="20270117", asked="date")

    assert choose([first, second], "on the 16th", ["20270116"]).flow is first
    assert choose([first, second], "1800-0600", []).flow is first
    assert choose([first, second], "yes", []) == (second, True)
    assert choose([replace(first, stage=WorkflowStage.EXECUTING)], "yes", []).flow is None


def test_a_workflow_survives_serialization() -> None:
    """State is our own JSON; a newer schema is refused, not misread."""
    flow = replace(
        _flow(), wants=(_want({}),), thread=(Utterance("Ann", "34", NOW, "hi"),), attempts={"0.date": 1},
        commands=(CalendarCommand(ShiftAction.ADD, "34", SAT, "1800", "0600"),), plan="p", doubts=1,
    )  # fmt: skip
    row = flow_row(flow, NOW, idle=1)

    assert read(row) == flow
    with pytest.raises(StoreUnusable, match="newer version"):
        read({**row, "schema": 99})


def test_a_summary_states_partial_success() -> None:
    """Each command with its result (D11)."""
    command = CalendarCommand(ShiftAction.NO_CREW, "34", SAT, "1800", "0600")
    done, not_done = (reply_texts.CommandResult(command, True), reply_texts.CommandResult(command, False, "refused"))

    assert reply_texts.summary([done]) == "Done:\n✓ no crew for 34, Sat 16 Jan 1800-0600"
    assert reply_texts.summary([done, not_done]).startswith("Only 1 of 2 done:")
    assert reply_texts.summary([not_done]).startswith("Not done:")
    assert len(reply_texts.summary([not_done] * 40)) <= reply_texts.LONGEST


def test_a_notice_has_issue_context_and_remedy() -> None:
    """Issue, workflow, squad, user, last message, what to do (D12)."""
    facts = {"issue": "it is stuck", "workflow": "w1", "squad": "34", "speaker": "Ann", "text": "help", "case": "c1"}
    for reason in REASONS:
        text = format_escalation({**facts, "reason": reason})
        for part in ("it is stuck", "w1", "34", "Ann", "help", "What to do: "):
            assert part in text


def _flow(id_: str = "w1") -> Workflow:
    return Workflow(id_, "default", "crew/g1", "34", NOW)


def _sheet(flow: Workflow | None = None) -> GraphState:
    scene = InterpreterContext(NOW, "UTC", HOUSE.squads, ANN, "text")
    return {
        "flow": flow or _flow(), "context": scene, "policy": HOUSE, "now": NOW, "plan_id": "p1",
        "taken": frozenset(), "remarks": [],
    }  # fmt: skip


def _want(change: dict[str, str]) -> dict[str, SlotValue]:
    values = {"action": "add", "squad": "34", "date": SAT, "start": "1800", "end": "0600", **change}
    return {name: SlotValue(value, "ann", "34", "member", NOW) for name, value in values.items()}


def _days(change: dict[str, str]) -> dict[str, CalendarDay]:
    date = change.get("date", SAT)
    return {date: CalendarDay(date, {})}


@pytest.mark.parametrize("notice", [source_notices.FAILING, source_notices.OVERRUN, source_notices.GAP])
def test_every_notice_about_a_source_has_its_own_remedy(notice: str) -> None:
    """Escalations look it up by the event type; an unknown one would get the general remedy."""
    assert notice.replace(".", "_") in REASONS
