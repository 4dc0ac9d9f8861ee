"""Follow-ups: when all commands of a plan have results, the chat receives a summary.

Each command result creates one follow-up task. Only the one that finds all commands finished and the workflow
still open writes anything: the summary, the end of the workflow, and a case for commands that were not done.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import orjson

from ...kernel.clock import Clock
from ...kernel.handler import SelfWritingHandler
from ...model.errors import CallerError, StoreFull, StoreUnavailable
from ...model.outcome import Defer, Done, Outcome
from ...model.task import Task, TaskId
from ...model.time import SECOND
from ...store.port import Row, Store, TableRows, WriteConflict
from ..domain import Utterance
from ..effects.ledger import EffectState, command_of
from ..escalation.reasons import Escalation, EscalationWriter
from ..reply_port import ReplyPort
from . import reply_texts
from .instance import Workflow, read
from .plans import US
from .repository import prepare_reply, workflow_journal_step, workflow_step
from .settings import WorkflowSettings
from .state_machine import WorkflowStage, WorkflowTrigger, next_stage

REASONS = {
    EffectState.REFUSED: "the calendar refused it",
    EffectState.UNKNOWN: "the calendar did not answer; it may have been done",
    EffectState.CONFLICT: "the calendar shows something else",
    EffectState.SUPERSEDED: "a later request replaced it",
}


def results(effects: Sequence[Row]) -> list[reply_texts.CommandResult] | None:
    """Return the results of a plan's commands, or None while one of them is unfinished. Pure."""
    if not all(effect["reported"] for effect in effects):
        return None
    return [command_result(effect) for effect in effects]


def command_result(effect: Row) -> reply_texts.CommandResult:
    """Return the result of a command so far. Pure."""
    state = EffectState(effect["state"])
    is_done, reason = state is EffectState.CONFIRMED, REASONS.get(state, "in progress")
    return reply_texts.CommandResult(command_of(effect), is_done, reason)


def cause(found: Sequence[reply_texts.CommandResult]) -> WorkflowTrigger:
    """Return the trigger for all, some or none of the commands done."""
    done = sum(result.is_done for result in found)
    if done == len(found):
        return WorkflowTrigger.ALL_DONE
    return WorkflowTrigger.SOME_DONE if done else WorkflowTrigger.NONE_DONE


class PlanOutcome(NamedTuple):
    """A plan with its workflow and the results so far."""

    flow: Workflow | None  # None: no workflow waits for it
    speaker: Mapping[str, Any]  # the last speaker, with source and chat
    effects: Sequence[Row]


@dataclass
class FollowUpHandler(SelfWritingHandler):
    """The handler of kind `followup`."""

    _store: Store
    _clock: Clock
    _settings: WorkflowSettings
    _reply_port: ReplyPort
    _escalations: EscalationWriter

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, PlanOutcome]:
        """Load the plans of these tasks. A follow-up is claimed only after its result was committed."""
        found = await self._store.load("followup_load", [task.id for task in tasks])
        plans = orjson.dumps([row[1] for row in found]).decode()
        effects: dict[str, list[Row]] = {row[1]: [] for row in found}
        for row in await self._store.read("followup_results", plans=plans):
            effects[row["plan"]].append(row)
        return {row[0]: _news(row, effects[row[1]]) for row in found}

    async def run(self, task: Task, content: Any) -> Outcome:
        """Send the summary if this follow-up belongs to the last result."""
        try:
            return await self._tell(content)
        except WriteConflict:
            return Defer(self._clock.now(), "the workflow changed in the meantime")
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
            return Done("other commands of the plan are unfinished")
        await self._end(flow, found, news.speaker)
        return Done("summary sent")

    async def _end(
        self, flow: Workflow, found: Sequence[reply_texts.CommandResult], speaker: Mapping[str, Any]
    ) -> None:
        """Write summary, end and case in one transaction, fenced by the workflow's version."""
        now, why = self._clock.now(), cause(found)
        text = reply_texts.summary(found)
        ended = replace(flow, stage=next_stage(flow.stage, why)).said(Utterance(US, None, now, text, is_ours=True))
        steps = [
            workflow_step(ended, now, self._settings),
            workflow_journal_step(
                flow,
                now,
                "summary",
                {"from": flow.stage, "to": ended.stage, "cause": why, "text": text, "plan": flow.plan},
            ),
        ]
        last = next((line for line in reversed(flow.thread) if not line.is_ours), None)
        calls = [] if why is WorkflowTrigger.ALL_DONE else [_call(flow, found, last)]
        tasks, rows = [], []
        try:
            to = {**speaker, "tenant": flow.tenant, "conversation": flow.conversation}
            task, row = await prepare_reply(self._reply_port, self._settings, to, text, now)
            tasks, rows = [task], [TableRows(self._reply_port.table, self._reply_port.columns, [row])]
        except CallerError as error:
            issue = f"a summary could not be sent: {error.problem}"
            calls.append(Escalation("unsaid", issue, f"unsaid:{flow.conversation}", flow.squad, text=text))
        for call in calls:
            steps += self._escalations.steps(call, flow.tenant, flow.conversation, None, now)
        await self._store.enqueue(tasks, *rows, also=steps, together=not calls)
        await self._store.hint()


_WORKFLOW = (
    "id", "tenant", "conversation", "squad", "topic", "state", "version", "schema", "asked", "opened_at",
    "body",
)  # fmt: skip


def _news(row: Sequence[Any], effects: Sequence[Row]) -> PlanOutcome:
    _, plan, *columns, speaker = row
    flow = read({**dict(zip(_WORKFLOW, columns, strict=True)), "plan": plan}) if columns[0] else None
    return PlanOutcome(flow, orjson.loads(speaker) if speaker else {"source": "", "chat": ""}, effects)


def _call(flow: Workflow, found: Sequence[reply_texts.CommandResult], last: Utterance | None) -> Escalation:
    """Build the escalation that lists the commands that were not done."""
    left = [reply_texts.command(result.command) for result in found if not result.is_done]
    is_partial = len(left) < len(found)
    reason = "partial" if is_partial else "not_done"
    issue = f"{len(left)} of {len(found)} commands were not done: {'; '.join(left)}"
    speaker, text = (last.speaker, last.text) if last else (None, None)
    return Escalation(reason, issue, f"{reason}:{flow.plan}", flow.squad, speaker, text, flow.id)
