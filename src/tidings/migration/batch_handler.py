"""The task handler of kind `batch`: one attempt at a batch, record by record.

    crash                                  found by the next attempt     what happens
    before the claim is written            extracted, ready              processed normally
    after the claim, before the call       claimed                       looked up: absent, so it is sent
    after the call, before its result      claimed                       looked up: present, so it is written
    after the result                       written                       nothing
Idempotent writes (an upsert, an update of a known record) need no claim: they are sent again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
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
from ..observability.events import Emit, discard_event, unexpected_error
from ..store.port import Row, Step, Store, WriteConflict
from .batch_attempt import BatchAttempt, BatchStop, MigrationBatch
from .connector_pool import ConnectorPool
from .connectors.port import ConnectorError
from .dry_run import DryRunPlanner
from .error_policy import is_repeatable
from .job_events import halt_for_error
from .job_file import MigrationJob
from .jobs import BatchState
from .prepared_records import PreparedRecord, RecordPreparer, RecordResults
from .rate_limits import Sleep
from .reconciliation import RecordReconciler
from .record_states import RecordState
from .writer import Writer, claim_uncertain_for

QUEUE = "migration"
KIND = "batch"
AT_ONCE = 4  # batches per node
CHUNK = 500  # records read and prepared together

_CRASHED = "its worker crashed before the answer"
_POLICY = RetryPolicy("batch", RetryRule(1000, Backoff.FIXED, timedelta(seconds=1), timedelta(hours=1)))
_LONGEST = timedelta(days=1)  # longer than any time limit of a job


def lane(queue: str = QUEUE) -> Lane:
    """Return a lane of batches: an attempt may always be repeated, since it processes open records only."""
    return Lane(queue, policy=_POLICY, deadline=_LONGEST, concurrency=AT_ONCE, breaker=BreakerRule(threshold=1 << 30))


def queue_names(shares: Collection[str]) -> list[str]:
    """Return all queues of batches: the general one, and one for each tenant or priority of `migration_queues`."""
    return [QUEUE, *(f"{QUEUE}:{share}" for share in shares)]


def queue_of(job: MigrationJob, shares: Collection[str]) -> str:
    """Return the queue of a job's batches: its tenant's, else its priority's, else the general one."""
    own = (share for share in (f"tenant={job.tenant}", f"priority={job.priority}") if share in shares)
    return next((f"{QUEUE}:{share}" for share in own), QUEUE)


class BatchHandler:
    """Runs attempts at batches."""

    listens = False

    def __init__(
        self,
        store: Store,
        clock: Clock,
        connections: ConnectorPool,
        *,
        emit: Emit = discard_event,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store, self._clock, self._connections, self._sleep = store, clock, connections, sleep
        self._emit = emit

    async def load(self, tasks: Sequence[Task]) -> Mapping[TaskId, MigrationBatch]:
        found = {task.id: await self._store.read("job_batch_of", task=task.id) for task in tasks}
        return {id_: MigrationBatch(**rows[0]) for id_, rows in found.items() if rows}

    def effects(self, moves: Sequence[tuple[Task, Transition]]) -> Sequence[Step]:
        """Return no steps: the attempt commits its own results."""
        return ()

    def log_ids(self, content: Any) -> Mapping[str, str]:
        """Return the ids of the job and the batch for log lines."""
        return {"job": content.job_id, "batch": content.id} if isinstance(content, MigrationBatch) else {}

    async def run(self, task: Task, content: Any) -> Outcome:
        batch: MigrationBatch = content
        if batch.state in (BatchState.COMPLETED, BatchState.FAILED_FINAL):
            return Done(batch.state)
        try:
            async with self._connections.use(batch.job, batch.version) as opened:
                attempt = BatchAttempt(self._store, self._clock, task, batch, opened, self._emit)
                self._emit(await attempt.begin())
                try:
                    async with asyncio.timeout(opened.job.caps.hard.total_seconds()):
                        stop = await self._work(attempt)
                except TimeoutError:
                    attempt.forget()
                    stop = BatchStop(BatchState.FAILED, self._clock.now(), "hard time limit reached")
                await attempt.note(opened.writes, opened.lookups, at_once=True)
                outcome, finished = await attempt.end(stop)
                self._emit(finished)
                return outcome
        except WriteConflict:
            return Defer(self._clock.now() + SECOND, "another worker holds this batch")
        except (StoreUnavailable, StoreFull) as error:
            return Defer(self._clock.now() + SECOND, error.problem)
        except (Misconfigured, CallerError) as error:
            return await self._halted(batch, error)
        except Exception as error:  # the runner retries the batch; the log gets the traceback
            self._emit(unexpected_error(error, batch.job_id, batch.id, task.tenant))
            raise

    async def _halted(self, batch: MigrationBatch, error: TidingsError) -> Outcome:
        """Pause a job that cannot be opened as configured, and emit an event."""
        row = (await self._store.read("job_row", n=batch.job))[0]
        await self._store.write(halt_for_error(batch.job, row, error))
        return Defer(self._clock.now() + 30 * SECOND, error.problem)

    async def _work(self, attempt: BatchAttempt) -> BatchStop | None:
        if attempt.batch.is_plan:
            return await DryRunPlanner(self._store, self._clock, attempt, self._sleep).work()
        return await BatchWriteRun(self._store, self._clock, attempt, self._sleep).work()


class BatchWriteRun:
    """One attempt that writes to the target."""

    def __init__(self, store: Store, clock: Clock, attempt: BatchAttempt, sleep: Sleep) -> None:
        self._clock, self._attempt, self._sleep = clock, attempt, sleep
        self._reconciler = RecordReconciler(attempt, clock, sleep)
        self._writer = Writer(attempt, clock, self._reconciler, sleep)
        self._preparer = RecordPreparer(store, attempt.opened, attempt.batch.type, attempt.batch.round)
        self._waiting: list[PreparedRecord] = []
        self._after = 0
        self._stop: BatchStop | None = None

    async def work(self) -> BatchStop | None:
        """Process records until the batch is done or must stop."""
        while True:
            row, stop = await self._attempt.check()
            if stop is not None:
                await self._attempt.commit()
                return stop
            if not self._waiting and not await self._fetch():
                await self._attempt.commit()
                return self._stop
            if self._waiting:
                wait = await self._writer.send(self._waiting, row)
                self._stop = self._writer.stop
                if self._stop is not None:
                    return self._stop
                if wait:
                    await self._sleep(min(wait, 1.0))

    async def _fetch(self) -> bool:
        """Fetch the next open records: reconcile uncertain ones, prepare the others. False: none are left."""
        if self._stop is not None:
            return False
        rows = await self._attempt.open_records(self._after, CHUNK)
        if not rows:
            return False
        self._after = rows[-1]["seq"]
        results = self._attempt.results
        uncertain = [row for row in rows if row["state"] in (RecordState.CLAIMED, RecordState.UNKNOWN)]
        fresh = [row for row in rows if row["state"] not in (RecordState.CLAIMED, RecordState.UNKNOWN)]
        if uncertain:
            fresh += await self._settle(uncertain)
        if not fresh:
            return True
        try:
            items = await self._preparer.prepare(fresh, results)
        except ConnectorError as error:  # reading the target's attributes failed
            self._stop = self._attempt.unprepared(error)
            return False
        self._stop = self._attempt.follow_errors("hook", self._preparer.hook_errors)
        if self._preparer.has_own_key and items:
            items = await self._commit_keys(items)
        for item in items:
            if item.row["same"]:
                self._add_unchanged(item, results)
            else:
                self._waiting.append(item)
        return True

    def _add_unchanged(self, item: PreparedRecord, results: RecordResults) -> None:
        results.add_unchanged(item, links=item.links or None)
        if self._attempt.batch.phase == "links":  # it was written and counted before
            results.unchanged -= 1
            results.moves[-1]["state"] = RecordState.WRITTEN.value

    async def _settle(self, rows: Sequence[Row]) -> list[Row]:
        """Reconcile records whose write has an unknown outcome; return those that can be sent again."""
        opened, results = self._attempt.opened, self._attempt.results
        type_ = opened.job.type(self._attempt.batch.type)
        strategy = opened.target.strategy(type_.target)
        again = [row for row in rows if is_repeatable(strategy, row["target_id"])]
        left = [row for row in rows if row not in again]
        due: list[Row] = []
        for row in left:
            until = 0
            if row["state"] == RecordState.CLAIMED:
                until = row["claimed_at"] + micros(claim_uncertain_for(opened.call_within))
                self._mark_unknown(row, until, results)
            if until <= self._attempt.now:
                due.append(row)
        await self._attempt.commit()
        for row in due:
            if not await self._reconciler.settle(row):
                break
        await self._attempt.commit()
        return again

    def _mark_unknown(self, row: Row, until: int, results: RecordResults) -> None:
        """Mark a claimed record as unknown until its call can no longer arrive; then it is looked up."""
        results.move(
            row["seq"],
            RecordState.UNKNOWN,
            due_at=until,
            mapped=row["mapped"],
            failure="ambiguous",
            fingerprint=f"unknown/{self._attempt.batch.type}//died",
            reason=_CRASHED,
        )
        results.add_log(row["seq"], "unknown", None, _CRASHED)

    async def _commit_keys(self, items: list[PreparedRecord]) -> list[PreparedRecord]:
        """Commit keys before comparing them, so that of two concurrent batches one sees the other's keys."""
        results = self._attempt.results
        for item in items:
            if item.row["key"] != item.key:
                results.move(item.seq, RecordState.READY, key=item.key)
        await self._attempt.commit()
        return await self._preparer.first_of_each_key(items, self._attempt.results)
