"""Undoing: what a job has created, and nobody has changed since, is taken out of the target again.

    erased     it was created by this job, and is as it was written
    gone       the target does not have it any more
    changed    somebody has changed it since: it stays
    unsure     it may have been there before the job: it stays
Sure is what was looked for before it was created: by a plan, or by a strategy that looks or only creates.
What comes last is taken out first, so no link points to nothing. Deleting what is gone changes nothing:
after a death anywhere the same again goes on.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import NamedTuple

from ..kernel.clock import Clock
from ..model.errors import Conflict
from ..model.time import MINUTE, SECOND
from ..store.port import Row, Step, Store, WriteConflict
from .connector_pool import OpenedJob
from .connectors.port import (
    ConnectorError,
    ErrorKind,
    RecordState,
    RecordTarget,
    SupportsErase,
    TargetRecord,
    WriteStrategy,
)
from .crosswalk import json_parameter
from .error_policy import DEFAULT_WAIT
from .field_diff import changed_fields
from .job_events import audit_step
from .prepared_records import PreparedRecord, RecordPreparer, RecordResults
from .rate_limits import Sleep, SystemRateLimiter
from .reconciliation import ABSENT, SIDE_BY_SIDE

PORTION = 50  # records of one transaction
LEASE = 5 * MINUTE  # longer than a portion takes
_NEWEST = 1 << 62
_WAITS = 10  # for one record, when the target says 'slow down'


class UndoOutcome(StrEnum):
    """What becomes of a record that the job has written."""

    ERASED = "erased"
    GONE = "gone"
    CHANGED = "changed"
    UNSURE = "unsure"


class UndoneRecord(NamedTuple):
    """One record, and what became of it; in a dry run, what would."""

    type: str
    source_id: str
    target_id: str
    fate: UndoOutcome


Tell = Callable[[UndoneRecord], None]


def undo_outcome(
    strategy: WriteStrategy,
    before: str | None,
    found: Sequence[TargetRecord],
    target_id: str,
    *,
    differs: bool,
) -> UndoOutcome:
    """What may be done about one record, by what the target has now. Pure."""
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
    """One undoing of one job."""

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
        self._store = store
        self._clock = clock
        self._row = row
        self._opened = opened
        self._tell = tell
        self._left = most  # records that may still be looked at; None: all
        self._sleep = sleep
        self._version: int = row["version"]

    async def work(self, *, by: str, dry_run: bool) -> Counter[UndoOutcome]:
        """All types, the last wave first; gives how many had which fate."""
        target, counts, what = require_erase(self._opened.target), Counter[UndoOutcome](), "undoing broke off"
        try:
            for wave in reversed(self._opened.job.waves):
                for name in reversed(wave):
                    await self._type(name, target, counts, dry_run=dry_run)
            what = "undone"
        finally:
            if not dry_run:
                await self._release(by, what, counts)
        return counts

    async def _release(self, by: str, what: str, counts: Counter[UndoOutcome]) -> None:
        """However it ended, somebody may begin or go on at once; only a death leaves it to the lease."""
        told = ", ".join(f"{n:,} {fate}" for fate, n in sorted(counts.items())) or "nothing to undo"
        end = Step("job_undo_end", {"n": self._row["n"], "version": self._version})
        await self._store.write([end, audit_step(self._row["n"], by, what, told)])

    async def _type(
        self, name: str, target: SupportsErase, counts: Counter[UndoOutcome], *, dry_run: bool
    ) -> None:
        preparer = RecordPreparer(self._store, self._opened, name, self._row["round"])
        where = {"job": self._row["n"], "type": name, "round": self._row["round"]}
        before = _NEWEST
        while rows := await self._store.read(
            "job_created_page", **where, before=before, limit=self._portion()
        ):
            before = rows[-1]["seq"]
            self._left = None if self._left is None else self._left - len(rows)
            if not dry_run:
                await self._hold()
            items = await preparer.prepare(rows, RecordResults())
            unclear = {row["seq"] for row in rows}.difference(item.seq for item in items)
            fates = dict.fromkeys(unclear, UndoOutcome.UNSURE)
            trouble = await self._judge_all(name, items, target, fates, dry_run=dry_run)
            known = [row for row in rows if row["seq"] in fates]
            for row in known:
                self._tell(UndoneRecord(name, row["source_id"], row["target_id"], fates[row["seq"]]))
            if not dry_run:
                gone = [row for row in known if fates[row["seq"]] in (UndoOutcome.ERASED, UndoOutcome.GONE)]
                await self._write(name, gone)
            counts.update(fates.values())
            if trouble is not None:
                raise trouble

    def _portion(self) -> int:
        return PORTION if self._left is None else min(PORTION, self._left)

    async def _judge_all(
        self,
        name: str,
        items: Sequence[PreparedRecord],
        target: SupportsErase,
        fates: dict[int, UndoOutcome],
        *,
        dry_run: bool,
    ) -> Conflict | None:
        """What became of each; gives why the rest was not tried. What was begun is waited for."""
        line, troubles = iter(items), list[Conflict]()

        async def work() -> None:
            for item in line:
                if troubles:
                    return
                try:
                    fates[item.seq] = await self._patiently(name, item, target, dry_run=dry_run)
                except Conflict as trouble:
                    troubles.append(trouble)

        await asyncio.gather(*(work() for _ in range(min(SIDE_BY_SIDE, len(items)))))
        return troubles[0] if troubles else None

    async def _patiently(
        self, name: str, item: PreparedRecord, target: SupportsErase, *, dry_run: bool
    ) -> UndoOutcome:
        """One record; 'slow down' is waited for, anything else ends the undoing, which can be begun again."""
        for _ in range(_WAITS):
            try:
                return await self._one(name, item, target, dry_run=dry_run)
            except ConnectorError as trouble:
                if trouble.failure is not ErrorKind.RATE_LIMIT:
                    problem = f"{name} {item.id} could not be undone: {trouble.reason}"
                    raise Conflict(problem, remedy="mend that, then undo again: it goes on") from None
                wait = DEFAULT_WAIT if trouble.wait is None else trouble.wait
                await self._sleep(wait.total_seconds())
        raise Conflict("the target says 'slow down' again and again", remedy="undo again later: it goes on")

    async def _one(
        self, name: str, item: PreparedRecord, target: SupportsErase, *, dry_run: bool
    ) -> UndoOutcome:
        opened, target_type = self._opened, self._opened.job.type(name).target
        strategy, id_ = opened.target.strategy(target_type), item.row["target_id"]
        found: Sequence[TargetRecord] = ()
        if strategy is not WriteStrategy.UPSERT or item.row["before"] == ABSENT:
            await self._turn(opened.looks, opened.target.limits.reads_per_second)
            found = await opened.target.find(target_type, item.key, item.fields)
        own = next((one for one in found if one.id == id_), None)
        differs = own is not None and bool(changed_fields(opened.mapper, name, item.fields, own.fields))
        fate = undo_outcome(strategy, item.row["before"], found, id_, differs=differs)
        if fate is UndoOutcome.ERASED and not dry_run:
            await self._turn(opened.writes, opened.limits.writes_per_second)
            await target.erase(target_type, id_)
        return fate

    async def _turn(self, limiter: SystemRateLimiter, per_second: float | None) -> None:
        if per_second is not None:
            await limiter.turn(self._sleep)

    async def _hold(self) -> None:
        hold = {"n": self._row["n"], "version": self._version, "lease": LEASE}
        try:
            (held,) = await self._store.write([Step("job_undo_hold", hold, needed=True)])
        except WriteConflict:
            raise Conflict(
                "the migration was moved by somebody else at this moment", remedy="look at it, then try again"
            ) from None
        self._version = held[0]["version"]

    async def _write(self, name: str, rows: Sequence[Row]) -> None:
        """These are not in the target any more: records, crosswalk, log and counts say so together."""
        if not rows:
            return
        n, moved = self._row["n"], Counter(row["state"] for row in rows)
        counted = {
            "written": moved[RecordState.WRITTEN],
            "unchanged": moved[RecordState.UNCHANGED],
            "size": len(rows),
        }
        batch = {"id": self._clock.new_id(), "job": n, "type": name, "round": self._row["round"]}
        moves = [
            {
                "seq": row["seq"], "state": RecordState.SKIPPED.value, "fingerprint": f"undone/{name}//",
                "reason": "undone: taken out of the target again",
            }
            for row in rows
        ]  # fmt: skip
        steps = [
            Step("job_batch_undone", {**batch, **counted, "system": self._opened.writes.name}),
            Step("job_record_move", {"rows": json_parameter(moves)}),
            Step(
                "job_log_add", {"rows": json_parameter([(row["seq"], "undone", None, None) for row in rows])}
            ),
            self._opened.crosswalk.dropping(name, [(row["source_id"], row["target_id"]) for row in rows]),
        ]
        await self._store.write(steps)


def require_erase(target: RecordTarget) -> SupportsErase:
    """The target, if it can delete."""
    if not isinstance(target, SupportsErase):
        raise Conflict(
            f"a target of kind {target.kind!r} cannot delete",
            remedy="take the records out by hand; crosswalk and export name them",
        )
    return target


def refuse_during_undo(row: Row, now: int) -> None:
    """A job that somebody undoes at this moment is not begun again."""
    until = row["blocked_until"]
    if until is not None and until > now:
        left = (until - now) // SECOND
        raise Conflict("the migration is being undone", remedy=f"wait for its end, or {left} s if that died")
