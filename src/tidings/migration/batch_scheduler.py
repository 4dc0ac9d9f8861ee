"""The batch scheduler: cuts batches wave by wave, creates their tasks and ends jobs (an actor).

It runs on every worker node. A pass takes a short lease on the job's row and every write names the state it
expects, so concurrent schedulers and crashes neither lose nor repeat work. Only a few batches of a job have a
task at a time, and the first batch of each job comes before the second of any (fair scheduling): large jobs
do not delay small ones.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from ..kernel.clock import Clock
from ..model.errors import TemporaryError, TidingsError
from ..model.task import NewTask
from ..model.time import SECOND
from ..store.port import Row, Step, Store, TableRows, WriteConflict
from .adaptive_batch_size import MAX_BATCH_SIZE, next_batch_size
from .batch_handler import KIND, queue_of
from .job_events import audit_step, event_step, halt_for_error
from .job_file import MigrationJob
from .jobs import BatchState, JobState, job_of, job_transition, job_view, system_identity
from .reopened_batches import new_batch, reopen_records

PAGE = 50  # jobs per step
LEASE = SECOND  # of a job's row during a pass
BUSY, IDLE = 0.25, 1.0  # seconds between two passes
LAST = 9  # the lowest priority
_LOT = 1000


def is_fully_batched(row: Row) -> bool:
    """Return whether all records of a type are read and all its batches have ended."""
    has_all = row["is_read"] and (row["last_seq"] is None or row["cut"] >= row["last_seq"])
    return bool(has_all and not row["open_batches"])


def fair_priority(base: int, job: int, busy: Sequence[Row], window: int) -> int:
    """Return the priority of a job's next batch: its own for the first one, one lower for the others. Pure.

    `busy` are the tenant's batches that have a task (job, priority); at most `window` of them go first.
    """
    ahead = [row for row in busy if row["priority"] <= base]
    is_first = len(ahead) < window and all(row["job"] != job for row in ahead)
    return base if is_first else min(LAST, base + 1)


class BatchScheduler:
    """An actor; one step makes a pass over every job that is due."""

    name = "batch_scheduler"

    def __init__(self, store: Store, clock: Clock, shares: Collection[str] = ()) -> None:
        self._store, self._clock, self._shares = store, clock, shares

    async def step(self) -> float:
        """Schedule batches of due jobs; return the seconds until the next step."""
        rows = await self._store.read("job_due", limit=PAGE)
        nexts: list[int] = [row["check_at"] for row in rows if row["check_at"] > row["now"]]
        for row in rows:
            if row["check_at"] <= row["now"]:
                nexts.append(await self._schedule(row["n"], row["check_at"]))
        if not nexts:
            return IDLE
        return min(IDLE, max(0.0, (min(nexts) - self._clock.now()) / SECOND))

    async def _schedule(self, n: int, seen: int) -> int:
        """Take the lease and schedule one job; return when it is due again."""
        taken = (await self._store.write([Step("job_check", {"n": n, "seen": seen, "lease": LEASE})]))[0]
        if not taken:
            return self._clock.now() + LEASE
        row = taken[0]
        now, leased = int(row["now"]), int(row["check_at"])
        try:
            if row["state"] == JobState.PAUSED:
                return await self._resume(row, now)
            await _SchedulingPass(self._store, self._clock, row, await self._window(), self._shares).work()
        except WriteConflict:
            return now  # the job changed meanwhile
        except TemporaryError:
            raise
        except TidingsError as error:  # the stored definition is invalid: a person must act
            await self._store.write(halt_for_error(n, row, error))
        at = now + round(BUSY * SECOND)
        await self._store.write([Step("job_check_again", {"n": n, "leased": leased, "check_at": at})])
        return at

    async def _resume(self, row: Row, now: int) -> int:
        """Resume a paused job when its pause has ended; return when to look again."""
        until = row["blocked_until"]
        if until is None or until > now:
            at = int(until or now + 60 * SECOND)
            again = {"n": row["n"], "leased": row["check_at"], "check_at": at}
            await self._store.write([Step("job_check_again", again)])
            return at
        move = job_transition(row, JobState(row["resume_state"]), None)
        await self._store.write(
            [move, Step("job_type_wake", {"job": row["n"]}), audit_step(row["n"], "engine", "resumed")]
        )
        return now

    async def _window(self) -> int:
        """Return how many batches of a job may be open: enough for all nodes, few enough to be fair."""
        live: int = sum(node["state"] == "live" for node in await self._store.read("node_list"))
        return 2 * max(1, live) + 2


class _SchedulingPass:
    """One scheduling pass over one job."""

    def __init__(self, store: Store, clock: Clock, row: Row, window: int, shares: Collection[str]) -> None:
        self._store, self._clock, self._row = store, clock, row
        self._n: int = row["n"]
        self._job: MigrationJob = job_of(job_view(row))
        self._window = window
        self._queue = queue_of(self._job, shares)
        self._phase = "plan" if row["state"] == JobState.PLANNING else "run"
        self._system = f"{row['tenant']}/{system_identity(self._job.target)}/write"

    async def work(self) -> None:
        """Cut batches, start the next wave, or end the job; then create tasks for batches without one."""
        types = await self._store.read("job_type_list", job=self._n)
        if not await self._waves(types):
            await self._end()
        await self._create_tasks()

    async def _waves(self, types: Sequence[Row]) -> bool:
        """Cut batches of the first unfinished wave; return whether there is one."""
        room = self._window - sum(row["open_batches"] for row in types)
        for wave in sorted({row["wave"] for row in types}):
            open_ = [row for row in types if row["wave"] == wave and not is_fully_batched(row)]
            for row in open_:
                room = await self._cut(row, room)
            if self._phase == "run" and not open_:
                open_ = [row for row in types if row["wave"] == wave and await self._retry_waiting(row, types)]
            if open_:
                return True
        if self._phase == "plan":
            return False
        passed = [await self._link(row) for row in types if not row["linked"]]
        return any(passed)

    async def _cut(self, row: Row, room: int) -> int:
        """Cut batches of a type while there is room and records are read; return the room left."""
        size = next_batch_size(self._job.type(row["type"]).batch_size, row["pace"])
        cut, may_be_short = row["cut"], row["is_read"]
        while room > 0 and (may_be_short or self._row["round"] == 1):
            where = {"job": self._n, "type": row["type"]}
            found = (await self._store.read("job_cut", **where, cut=cut, limit=size))[0]
            if not found["n"] or (found["n"] < size and not may_be_short):
                break
            move = {**where, "last": found["last"], "seen": cut, "version": self._row["version"]}
            batch = self._batch(row["type"], self._phase, found["n"], found["first"], found["last"])
            await self._store.write([Step("job_type_cut", move, needed=True), Step("job_batch_add", batch)])
            cut, room = found["last"], room - 1
        return room

    def _batch(self, type_: str, phase: str, size: int, first: int = 0, last: int = 0) -> dict[str, Any]:
        return new_batch(
            self._clock.new_id(), self._n, type_, self._row["round"], self._system, size,
            phase=phase, first=first, last=last,
        )  # fmt: skip

    async def _create_tasks(self) -> None:
        """Create tasks for batches without one: new ones, and those left by a pause or a crash."""
        stray = await self._store.read("job_batch_stray", job=self._n, round=self._row["round"], limit=PAGE)
        if not stray:
            return
        busy = await self._store.read("job_busy", tenant=self._row["tenant"])
        room = self._window - sum(row["job"] == self._n for row in busy)
        for row in stray:
            if row["task_state"] == "failed":
                await self._bisect_poison_batch(row)
            elif room > 0:
                priority = fair_priority(self._job.priority, self._n, busy, self._window)
                task = NewTask(self._queue, KIND, self._clock.now(), self._row["tenant"], priority)
                move = Step("job_batch_revive", {"id": row["id"], "expected": row["state"]}, needed=True)
                link = TableRows("job_batch_tasks", ("batch",), [(row["id"],)])
                await self._store.enqueue([task], link, also=[move])
                busy.append({"job": self._n, "priority": priority})
                room -= 1
        await self._store.hint()

    async def _bisect_poison_batch(self, row: Row) -> None:
        """Quarantine: a batch that keeps killing its node is bisected down to the one record.

        Half of its records move to a new batch; a single record becomes a dead letter.
        """
        seen = row["id"] if row["last"] == 0 else None
        where = {"job": self._n, "type": row["type"], "round": row["round"], "seen": seen}
        found = (await self._store.read("job_rest_middle", **where, first=row["first"], last=row["last"] or 1 << 62))[0]
        state = BatchState.FAILED if found["n"] > 1 else BatchState.FAILED_FINAL if found["n"] else BatchState.COMPLETED
        close = {"id": row["id"], "expected": row["state"], "state": state.value, "reason": "it crashed its node"}
        steps = [Step("job_batch_close", {**close, "size": max(1, -(-found["n"] // 2))}, needed=True)]
        if state is BatchState.FAILED_FINAL:
            cause, reason = f"program/{row['type']}//node_down", "its node crashed on every attempt"
            steps.append(Step("job_poisoned", {"seq": found["first"], "fingerprint": cause, "reason": reason}))
        elif state is BatchState.FAILED:
            half = self._batch(row["type"], row["phase"], found["n"] // 2)
            middle = (found["first"] + found["last"]) // 2
            opens = Step("job_reopen_rest", {**where, "batch": half["id"], "after": middle, "last": found["last"]})
            steps += [Step("job_batch_add", half), opens]
        await self._store.write(steps)

    async def _retry_waiting(self, row: Row, types: Sequence[Row]) -> bool:
        """Reopen waiting records when a parent was written since the last pass; else reject them."""
        where = {"job": self._n, "type": row["type"], "round": self._row["round"]}
        if not (await self._store.read("job_waiting", **where))[0]["n"]:
            return False
        parents = {row["type"], *self._job.type(row["type"]).waits_for}
        came = sum(one["written"] + one["unchanged"] for one in types if one["type"] in parents)
        if came != row["passed"]:
            await self._reopen_waiting(row, came)
            return True
        while True:
            gone = (await self._store.write([Step("job_unlinked", {**where, "limit": _LOT})]))[0]
            if len(gone) < _LOT:
                return False

    async def _reopen_waiting(self, row: Row, came: int) -> None:
        """Reopen all waiting records in portions; a crash before the last step costs one extra pass."""
        where = {"job": self._n, "type": row["type"], "round": self._row["round"]}
        async for portion in reopen_records(self._store, self._clock, **where, system=self._system, state="waiting"):
            await self._store.write(portion.steps)
        passed = {"job": self._n, "type": row["type"], "came": came, "seen": row["passed"]}
        await self._store.write([Step("job_type_passed", passed, needed=True)])

    async def _link(self, row: Row) -> bool:
        """Write records again that were written without a link, once everything else has ended."""
        where = {"job": self._n, "type": row["type"]}
        left: int = (await self._store.read("job_links", **where))[0]["n"]
        made = left > 0
        while left > 0:
            batch = self._batch(row["type"], "links", min(left, _LOT))
            opens = Step("job_reopen_links", {**where, "batch": batch["id"], "limit": _LOT})
            await self._store.write([Step("job_batch_add", batch), opens])
            left -= _LOT
        await self._store.write([Step("job_type_linked", where)])
        return made

    async def _adopt_orphans(self, types: Sequence[Row], counts: Sequence[Row]) -> bool:
        """Put open records that belong to no batch into new ones; return whether there were any."""
        found = False
        for row in types:
            quarantined = sum(one["n"] for one in counts if one["type"] == row["type"])
            missing = row["extracted"] - row["written"] - row["unchanged"] - quarantined
            if missing <= 0:
                continue
            batch = self._batch(row["type"], self._phase, min(missing, MAX_BATCH_SIZE))
            where = {"job": self._n, "type": row["type"], "round": self._row["round"], "batch": batch["id"]}
            opens = Step("job_orphans", {**where, "limit": MAX_BATCH_SIZE}, needed=True)
            try:
                await self._store.write([Step("job_batch_add", batch), opens])
                found = True
            except WriteConflict:
                continue  # none of them is open
        return found

    async def _end(self) -> None:
        """End the job: planned, completed or failed."""
        if self._phase == "plan":
            move = job_transition(self._row, JobState.PLANNED, None)
            steps = [move, audit_step(self._n, "engine", "planned"), event_step(self._row, "migration.planned", None)]
            await self._store.write(steps)
            return
        types = await self._store.read("job_type_list", job=self._n)
        counts = await self._store.read("job_counts", job=self._n, round=self._row["round"])
        if await self._adopt_orphans(types, counts):
            return
        await self._note_deleted_in_source(types)
        quarantined = sum(row["n"] for row in counts if row["state"] in ("rejected", "failed", "conflict"))
        moved = sum(row["written"] + row["unchanged"] for row in types)
        state = JobState.FAILED if quarantined and not moved else JobState.COMPLETED
        reason = f"{quarantined:,} dead letter{'' if quarantined == 1 else 's'}" if quarantined else None
        steps = [
            job_transition(self._row, state, reason),
            audit_step(self._n, "engine", state.value, reason or ""),
            event_step(self._row, f"migration.{state}", reason),
        ]
        await self._store.write(steps)

    async def _note_deleted_in_source(self, types: Sequence[Row]) -> None:
        """Note how many records of an earlier round are gone from the source; the target keeps them."""
        for row in types if self._row["round"] > 1 else ():
            where = {"job": self._n, "type": row["type"]}
            gone = (await self._store.read("job_gone", **where, round=self._row["round"]))[0]["n"]
            if gone:
                note = f"{row['type']}: {gone:,} records are gone from the source; the target keeps them"
                await self._store.write([Step("job_type_note", {**where, "note": note})])
