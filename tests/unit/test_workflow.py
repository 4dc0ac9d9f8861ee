"""Workflows as decisions: stages, rules of the house, both runners of the graph, words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tidings.inbound.people.telling import REASONS, in_words
from tidings.inbound.words import (
    Action,
    Command,
    Day,
    Extraction,
    Intent,
    Relation,
    Request,
    Scene,
    Speaker,
    Utterance,
)
from tidings.inbound.workflow import wording
from tidings.inbound.workflow.book import flow_row
from tidings.inbound.workflow.choosing import Decision, band, choose
from tidings.inbound.workflow.flow import Flow, Slot, read
from tidings.inbound.workflow.graph import BRANCHES, NEXT, PlainRunner, nodes
from tidings.inbound.workflow.langgraph import GraphRunner
from tidings.inbound.workflow.planning import Plan, Sheet, is_withdrawal
from tidings.inbound.workflow.rules import House, judge
from tidings.inbound.workflow.stages import ENDS, MOVES, Cause, Stage, moved
from tidings.model.errors import WrongStore
from tidings.model.time import SECOND
from tidings.store.migrations import migrations

NOW = 1_800_000_000 * SECOND  # Friday 15 January 2027, 08:00 UTC
SAT = "20270116"
HOUSE = House(("34", "42"), "UTC")
ANN, ADA = Speaker("ann", "Ann", "34", "member"), Speaker("ada", "Ada", "34", "officer")


def test_every_cause_has_an_answer_in_every_stage() -> None:
    """The table of moves is total (D6)."""
    assert set(MOVES) == set(Stage)
    assert all(set(moves) == set(Cause) for moves in MOVES.values())


def test_no_stage_is_a_trap() -> None:
    """From every stage an end can be reached, and by time alone, too; an end stays one (D6)."""
    for stage in Stage:
        assert moved(stage, *([Cause.IDLE] * len(Stage))) in ENDS
        reached, last = {stage}, set[Stage]()
        while reached != last:
            last, reached = reached, reached | {to for each in reached for to in MOVES[each].values()}
        assert reached & ENDS
    assert all(set(MOVES[stage].values()) == {stage} for stage in ENDS)


def test_every_stage_can_be_reached_from_new() -> None:
    """No word that nobody uses."""
    reached, last = {Stage.NEW}, set[Stage]()
    while reached != last:
        last, reached = reached, reached | {to for each in reached for to in MOVES[each].values()}
    assert reached == set(Stage)


@pytest.mark.parametrize("dialect", ["sqlite", "postgres"])
def test_the_schema_knows_the_same_stages(dialect: str) -> None:
    """The CHECK repeats them."""
    sql = next(m.sql for m in migrations(dialect) if m.name == "0008_workflows")
    assert all(f"'{stage}'" in sql for stage in Stage)


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

    async def intent(self, scene: Scene) -> Intent:
        """Not asked here."""
        raise NotImplementedError

    async def relate(self, scene: Scene) -> Relation:
        """Not asked here."""
        raise NotImplementedError

    async def extract(self, scene: Scene) -> Extraction:
        """The next one."""
        return self._extractions.pop(0)


async def _empty(date: str) -> Day:
    return Day(date, {})


FULL = Request(Action.ADD, "34", SAT, "1800", "0600")
CASES: Sequence[tuple[Sequence[Request], Stage, int]] = [
    ([FULL], Stage.EXECUTING, 1),
    ([FULL, FULL], Stage.EXECUTING, 1),
    ([FULL._replace(squad=None)], Stage.EXECUTING, 1),
    ([FULL._replace(start=None, end=None)], Stage.WAITING, 0),
    ([FULL, FULL._replace(date=None)], Stage.WAITING, 0),
    ([FULL._replace(squad="42")], Stage.FAILED, 0),
    ([FULL, FULL._replace(squad="42")], Stage.EXECUTING, 1),
    ([FULL._replace(action=Action.REMOVE)], Stage.COMPLETED, 0),
    ([FULL, FULL._replace(action=Action.NO_CREW)], Stage.WAITING, 0),
    ([], Stage.COMPLETED, 0),
]


@pytest.mark.parametrize(("requests", "stage", "commands"), CASES)
async def test_both_runners_make_the_same_plan(
    requests: Sequence[Request], stage: Stage, commands: int
) -> None:
    """The graph can be run with LangGraph or without (reference, form C)."""
    found = Extraction(requests, (), (), "", "told")
    plain = await PlainRunner(Told(found), _empty).run(_sheet())
    graph = await GraphRunner(Told(found), _empty).run(_sheet())

    assert plain == graph
    assert (plain.flow.stage, len(plain.commands)) == (stage, commands)


async def test_what_neither_model_nor_rules_understand_goes_to_a_person() -> None:
    """Degrade to rules, then to a person; never guess (D13)."""
    plan = await PlainRunner(Told(Extraction((), (), (), "both are down", "unknown")), _empty).run(_sheet())

    assert plan.flow.stage is Stage.NEEDS_HUMAN
    assert [call.reason for call in plan.calls] == ["unclear"]


async def test_questions_are_counted_for_each_thing_apart() -> None:
    """Attempts per question, not per workflow (D12)."""
    nothing = Extraction([Request(Action.ADD, "34")], (), (), "", "told")
    dated = Extraction([Request(Action.ADD, "34", SAT)], (), (), "", "told")
    runner = PlainRunner(Told(nothing, nothing, dated, dated, dated), _empty)
    asked, flow = [], _flow()
    for _ in range(5):
        plan: Plan = await runner.run(_sheet(flow))
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
def test_the_rules_of_the_house(change: dict[str, str], rule: str | None) -> None:
    """Each with its reason; a night belongs to the day it starts (D10)."""
    found = judge([_want(change)], _days(change), ANN, "34", HOUSE, NOW)

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
def test_what_is_so_already_is_not_done_again(
    action: str, crewed: Sequence[int], marked: Sequence[int], rule: str | None
) -> None:
    """Double booking, and taking out what is not there."""
    days = {SAT: Day(SAT, {"34": frozenset(crewed)}, no_crew={"34": frozenset(marked)})}
    found = judge([_want({"action": action})], days, ANN, "34", HOUSE, NOW)

    assert [finding.rule for finding in found] == ([rule] if rule else [])


def test_a_member_may_go_on_with_what_an_officer_began_but_not_widen_it() -> None:
    """Authority is judged by who named the squad (D5)."""
    by_officer = {**_want({}), "squad": Slot("42", "ada", "34", "officer", NOW)}
    by_member = {**_want({}), "squad": Slot("42", "ann", "34", "member", NOW)}

    assert judge([by_officer], _days({}), ANN, "34", HOUSE, NOW) == []
    assert [f.rule for f in judge([by_member], _days({}), ANN, "34", HOUSE, NOW)] == ["no_authority"]
    assert judge([by_member], _days({}), ADA, "34", HOUSE, NOW) == []


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
def test_taking_back_is_the_whole_message_or_not_at_all(text: str, is_it: bool) -> None:
    """A request to cancel a shift is a request."""
    assert is_withdrawal(text) is is_it


@pytest.mark.parametrize(
    ("is_request", "confidence", "decision"),
    [
        (True, 50, Decision.STARTED),
        (True, 49, Decision.REVIEW),
        (True, 30, Decision.REVIEW),
        (True, 29, Decision.UNSURE),
        (None, 45, Decision.REVIEW),
        (None, 90, Decision.REVIEW),
        (False, 99, Decision.NOISE),
    ],
)
def test_the_bands_of_intent(is_request: bool | None, confidence: int, decision: Decision) -> None:
    """50 and more start, 30 to 49 are listed, less is told; what nobody knows never starts (D9)."""
    assert band(Intent(is_request, (), confidence, "", "t"), start_at=50, review_at=30) is decision


def test_of_several_open_workflows_day_and_question_choose_then_the_newest() -> None:
    """With a warning where it was a guess (D6)."""
    first = replace(_flow("1"), stage=Stage.WAITING, topic="20270116", asked="start")
    second = replace(_flow("2"), stage=Stage.WAITING, topic="20270117", asked="date")

    assert choose([first, second], "on the 16th", ["20270116"]).flow is first
    assert choose([first, second], "1800-0600", []).flow is first
    assert choose([first, second], "yes", []) == (second, True)
    assert choose([replace(first, stage=Stage.EXECUTING)], "yes", []).flow is None


def test_a_workflow_comes_back_from_its_row_as_it_was() -> None:
    """State is our own JSON; a newer schema is refused, not misread."""
    flow = replace(
        _flow(), wants=(_want({}),), thread=(Utterance("Ann", "34", NOW, "hi"),), attempts={"0.date": 1},
        commands=(Command(Action.ADD, "34", SAT, "1800", "0600"),), plan="p", doubts=1,
    )  # fmt: skip
    row = flow_row(flow, NOW, idle=1)

    assert read(row) == flow
    with pytest.raises(WrongStore, match="newer program"):
        read({**row, "schema": 99})


def test_the_words_of_a_summary_say_partial_as_partial() -> None:
    """Each command with its result (D11)."""
    command = Command(Action.NO_CREW, "34", SAT, "1800", "0600")
    done, not_done = wording.Result(command, True), wording.Result(command, False, "refused")

    assert wording.summary([done]) == "Done:\n✓ no crew for 34, Sat 16 Jan 1800-0600"
    assert wording.summary([done, not_done]).startswith("Only 1 of 2 done:")
    assert wording.summary([not_done]).startswith("Not done:")
    assert len(wording.summary([not_done] * 40)) <= wording.LONGEST


def test_a_notice_says_what_an_admin_must_know() -> None:
    """Issue, workflow, squad, user, last message, what to do (D12)."""
    facts = {
        "issue": "it is stuck",
        "workflow": "w1",
        "squad": "34",
        "speaker": "Ann",
        "text": "help",
        "case": "c1",
    }
    for reason in REASONS:
        text = in_words({**facts, "reason": reason})
        for part in ("it is stuck", "w1", "34", "Ann", "help", "What to do: "):
            assert part in text


def _flow(id_: str = "w1") -> Flow:
    return Flow(id_, "default", "crew/g1", "34", NOW)


def _sheet(flow: Flow | None = None) -> Sheet:
    scene = Scene(NOW, "UTC", HOUSE.squads, ANN, "text")
    return {
        "flow": flow or _flow(), "scene": scene, "house": HOUSE, "now": NOW, "plan_id": "p1",
        "taken": frozenset(), "remarks": [],
    }  # fmt: skip


def _want(change: dict[str, str]) -> dict[str, Slot]:
    values = {"action": "add", "squad": "34", "date": SAT, "start": "1800", "end": "0600", **change}
    return {name: Slot(value, "ann", "34", "member", NOW) for name, value in values.items()}


def _days(change: dict[str, str]) -> dict[str, Day]:
    date = change.get("date", SAT)
    return {date: Day(date, {})}
