"""The timekeeper of workflows: ends what is idle, lets kept messages go on, reminds of cases.

An actor with one indexed look for each of them; every step is one conditional transaction, so any number of
timekeepers may run, and one that dies in the middle has done all of a step or nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Sequence
from dataclasses import replace

import orjson

from ...kernel.clock import Clock
from ...model.task import NewTask
from ...model.time import micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..escalation.reasons import Escalation
from ..escalation.writer import EscalationWriter
from .instance import Workflow, read
from .repository import flow_row
from .settings import WorkflowSettings
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage

KIND = "rehearing"
QUEUE = "inbound"
TRIES = 3  # then the message fails and an admin is told
PAGE = 100
LOOK = 1.0  # seconds between two looks


class WorkflowTimers:
    """An actor; one step does all that is due."""

    name = "timekeeper"

    def __init__(
        self, store: Store, clock: Clock, settings: WorkflowSettings, caller: EscalationWriter
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._caller = caller

    async def step(self) -> float:
        """Look at workflows, kept messages and cases."""
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
        """Nothing happened for a day: it ends, or, while commands are out, a person looks."""
        stage = next_stage(flow.stage, WorkflowTrigger.IDLE)
        ended = replace(flow, stage=stage)
        steps = [
            Step("workflow_move", flow_row(ended, now, idle=micros(self._settings.idle)), needed=True),
            _moved(flow, stage, now),
        ]
        if stage is WorkflowStage.NEEDS_HUMAN:
            call = Escalation(
                "stuck", "commands of a plan have no result", f"stuck:{flow.id}", flow.squad, workflow=flow.id
            )
            steps += self._caller.steps(call, flow.tenant, flow.conversation, None, now)
        await self._store.write(steps)

    async def _remind(self, row: Row, now: int) -> None:
        """A case that nobody has taken is told again; one that was taken and left goes back to the bot."""
        about, holder = orjson.loads(row["facts"])["issue"], row["claimed_by"]
        issue = (
            f"nobody has taken a case in time: {about}"
            if holder is None
            else f"{holder} has held a conversation for too long, and the bot goes on: {about}"
        )
        call = Escalation("unclaimed", issue, f"unclaimed:{row['id']}:{now}", workflow=row["workflow"])
        move = {
            "id": row["id"],
            "expected": row["state"],
            "state": "open",
            "claimed_by": None,
            "deadline_at": None,
            "at": now,
        }
        told = self._caller.steps(call, row["tenant"], row["conversation"], None, now)
        await self._store.write([Step("case_move", move, needed=True), *told])


async def quietly(work: Awaitable[None]) -> None:
    """Somebody else was faster: then it is done."""
    with contextlib.suppress(WriteConflict):
        await work


async def release(
    store: Store, row: Row, *, now: int, verdict: str | None = None, also: Sequence[Step] = ()
) -> None:
    """Let a kept message go on, behind what its conversation has in line."""
    task = NewTask(QUEUE, KIND, now, row["tenant"], ordering_key=row["conversation"], max_attempts=TRIES)
    taken = Step("handled_message_release", {"message": row["message"], "at": now}, needed=True)
    rows = TableRows("message_reruns", ("message", "verdict"), [(row["message"], verdict)])
    await store.enqueue([task], rows, also=[taken, *also], together=not also)


def _moved(flow: Workflow, stage: WorkflowStage, now: int) -> Step:
    facts = {"from": flow.stage, "to": stage, "cause": WorkflowTrigger.IDLE}
    return Step(
        "step_add",
        {
            "tenant": flow.tenant,
            "conversation": flow.conversation,
            "workflow": flow.id,
            "message": None,
            "at": now,
            "what": "state",
            "facts": orjson.dumps(facts).decode(),
        },
    )
