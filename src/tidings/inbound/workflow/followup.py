"""Follow-ups: when all commands of a plan are over, the group is told what became of each.

Each result of a command brings one follow-up; only the one that finds all of them over, and the workflow not
yet ended, writes anything: the summary, the workflow's end, and a case for what was not done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import orjson

from ...kernel.clock import Clock
from ...model.errors import CallerError, StoreFull, StoreUnavailable
from ...model.outcome import Defer, Done, Outcome
from ...model.task import Task, TaskId, Transition
from ...model.time import SECOND, micros
from ...store.port import Row, Step, Store, TableRows, WriteConflict
from ..domain import Utterance
from ..effects.ledger import EffectState, command_of
from ..escalation.reasons import Escalation
from ..escalation.writer import EscalationWriter
from ..reply_port import ReplyPort
from . import reply_texts
from .instance import Workflow, read
from .plans import US
from .repository import flow_row
from .settings import WorkflowSettings
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage

REASONS = {
    EffectState.REFUSED: "the calendar refused it",
    EffectState.UNKNOWN: "the calendar did not answer; perhaps it was done",
    EffectState.CONFLICT: "the calendar shows something else",
    EffectState.SUPERSEDED: "a later request has settled it",
}
_CAUSES = {
    WorkflowStage.COMPLETED: WorkflowTrigger.ALL_DONE,
    WorkflowStage.PARTIAL: WorkflowTrigger.SOME_DONE,
    WorkflowStage.FAILED: WorkflowTrigger.NONE_DONE,
}


def results(effects: Sequence[Row]) -> list[reply_texts.CommandResult] | None:
    """What became of the commands of a plan; None while one of them is not over. Pure."""
    if not all(effect["reported"] for effect in effects):
        return None
    return [
        reply_texts.CommandResult(
            command_of(effect), state is EffectState.CONFIRMED, REASONS.get(state, f"it is {state}")
        )
        for effect in effects
        for state in [EffectState(effect["state"])]
    ]


def cause(found: Sequence[reply_texts.CommandResult]) -> WorkflowTrigger:
    """All, some or none."""
    done = sum(result.is_done for result in found)
    if done == len(found):
        return WorkflowTrigger.ALL_DONE
    return WorkflowTrigger.SOME_DONE if done else WorkflowTrigger.NONE_DONE


class PlanOutcome(NamedTuple):
    """What there is to tell of a plan."""

    flow: Workflow | None  # None: no workflow waits for it
    speaker: Mapping[str, Any]  # who was heard last, and where
    effects: Sequence[Row]


class FollowUpHandler:
    """The handler of kind `followup`."""

    listens = False

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: WorkflowSettings,
        voice: ReplyPort,
        caller: EscalationWriter,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._voice = voice
        self._caller = caller

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, PlanOutcome]:
        """The plans that there is news of. Whoever brings the last result is claimed after it was written."""
        found = await self._store.load("followup_load", [task.id for task in tasks])
        plans = orjson.dumps([row[1] for row in found]).decode()
        effects: dict[str, list[Row]] = {row[1]: [] for row in found}
        for row in await self._store.read("followup_results", plans=plans):
            effects[row["plan"]].append(row)
        return {row[0]: _news(row, effects[row[1]]) for row in found}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Nothing: what a follow-up writes, it writes itself."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """Tell, if this is the last of them."""
        try:
            return await self._tell(content)
        except WriteConflict:
            return Defer(self._clock.now(), "the workflow has changed meanwhile")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)

    async def _tell(self, news: PlanOutcome) -> Outcome:
        flow = news.flow
        if flow is None:
            return Done("no workflow waits for it")
        if flow.stage not in (WorkflowStage.EXECUTING, WorkflowStage.NEEDS_HUMAN):
            return Done(f"its workflow is {flow.stage}")
        found = results(news.effects)
        if found is None:
            return Done("other commands of the plan are not over")
        await self._end(flow, found, news.speaker)
        return Done("told")

    async def _end(
        self, flow: Workflow, found: Sequence[reply_texts.CommandResult], speaker: Mapping[str, Any]
    ) -> None:
        """The summary, the end and the case: one transaction, named by the workflow's version."""
        now, why = self._clock.now(), cause(found)
        text = reply_texts.summary(found)
        ended = replace(flow, stage=next_stage(flow.stage, why)).said(
            Utterance(US, None, now, text, is_ours=True)
        )
        steps = [
            Step("workflow_move", flow_row(ended, now, idle=micros(self._settings.idle)), needed=True),
            _step(flow, now, why, ended.stage, text),
        ]
        last = next((line for line in reversed(flow.thread) if not line.is_ours), None)
        calls = [] if why is WorkflowTrigger.ALL_DONE else [_call(flow, found, last)]
        tasks, rows = [], []
        try:
            task, row = await self._reply(flow, speaker, text, now)
            tasks, rows = [task], [TableRows(self._voice.table, self._voice.columns, [row])]
        except CallerError as error:
            issue = f"a summary could not be sent: {error.problem}"
            calls.append(Escalation("unsaid", issue, f"unsaid:{flow.conversation}", flow.squad, text=text))
        for call in calls:
            steps += self._caller.steps(call, flow.tenant, flow.conversation, None, now)
        await self._store.enqueue(tasks, *rows, also=steps, together=not calls)
        await self._store.hint()

    async def _reply(
        self, flow: Workflow, speaker: Mapping[str, Any], text: str, now: int
    ) -> tuple[Any, tuple[Any, ...]]:
        """Where the request was made, there the summary goes."""
        source = speaker["source"]
        return await self._voice.prepare(
            self._settings.replies.get(source, source),
            speaker["chat"],
            text,
            tenant=flow.tenant,
            ordering_key=flow.conversation,
            now=now,
            in_chat=True,
        )


_WORKFLOW = (
    "id", "tenant", "conversation", "squad", "topic", "state", "version", "schema", "asked", "opened_at",
    "body",
)  # fmt: skip


def _news(row: Sequence[Any], effects: Sequence[Row]) -> PlanOutcome:
    _, plan, *columns, speaker = row
    flow = read({**dict(zip(_WORKFLOW, columns, strict=True)), "plan": plan}) if columns[0] else None
    return PlanOutcome(flow, orjson.loads(speaker) if speaker else {"source": "", "chat": ""}, effects)


def _step(flow: Workflow, now: int, why: WorkflowTrigger, stage: WorkflowStage, text: str) -> Step:
    facts = {"from": flow.stage, "to": stage, "cause": why, "text": text, "plan": flow.plan}
    return Step(
        "step_add",
        {
            "tenant": flow.tenant,
            "conversation": flow.conversation,
            "workflow": flow.id,
            "message": None,
            "at": now,
            "what": "summary",
            "facts": orjson.dumps(facts).decode(),
        },
    )


def _call(flow: Workflow, found: Sequence[reply_texts.CommandResult], last: Utterance | None) -> Escalation:
    """Partial success is a case, and says what is left."""
    left = [reply_texts.command(result.command) for result in found if not result.is_done]
    is_partial = len(left) < len(found)
    reason = "partial" if is_partial else "not_done"
    issue = f"{len(left)} of {len(found)} commands were not done: {'; '.join(left)}"
    return Escalation(
        reason,
        issue,
        f"{reason}:{flow.plan}",
        flow.squad,
        last.speaker if last else None,
        last.text if last else None,
        flow.id,
    )
