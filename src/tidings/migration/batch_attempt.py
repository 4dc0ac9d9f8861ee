"""A turn: one attempt at a batch, as far as writing down goes. Everything is fenced by the task's claim.

What a turn has learned is written in chunks; the batch's counts, the records, the crosswalk and the log go in
one transaction. A pause, a cancel, a parked system or the end of its time are seen between two chunks.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from ..kernel.clock import Clock
from ..model.outcome import Defer, Done, Outcome
from ..model.task import Task
from ..model.time import SECOND, iso, micros
from ..store.port import Row, Step, Store, WriteConflict
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind
from .crosswalk import json_parameter
from .error_policy import (
    DEFAULT_WAIT,
    HEALTH_ERRORS,
    QUOTA_WAIT,
    SAME_CAUSE_LIMIT,
    SYSTEMIC_ERRORS,
    ErrorDecision,
)
from .job_events import event_for, halt_steps
from .jobs import BatchState, JobState
from .prepared_records import RecordResults
from .rate_limits import NOTE_EVERY, CallStats, SystemRateLimiter, month_of, next_month

TURN = 10.0  # seconds after which a batch lets others in
OUTRANKED = 1.0  # the same while one waits that comes before it
_FULL = 900  # rows of one statement
_SHORTLY = timedelta(seconds=2)


class MigrationBatch(NamedTuple):
    """A batch, as its task found it."""

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
    attempts: int
    version: int
    job_state: str
    job_round: int

    @property
    def is_set(self) -> bool:
        """Whether its records name it; otherwise they lie between two places."""
        return self.last == 0

    @property
    def is_plan(self) -> bool:
        """Whether it writes nothing."""
        return self.phase == "plan"


class BatchStop(NamedTuple):
    """Why a turn ends before its batch does."""

    state: BatchState
    until: int | None  # its task comes back then; None: when somebody makes a new one
    why: str


class BatchAttempt:
    """One attempt at one batch."""

    def __init__(
        self, store: Store, clock: Clock, task: Task, batch: MigrationBatch, opened: OpenedJob
    ) -> None:
        self.batch = batch
        self.opened = opened
        self.now = clock.now()
        self._store = store
        self._clock = clock
        self._task = task
        self._began = clock.monotonic()
        self._results = RecordResults()
        self._parking: dict[str, Step] = {}
        self._halting: tuple[str, int | None] | None = None
        self._load: dict[str, CallStats] = {}
        self._noted = clock.monotonic()

    @property
    def results(self) -> RecordResults:
        """What is not written yet."""
        return self._results

    # -- looking

    async def read(self, statement: str, **params: Any) -> list[Row]:
        """A read statement."""
        return await self._store.read(statement, **params)

    async def look(self) -> tuple[Row, BatchStop | None]:
        """How things stand; with the reason why this turn cannot go on."""
        found = await self._store.read(
            "job_batch_look", batch=self.batch.id, task=self._task.id, claim_no=self._task.claim_no
        )
        if not found or not found[0]["holds"]:
            raise WriteConflict("its claim was lost")
        row, self.now = found[0], found[0]["now"]
        return row, self._stop(row)

    def _stop(self, row: Row) -> BatchStop | None:
        wanted = JobState.PLANNING if self.batch.is_plan else JobState.RUNNING
        if row["job_state"] != wanted or row["round"] != self.batch.round:
            return BatchStop(BatchState.PENDING, None, f"its job is {row['job_state']}")
        if row["blocked_until"] > self.now:
            why = f"{row['reason'] or 'parked'}, until {iso(row['blocked_until'])}"
            return BatchStop(BatchState.RETRYING, row["blocked_until"], why)
        if self.room(row) <= 0:
            allowed = self.opened.limits.per_month or 0
            self.halt(f"the month's {allowed:,} calls are used up", until=next_month(self.now))
            return BatchStop(BatchState.PENDING, None, "the month's calls are used up")
        passed = self._clock.monotonic() - self._began
        if passed >= self.opened.job.caps.soft.total_seconds():
            return BatchStop(
                BatchState.PENDING, self.now, "its soft time limit is over, the rest is given back"
            )
        if passed >= (OUTRANKED if row["outranked"] else TURN):
            return BatchStop(BatchState.PENDING, self.now, "others may have a turn")
        return None

    def room(self, row: Row) -> int:
        """How many calls are left of this month, as far as the job and the system's documents say."""
        allowed = self.opened.limits.per_month
        if allowed is None:
            return 1 << 30
        used = row["used"] if row["month"] == month_of(self.now) else 0
        return int(allowed - used - self._load.get(self.opened.writes.name, CallStats()).calls)

    async def open_records(self, after: int, limit: int) -> list[Row]:
        """The next open records of the batch, from a place on."""
        batch = self.batch
        if batch.is_set:
            return await self._store.read(
                "job_record_set", batch=batch.id, after=after, limit=limit, planning=batch.is_plan
            )
        return await self._store.read(
            "job_record_range", job=batch.job, type=batch.type, round=batch.round, planning=batch.is_plan,
            after=max(after, batch.first - 1), last=batch.last, limit=limit,
        )  # fmt: skip

    # -- writing

    async def begin(self) -> None:
        """This attempt is under way."""
        await self._store.write([self._hold(attempts=1)])

    async def commit(self, *more: Step, linking: Sequence[Step] = ()) -> None:
        """Write down what is known by now, if anything is; `linking` comes first and may be outrun."""
        done, batch = self._results, self.batch
        if not len(done) and not more and not linking and not self._parking and self._halting is None:
            return
        steps = [self._hold(written=done.written, unchanged=done.unchanged), *linking]
        steps += [
            Step("job_record_written", {"rows": json_parameter(rows)}) for rows in _portions(done.plain)
        ]
        steps += [Step("job_record_move", {"rows": json_parameter(rows)}) for rows in _portions(done.moves)]
        steps += [
            self.opened.crosswalk.putting(batch.job, batch.type, rows) for rows in _portions(done.links)
        ]
        steps += [Step("job_log_add", {"rows": json_parameter(rows)}) for rows in _portions(done.log)]
        await self._store.write(self._with_news([*steps, *more]))
        self._results = RecordResults()
        await self._look_for_one_cause(done)

    def forget(self) -> None:
        """What was to be written down was outrun, and is found again by whoever looks next."""
        self._results = RecordResults()

    async def _look_for_one_cause(self, done: RecordResults) -> None:
        """Many errors of one cause that is not in the data: somebody must look."""
        for mark, failure in done.fingerprints.items():
            if failure not in SYSTEMIC_ERRORS:
                continue
            asked = {"job": self.batch.job, "fingerprint": mark, "limit": SAME_CAUSE_LIMIT}
            if (await self._store.read("job_cause_count", **asked))[0]["n"] >= SAME_CAUSE_LIMIT:
                self.halt(f"{SAME_CAUSE_LIMIT} records failed for one cause: {mark}")
                await self.commit()
                return

    def halt(self, reason: str, *, until: int | None = None) -> None:
        """The job stops with the next commit, and it is told."""
        self._halting = self._halting or (reason[:500], until)

    def unprepared(self, trouble: ConnectorError) -> BatchStop:
        """The target does not even say what it takes: the batch comes back, or the job waits for a person."""
        if trouble.failure in HEALTH_ERRORS or trouble.failure in (ErrorKind.RATE_LIMIT, ErrorKind.UNKNOWN):
            wait = trouble.wait or (DEFAULT_WAIT if trouble.failure is ErrorKind.RATE_LIMIT else _SHORTLY)
            return BatchStop(BatchState.RETRYING, self.now + micros(wait), trouble.reason)
        until = self.now + micros(trouble.wait or QUOTA_WAIT) if trouble.failure is ErrorKind.QUOTA else None
        self.halt(f"{trouble.failure}: {trouble.reason}", until=until)
        return BatchStop(BatchState.PENDING, None, trouble.reason)

    def follow(self, verdict: ErrorDecision, trouble: ConnectorError, limiter: SystemRateLimiter) -> bool:
        """What a verdict says about the system or the job; True: nothing more is to be sent now."""
        if verdict.park is not None:
            self._parking[limiter.name] = limiter.parking(self.now + micros(verdict.park), trouble.reason)
        if verdict.halt:
            after = verdict.until_after
            until = None if after is None else self.now + micros(after)
            self.halt(f"{trouble.failure}: {trouble.reason}", until=until)
        return verdict.halt or verdict.park is not None

    def _with_news(self, steps: list[Step]) -> list[Step]:
        """The same steps, and what they mean for the system and the job; told once, by whoever stops it."""
        steps = [*steps, *self._parking.values()]
        self._parking = {}
        if self._halting is not None:
            (reason, until), self._halting = self._halting, None
            tell = event_for(self.opened, "migration.paused", reason)
            steps += halt_steps(self.batch.job, reason, until, tell, len(steps))
        return steps

    def count(
        self, limiter: SystemRateLimiter, *, good: bool, failed: bool, throttled: bool, took: float
    ) -> None:
        """One call to a system."""
        before = self._load.get(limiter.name, CallStats())
        self._load[limiter.name] = before.plus(
            good=good, failed=failed, throttled=throttled, took=round(took * SECOND)
        )

    async def note(self, *limiters: SystemRateLimiter, at_once: bool = False) -> None:
        """Tell the systems' rows what was seen, now and then."""
        if not at_once and self._clock.monotonic() - self._noted < NOTE_EVERY:
            return
        self._noted = self._clock.monotonic()
        for limiter in limiters:
            load = self._load.pop(limiter.name, CallStats())
            before = load.failures
            after = await limiter.note(load)
            if after is not None and before and after.failures >= self._alert_after > after.failures - before:
                reason = f"{limiter.name}: {after.failures} failures in a row"
                await self._store.write([event_for(self.opened, "migration.breaker_opened", reason)])

    @property
    def _alert_after(self) -> int:
        return min(self.opened.job.retry.alert_after.values(), default=3)

    # -- ending

    async def rest(self) -> Row:
        """What is open: n, and when the first of it is due."""
        batch = self.batch
        if batch.is_set:
            return (await self._store.read("job_rest_set", batch=batch.id, planning=batch.is_plan))[0]
        return (
            await self._store.read(
                "job_rest_range", job=batch.job, type=batch.type, round=batch.round, planning=batch.is_plan,
                first=batch.first, last=batch.last,
            )
        )[0]  # fmt: skip

    async def end(self, stop: BatchStop | None) -> Outcome:
        """Give the batch back, or end it."""
        spent = round((self._clock.monotonic() - self._began) * SECOND)
        steps: list[Step] = []
        if stop is None:
            rest = await self.rest()
            if rest["n"]:
                stop = BatchStop(
                    BatchState.RETRYING, max(rest["due_at"], self.now), f"{rest['n']} to be tried again"
                )
            else:
                pace = {
                    "job": self.batch.job,
                    "type": self.batch.type,
                    "pace": max(1, spent // self.batch.size),
                }
                steps = [Step("job_type_pace", pace)] if self.batch.phase == "run" else []
        state = BatchState.COMPLETED if stop is None else stop.state
        keeps = stop is not None and stop.until is not None
        params = {"batch": self.batch.id, "state": state.value, "reason": None if stop is None else stop.why}
        fence = {"task": self._task.id, "claim_no": self._task.claim_no}
        ending = Step("job_batch_end", {**params, **fence, "spent": spent, "keeps": keeps}, needed=True)
        await self._store.write(self._with_news([ending, *steps]))
        if stop is not None and stop.until is not None:
            return Defer(stop.until, stop.why)
        return Done(state.value)

    def _hold(self, **counts: Any) -> Step:
        fence = {"batch": self.batch.id, "task": self._task.id, "claim_no": self._task.claim_no}
        zero = {"attempts": 0, "written": 0, "unchanged": 0}
        return Step("job_batch_hold", {**fence, **zero, **counts}, needed=True)


def _portions(rows: Sequence[Any]) -> list[Sequence[Any]]:
    """No statement with more than so many rows."""
    return [rows[begin : begin + _FULL] for begin in range(0, len(rows), _FULL)]
