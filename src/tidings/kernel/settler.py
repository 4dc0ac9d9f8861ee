"""The settler: writes down what came of attempts, in batches, in the order they were handed in.

A result stays in hand until the database has said yes: an outage delays it, and little is claimed meanwhile.
A database that refuses to work counts as an outage. Only a result whose own values cannot be written spoils
itself, and is unknown then if it may have been sent. A result whose claim has gone is kept as evidence.
"""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Mapping
from typing import NamedTuple

from ..model.errors import StoreUnusable, TemporaryError, error_text
from ..model.outcome import Done, Outcome, Reject, Unknown
from ..model.task import Category, SettleResult, Task, TaskId, TaskState
from ..model.time import SECOND
from ..observability.events import AttemptFailed, BatchSettled, ClaimLost, Emit, StoreTrouble
from ..store.port import AttemptTally, Step, Store, ordering_keys
from .channel_states import ChannelStates
from .clock import Clock
from .crash_points import crash_point
from .decisions import DisconnectChannel, PauseChannel, TaskDecision, ThrottleChannel, decide, sanitize_text
from .handler import Handler, collect_effects
from .heartbeats import Node
from .lanes import Lane
from .task_actions import record_late_result

_LARGEST = 1000  # results of one transaction
_UNTOLD = ("done", "deferred", "skipped", "offline")  # nothing failed, or not because of the message
_LATE = 60 * SECOND  # from due to started, of a first try
_STUBBORN = 3  # tries from which on a temporary error is counted once more


class AttemptResult(NamedTuple):
    """What came of one attempt."""

    task: Task
    outcome: Outcome
    claimed_at: int
    seconds: float


class Settler:
    """`hand_in` from the slots, `run` as a loop, `step` by hand."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        node: Node,
        lanes: Mapping[str, Lane],
        standing: ChannelStates,
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        settled: Callable[[bool], None],  # called after each batch; True: something may be claimable now
    ) -> None:
        self._store = store
        self._clock = clock
        self._node = node
        self._lanes = lanes
        self._standing = standing
        self._handlers = handlers
        self._emit = emit
        self._settled = settled
        self._results: deque[AttemptResult] = deque()
        self._late: deque[AttemptResult] = deque()
        self._news = asyncio.Event()
        self._last = False

    @property
    def unwritten(self) -> int:
        """Results that are not durable yet."""
        return len(self._results)

    @property
    def ids(self) -> set[TaskId]:
        """Their tasks."""
        return {result.task.id for result in (*self._results, *self._late)}

    def hand_in(self, result: AttemptResult) -> None:
        """Take a result; it will be written."""
        if not self._results:
            self._news.set()
        self._results.append(result)

    def finish(self) -> None:
        """Nothing more will be handed in: `run` ends when all is written."""
        self._last = True
        self._news.set()

    async def run(self) -> None:
        """Write results as they come."""
        pause, largest = 0.05, _LARGEST
        while True:
            if not self._results and not self._late:
                if self._last:
                    return
                self._news.clear()
                await self._news.wait()
                continue
            try:
                await self.step(largest)
                pause, largest = 0.05, _LARGEST
            except (TemporaryError, StoreUnusable) as error:
                self._emit(StoreTrouble("settle", error.problem))
                await asyncio.sleep(pause * (0.5 + self._clock.chance()))
                pause = min(pause * 2, 2.0)
            except Exception as error:  # one result that cannot be written must not hold up the others
                self._emit(StoreTrouble("settle", error_text(error)))
                if largest == 1:
                    self._spoil(error)
                    await asyncio.sleep(pause)
                largest = 1

    async def step(self, largest: int = _LARGEST) -> int:
        """Write the oldest results; gives how many."""
        await self._settle_late()
        batch = [self._results[i] for i in range(min(largest, len(self._results)))]
        if not batch:
            return 0
        decisions = self._decide(batch)
        also = _effects(batch, decisions) + self._breaker_steps(batch)
        own = collect_effects(self._handlers, [r.task for r in batch], [d.move for d in decisions])
        keys = ordering_keys(result.task for result in batch)
        answers = await self._store.settle(
            self._node.id,
            [d.move for d in decisions],
            keys=keys,
            tally=_tally(batch, decisions),
            also=[*also, *own],
        )
        crash_point("settled")
        for _ in batch:
            self._results.popleft()
        if answers[-1] is SettleResult.KEPT:
            self._node.see(batch[-1].task, settled=True)
        self._tell(batch, decisions, answers)
        if also:
            await self._standing.refresh()
        self._settled(bool(keys) or any(decision.move.to is TaskState.PENDING for decision in decisions))
        await self._settle_late()
        return len(batch)

    def _decide(self, batch: list[AttemptResult]) -> list[TaskDecision]:
        now, lanes, chance = self._clock.now(), self._lanes, self._clock.chance
        return [decide(r.task, r.outcome, lanes[r.task.queue], now=now, chance=chance) for r in batch]

    def _breaker_steps(self, batch: list[AttemptResult]) -> list[Step]:
        if not self._node.is_trusted:
            return []  # whoever slept through its lease saw time-outs of its own making, not of the channel
        groups: dict[tuple[str, int], list[Outcome]] = {}
        for result in batch:
            groups.setdefault((result.task.queue, result.claimed_at), []).append(result.outcome)
        return self._standing.steps(groups)

    async def _settle_late(self) -> None:
        """Results whose claim had gone: kept in the history, and proof where they say 'sent'."""
        while self._late:
            late = self._late[0]
            await record_late_result(self._store, self._node.id, late.task, late.outcome)
            self._late.popleft()

    def _spoil(self, error: Exception) -> None:
        spoilt = self._results.popleft()
        reason = f"its result could not be written: {type(error).__name__}"
        may_be_sent = isinstance(spoilt.outcome, Done | Unknown)
        outcome = Unknown(reason, hold=True) if may_be_sent else Reject(Category.SYSTEM, reason)
        self._results.append(spoilt._replace(outcome=outcome))

    def _tell(
        self, batch: list[AttemptResult], decisions: list[TaskDecision], answers: list[SettleResult]
    ) -> None:
        counts = Counter([decision.what for decision in decisions])
        if counts["done"] < len(batch):
            for result, decision in zip(batch, decisions, strict=True):
                if decision.what not in _UNTOLD:
                    self._emit(_told(self._node.id, result, decision))
        if SettleResult.CLAIM_LOST in answers:
            for result, decision, answer in zip(batch, decisions, answers, strict=True):
                if answer is SettleResult.CLAIM_LOST:
                    self._late.append(result)
                    self._emit(ClaimLost(self._node.id, result.task.id, result.task.queue, decision.what))
        times = [result.seconds * 1000 for result in batch]
        lags = [(r.claimed_at - r.task.due_at) / SECOND for r in batch if r.task.attempts == 1]
        self._emit(BatchSettled(self._node.id, len(batch), dict(counts), sum(times), lags, times))


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
                steps[effect] = _dropped(effect, result.claimed_at)
    return list(steps.values())


def _dropped(effect: DisconnectChannel, claimed_at: int) -> Step:
    link = "logged_out" if effect.needs_person else "reconnecting"
    lost = {
        "name": effect.queue,
        "session_state": link,
        "why": sanitize_text(effect.reason),
        "claimed_at": claimed_at,
    }
    return Step("channel_session_lost", lost)


def _tally(batch: list[AttemptResult], decisions: list[TaskDecision]) -> list[AttemptTally]:
    sums: dict[tuple[str, str], list[float]] = {}
    for result, decision in zip(batch, decisions, strict=True):
        task = result.task
        entry = sums.setdefault((task.queue, decision.what), [0, 0.0])
        entry[0] += 1
        entry[1] += result.seconds
        if task.attempts > 1 or result.claimed_at - task.due_at > _LATE:
            for what in _beside(result, decision):
                sums.setdefault((task.queue, what), [0, 0.0])[0] += 1
    return [
        AttemptTally(queue, what, int(n), round(seconds * 1000))
        for (queue, what), (n, seconds) in sums.items()
    ]


def _beside(result: AttemptResult, decision: TaskDecision) -> list[str]:
    """What is counted beside what came of an attempt; rare, so that an ordinary batch writes nothing more."""
    if decision.what in _UNTOLD[1:]:
        return []
    if result.task.attempts == 1:
        return ["late"]
    stubborn = result.task.attempts >= _STUBBORN and decision.move.category is Category.TEMPORARY
    return ["again", "stubborn"] if stubborn else ["again"]


def _told(node: int, result: AttemptResult, decision: TaskDecision) -> AttemptFailed:
    task, move = result.task, decision.move
    return AttemptFailed(
        node,
        task.id,
        task.tenant,
        task.queue,
        task.attempts,
        decision.what,
        None if move.category is None else move.category.value,
        move.detail or "",
        result.seconds * 1000,
    )
