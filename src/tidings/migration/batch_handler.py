"""The handler of kind `batch`: one turn at a slice of a job, record by record.

    dies                                   found on the next turn        what is done
    before a claim is written              extracted, ready              as usual
    after the claim, before the call       claimed                       looked for: none, so it is sent
    after the call, before its result      claimed                       looked for: there, so it is written
    after the result                       written                       nothing
What may be sent again (an upsert, a change of a known record) needs no claim, and is simply sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from ..kernel.breaker import BreakerRule
from ..kernel.clock import Clock
from ..kernel.lanes import Lane
from ..kernel.retry import Backoff, RetryPolicy, RetryRule
from ..model.errors import CallerError, Misconfigured, StoreFull, StoreUnavailable, TidingsError
from ..model.outcome import Defer, Done, Outcome
from ..model.task import Task, TaskId, Transition
from ..model.time import SECOND, micros
from ..store.port import Row, Step, Store, WriteConflict
from .batch_attempt import BatchAttempt, BatchStop, MigrationBatch
from .connector_pool import ConnectorPool
from .connectors.port import ConnectorError, RecordState
from .dry_run import DryRunPlanner
from .error_policy import is_repeatable
from .job_events import event_step, halt_steps
from .jobs import BatchState
from .prepared_records import PreparedRecord, RecordPreparer, RecordResults
from .rate_limits import Sleep
from .reconciliation import RecordReconciler
from .writer import Writer, claim_uncertain_for

QUEUE = "migration"
KIND = "batch"
AT_ONCE = 4  # batches of one node
CHUNK = 500  # records that are read and prepared together

_POLICY = RetryPolicy("batch", RetryRule(1000, Backoff.FIXED, timedelta(seconds=1), timedelta(hours=1)))
_LONGEST = timedelta(days=1)  # a job's own time limits are shorter


def lane() -> Lane:
    """How batches are run: a turn may always be taken again, because only open records are."""
    return Lane(QUEUE, policy=_POLICY, deadline=_LONGEST, cap=AT_ONCE, breaker=BreakerRule(threshold=1 << 30))


class BatchHandler:
    """Runs turns."""

    listens = False

    def __init__(
        self, store: Store, clock: Clock, connections: ConnectorPool, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self._store = store
        self._clock = clock
        self._connections = connections
        self._sleep = sleep

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, MigrationBatch]:
        """The batches of these tasks."""
        found = {task.id: await self._store.read("job_batch_of", task=task.id) for task in tasks}
        return {id_: MigrationBatch(**rows[0]) for id_, rows in found.items() if rows}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Nothing: results are written by the turn itself."""
        return ()

    async def run(self, task: Task, content: Any) -> Outcome:
        """One turn."""
        batch: MigrationBatch = content
        if batch.state in (BatchState.COMPLETED, BatchState.FAILED_FINAL):
            return Done(batch.state)
        try:
            async with self._connections.use(batch.job, batch.version) as opened:
                turn = BatchAttempt(self._store, self._clock, task, batch, opened)
                await turn.begin()
                try:
                    async with asyncio.timeout(opened.job.caps.hard.total_seconds()):
                        stop = await self._work(turn)
                except TimeoutError:
                    turn.forget()
                    stop = BatchStop(BatchState.RETRYING, self._clock.now(), "its hard time limit is over")
                await turn.note(opened.writes, opened.looks, at_once=True)
                return await turn.end(stop)
        except WriteConflict:
            return Defer(self._clock.now() + SECOND, "somebody else has this batch")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)
        except (Misconfigured, CallerError) as error:
            return await self._halted(batch, error)

    async def _halted(self, batch: MigrationBatch, error: TidingsError) -> Outcome:
        """The job cannot be opened as it is written: a person must look."""
        row = (await self._store.read("job_row", n=batch.job))[0]
        tell = event_step(row["tenant"], row["name"], "migration.paused", error.problem)
        await self._store.write(halt_steps(batch.job, str(error), None, tell, 0))
        return Defer(self._clock.now() + 30 * SECOND, error.problem)

    async def _work(self, turn: BatchAttempt) -> BatchStop | None:
        if turn.batch.is_plan:
            return await DryRunPlanner(self._store, self._clock, turn, self._sleep).work()
        return await BatchWriteRun(self._store, self._clock, turn, self._sleep).work()


class BatchWriteRun:
    """One turn that writes."""

    def __init__(self, store: Store, clock: Clock, turn: BatchAttempt, sleep: Sleep) -> None:
        self._clock = clock
        self._turn = turn
        self._sleep = sleep
        self._reconciler = RecordReconciler(turn, clock, sleep)
        self._writer = Writer(turn, clock, self._reconciler, sleep)
        self._preparer = RecordPreparer(store, turn.opened, turn.batch.type, turn.batch.round)
        self._waiting: list[PreparedRecord] = []
        self._after = 0
        self._stop: BatchStop | None = None

    async def work(self) -> BatchStop | None:
        """Until the batch is done, or something stops it."""
        while True:
            row, stop = await self._turn.look()
            if stop is not None:
                await self._turn.commit()
                return stop
            if not self._waiting and not await self._fetch():
                await self._turn.commit()
                return self._stop
            if self._waiting:
                wait = await self._writer.send(self._waiting, row)
                if wait:
                    await self._sleep(min(wait, 1.0))

    async def _fetch(self) -> bool:
        """The next open records: those in doubt are looked at, the others prepared. False: there are none."""
        rows = await self._turn.open_records(self._after, CHUNK)
        if not rows:
            return False
        self._after = rows[-1]["seq"]
        results = self._turn.results
        doubtful = [row for row in rows if row["state"] in (RecordState.CLAIMED, RecordState.UNKNOWN)]
        fresh = [row for row in rows if row["state"] not in (RecordState.CLAIMED, RecordState.UNKNOWN)]
        if doubtful:
            fresh += await self._settle(doubtful)
        if not fresh:
            return True
        try:
            items = await self._preparer.prepare(fresh, results)
        except ConnectorError as trouble:  # the target was asked for its attributes
            self._stop = self._turn.unprepared(trouble)
            return False
        if self._preparer.has_own_key and items:
            items = await self._keep_keys(items)
        for item in items:
            if item.row["same"]:
                self._same(item, results)
            else:
                self._waiting.append(item)
        return True

    def _same(self, item: PreparedRecord, results: RecordResults) -> None:
        results.same(item, links=item.links or None)
        if self._turn.batch.phase == "links":  # it was written before, and counted
            results.unchanged -= 1
            results.moves[-1]["state"] = RecordState.WRITTEN.value

    async def _settle(self, rows: Sequence[Row]) -> list[Row]:
        """Records of a turn that died, or whose answer did not come; gives those that may simply be sent."""
        opened, results = self._turn.opened, self._turn.results
        type_ = opened.job.type(self._turn.batch.type)
        strategy = opened.target.strategy(type_.target)
        again = [row for row in rows if is_repeatable(strategy, row["target_id"])]
        left = [row for row in rows if row not in again]
        ripe: list[Row] = []
        for row in left:
            until = 0
            if row["state"] == RecordState.CLAIMED:
                until = row["claimed_at"] + micros(claim_uncertain_for(opened.call_within))
                self._doubt(row, until, results)
            if until <= self._turn.now:
                ripe.append(row)
        await self._turn.commit()
        for row in ripe:
            if not await self._reconciler.settle(row):
                break
        await self._turn.commit()
        return again

    def _doubt(self, row: Row, until: int, results: RecordResults) -> None:
        """Its call may still arrive: it is looked for when it cannot any more."""
        results.move(
            row["seq"],
            RecordState.UNKNOWN,
            due_at=until,
            mapped=row["mapped"],
            failure="ambiguous",
            fingerprint=f"in_doubt/{self._turn.batch.type}//died",
            reason="whoever wrote it died before the answer",
        )
        results.tell(row["seq"], "unknown", None, "whoever wrote it died before the answer")

    async def _keep_keys(self, items: list[PreparedRecord]) -> list[PreparedRecord]:
        """Keys are kept before they are compared, so that of two batches at once one sees the other's."""
        results = self._turn.results
        for item in items:
            if item.row["key"] != item.key:
                results.move(item.seq, RecordState.READY, key=item.key)
        await self._turn.commit()
        return await self._preparer.first_of_each_key(items, self._turn.results)
