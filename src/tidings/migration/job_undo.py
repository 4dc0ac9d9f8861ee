"""Undo: deletes from the target what a job created and nobody has changed since.

    erased     created by this job, and unchanged
    gone       no longer in the target
    changed    changed since: kept
    unsure     may have existed before the job: kept
A record is surely ours if it was looked up before its creation: by a plan, or by a strategy that searches or
only creates. The last wave is deleted first, so no link dangles. Deletion is idempotent: after a crash, undo
again to continue, once the lease of the dead process has expired. Meanwhile `status` shows the progress.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ..kernel.clock import Clock
from ..model.errors import Conflict
from ..model.time import SECOND
from ..store.port import Row, Step, Store, WriteConflict
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, RecordTarget, SupportsErase, TargetRecord, WriteStrategy
from .crosswalk import to_json
from .error_policy import DEFAULT_WAIT
from .job_events import audit_step
from .jobs import changed_concurrently
from .prepared_records import PreparedRecord, RecordPreparer, RecordResults
from .rate_limits import Sleep
from .reconciliation import ABSENT, SIDE_BY_SIDE
from .record_states import RecordState

PORTION = 50  # records per transaction
LEASE = 30 * SECOND  # renewed while the undo runs
_NEWEST = 1 << 62
_WAITS = 10  # for one record, while the target rate-limits


class UndoOutcome(StrEnum):
    """What happens to a record that the job has written."""

    ERASED = "erased"
    GONE = "gone"
    CHANGED = "changed"
    UNSURE = "unsure"


class UndoneRecord(NamedTuple):
    """One record and its outcome; in a dry run, the expected outcome."""

    type: str
    source_id: str
    target_id: str
    result: UndoOutcome


Tell = Callable[[UndoneRecord], None]


def undo_outcome(
    strategy: WriteStrategy, before: str | None, found: Sequence[TargetRecord], target_id: str, *, differs: bool
) -> UndoOutcome:
    """Return the outcome of one record by what the target has now. Pure."""
    if strategy is WriteStrategy.UPSERT and before != ABSENT:
        return UndoOutcome.UNSURE
    own = next((one for one in found if one.id == target_id), None)
    if own is None:
        is_keyed = strategy is not WriteStrategy.RECONCILE
        return UndoOutcome.GONE if is_keyed and not found else UndoOutcome.CHANGED
    if own.fields is None:
        return UndoOutcome.UNSURE
    return UndoOutcome.CHANGED if differs else UndoOutcome.ERASED


class JobUndo:
    """One undo of one job."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        row: Row,
        opened: OpenedJob,
        *,
        tell: Tell,
        most: int | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._store, self._clock, self._row, self._opened = store, clock, row, opened
        self._tell = tell
        self._left = most  # records still to process; None: all
        self._sleep = sleep
        self._version: int = row["version"]
        self._holding = asyncio.Lock()

    async def work(self, *, by: str, dry_run: bool) -> Counter[UndoOutcome]:
        """Undo all types, the last wave first; return the number of records per outcome."""
        target, counts, what = require_erase(self._opened.target), Counter[UndoOutcome](), "undo interrupted"
        renewing = None if dry_run else asyncio.create_task(self._renew())
        try:
            for wave in reversed(self._opened.job.waves):
                for name in reversed(wave):
                    await self._type(name, target, counts, dry_run=dry_run)
            what = "undone"
        finally:
            if renewing is not None:
                renewing.cancel()
                await asyncio.gather(renewing, return_exceptions=True)
                await self._release(by, what, counts)
        return counts

    async def _renew(self) -> None:
        """Renew the lease until cancelled, or lost: the next portion then fails."""
        while True:
            await asyncio.sleep(LEASE / SECOND / 3)
            await self._hold()

    async def _release(self, by: str, what: str, counts: Counter[UndoOutcome]) -> None:
        """Release the lease, however the undo ended; only a crash leaves it to expire."""
        summary = ", ".join(f"{n:,} {result}" for result, n in sorted(counts.items())) or "nothing to undo"
        end = Step("job_undo_end", {"n": self._row["n"], "version": self._version})
        await self._store.write([end, audit_step(self._row["n"], by, what, summary)])

    async def _type(self, name: str, target: SupportsErase, counts: Counter[UndoOutcome], *, dry_run: bool) -> None:
        preparer = RecordPreparer(self._store, self._opened, name, self._row["round"])
        of = {"job": self._row["n"], "type": name, "round": self._row["round"]}
        before = _NEWEST
        while rows := await self._store.read("job_created_page", **of, before=before, limit=self._portion()):
            before = rows[-1]["seq"]
            self._left = None if self._left is None else self._left - len(rows)
            if not dry_run:
                await self._hold()
            items = await preparer.prepare(rows, RecordResults())
            unclear = {row["seq"] for row in rows}.difference(item.seq for item in items)
            outcomes = dict.fromkeys(unclear, UndoOutcome.UNSURE)
            error = await self._undo_all(name, items, target, outcomes, dry_run=dry_run)
            known = [row for row in rows if row["seq"] in outcomes]
            for row in known:
                self._tell(UndoneRecord(name, row["source_id"], row["target_id"], outcomes[row["seq"]]))
            if not dry_run:
                gone = [row for row in known if outcomes[row["seq"]] in (UndoOutcome.ERASED, UndoOutcome.GONE)]
                await self._commit(name, gone)
            counts.update(outcomes.values())
            if error is not None:
                raise error

    def _portion(self) -> int:
        return PORTION if self._left is None else min(PORTION, self._left)

    async def _undo_all(
        self,
        name: str,
        items: Sequence[PreparedRecord],
        target: SupportsErase,
        outcomes: dict[int, UndoOutcome],
        *,
        dry_run: bool,
    ) -> Conflict | None:
        """Undo each record; return the error that stopped the rest. Calls in progress finish."""
        line, errors = iter(items), list[Conflict]()

        async def work() -> None:
            for item in line:
                if errors:
                    return
                try:
                    outcomes[item.seq] = await self._undo_with_retries(name, item, target, dry_run=dry_run)
                except Conflict as error:
                    errors.append(error)

        await asyncio.gather(*(work() for _ in range(min(SIDE_BY_SIDE, len(items)))))
        return errors[0] if errors else None

    async def _undo_with_retries(
        self, name: str, item: PreparedRecord, target: SupportsErase, *, dry_run: bool
    ) -> UndoOutcome:
        """Undo one record; wait out rate limits. Any other error stops the undo, which can be repeated."""
        for _ in range(_WAITS):
            try:
                return await self._undo_one(name, item, target, dry_run=dry_run)
            except ConnectorError as error:
                if error.failure is not ErrorKind.RATE_LIMIT:
                    problem = f"{name} {item.id} could not be undone: {error.reason}"
                    raise Conflict(problem, remedy="fix that, then undo again to continue") from None
                wait = DEFAULT_WAIT if error.wait is None else error.wait
                await self._sleep(wait.total_seconds())
        raise Conflict("the target keeps rate-limiting", remedy="undo again later to continue")

    async def _undo_one(self, name: str, item: PreparedRecord, target: SupportsErase, *, dry_run: bool) -> UndoOutcome:
        opened, target_type = self._opened, self._opened.job.type(name).target
        strategy, id_ = opened.target.strategy(target_type), item.row["target_id"]
        found: Sequence[TargetRecord] = ()
        if strategy is not WriteStrategy.UPSERT or item.row["before"] == ABSENT:
            await opened.lookups.wait_for_slot(self._sleep)
            found = await opened.target.find(target_type, item.key, item.fields)
        own = next((one for one in found if one.id == id_), None)
        differs = own is not None and bool(opened.mapper.changed_fields(name, item.fields, own.fields))
        result = undo_outcome(strategy, item.row["before"], found, id_, differs=differs)
        if result is UndoOutcome.ERASED and not dry_run:
            await opened.writes.wait_for_slot(self._sleep)
            await target.erase(target_type, id_)
        return result

    async def _hold(self) -> None:
        async with self._holding:
            hold = {"n": self._row["n"], "version": self._version, "lease": LEASE}
            try:
                (held,) = await self._store.write([Step("job_undo_hold", hold, needed=True)])
            except WriteConflict:
                raise changed_concurrently() from None
            self._version = held[0]["version"]

    async def _commit(self, name: str, rows: Sequence[Row]) -> None:
        """Update records, crosswalk, log and counts of deleted records in one transaction."""
        if not rows:
            return
        n, moved = self._row["n"], Counter(row["state"] for row in rows)
        counted = {"written": moved[RecordState.WRITTEN], "unchanged": moved[RecordState.UNCHANGED], "size": len(rows)}
        batch = {"id": self._clock.new_id(), "job": n, "type": name, "round": self._row["round"]}
        moves = [
            {
                "seq": row["seq"], "state": RecordState.SKIPPED.value, "fingerprint": f"undone/{name}//",
                "reason": "undone: deleted from the target",
            }
            for row in rows
        ]  # fmt: skip
        steps = [
            Step("job_batch_undone", {**batch, **counted, "system": self._opened.writes.name}),
            Step("job_record_move", {"rows": to_json(moves)}),
            Step("job_log_add", {"rows": to_json([(row["seq"], "undone", None, None) for row in rows])}),
            self._opened.crosswalk.drop_step(name, [(row["source_id"], row["target_id"]) for row in rows]),
        ]
        await self._store.write(steps)


def require_erase(target: RecordTarget) -> SupportsErase:
    """Return the target if it can delete; raises Conflict."""
    if not isinstance(target, SupportsErase):
        problem = f"a target of kind {target.kind!r} cannot delete"
        raise Conflict(problem, remedy="delete the records manually; crosswalk and export list them")
    return target


def refuse_during_undo(row: Row, now: int) -> None:
    """Raise Conflict while an undo of the job holds its lease."""
    until = row["blocked_until"]
    if until is not None and until > now:
        left = (until - now) // SECOND
        raise Conflict("the migration is being undone", remedy=f"wait for its end, or {left} s if it crashed")
