"""Workflow timers: idle timeouts, release of deferred messages, reminders about cases.

An actor with one indexed query for each of them. Every action is one conditional transaction, so any number
of processes may run it, and a crash leaves an action done or not done.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import orjson

from ...kernel.clock import Clock
from ...model.task import NewTask
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..escalation.reasons import Escalation, EscalationWriter
from .instance import Workflow, read
from .repository import workflow_journal_step, workflow_step
from .settings import WorkflowSettings
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage

KIND = "rerun"
QUEUE = "inbound"
TRIES = 3  # then the message fails and is escalated
PAGE = 100
LOOK = 1.0  # seconds between two steps


class WorkflowTimers:
    """An actor; one step does everything that is due."""

    name = "workflow_timers"

    def __init__(self, store: Store, clock: Clock, settings: WorkflowSettings, escalations: EscalationWriter) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._escalations = escalations

    async def step(self) -> float:
        """Process idle workflows, deferred messages and overdue cases; returns the wait in seconds."""
        now = self._clock.now()
        idle = await self._store.read("workflow_idle", at=now, limit=PAGE)
        kept = await self._store.read("handled_message_due", limit=PAGE)
        late = await self._store.read("case_due", at=now, limit=PAGE)
        for row in idle:
            await quietly(self._expire(read(row), now))
        await asyncio.gather(*[quietly(release(self._store, row, now=now)) for row in kept])
        for row in late:
            await quietly(self._remind(row, now))
        if kept:
            await self._store.hint()
        is_full = PAGE in (len(idle), len(kept), len(late))
        return 0.0 if is_full else LOOK

    async def _expire(self, flow: Workflow, now: int) -> None:
        """End an idle workflow; escalate it instead while its commands have no result."""
        stage = next_stage(flow.stage, WorkflowTrigger.IDLE)
        steps = [
            workflow_step(replace(flow, stage=stage), now, self._settings),
            workflow_journal_step(flow, now, "state", {"from": flow.stage, "to": stage, "cause": WorkflowTrigger.IDLE}),
        ]
        if stage is WorkflowStage.NEEDS_HUMAN:
            call = Escalation(
                "stuck", "commands of a plan have no result", f"stuck:{flow.id}", flow.squad, workflow=flow.id
            )
            steps += self._escalations.steps(call, flow.tenant, flow.conversation, None, now)
        await self._store.write(steps)

    async def _remind(self, row: Row, now: int) -> None:
        """Notify again about an unclaimed case; reopen one whose holder has been idle."""
        about, holder = orjson.loads(row["facts"])["issue"], row["claimed_by"]
        issue = (
            f"a case was not claimed in time: {about}"
            if holder is None
            else f"{holder} has been idle in a claimed conversation, so the bot continues: {about}"
        )
        call = Escalation("unclaimed", issue, f"unclaimed:{row['id']}:{now}", workflow=row["workflow"])
        move = {
            "id": row["id"], "expected": row["state"], "state": "open", "claimed_by": None,
            "deadline_at": None, "at": now,
        }  # fmt: skip
        told = self._escalations.steps(call, row["tenant"], row["conversation"], None, now)
        await self._store.write([Step("case_move", move, needed=True), *told])


async def quietly(work: Awaitable[None]) -> None:
    """Ignore a write conflict: another process has done the work."""
    with contextlib.suppress(WriteConflict):
        await work


async def release(store: Store, row: Row, *, now: int, verdict: str | None = None, also: Sequence[Step] = ()) -> None:
    """Release a deferred message, behind the waiting tasks of its conversation."""
    task = NewTask(QUEUE, KIND, now, row["tenant"], ordering_key=row["conversation"], max_attempts=TRIES)
    taken = Step("handled_message_release", {"message": row["message"], "at": now}, needed=True)
    rows = TableRows("message_reruns", ("message", "verdict"), [(row["message"], verdict)])
    await store.enqueue([task], rows, also=[taken, *also], together=not also)
