"""The ledger of calendar commands: one row per command, written with its task in one transaction.

    planned ─▶ claimed ─▶ confirmed | refused | unknown
                              unknown ─(by reading only)─▶ confirmed | not_applied (sent again) | conflict
    superseded: a later command on the same half hours is done

The idempotency key is a hash of tenant, calendar, command and plan. A plan's id is generated once, when the
plan is stored, so recovery finds the same key, and the same command may appear in several plans of one day.
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
TRIES = 5  # while the calendar is unavailable
PRIORITY = 4  # started work runs before new messages

FOLLOWUP_QUEUE = "inbound"
FOLLOWUP_KIND = "followup"

_COLUMNS = (
    "key", "plan", "tenant", "calendar", "day", "squad", "action", "begins", "ends", "first_slot",
    "last_slot", "conversation", "who", "undoes", "planned_at",
)  # fmt: skip


class EffectState(StrEnum):
    """The state of a command."""

    PLANNED = "planned"
    CLAIMED = "claimed"  # about to be sent, or sent
    CONFIRMED = "confirmed"  # verified on the calendar
    REFUSED = "refused"  # not done
    UNKNOWN = "unknown"  # possibly done: verify by reading
    NOT_APPLIED = "not_applied"  # verified as not done; may be sent again
    CONFLICT = "conflict"  # neither the previous nor the expected state: a person decides
    SUPERSEDED = "superseded"  # a later command covers these half hours


class EffectPlan(NamedTuple):
    """The properties that all commands of a plan share."""

    id: str  # generated once, when the plan is stored
    calendar: str  # the calendar's name
    who: str  # the person who asked, for the history
    conversation: str | None = None  # receives the results; None: nobody waits
    tenant: str = "default"
    undoes: str | None = None  # the key of the command that it undoes


class Effect(NamedTuple):
    """One row of the ledger."""

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


def plan_effects(plan: EffectPlan, commands: Sequence[CalendarCommand], *, now: int) -> tuple[list[NewTask], TableRows]:
    """Return the tasks and ledger rows of a plan, for `store.enqueue`; duplicate commands are dropped."""
    commands = list(dict.fromkeys(commands))
    tasks = [
        NewTask(QUEUE, KIND, now, plan.tenant, PRIORITY, ordering_key=key, max_attempts=TRIES)
        for key in [f"{plan.calendar}/{command.date}" for command in commands]
    ]
    return tasks, TableRows("effects", _COLUMNS, [_row(plan, command, now) for command in commands])


def idempotency_key(plan: EffectPlan, command: CalendarCommand) -> str:
    """Return the idempotency key of a command: the same for every attempt and process."""
    identity = orjson.dumps([plan.tenant, plan.calendar, list(command), plan.id])
    return hashlib.sha256(identity).hexdigest()[:32]


def effect_of(row: Sequence[Any]) -> Effect:
    """Parse a ledger row as loaded for its task."""
    task, key, plan, tenant, calendar, day, squad, action, begins, ends, conversation, state, *rest = row
    pre, expected, told = rest
    command = CalendarCommand(ShiftAction(action), squad, day, begins, ends)
    return Effect(
        task, key, plan, tenant, calendar, command, conversation, EffectState(state), pre, expected,
        bool(told),
    )  # fmt: skip


def command_of(row: Row) -> CalendarCommand:
    """Parse the command of a ledger row."""
    return CalendarCommand(ShiftAction(row["action"]), row["squad"], row["day"], row["begins"], row["ends"])


def followup(plan: str, tenant: str, conversation: str | None, *, now: int) -> tuple[list[NewTask], TableRows]:
    """Return the follow-up task that reports a result to its conversation; empty if nobody waits."""
    tasks = (
        [NewTask(FOLLOWUP_QUEUE, FOLLOWUP_KIND, now, tenant, PRIORITY, ordering_key=conversation)]
        if conversation
        else []
    )
    return tasks, TableRows("followups", ("plan",), [(plan,)] * len(tasks))


def _row(plan: EffectPlan, command: CalendarCommand, now: int) -> tuple[Any, ...]:
    key = idempotency_key(plan, command)
    return (
        key, plan.id, plan.tenant, plan.calendar, command.date, command.squad, command.action.value,
        command.start, command.end, *bounds(command), plan.conversation, plan.who, plan.undoes, now,
    )  # fmt: skip
