"""Dry run: the whole pipeline with writes replaced by a plan, which the run then executes exactly.

A record that is equal in the target is unchanged. For the others the plan stores what it saw in the target;
if that differs at run time, the record becomes a conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ..kernel.clock import Clock
from ..store.port import Row, Store
from .batch_attempt import BatchAttempt, BatchStop
from .connectors.port import ConnectorError, ErrorKind, TargetRecord, WriteStrategy
from .crosswalk import to_json
from .error_policy import decide_lookup_error
from .jobs import PlannedAction
from .mapping.mapped_record import FieldChange
from .prepared_records import PreparedRecord, RecordPreparer
from .rate_limits import Sleep, SystemRateLimiter
from .reconciliation import SIDE_BY_SIDE, RecordReconciler, planned_action, target_snapshot
from .record_states import RecordState

CHUNK = 200
LOOKUP_STRATEGIES = frozenset({WriteStrategy.UPSERT, WriteStrategy.SEARCH, WriteStrategy.MARK})


class DryRunPlanner:
    """One attempt that writes only the plan."""

    def __init__(self, store: Store, clock: Clock, attempt: BatchAttempt, sleep: Sleep) -> None:
        self._clock, self._attempt = clock, attempt
        self._opened = attempt.opened
        self._type = attempt.batch.type
        self._reconciler = RecordReconciler(attempt, clock, sleep)
        self._preparer = RecordPreparer(store, attempt.opened, self._type, attempt.batch.round, ahead=True)
        self._strategy = attempt.opened.target.strategy(attempt.opened.job.type(self._type).target)
        self._cannot_query = False  # the target cannot be queried
        self._after = 0

    async def work(self) -> BatchStop | None:
        """Plan records until the batch is done or must stop."""
        while True:
            row, stop = await self._attempt.check()
            if stop is not None:
                await self._attempt.commit()
                return stop
            rows = await self._attempt.open_records(self._after, CHUNK)
            if not rows:
                await self._attempt.commit()
                return None
            self._after = rows[-1]["seq"]
            stop = await self._plan(rows, query=bool(row["lookup"]))
            await self._attempt.commit()
            if stop is not None:
                return stop
            await self._attempt.note(self._opened.lookups)

    async def _plan(self, rows: Sequence[Row], *, query: bool) -> BatchStop | None:
        results = self._attempt.results
        try:
            items = await self._preparer.prepare(rows, results)
        except ConnectorError as error:
            return self._attempt.unprepared(error)
        stop = self._attempt.follow_errors("hook", self._preparer.hook_errors)
        if self._preparer.has_own_key and items:
            for item in items:
                results.move(item.seq, RecordState.EXTRACTED, key=item.key)
            await self._attempt.commit()
            items = await self._preparer.first_of_each_key(items, self._attempt.results)
        line = iter(items)

        async def work(limiter: SystemRateLimiter) -> None:
            for item in line:
                await self._plan_one(item, limiter, query=query)

        await asyncio.gather(*(work(self._opened.lookups) for _ in range(min(SIDE_BY_SIDE, len(items)))))
        return stop

    async def _plan_one(self, item: PreparedRecord, limiter: SystemRateLimiter, *, query: bool) -> None:
        results = self._attempt.results
        if item.row["same"]:
            results.add_unchanged(item, action=PlannedAction.UNCHANGED)
            return
        if not query or self._cannot_query or self._strategy not in LOOKUP_STRATEGIES:
            blind = PlannedAction.UPDATE if item.known else PlannedAction.CREATE
            self._put(item, PlannedAction.WRITE if self._cannot_query else blind, None, ())
            return
        try:
            found = await self._reconciler.hits(item.id, item.key, item.fields)
        except ConnectorError as error:
            self._lookup_failed(item, error, limiter)
            return
        self._found(item, found)

    def _found(self, item: PreparedRecord, found: Sequence[TargetRecord]) -> None:
        differing: Sequence[FieldChange] = ()
        if len(found) == 1:
            differing = self._opened.mapper.changed_fields(self._type, item.fields, found[0].fields)
        has_fields = len(found) == 1 and found[0].fields is not None
        action = planned_action(found, bool(differing) or not has_fields)
        if action is PlannedAction.CONFLICT:
            reason = f"the target has {len(found)} records under the key {item.key!r}"
            error = ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several")
            self._attempt.results.add_dead_letter(item.seq, RecordState.CONFLICT, error, self._type, action=action)
            return
        if action is PlannedAction.UNCHANGED:
            item.known = found[0].id
            self._attempt.results.add_unchanged(item, action=action)
            return
        self._put(item, action, target_snapshot(self._opened, self._type, found[0] if found else None), differing)

    def _put(
        self, item: PreparedRecord, action: PlannedAction, before: str | None, differing: Sequence[FieldChange]
    ) -> None:
        encoded = to_json([change._asdict() for change in differing]) if differing else None
        self._attempt.results.move(
            item.seq, RecordState.READY, action=action.value, before=before, changes=encoded, hash=item.hash
        )

    def _lookup_failed(self, item: PreparedRecord, error: ConnectorError, limiter: SystemRateLimiter) -> None:
        if error.failure is ErrorKind.PERMANENT:
            self._cannot_query = True
            self._put(item, PlannedAction.WRITE, None, ())
            return
        decision = decide_lookup_error(error, self._opened.job.retry, item.attempts, chance=self._clock.chance())
        self._attempt.follow(decision, error, limiter)
        if decision.state is RecordState.UNKNOWN:
            self._attempt.postpone(item.seq, RecordState.EXTRACTED, decision, error)
        else:
            self._attempt.results.add_dead_letter(
                item.seq, RecordState.FAILED, error, self._type, action=PlannedAction.CONFLICT.value
            )


def estimate_calls(
    actions: Mapping[PlannedAction, int], strategy: WriteStrategy, bulk: int, *, lookup: bool
) -> tuple[int, int]:
    """Estimate the reads and writes of the target for one type. With `lookup`, each record is read again. Pure."""
    creates, updates = actions.get(PlannedAction.CREATE, 0), actions.get(PlannedAction.UPDATE, 0)
    writes = creates + updates + actions.get(PlannedAction.WRITE, 0)
    if lookup and strategy in LOOKUP_STRATEGIES:
        return creates + updates, -(-writes // bulk)
    return creates if strategy is WriteStrategy.SEARCH else 0, -(-writes // bulk)
