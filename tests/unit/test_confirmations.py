"""Uncertain requests are read back and executed only after a yes (D7)."""

from __future__ import annotations

import pytest

from tidings.inbound.domain import (
    CalendarDay,
    Extraction,
    Intent,
    InterpreterContext,
    ShiftAction,
    ShiftRequest,
    Speaker,
    WorkflowRelation,
)
from tidings.inbound.workflow.confirmation import CONFIRM, is_no, is_yes
from tidings.inbound.workflow.correlation import fits
from tidings.inbound.workflow.graph import LangGraphRunner, PlainRunner
from tidings.inbound.workflow.instance import Workflow
from tidings.inbound.workflow.plans import GraphState, WorkflowPlan
from tidings.inbound.workflow.settings import WorkflowSettings
from tidings.inbound.workflow.state_machine import WorkflowStage
from tidings.model.time import SECOND

NOW = 1_800_000_000 * SECOND  # Friday 15 January 2027, 08:00 UTC
SAT, SUN = "20270116", "20270117"
WANTED = ShiftRequest(ShiftAction.ADD, "34", SAT, "1800", "0600")
ANN = Speaker("ann", "Ann", "34", "member")


class Reader:
    """A mind that reads one request, loosely or not, and leaves what is open as it is."""

    name = "reader"

    def __init__(self, *requests: ShiftRequest, is_loose: bool) -> None:
        self._requests, self._is_loose = requests, is_loose

    async def intent(self, scene: InterpreterContext) -> Intent:
        """Not asked here."""
        raise NotImplementedError

    async def relate(self, scene: InterpreterContext) -> WorkflowRelation:
        """Not asked here."""
        raise NotImplementedError

    async def extract(self, scene: InterpreterContext) -> Extraction:
        """The request, or what is open."""
        told = self._requests or tuple(scene.open_requests)
        return Extraction(told, (), (), "", self.name, is_loose=self._is_loose and bool(self._requests))


async def _empty(date: str) -> CalendarDay:
    return CalendarDay(date, {})


async def _said(text: str, flow: Workflow | None, *requests: ShiftRequest, is_loose: bool = True) -> WorkflowPlan:
    """The plan that both runners make of a message."""
    flow = flow or Workflow("f", "t", "c", "34", NOW)
    scene = InterpreterContext(NOW, "UTC", ("34", "42"), ANN, text, open_requests=flow.requests, asked=flow.asked)
    sheet: GraphState = {
        "flow": flow, "context": scene, "policy": WorkflowSettings(squads=("34", "42"), timezone="UTC"), "now": NOW,
        "plan_id": "p", "taken": frozenset(), "remarks": (),
    }  # fmt: skip
    plain = await PlainRunner(Reader(*requests, is_loose=is_loose), _empty).run(sheet)
    assert plain == await LangGraphRunner(Reader(*requests, is_loose=is_loose), _empty).run(sheet)
    return plain


async def test_an_uncertain_request_is_confirmed_with_a_yes() -> None:
    """Nothing is in the ledger before the yes."""
    asked = await _said("sat night? why not", None, WANTED)

    assert (asked.flow.stage, asked.flow.asked, asked.commands) == (WorkflowStage.WAITING, CONFIRM, ())
    assert asked.replies == [
        "I understood: a crew for 34, Sat 16 Jan 1800-0600. Is that right? Please answer yes or no."
    ]
    done = await _said("yes please", asked.flow)
    assert done.flow.stage is WorkflowStage.EXECUTING
    assert [each.date for each in done.commands] == [SAT]


async def test_an_explicit_request_needs_no_confirmation() -> None:
    """A needless question is a fault, too."""
    plan = await _said("add us saturday night", None, WANTED, is_loose=False)

    assert plan.flow.stage is WorkflowStage.EXECUTING


async def test_a_no_drops_the_request() -> None:
    """The calendar stays as it is."""
    asked = await _said("sat night? why not", None, WANTED)

    dropped = await _said("no", asked.flow)

    assert (dropped.flow.stage, dropped.commands) == (WorkflowStage.CANCELLED, ())


async def test_neither_yes_nor_no_executes_nothing_and_is_escalated() -> None:
    """D12: two tries, then a person."""
    first = await _said("sat night? why not", None, WANTED)
    second = await _said("let me ask Bob", first.flow)
    third = await _said("still asking", second.flow)

    assert [plan.flow.stage for plan in (second, third)] == [WorkflowStage.WAITING, WorkflowStage.NEEDS_HUMAN]
    assert not second.commands and not third.commands
    assert [call.reason for call in third.calls] == ["unclear"]


async def test_a_correction_is_confirmed_again() -> None:
    """A yes is a yes to what was read back last, however it was said."""
    first = await _said("sat night? why not", None, WANTED)

    second = await _said("sunday", first.flow, WANTED._replace(date=SUN), is_loose=False)

    assert (second.flow.stage, second.commands) == (WorkflowStage.WAITING, ())
    assert "Sun 17 Jan" in second.replies[0]
    assert [each.date for each in (await _said("yep", second.flow)).commands] == [SUN]


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("Yes", True, False), ("yep, thanks!", True, False), ("that's right", True, False),
        ("👍", True, False), ("ok go ahead", True, False), ("Correct.", True, False), ("sí", False, False),
        ("no", False, True), ("Nope, that's wrong", False, True), ("❌", False, True),
        ("yes but until 2200", False, False), ("no crew", False, False), ("yes or no?", False, False),
        ("not right now", False, False), ("ok not saturday", False, False), ("", False, False),
    ],
)  # fmt: skip
def test_yes_and_no_are_the_whole_message(text: str, yes: bool, no: bool) -> None:
    """Whoever says more may mean something else."""
    assert (is_yes(text), is_no(text)) == (yes, no)
    assert fits(text, (), CONFIRM) is (yes or no)
