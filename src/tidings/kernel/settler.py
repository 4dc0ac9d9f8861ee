"""The settler: writes the results of attempts, in batches, in order of arrival.

A result is kept until the database has committed it: an outage delays it, and little is claimed meanwhile. A
database that refuses to work counts as an outage. A result whose own values cannot be written is replaced by
`unknown` if it may have been sent. A result whose claim was lost is recorded as evidence.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from ..model.errors import StoreUnusable, TemporaryError, traceback_text
from ..model.message import Message
from ..model.outcome import Done, Outcome, Reject, Unknown
from ..model.task import Category, SettleResult, Task, TaskId, TaskState
from ..model.time import SECOND
from ..observability.events import AttemptFailed, BatchSettled, ClaimLost, StoreError
from ..store.port import AttemptTally, Step, ordering_keys
from .channel_states import ChannelStates
from .crash_points import crash_point
from .decisions import DisconnectChannel, PauseChannel, TaskDecision, ThrottleChannel, decide, sanitize_text
from .handler import NamingHandler, ReservedSlot, collect_effects
from .node_context import NodeContext
from .task_actions import record_late_result

_MAX_BATCH = 1000  # results per transaction
_NOT_LOGGED = ("done", "deferred", "skipped", "offline")  # nothing failed, or not because of the message
_LATE = 60 * SECOND  # from due to started, of a first attempt
_PERCENTILES = (50, 95, 99)
_MANY_ATTEMPTS = 3  # attempts from which on a temporary error is counted as persistent


class AttemptResult(NamedTuple):
    """The result of one attempt."""

    task: Task
    outcome: Outcome
    claimed_at: int
    seconds: float
    content: Any = None  # as its handler loaded it

    @property
    def ended_at(self) -> int:
        """When the attempt ended."""
        return self.claimed_at + int(self.seconds * SECOND)

    @property
    def due_at(self) -> int:
        """When the task was due: a retry moves the due time of its task, but not that of its message."""
        content = self.content.content if type(self.content) is ReservedSlot else self.content
        return content.scheduled_at if self.task.attempts > 1 and type(content) is Message else self.task.due_at


class Settler:
    """Takes results through `hand_in`; writes them in a loop (`run`) or step by step."""

    def __init__(
        self,
        context: NodeContext,
        channel_states: ChannelStates,
        *,
        settled: Callable[[bool], None],  # called after each batch; True: new tasks may be claimable
    ) -> None:
        self._store, self._clock, self._node, self._lanes, self._handlers, self._emit = context
        self._naming = {kind: one for kind, one in context.handlers.items() if isinstance(one, NamingHandler)}
        self._channel_states = channel_states
        self._settled = settled
        self._results: deque[AttemptResult] = deque()
        self._late: deque[AttemptResult] = deque()
        self._times: deque[float] = deque(maxlen=_MAX_BATCH)  # seconds of the latest attempts
        self._news = asyncio.Event()
        self._is_finishing = False

    @property
    def unwritten(self) -> int:
        """Number of results that are not durable yet."""
        return len(self._results)

    @property
    def percentiles(self) -> dict[str, float]:
        """Milliseconds of the latest attempts: p50, p95 and p99."""
        times = sorted(self._times)
        return {f"p{n}": round(times[len(times) * n // 100] * 1000, 3) for n in _PERCENTILES if times}

    @property
    def ids(self) -> set[TaskId]:
        """The tasks of unwritten results."""
        return {result.task.id for result in (*self._results, *self._late)}

    def hand_in(self, result: AttemptResult) -> None:
        """Queue a result to be written."""
        if not self._results:
            self._news.set()
        self._results.append(result)

    def finish(self) -> None:
        """Let `run` end when all results are written."""
        self._is_finishing = True
        self._news.set()

    async def run(self) -> None:
        """Write results as they arrive."""
        pause, largest = 0.05, _MAX_BATCH
        while True:
            if not self._results and not self._late:
                if self._is_finishing:
                    return
                self._news.clear()
                await self._news.wait()
                continue
            try:
                await self.step(largest)
                pause, largest = 0.05, _MAX_BATCH
            except (TemporaryError, StoreUnusable) as error:
                self._emit(StoreError.of("settle", error))
                await asyncio.sleep(pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)
            except Exception as error:  # one unwritable result must not block the others
                self._emit(StoreError.of("settle", error))
                if largest == 1:
                    self._replace_unwritable(error)
                    await asyncio.sleep(pause)
                largest = 1

    async def step(self, largest: int = _MAX_BATCH) -> int:
        """Write the oldest results. Return their number."""
        await self._settle_late()
        batch = [self._results[i] for i in range(min(largest, len(self._results)))]
        if not batch:
            return 0
        decisions = self._decide(batch)
        also = _effects(batch, decisions) + self._breaker_steps(batch)
        own = collect_effects(self._handlers, [r.task for r in batch], [d.move for d in decisions])
        keys = ordering_keys(result.task for result in batch)
        answers = await self._store.settle(
            self._node.id, [d.move for d in decisions], keys=keys, tally=_tally(batch, decisions), also=[*also, *own]
        )
        crash_point("settled")
        for _ in batch:
            self._results.popleft()
        if answers[-1] is SettleResult.KEPT:
            self._node.see(batch[-1].task, settled=True)
        self._emit_all(batch, decisions, answers)
        if also:
            await self._channel_states.refresh()
        self._settled(bool(keys) or any(decision.move.to is TaskState.PENDING for decision in decisions))
        await self._settle_late()
        return len(batch)

    def _decide(self, batch: list[AttemptResult]) -> list[TaskDecision]:
        now, lanes, chance = self._clock.now(), self._lanes, self._clock.chance
        return [decide(r.task, r.outcome, lanes[r.task.queue], now=now, chance=chance) for r in batch]

    def _breaker_steps(self, batch: list[AttemptResult]) -> list[Step]:
        if not self._node.is_trusted:
            return []  # after a pause, timeouts are this node's fault, not the channel's
        groups: dict[tuple[str, int], list[Outcome]] = {}
        for result in batch:
            groups.setdefault((result.task.queue, result.claimed_at), []).append(result.outcome)
        return self._channel_states.steps(groups)

    async def _settle_late(self) -> None:
        """Record results whose claim was lost: in the history, and as proof if they report a send."""
        while self._late:
            late = self._late[0]
            await record_late_result(self._store, self._node.id, late.task, late.outcome)
            self._late.popleft()

    def _replace_unwritable(self, error: Exception) -> None:
        unwritable = self._results.popleft()
        reason = f"the result could not be written: {type(error).__name__}"
        may_be_sent = isinstance(unwritable.outcome, Done | Unknown)
        outcome = Unknown(reason, hold=True) if may_be_sent else Reject(Category.SYSTEM, reason)
        self._results.append(unwritable._replace(outcome=outcome))

    def _emit_all(self, batch: list[AttemptResult], decisions: list[TaskDecision], answers: list[SettleResult]) -> None:
        tenants = Counter([(r.task.tenant, d.what) for r, d in zip(batch, decisions, strict=True)])
        counts: Counter[str] = Counter()
        for (_, what), n in tenants.items():
            counts[what] += n
        if counts["done"] < len(batch):
            for result, decision in zip(batch, decisions, strict=True):
                if decision.what not in _NOT_LOGGED:
                    self._emit(self._attempt_failed(result, decision))
        if SettleResult.CLAIM_LOST in answers:
            for result, decision, answer in zip(batch, decisions, answers, strict=True):
                if answer is SettleResult.CLAIM_LOST:
                    self._late.append(result)
                    task, ids = result.task, self._ids(result)
                    self._emit(ClaimLost(self._node.id, task.id, task.queue, decision.what, task.tenant, ids))
        times = [result.seconds for result in batch]
        self._times.extend(times)
        lags = [(r.claimed_at - r.task.due_at) / SECOND for r in batch if r.task.attempts == 1]
        total, successes = sum(times) * 1000, partial(self._successes, batch)
        self._emit(BatchSettled(self._node.id, len(batch), dict(counts), total, lags, times, tenants, successes))

    def _successes(self, batch: list[AttemptResult]) -> Iterator[dict[str, Any]]:
        for result in batch:
            if type(result.outcome) is Done:
                task = result.task
                yield {
                    **self._ids(result), "task": task.id, "tenant": task.tenant, "queue": task.queue,
                    "attempt": task.attempts, "duration_ms": round(result.seconds * 1000, 3),
                }  # fmt: skip

    def _attempt_failed(self, result: AttemptResult, decision: TaskDecision) -> AttemptFailed:
        task, move = result.task, decision.move
        return AttemptFailed(
            self._node.id,
            task.id,
            task.tenant,
            task.queue,
            task.attempts,
            decision.what,
            None if move.category is None else move.category.value,
            move.detail or "",
            result.seconds * 1000,
            self._ids(result),
            traceback_text(getattr(result.outcome, "error", None)),
        )

    def _ids(self, result: AttemptResult) -> Mapping[str, str]:
        """Return the public ids of what a task is about."""
        handler = self._naming.get(result.task.kind)
        return {} if handler is None else handler.log_ids(result.content)


def _effects(batch: list[AttemptResult], decisions: list[TaskDecision]) -> list[Step]:
    steps: dict[object, Step] = {}
    for result, decision in zip(batch, decisions, strict=True):
        match decision.effect:
            case None:
                continue
            case ThrottleChannel(queue=queue, until=until, reason=reason) as effect:
                steps[effect] = Step("queue_block", {"name": queue, "until": until, "reason": reason})
            case PauseChannel(queue=queue, reason=reason) as effect:
                steps[effect] = Step("queue_pause_by_engine", {"name": queue, "reason": reason})
            case DisconnectChannel() as effect:
                steps[effect] = _disconnect(effect, result.claimed_at)
    return list(steps.values())


def _disconnect(effect: DisconnectChannel, claimed_at: int) -> Step:
    link = "logged_out" if effect.needs_person else "reconnecting"
    lost = {"name": effect.queue, "session_state": link, "why": sanitize_text(effect.reason), "claimed_at": claimed_at}
    return Step("channel_session_lost", {**lost, "restart": effect.restart})


def _tally(batch: list[AttemptResult], decisions: list[TaskDecision]) -> list[AttemptTally]:
    sums: dict[tuple[str, str], list[float]] = {}
    for result, decision in zip(batch, decisions, strict=True):
        task = result.task
        entry = sums.setdefault((task.queue, decision.what), [0, 0.0])
        entry[0] += 1
        entry[1] += result.seconds
        if task.attempts > 1 or result.ended_at - task.due_at > _LATE:
            for what in _extra_outcomes(result, decision):
                sums.setdefault((task.queue, what), [0, 0.0])[0] += 1
    return [AttemptTally(queue, what, int(n), round(seconds * 1000)) for (queue, what), (n, seconds) in sums.items()]


def _extra_outcomes(result: AttemptResult, decision: TaskDecision) -> list[str]:
    """Return further outcomes to count; rare, so that an ordinary batch writes nothing more."""
    task = result.task
    if decision.what in _NOT_LOGGED[1:]:
        return []
    sent_late = ["sent_late"] if decision.what == "done" and result.ended_at - result.due_at > _LATE else []
    if task.attempts == 1:
        return ["late", *sent_late] if result.claimed_at - task.due_at > _LATE else sent_late
    is_persistent = task.attempts >= _MANY_ATTEMPTS and decision.move.category is Category.TEMPORARY
    return ["again", "persistent"] if is_persistent else ["again", *sent_late]
