"""The foreman looks after jobs under way: cuts batches wave by wave, gives them tasks, ends jobs.

It runs on every working node. A look is taken by changing the job's row, every move names what it expects:
two foremen at once, or one that dies anywhere, neither lose nor repeat anything. Few batches of a job have a
task at a time, and the first of each job goes before the second of any: a large job holds up no small one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..kernel.clock import Clock
from ..model.errors import TemporaryError, TidingsError
from ..model.task import NewTask
from ..model.time import SECOND
from ..store.port import Row, Step, Store, TableRows, WriteConflict
from .batch_handler import KIND, QUEUE
from .job_events import audit_step, event_step, halt_steps
from .job_file import MigrationJob
from .jobs import BatchState, JobState, job_of, job_transition, job_view, system_identity
from .mapping.map_parser import MAX_BATCH_SIZE, MIN_BATCH_SIZE
from .reopened_batches import new_batch, reopen_records

PAGE = 50  # jobs of one step
LEASE = SECOND  # whoever looks is left alone for so long
BUSY, IDLE = 0.25, 1.0  # seconds between two looks
TARGET_BATCH_DURATION = 60 * SECOND  # how long a batch should take, where its size can make it so
LAST = 9  # of priorities
_LOT = 1000


def next_batch_size(base: int, pace: int | None) -> int:
    """Records of the next batch: as the type says, until a time per record is known. Pure."""
    wanted = base if pace is None else TARGET_BATCH_DURATION // max(1, pace)
    return max(MIN_BATCH_SIZE, min(MAX_BATCH_SIZE, wanted))


def is_fully_batched(row: Row) -> bool:
    """Whether all records of a type are read and in batches that have their end."""
    has_all = row["is_read"] and (row["last_seq"] is None or row["cut"] >= row["last_seq"])
    return bool(has_all and not row["open_batches"])


def fair_priority(base: int, job: int, busy: Sequence[Row], window: int) -> int:
    """The job's own for its first batch, as long as few of its tenant's have that; one behind it for others.

    `busy` are the tenant's batches that have a task: job, priority. Pure.
    """
    ahead = [row for row in busy if row["priority"] <= base]
    is_first = len(ahead) < window and all(row["job"] != job for row in ahead)
    return base if is_first else min(LAST, base + 1)


class BatchScheduler:
    """An actor; one step looks at the jobs whose look is due."""

    name = "foreman"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def step(self) -> float:
        """Look; gives the seconds until the next one."""
        rows = await self._store.read("job_due", limit=PAGE)
        nexts: list[int] = [row["check_at"] for row in rows if row["check_at"] > row["now"]]
        for row in rows:
            if row["check_at"] <= row["now"]:
                nexts.append(await self._look(row["n"], row["check_at"]))
        if not nexts:
            return IDLE
        return min(IDLE, max(0.0, (min(nexts) - self._clock.now()) / SECOND))

    async def _look(self, n: int, seen: int) -> int:
        """Take the look and do what the job asks for; gives when to look again."""
        taken = (await self._store.write([Step("job_check", {"n": n, "seen": seen, "lease": LEASE})]))[0]
        if not taken:
            return self._clock.now() + LEASE
        row = taken[0]
        now, leased = int(row["now"]), int(row["check_at"])
        try:
            if row["state"] == JobState.PAUSED:
                return await self._wake(row, now)
            await _SchedulingPass(self._store, self._clock, row, await self._window()).work()
        except WriteConflict:
            return now  # somebody moved it meanwhile
        except TemporaryError:
            raise
        except TidingsError as error:  # the job cannot be read as it is kept: a person must look
            tell = event_step(row["tenant"], row["name"], "migration.paused", error.problem)
            await self._store.write(halt_steps(n, str(error), None, tell, 0))
        at = now + round(BUSY * SECOND)
        await self._store.write([Step("job_check_again", {"n": n, "leased": leased, "check_at": at})])
        return at

    async def _wake(self, row: Row, now: int) -> int:
        """One that was parked goes on when its time has come."""
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
        """How many batches of a job are open at a time: enough for all nodes, and few enough to be fair."""
        live: int = sum(node["state"] == "live" for node in await self._store.read("node_list"))
        return 2 * max(1, live) + 2


class _SchedulingPass:
    """One look at one job."""

    def __init__(self, store: Store, clock: Clock, row: Row, window: int) -> None:
        self._store = store
        self._clock = clock
        self._row = row
        self._n: int = row["n"]
        self._job: MigrationJob = job_of(job_view(row))
        self._window = window
        self._phase = "plan" if row["state"] == JobState.PLANNING else "run"
        self._system = f"{row['tenant']}/{system_identity(self._job.target)}/write"

    async def work(self) -> None:
        """Cut, go on to the next wave, or end; then see to it that somebody works."""
        types = await self._store.read("job_type_list", job=self._n)
        if not await self._waves(types):
            await self._end()
        await self._give_tasks()

    async def _waves(self, types: Sequence[Row]) -> bool:
        """Cut batches of the first wave that is not over; True: there is one."""
        room = self._window - sum(row["open_batches"] for row in types)
        for wave in sorted({row["wave"] for row in types}):
            open_ = [row for row in types if row["wave"] == wave and not is_fully_batched(row)]
            for row in open_:
                room = await self._cut(row, room)
            if self._phase == "run" and not open_:
                open_ = [row for row in types if row["wave"] == wave and await self._pass_on(row, types)]
            if open_:
                return True
        if self._phase == "plan":
            return False
        passed = [await self._link(row) for row in types if not row["linked"]]
        return any(passed)

    # -- batches

    async def _cut(self, row: Row, room: int) -> int:
        """Batches of a type, as far as there is room and the source has been read; gives the room left."""
        size = next_batch_size(self._job.type(row["type"]).batch_size, row["pace"])
        cut, may_be_short = row["cut"], row["is_read"]
        while room > 0 and (may_be_short or self._row["round"] == 1):
            where = {"job": self._n, "type": row["type"]}
            found = (await self._store.read("job_cut", **where, cut=cut, limit=size))[0]
            if not found["n"] or (found["n"] < size and not may_be_short):
                break
            move = {**where, "last": found["last"], "seen": cut, "version": self._row["version"]}
            batch = self._batch(
                row["type"], self._phase, found["n"], first=found["first"], last=found["last"]
            )
            await self._store.write([Step("job_type_cut", move, needed=True), Step("job_batch_add", batch)])
            cut, room = found["last"], room - 1
        return room

    def _batch(self, type_: str, phase: str, size: int, *, first: int = 0, last: int = 0) -> dict[str, Any]:
        return new_batch(
            self._clock.new_id(), self._n, type_, self._row["round"], self._system, size,
            phase=phase, first=first, last=last,
        )  # fmt: skip

    async def _give_tasks(self) -> None:
        """Tasks for batches at which nobody works: new ones, and those left by a pause or a death."""
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
                task = NewTask(QUEUE, KIND, self._clock.now(), self._row["tenant"], priority)
                move = Step("job_batch_revive", {"id": row["id"], "expected": row["state"]}, needed=True)
                await self._store.enqueue(
                    [task], TableRows("job_batch_tasks", ("batch",), [(row["id"],)]), also=[move]
                )
                busy.append({"job": self._n, "priority": priority})
                room -= 1
        await self._store.hint()

    async def _bisect_poison_batch(self, row: Row) -> None:
        """A batch that took its node down again and again: halved, until the one record is found."""
        is_set = row["last"] == 0
        seen = row["id"] if is_set else None
        last = row["last"] or 1 << 62
        where = {"job": self._n, "type": row["type"], "round": row["round"], "seen": seen}
        found = (await self._store.read("job_rest_middle", **where, first=row["first"], last=last))[0]
        close: dict[str, Any] = {"id": row["id"], "expected": row["state"], "reason": "it took its node down"}
        if found["n"] <= 1:
            state = BatchState.FAILED_FINAL if found["n"] else BatchState.COMPLETED
            steps = [Step("job_batch_close", {**close, "state": state.value}, needed=True)]
            if found["n"]:
                mark = f"program/{row['type']}//node_down"
                reason = "its node died each time it was tried"
                steps.append(
                    Step("job_lonely", {"seq": found["first"], "fingerprint": mark, "reason": reason})
                )
            await self._store.write(steps)
            return
        middle = (found["first"] + found["last"]) // 2
        steps = [Step("job_batch_close", {**close, "state": BatchState.FAILED.value}, needed=True)]
        for after, upto in ((found["first"] - 1, middle), (middle, found["last"])):
            half = self._batch(row["type"], row["phase"], -(-found["n"] // 2))
            opens = Step("job_reopen_rest", {**where, "batch": half["id"], "after": after, "last": upto})
            steps += [Step("job_batch_add", half), opens]
        await self._store.write(steps)

    # -- what waited

    async def _pass_on(self, row: Row, types: Sequence[Row]) -> bool:
        """Records that wait: again if one that they may wait for has come; otherwise it never will."""
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
        """All of them, in portions; a death before the last step costs one more pass."""
        where = {"job": self._n, "type": row["type"], "round": self._row["round"]}
        async for portion in reopen_records(
            self._store, self._clock, **where, system=self._system, state="waiting"
        ):
            await self._store.write(portion.steps)
        passed = {"job": self._n, "type": row["type"], "came": came, "seen": row["passed"]}
        await self._store.write([Step("job_type_passed", passed, needed=True)])

    async def _link(self, row: Row) -> bool:
        """Write again what was written without a link: once, when everything else is over."""
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

    async def _adopt(self, types: Sequence[Row], counts: Sequence[Row]) -> bool:
        """Records that no batch has although their type is over: given one. True: there were some."""
        found = False
        for row in types:
            aside = sum(one["n"] for one in counts if one["type"] == row["type"])
            missing = row["extracted"] - row["written"] - row["unchanged"] - aside
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

    # -- the end

    async def _end(self) -> None:
        """Planned, or over."""
        if self._phase == "plan":
            move = job_transition(self._row, JobState.PLANNED, None)
            steps = [move, audit_step(self._n, "engine", "planned"), self._tell("migration.planned", None)]
            await self._store.write(steps)
            return
        types = await self._store.read("job_type_list", job=self._n)
        counts = await self._store.read("job_counts", job=self._n, round=self._row["round"])
        if await self._adopt(types, counts):
            return
        await self._note_deleted_in_source(types)
        aside = sum(row["n"] for row in counts if row["state"] in ("rejected", "failed", "conflict"))
        moved = sum(row["written"] + row["unchanged"] for row in types)
        state = JobState.FAILED if aside and not moved else JobState.COMPLETED
        reason = f"{aside:,} record{' was' if aside == 1 else 's were'} set aside" if aside else None
        steps = [
            job_transition(self._row, state, reason),
            audit_step(self._n, "engine", state.value, reason or ""),
            self._tell(f"migration.{state}", reason),
        ]
        await self._store.write(steps)

    async def _note_deleted_in_source(self, types: Sequence[Row]) -> None:
        """Records that an earlier round had and the source has no more; nothing is deleted in the target."""
        for row in types if self._row["round"] > 1 else ():
            where = {"job": self._n, "type": row["type"]}
            gone = (await self._store.read("job_gone", **where, round=self._row["round"]))[0]["n"]
            if gone:
                note = f"{row['type']}: {gone:,} records are gone from the source; the target keeps them"
                await self._store.write([Step("job_type_note", {**where, "note": note})])

    def _tell(self, type_: str, reason: str | None) -> Step:
        return event_step(self._row["tenant"], self._row["name"], type_, reason)
