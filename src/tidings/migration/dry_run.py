"""Planning: the whole pipeline, writes replaced by rows of a plan. The run then does exactly that.

A record that the target has the same is unchanged at once. What was seen of the others is remembered: if it
is not so any more when the run comes to it, that is a conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ..kernel.clock import Clock
from ..model.time import micros
from ..store.port import Row, Store
from .batch_attempt import BatchAttempt, BatchStop
from .connectors.port import ConnectorError, ErrorKind, RecordState, TargetRecord, WriteStrategy
from .crosswalk import json_parameter
from .error_policy import decide_lookup_error
from .field_diff import changed_fields
from .jobs import PlannedAction
from .prepared_records import PreparedRecord, RecordPreparer
from .rate_limits import Sleep, SystemRateLimiter
from .reconciliation import SIDE_BY_SIDE, RecordReconciler, planned_action, target_snapshot
from .verification_report import FieldChange

CHUNK = 200

_ASKED = frozenset({WriteStrategy.UPSERT, WriteStrategy.SEARCH, WriteStrategy.MARK})


class DryRunPlanner:
    """One turn that writes nothing but the plan."""

    def __init__(self, store: Store, clock: Clock, turn: BatchAttempt, sleep: Sleep) -> None:
        self._clock = clock
        self._turn = turn
        self._opened = turn.opened
        self._type = turn.batch.type
        self._reconciler = RecordReconciler(turn, clock, sleep)
        self._preparer = RecordPreparer(store, turn.opened, self._type, turn.batch.round, ahead=True)
        self._strategy = turn.opened.target.strategy(turn.opened.job.type(self._type).target)
        self._is_deaf = False  # the target cannot be asked
        self._after = 0

    async def work(self) -> BatchStop | None:
        """Until the batch is planned, or something stops it."""
        while True:
            row, stop = await self._turn.look()
            if stop is not None:
                await self._turn.commit()
                return stop
            rows = await self._turn.open_records(self._after, CHUNK)
            if not rows:
                await self._turn.commit()
                return None
            self._after = rows[-1]["seq"]
            stop = await self._plan(rows, asks=bool(row["lookup"]))
            await self._turn.commit()
            if stop is not None:
                return stop
            await self._turn.note(self._opened.looks)

    async def _plan(self, rows: Sequence[Row], *, asks: bool) -> BatchStop | None:
        results = self._turn.results
        try:
            items = await self._preparer.prepare(rows, results)
        except ConnectorError as trouble:
            return self._turn.unprepared(trouble)
        if self._preparer.has_own_key and items:
            for item in items:
                results.move(item.seq, RecordState.EXTRACTED, key=item.key)
            await self._turn.commit()
            items = await self._preparer.first_of_each_key(items, self._turn.results)
        line = iter(items)

        async def work(limiter: SystemRateLimiter) -> None:
            for item in line:
                await self._plan_one(item, limiter, asks=asks)

        await asyncio.gather(*(work(self._opened.looks) for _ in range(min(SIDE_BY_SIDE, len(items)))))
        return None

    async def _plan_one(self, item: PreparedRecord, limiter: SystemRateLimiter, *, asks: bool) -> None:
        results = self._turn.results
        if item.row["same"]:
            results.same(item, action=PlannedAction.UNCHANGED)
            return
        if not asks or self._is_deaf or self._strategy not in _ASKED:
            blind = PlannedAction.UPDATE if item.known else PlannedAction.CREATE
            self._put(item, PlannedAction.WRITE if self._is_deaf else blind, None, ())
            return
        try:
            found = await self._reconciler.hits(item.id, item.key, item.fields)
        except ConnectorError as trouble:
            self._not_seen(item, trouble, limiter)
            return
        self._seen(item, found)

    def _seen(self, item: PreparedRecord, found: Sequence[TargetRecord]) -> None:
        differing: Sequence[FieldChange] = ()
        if len(found) == 1:
            differing = changed_fields(self._opened.mapper, self._type, item.fields, found[0].fields)
        is_told = len(found) == 1 and found[0].fields is not None
        action = planned_action(found, bool(differing) or not is_told)
        if action is PlannedAction.CONFLICT:
            reason = f"the target has {len(found)} records under the key {item.key!r}"
            trouble = ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several")
            self._turn.results.set_aside(item.seq, RecordState.CONFLICT, trouble, self._type, action=action)
            return
        if action is PlannedAction.UNCHANGED:
            item.known = found[0].id
            self._turn.results.same(item, action=action)
            return
        self._put(
            item, action, target_snapshot(self._opened, self._type, found[0] if found else None), differing
        )

    def _put(
        self,
        item: PreparedRecord,
        action: PlannedAction,
        before: str | None,
        differing: Sequence[FieldChange],
    ) -> None:
        told = json_parameter([change._asdict() for change in differing]) if differing else None
        self._turn.results.move(
            item.seq, RecordState.READY, action=action.value, before=before, changes=told, hash=item.hash
        )

    def _not_seen(self, item: PreparedRecord, trouble: ConnectorError, limiter: SystemRateLimiter) -> None:
        if trouble.failure is ErrorKind.PERMANENT:
            self._is_deaf = True
            self._put(item, PlannedAction.WRITE, None, ())
            return
        verdict = decide_lookup_error(
            trouble, self._opened.job.retry, item.attempts, chance=self._clock.chance()
        )
        self._turn.follow(verdict, trouble, limiter)
        wait = verdict.park or verdict.after
        if verdict.standing is RecordState.UNKNOWN:
            attempts = None if verdict.attempts is None else json_parameter(verdict.attempts)
            due_at = self._turn.now + micros(wait) if wait else None
            self._turn.results.move(item.seq, RecordState.EXTRACTED, due_at=due_at, attempts=attempts)
        else:
            self._turn.results.set_aside(
                item.seq, RecordState.FAILED, trouble, self._type, action=PlannedAction.CONFLICT.value
            )


def estimate_calls(actions: Mapping[PlannedAction, int], strategy: WriteStrategy, bulk: int) -> int:
    """How many calls to the target a type costs. Pure."""
    writes = sum(
        actions.get(action, 0) for action in (PlannedAction.CREATE, PlannedAction.UPDATE, PlannedAction.WRITE)
    )
    looks = actions.get(PlannedAction.CREATE, 0) if strategy is WriteStrategy.SEARCH else 0
    return -(-writes // bulk) + looks
