"""Stages of a workflow and the one table of moves between them.

Invariant: the table is total, every stage that is not an end has a way out by time alone (`IDLE`), and an end
stays one whatever late news comes. The schema repeats the set of stages as a CHECK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class WorkflowStage(StrEnum):
    """Where a workflow stands."""

    NEW = "new"
    WAITING = "waiting_for_input"
    READY = "ready"  # everything is known and allowed
    EXECUTING = "executing"  # its commands are in the ledger
    COMPLETED = "completed"
    PARTIAL = "partial"  # some commands were done, others not
    FAILED = "failed"  # none was done, or none was allowed
    CANCELLED = "cancelled"
    NEEDS_HUMAN = "needs_human"
    EXPIRED = "expired"


class WorkflowTrigger(StrEnum):
    """What moves a workflow."""

    ASKED = "asked"  # a question went out
    PLANNED = "planned"  # all requests are complete and allowed
    DISPATCHED = "dispatched"  # the commands were handed to the ledger
    NOTHING = "nothing"  # there is nothing to do
    REFUSED = "refused"  # a rule forbids all of it
    WITHDRAWN = "withdrawn"  # the squad does not want it any more
    GAVE_UP = "gave_up"  # still unclear, or what is needed does not answer
    ALL_DONE = "all_done"
    SOME_DONE = "some_done"
    NONE_DONE = "none_done"
    HANDED_BACK = "handed_back"  # by a person, to the bot
    CLOSED = "closed"  # by a person
    IDLE = "idle"  # nothing happened for a day


TERMINAL_STAGES = frozenset(
    {
        WorkflowStage.COMPLETED,
        WorkflowStage.PARTIAL,
        WorkflowStage.FAILED,
        WorkflowStage.CANCELLED,
        WorkflowStage.EXPIRED,
    }
)
ANSWERABLE = frozenset(
    {WorkflowStage.WAITING, WorkflowStage.NEEDS_HUMAN}
)  # what somebody says may go on with it
BUSY = frozenset({WorkflowStage.NEW, WorkflowStage.READY, WorkflowStage.EXECUTING})

_FROM_NEWS = {  # what a message may make of a workflow that is not at work
    WorkflowTrigger.ASKED: WorkflowStage.WAITING,
    WorkflowTrigger.PLANNED: WorkflowStage.READY,
    WorkflowTrigger.NOTHING: WorkflowStage.COMPLETED,
    WorkflowTrigger.REFUSED: WorkflowStage.FAILED,
    WorkflowTrigger.WITHDRAWN: WorkflowStage.CANCELLED,
    WorkflowTrigger.GAVE_UP: WorkflowStage.NEEDS_HUMAN,
    WorkflowTrigger.CLOSED: WorkflowStage.CANCELLED,
    WorkflowTrigger.IDLE: WorkflowStage.EXPIRED,
}
_FROM_THE_LEDGER = {
    WorkflowTrigger.ALL_DONE: WorkflowStage.COMPLETED,
    WorkflowTrigger.SOME_DONE: WorkflowStage.PARTIAL,
    WorkflowTrigger.NONE_DONE: WorkflowStage.FAILED,
}


def _moves(
    stage: WorkflowStage, *tables: Mapping[WorkflowTrigger, WorkflowStage]
) -> Mapping[WorkflowTrigger, WorkflowStage]:
    """Every cause has an answer; what is not named changes nothing."""
    return {
        cause: next((table[cause] for table in tables if cause in table), stage) for cause in WorkflowTrigger
    }


TRANSITIONS: Mapping[WorkflowStage, Mapping[WorkflowTrigger, WorkflowStage]] = {
    WorkflowStage.NEW: _moves(WorkflowStage.NEW, _FROM_NEWS),
    WorkflowStage.WAITING: _moves(WorkflowStage.WAITING, _FROM_NEWS),
    WorkflowStage.READY: _moves(
        WorkflowStage.READY,
        {
            WorkflowTrigger.DISPATCHED: WorkflowStage.EXECUTING,
            WorkflowTrigger.WITHDRAWN: WorkflowStage.CANCELLED,
            WorkflowTrigger.CLOSED: WorkflowStage.CANCELLED,
            WorkflowTrigger.GAVE_UP: WorkflowStage.NEEDS_HUMAN,
            WorkflowTrigger.IDLE: WorkflowStage.NEEDS_HUMAN,
        },
    ),
    WorkflowStage.EXECUTING: _moves(
        WorkflowStage.EXECUTING,
        _FROM_THE_LEDGER,
        {WorkflowTrigger.GAVE_UP: WorkflowStage.NEEDS_HUMAN, WorkflowTrigger.IDLE: WorkflowStage.NEEDS_HUMAN},
    ),
    WorkflowStage.NEEDS_HUMAN: _moves(
        WorkflowStage.NEEDS_HUMAN,
        {WorkflowTrigger.HANDED_BACK: WorkflowStage.WAITING},
        _FROM_NEWS,
        _FROM_THE_LEDGER,
    ),
    **{stage: _moves(stage) for stage in WorkflowStage if stage in TERMINAL_STAGES},
}


def next_stage(stage: WorkflowStage, *causes: WorkflowTrigger) -> WorkflowStage:
    """Where one cause after the other leads."""
    for cause in causes:
        stage = TRANSITIONS[stage][cause]
    return stage
