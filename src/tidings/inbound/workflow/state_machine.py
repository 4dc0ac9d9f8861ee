"""The state machine of a workflow: stages, triggers and one transition table.

Invariant: every stage handles every trigger, every non-terminal stage times out (`IDLE`), and a terminal
stage never changes. A CHECK in the schema repeats the stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class WorkflowStage(StrEnum):
    """The stage of a workflow."""

    NEW = "new"
    WAITING = "waiting_for_input"
    READY = "ready"  # complete and allowed
    EXECUTING = "executing"  # its commands are in the ledger
    COMPLETED = "completed"
    PARTIAL = "partial"  # some commands were done, others not
    FAILED = "failed"  # no command was done or allowed
    CANCELLED = "cancelled"
    NEEDS_HUMAN = "needs_human"
    EXPIRED = "expired"


class WorkflowTrigger(StrEnum):
    """An event that moves a workflow."""

    ASKED = "asked"  # a question was sent
    PLANNED = "planned"  # all requests are complete and allowed
    DISPATCHED = "dispatched"  # the commands were written to the ledger
    NOTHING = "nothing"  # there is nothing to do
    REFUSED = "refused"  # validation refused every request
    WITHDRAWN = "withdrawn"  # the squad withdrew the request
    GAVE_UP = "gave_up"  # still unclear, or a dependency is unavailable
    ALL_DONE = "all_done"
    SOME_DONE = "some_done"
    NONE_DONE = "none_done"
    HANDED_BACK = "handed_back"  # by a person, to the bot
    CLOSED = "closed"  # by a person
    IDLE = "idle"  # the idle timeout has passed


TERMINAL_STAGES = frozenset({
    WorkflowStage.COMPLETED, WorkflowStage.PARTIAL, WorkflowStage.FAILED, WorkflowStage.CANCELLED,
    WorkflowStage.EXPIRED,
})  # fmt: skip
ANSWERABLE = frozenset({WorkflowStage.WAITING, WorkflowStage.NEEDS_HUMAN})  # a message may continue it
BUSY = frozenset({WorkflowStage.NEW, WorkflowStage.READY, WorkflowStage.EXECUTING})

_FROM_MESSAGES = {  # transitions that a message may cause while no command is running
    WorkflowTrigger.ASKED: WorkflowStage.WAITING,
    WorkflowTrigger.PLANNED: WorkflowStage.READY,
    WorkflowTrigger.NOTHING: WorkflowStage.COMPLETED,
    WorkflowTrigger.REFUSED: WorkflowStage.FAILED,
    WorkflowTrigger.WITHDRAWN: WorkflowStage.CANCELLED,
    WorkflowTrigger.GAVE_UP: WorkflowStage.NEEDS_HUMAN,
    WorkflowTrigger.CLOSED: WorkflowStage.CANCELLED,
    WorkflowTrigger.IDLE: WorkflowStage.EXPIRED,
}
_FROM_LEDGER = {
    WorkflowTrigger.ALL_DONE: WorkflowStage.COMPLETED,
    WorkflowTrigger.SOME_DONE: WorkflowStage.PARTIAL,
    WorkflowTrigger.NONE_DONE: WorkflowStage.FAILED,
}


def _moves(
    stage: WorkflowStage, *tables: Mapping[WorkflowTrigger, WorkflowStage]
) -> Mapping[WorkflowTrigger, WorkflowStage]:
    """Return a row of the table; a trigger that no table names changes nothing."""
    return {cause: next((table[cause] for table in tables if cause in table), stage) for cause in WorkflowTrigger}


TRANSITIONS: Mapping[WorkflowStage, Mapping[WorkflowTrigger, WorkflowStage]] = {
    WorkflowStage.NEW: _moves(WorkflowStage.NEW, _FROM_MESSAGES),
    WorkflowStage.WAITING: _moves(WorkflowStage.WAITING, _FROM_MESSAGES),
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
        _FROM_LEDGER,
        {WorkflowTrigger.GAVE_UP: WorkflowStage.NEEDS_HUMAN, WorkflowTrigger.IDLE: WorkflowStage.NEEDS_HUMAN},
    ),
    WorkflowStage.NEEDS_HUMAN: _moves(
        WorkflowStage.NEEDS_HUMAN, {WorkflowTrigger.HANDED_BACK: WorkflowStage.WAITING}, _FROM_MESSAGES, _FROM_LEDGER
    ),
    **{stage: _moves(stage) for stage in WorkflowStage if stage in TERMINAL_STAGES},
}


def next_stage(stage: WorkflowStage, *causes: WorkflowTrigger) -> WorkflowStage:
    """Return the stage after these triggers, applied in order."""
    for cause in causes:
        stage = TRANSITIONS[stage][cause]
    return stage
