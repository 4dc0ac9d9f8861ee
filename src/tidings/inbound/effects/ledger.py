"""The ledger: what a plan asks of a calendar, one row per command, written with its task in one transaction.

    planned ─▶ claimed ─▶ confirmed | refused | unknown
                              unknown ─(by reading only)─▶ confirmed | not_applied (sent again) | conflict
    superseded: a later command on the same half hours is done already

The key is a hash of tenant, calendar, command and plan. A plan's id is minted once, when the plan is stored:
whoever recovers finds the same key, and a squad may lose, regain and lose its crew in three plans of one day.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from enum import StrEnum
from typing import Any, NamedTuple

import orjson

from ...model.task import NewTask
from ...store.port import Row, TableRows
from ..calendar.day_grid import bounds
from ..domain import CalendarCommand, ShiftAction

QUEUE = "calendar"
KIND = "effect"
TRIES = 5  # of a calendar that does not answer
PRIORITY = 4  # what was begun goes before what has just come in

FOLLOWUP_QUEUE = "inbound"
FOLLOWUP_KIND = "followup"

_COLUMNS = (
    "key", "plan", "tenant", "calendar", "day", "squad", "action", "begins", "ends", "first_slot",
    "last_slot", "conversation", "who", "undoes", "planned_at",
)  # fmt: skip


class EffectState(StrEnum):
    """Where a command stands."""

    PLANNED = "planned"
    CLAIMED = "claimed"  # about to be sent, or sent
    CONFIRMED = "confirmed"  # seen on the calendar
    REFUSED = "refused"  # certainly not done
    UNKNOWN = "unknown"  # perhaps done: only reading tells
    NOT_APPLIED = "not_applied"  # read: it was not done, and may be sent again
    CONFLICT = "conflict"  # neither what was nor what should be: a person decides
    SUPERSEDED = "superseded"  # a later command has settled these half hours


class EffectPlan(NamedTuple):
    """What belongs to all commands of one plan."""

    id: str  # minted once, when the plan is stored
    calendar: str  # the calendar's name
    who: str  # for people: who asked
    conversation: str | None = None  # whom to tell of each result; None: nobody waits
    tenant: str = "default"
    undoes: str | None = None  # the key of the command that is taken back


class Effect(NamedTuple):
    """One row of the ledger, as the handler needs it."""

    task: int
    key: str
    plan: str
    tenant: str
    calendar: str
    command: CalendarCommand
    conversation: str | None
    state: EffectState
    pre: str | None
    expected: str | None
    told: bool


def plan_effects(
    plan: EffectPlan, commands: Sequence[CalendarCommand], *, now: int
) -> tuple[list[NewTask], TableRows]:
    """The tasks and ledger rows of a plan, for `store.enqueue`; the same command twice in a plan is one."""
    commands = list(dict.fromkeys(commands))
    tasks = [
        NewTask(
            QUEUE,
            KIND,
            now,
            plan.tenant,
            PRIORITY,
            ordering_key=f"{plan.calendar}/{command.date}",
            max_attempts=TRIES,
        )
        for command in commands
    ]
    return tasks, TableRows("effects", _COLUMNS, [_row(plan, command, now) for command in commands])


def idempotency_key(plan: EffectPlan, command: CalendarCommand) -> str:
    """What makes a command the same one on every try and in every process."""
    said = orjson.dumps([plan.tenant, plan.calendar, list(command), plan.id])
    return hashlib.sha256(said).hexdigest()[:32]


def effect_of(row: Sequence[Any]) -> Effect:
    """A row of the ledger, as it is loaded for its task."""
    task, key, plan, tenant, calendar, day, squad, action, begins, ends, conversation, state, *rest = row
    pre, expected, told = rest
    command = CalendarCommand(ShiftAction(action), squad, day, begins, ends)
    return Effect(
        task, key, plan, tenant, calendar, command, conversation, EffectState(state), pre, expected,
        bool(told),
    )  # fmt: skip


def command_of(row: Row) -> CalendarCommand:
    """What a row asks for."""
    return CalendarCommand(ShiftAction(row["action"]), row["squad"], row["day"], row["begins"], row["ends"])


def followup(
    plan: str, tenant: str, conversation: str | None, *, now: int
) -> tuple[list[NewTask], TableRows]:
    """What tells a conversation of a result; nothing where nobody waits."""
    tasks = (
        [NewTask(FOLLOWUP_QUEUE, FOLLOWUP_KIND, now, tenant, PRIORITY, ordering_key=conversation)]
        if conversation
        else []
    )
    return tasks, TableRows("followups", ("plan",), [(plan,)] * len(tasks))


def _row(plan: EffectPlan, command: CalendarCommand, now: int) -> tuple[Any, ...]:
    first, last = bounds(command)
    return (
        idempotency_key(plan, command),
        plan.id,
        plan.tenant,
        plan.calendar,
        command.date,
        command.squad,
        command.action.value,
        command.start,
        command.end,
        first,
        last,
        plan.conversation,
        plan.who,
        plan.undoes,
        now,
    )
