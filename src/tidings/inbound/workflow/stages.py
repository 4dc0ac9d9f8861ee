"""Stages of a workflow and the one table of moves between them.

Invariant: the table is total, every stage that is not an end has a way out by time alone (`IDLE`), and an end
stays one whatever late news comes. The schema repeats the set of stages as a CHECK.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum


class Stage(StrEnum):
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


class Cause(StrEnum):
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


ENDS = frozenset({Stage.COMPLETED, Stage.PARTIAL, Stage.FAILED, Stage.CANCELLED, Stage.EXPIRED})
ANSWERABLE = frozenset({Stage.WAITING, Stage.NEEDS_HUMAN})  # what somebody says may go on with it
BUSY = frozenset({Stage.NEW, Stage.READY, Stage.EXECUTING})

_FROM_NEWS = {  # what a message may make of a workflow that is not at work
    Cause.ASKED: Stage.WAITING,
    Cause.PLANNED: Stage.READY,
    Cause.NOTHING: Stage.COMPLETED,
    Cause.REFUSED: Stage.FAILED,
    Cause.WITHDRAWN: Stage.CANCELLED,
    Cause.GAVE_UP: Stage.NEEDS_HUMAN,
    Cause.CLOSED: Stage.CANCELLED,
    Cause.IDLE: Stage.EXPIRED,
}
_FROM_THE_LEDGER = {
    Cause.ALL_DONE: Stage.COMPLETED,
    Cause.SOME_DONE: Stage.PARTIAL,
    Cause.NONE_DONE: Stage.FAILED,
}


def _moves(stage: Stage, *tables: Mapping[Cause, Stage]) -> Mapping[Cause, Stage]:
    """Every cause has an answer; what is not named changes nothing."""
    return {cause: next((table[cause] for table in tables if cause in table), stage) for cause in Cause}


MOVES: Mapping[Stage, Mapping[Cause, Stage]] = {
    Stage.NEW: _moves(Stage.NEW, _FROM_NEWS),
    Stage.WAITING: _moves(Stage.WAITING, _FROM_NEWS),
    Stage.READY: _moves(
        Stage.READY,
        {
            Cause.DISPATCHED: Stage.EXECUTING,
            Cause.WITHDRAWN: Stage.CANCELLED,
            Cause.CLOSED: Stage.CANCELLED,
            Cause.GAVE_UP: Stage.NEEDS_HUMAN,
            Cause.IDLE: Stage.NEEDS_HUMAN,
        },
    ),
    Stage.EXECUTING: _moves(
        Stage.EXECUTING,
        _FROM_THE_LEDGER,
        {Cause.GAVE_UP: Stage.NEEDS_HUMAN, Cause.IDLE: Stage.NEEDS_HUMAN},
    ),
    Stage.NEEDS_HUMAN: _moves(
        Stage.NEEDS_HUMAN, {Cause.HANDED_BACK: Stage.WAITING}, _FROM_NEWS, _FROM_THE_LEDGER
    ),
    **{stage: _moves(stage) for stage in Stage if stage in ENDS},
}


def moved(stage: Stage, *causes: Cause) -> Stage:
    """Where one cause after the other leads."""
    for cause in causes:
        stage = MOVES[stage][cause]
    return stage
