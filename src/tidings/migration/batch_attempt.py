"""One attempt at a batch: progress, time limits and commits, fenced by the task's claim (fencing token).

Results are committed in chunks: record states, crosswalk, log and batch counts in one transaction. Between
two chunks the attempt checks for a pause, a cancellation, a throttled system and its time limits.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

import orjson

from ..kernel.clock import Clock
from ..model.outcome import Defer, Done, Outcome
from ..model.task import Task
from ..model.time import SECOND, iso, micros
from ..observability.events import BatchFinished, BatchStarted, Emit, unexpected_error
from ..store.port import Row, Step, Store, WriteConflict
from .adaptive_concurrency import CallStats
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind
from .crosswalk import to_json
from .error_policy import (
    ACCOUNT_ERRORS,
    DEFAULT_WAIT,
    HEALTH_ERRORS,
    QUOTA_WAIT,
    SAME_CAUSE_LIMIT,
    SYSTEMIC_ERRORS,
    ErrorDecision,
    decide_write_error,
)
from .job_events import event_for, halt_steps
from .jobs import BatchState, JobState
from .prepared_records import RecordResults
from .rate_limits import NOTE_EVERY, SystemRateLimiter, month_of, next_month
from .record_states import FINAL_STATES, RecordState

TURN = 10.0  # seconds after which a batch yields to others
OUTRANKED = 1.0  # the same while a batch of higher priority waits
_FULL = 900  # rows per statement
_SHORTLY = timedelta(seconds=2)


class MigrationBatch(NamedTuple):
    """A batch, as loaded for its task."""

    id: str
    job: int
    type: str
    round: int
    phase: str
    system: str
    first: int
    last: int
    size: int
    state: str
    failures: int
    version: int
    job_id: str

    @property
    def is_set(self) -> bool:
        """Whether its records carry the batch's id; otherwise they are the range `first` to `last`."""
        return self.last == 0

    @property
    def is_plan(self) -> bool:
        """Whether the batch belongs to a dry run and writes nothing to the target."""
        return self.phase == "plan"


class BatchStop(NamedTuple):
    """Why an attempt ends before its batch does."""

    state: BatchState
    until: int | None  # when its task runs again; None: the scheduler creates a new task
    why: str


class BatchAttempt:
    """One attempt at one batch."""

    def __init__(
        self, store: Store, clock: Clock, task: Task, batch: MigrationBatch, opened: OpenedJob, emit: Emit
    ) -> None:
        self.batch, self.opened, self._emit = batch, opened, emit
        self._ids = (batch.job_id, batch.id, opened.tenant)
        self._finished = FINAL_STATES | {RecordState.READY} if batch.is_plan else FINAL_STATES
        self._attempt = batch.failures + 1
        self.now = clock.now()
        self._store, self._clock, self._task = store, clock, task
        self._began = clock.monotonic()
        self.results = RecordResults()  # not committed yet
        self._pauses: dict[str, Step] = {}
        self._halt: tuple[str, int | None] | None = None
        self._load: dict[str, CallStats] = {}
        self._noted = clock.monotonic()
        self._has_failures = False  # a record has spent an attempt
        self._ended = 0  # records that this attempt has finished

    async def read(self, statement: str, **params: Any) -> list[Row]:
        return await self._store.read(statement, **params)

    async def check(self) -> tuple[Row, BatchStop | None]:
        """Reload the state of batch, job and system; return the row and a reason to stop, if any.

        Raises WriteConflict when the claim was lost.
        """
        found = await self._store.read(
            "job_batch_check", batch=self.batch.id, task=self._task.id, claim_no=self._task.claim_no
        )
        if not found or not found[0]["holds"]:
            raise WriteConflict("the claim was lost")
        row, self.now = found[0], found[0]["now"]
        return row, self._stop(row)

    def _stop(self, row: Row) -> BatchStop | None:
        wanted = JobState.PLANNING if self.batch.is_plan else JobState.RUNNING
        if row["job_state"] != wanted or row["round"] != self.batch.round:
            return BatchStop(BatchState.PENDING, None, f"the job is {row['job_state']}")
        if row["blocked_until"] > self.now:
            why = f"{row['reason'] or 'throttled'}, until {iso(row['blocked_until'])}"
            state = BatchState.FAILED if self._has_failures else BatchState.PENDING
            return BatchStop(state, row["blocked_until"], why)
        if self.room(row) <= 0:
            allowed = self.opened.limits.per_month or 0
            self.halt(f"the monthly quota of {allowed:,} calls is used up", until=next_month(self.now))
            return BatchStop(BatchState.PENDING, None, "the monthly quota is used up")
        passed = self._clock.monotonic() - self._began
        if passed >= self.opened.job.caps.soft.total_seconds():
            reason = "soft time limit reached; the remaining records are released"
            return BatchStop(BatchState.PENDING, self.now, reason)
        if passed >= (OUTRANKED if row["outranked"] else TURN):
            return BatchStop(BatchState.PENDING, self.now, "yielding to other batches")
        return None

    def room(self, row: Row) -> int:
        """Return how many calls of the monthly quota are left; a very large number without a quota."""
        allowed = self.opened.limits.per_month
        if allowed is None:
            return 1 << 30
        used = row["used"] if row["month"] == month_of(self.now) else 0
        return int(allowed - used - self._load.get(self.opened.writes.name, CallStats()).calls)

    async def open_records(self, after: int, limit: int) -> list[Row]:
        """Read the next open records of the batch after a sequence number."""
        batch = self.batch
        if batch.is_set:
            return await self._store.read(
                "job_record_set", batch=batch.id, after=after, limit=limit, planning=batch.is_plan
            )
        return await self._store.read(
            "job_record_range", job=batch.job, type=batch.type, round=batch.round, planning=batch.is_plan,
            after=max(after, batch.first - 1), last=batch.last, limit=limit,
        )  # fmt: skip

    async def begin(self) -> BatchStarted:
        """Begin the attempt, and return the event of it."""
        ((held,),) = await self._store.write([self._hold(begins=True)])
        self._attempt = held["failures"] + 1
        return BatchStarted(*self._ids, (await self.rest())["n"], self.batch.size, self._attempt)

    async def commit(self, *more: Step, linking: Sequence[Step] = ()) -> None:
        """Commit the collected results, if any. `linking` runs first and may raise WriteConflict."""
        done, batch = self.results, self.batch
        if not len(done) and not more and not linking and not self._pauses and self._halt is None:
            return
        planned = sum(move["state"] == RecordState.READY for move in done.moves) if batch.is_plan else 0
        steps = [self._hold(planned=planned, written=done.written, unchanged=done.unchanged), *linking]
        steps += [Step("job_record_written", {"rows": to_json(rows)}) for rows in _portions(done.plain)]
        steps += [Step("job_record_move", {"rows": to_json(rows)}) for rows in _portions(done.moves)]
        steps += [self.opened.crosswalk.put_step(batch.job, batch.type, rows) for rows in _portions(done.links)]
        steps += [Step("job_log_add", {"rows": to_json(rows)}) for rows in _portions(done.log)]
        await self._store.write(self._with_pauses([*steps, *more]))
        self._ended += len(done.plain) + sum(move["state"] in self._finished for move in done.moves)
        self.results = RecordResults()
        for error in done.exceptions.values():
            self._emit(unexpected_error(error, *self._ids))
        await self._check_same_cause(done)

    def forget(self) -> None:
        """Discard uncommitted results; a later attempt finds them again."""
        self.results = RecordResults()

    async def _check_same_cause(self, done: RecordResults) -> None:
        """Pause the job when many records fail for one systemic cause."""
        for mark, failure in done.fingerprints.items():
            if failure not in SYSTEMIC_ERRORS:
                continue
            asked = {"job": self.batch.job, "fingerprint": mark, "limit": SAME_CAUSE_LIMIT}
            if (await self._store.read("job_cause_count", **asked))[0]["n"] >= SAME_CAUSE_LIMIT:
                self.halt(f"{SAME_CAUSE_LIMIT} records failed for the same cause: {mark}")
                await self.commit()
                return

    def halt(self, reason: str, *, until: int | None = None) -> None:
        """Pause the job with the next commit and emit an event; the first reason wins."""
        self._halt = self._halt or (reason[:500], until)

    def unprepared(self, error: ConnectorError, wait: timedelta | None = None) -> BatchStop:
        """Return how to stop when no record can be prepared: retry later, or pause the job."""
        if error.failure in HEALTH_ERRORS or error.failure in (ErrorKind.RATE_LIMIT, ErrorKind.UNKNOWN):
            wait = wait or error.wait or (DEFAULT_WAIT if error.failure is ErrorKind.RATE_LIMIT else _SHORTLY)
            return BatchStop(BatchState.FAILED, self.now + micros(wait), error.reason)
        until = self.now + micros(error.wait or QUOTA_WAIT) if error.failure is ErrorKind.QUOTA else None
        self.halt(f"{error.failure}: {error.reason}", until=until)
        return BatchStop(BatchState.PENDING, None, error.reason)

    def follow(self, decision: ErrorDecision, error: ConnectorError, limiter: SystemRateLimiter) -> bool:
        """Apply a decision to system and job: throttle, pause. Return whether to stop sending for now."""
        self._has_failures = self._has_failures or decision.attempts is not None
        if decision.throttle is not None:
            self._pauses[limiter.name] = limiter.pause_step(self.now + micros(decision.throttle), error.reason)
        if decision.halt:
            after = decision.until_after
            until = None if after is None else self.now + micros(after)
            self.halt(f"{error.failure}: {error.reason}", until=until)
        return decision.halt or decision.throttle is not None

    def postpone(
        self, seq: int, state: RecordState, decision: ErrorDecision, error: ConnectorError, **more: Any
    ) -> None:
        """Leave a record open for a later attempt, as the decision says."""
        wait = decision.throttle or decision.after
        due_at = self.now + micros(wait) if wait else None
        attempts = None if decision.attempts is None else to_json(decision.attempts)
        self.results.move(seq, state, due_at=due_at, attempts=attempts, reason=error.reason[:1000], **more)

    def follow_errors(self, what: str, raised: Sequence[tuple[Row, ConnectorError]]) -> BatchStop | None:
        """Handle the errors of a hook or a download by their kind; return the reason to stop, if any."""
        stop: BatchStop | None = None
        for row, error in raised:
            decision = decide_write_error(
                error, self.opened.job.retry, orjson.loads(row["attempts"]), repeatable=True, known=None,
                doubt=timedelta(0), chance=self._clock.chance(),
            )  # fmt: skip
            self._has_failures = self._has_failures or decision.attempts is not None
            self.results.add_log(row["seq"], f"{what}: {decision.state}", error.code or error.failure, error.reason)
            if decision.state is RecordState.READY:
                self.postpone(
                    row["seq"], RecordState.EXTRACTED if self.batch.is_plan else decision.state, decision, error
                )
            else:
                attempts = to_json(decision.attempts or {})
                self.results.add_dead_letter(row["seq"], decision.state, error, self.batch.type, attempts=attempts)
            if error.failure in ACCOUNT_ERRORS:
                stop = self.unprepared(error, decision.throttle)
        return stop

    def _with_pauses(self, steps: list[Step]) -> list[Step]:
        """Return the steps plus pending pauses and the halt of the job, with its event."""
        steps = [*steps, *self._pauses.values()]
        self._pauses = {}
        if self._halt is not None:
            (reason, until), self._halt = self._halt, None
            tell = event_for(self.opened, "migration.paused", reason)
            steps += halt_steps(self.batch.job, reason, until, tell, len(steps))
        return steps

    def count(self, limiter: SystemRateLimiter, error: ConnectorError | None, took: float) -> None:
        """Record one call to a system, its error, if any, and the seconds that it took."""
        failure, before = None if error is None else error.failure, self._load.get(limiter.name, CallStats())
        self._load[limiter.name] = before.plus(
            good=error is None,
            failed=failure in HEALTH_ERRORS,
            throttled=failure is ErrorKind.RATE_LIMIT,
            took=round(took * SECOND),
        )

    async def note(self, *limiters: SystemRateLimiter, at_once: bool = False) -> None:
        """Write the call statistics to the systems' rows at most every NOTE_EVERY seconds."""
        if not at_once and self._clock.monotonic() - self._noted < NOTE_EVERY:
            return
        self._noted = self._clock.monotonic()
        for limiter in limiters:
            alert_after = min(self.opened.job.retry.alert_after.values(), default=3)
            load = self._load.pop(limiter.name, CallStats())
            after, before = await limiter.note(load), load.failures
            if after is not None and before and after.failures >= alert_after > after.failures - before:
                reason = f"{limiter.name}: {after.failures} failures in a row"
                await self._store.write([event_for(self.opened, "migration.breaker_opened", reason)])

    async def rest(self) -> Row:
        """Read how many records of the batch are open, and when the first is due."""
        batch = self.batch
        if batch.is_set:
            return (await self._store.read("job_rest_set", batch=batch.id, planning=batch.is_plan))[0]
        return (
            await self._store.read(
                "job_rest_range", job=batch.job, type=batch.type, round=batch.round, planning=batch.is_plan,
                first=batch.first, last=batch.last,
            )
        )[0]  # fmt: skip

    async def end(self, stop: BatchStop | None) -> tuple[Outcome, BatchFinished]:
        """End the batch or release it; return the outcome of its task, and the event."""
        spent = round((self._clock.monotonic() - self._began) * SECOND)
        steps: list[Step] = []
        ended = BatchState.COMPLETED
        if stop is None:
            rest = await self.rest()
            if rest["n"]:
                stop = BatchStop(BatchState.FAILED, max(rest["due_at"], self.now), f"{rest['n']} to retry")
            else:
                of = {"job": self.batch.job, "type": self.batch.type, "batch": self.batch.id}
                steps = [Step("job_type_pace", of)] if self.batch.phase == "run" else []
                ended = BatchState.FAILED_FINAL if rest["failed"] else ended
        state = ended if stop is None else stop.state
        keeps, reason = stop is not None and stop.until is not None, None if stop is None else stop.why
        params = {"batch": self.batch.id, "state": state.value, "reason": reason}
        fence = {"task": self._task.id, "claim_no": self._task.claim_no}
        ending = Step("job_batch_end", {**params, **fence, "spent": spent, "keeps": keeps}, needed=True)
        done = await self._store.write(self._with_pauses([ending, *steps]))
        shown, count = done[0][0]["state"], (self._ended, self.batch.size, self._attempt)
        event = BatchFinished(*self._ids, *count, shown, reason, spent / 1000)
        return Defer(stop.until, stop.why) if stop is not None and stop.until is not None else Done(shown), event

    def _hold(self, **counts: Any) -> Step:
        fence = {"batch": self.batch.id, "task": self._task.id, "claim_no": self._task.claim_no}
        zero = {"begins": False, "planned": 0, "written": 0, "unchanged": 0}
        return Step("job_batch_hold", {**fence, **zero, **counts}, needed=True)


def _portions(rows: Sequence[Any]) -> list[Sequence[Any]]:
    """Split rows into lists that fit into one statement."""
    return [rows[begin : begin + _FULL] for begin in range(0, len(rows), _FULL)]
