"""Looking at the target: what is in doubt is settled by reading only; what a plan saw is looked at again.

    in doubt, one hit        written
              none           not applied: ready again
              several        as many records in doubt are the same: one of them; otherwise a person decides
Hits that the crosswalk knows as another record's do not count.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import orjson

from ..kernel.clock import Clock
from ..model.time import micros
from ..store.port import Row, WriteConflict
from .batch_attempt import BatchAttempt
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Fields, RecordState, TargetRecord, WriteStrategy
from .crosswalk import json_parameter
from .error_policy import HEALTH_ERRORS, decide_lookup_error
from .field_diff import changed_fields
from .jobs import PlannedAction
from .mapping.content_hash import content_digest
from .prepared_records import PreparedRecord, RecordResults
from .rate_limits import Sleep

SIDE_BY_SIDE = 8
_MET = timedelta(seconds=1)


class RecordReconciler:
    """Looks for one turn."""

    def __init__(self, turn: BatchAttempt, clock: Clock, sleep: Sleep) -> None:
        self._turn = turn
        self._clock = clock
        self._sleep = sleep
        self._opened: OpenedJob = turn.opened
        self._type = turn.batch.type
        self._target_type = turn.opened.job.type(self._type).target
        self._strategy = turn.opened.target.strategy(self._target_type)

    async def hits(self, id_: str, key: str, fields: Fields) -> list[TargetRecord]:
        """What the target has under this key or with this content, but for what is another record's."""
        if self._opened.target.limits.reads_per_second is not None:
            await self._opened.looks.turn(self._sleep)
        began = self._clock.monotonic()
        trouble: ConnectorError | None = None
        try:
            found = await self._opened.target.find(self._target_type, key, fields)
        except ConnectorError as error:
            trouble = error
            raise
        finally:
            self._turn.count(
                self._opened.looks,
                good=trouble is None,
                failed=trouble is not None and trouble.failure in HEALTH_ERRORS,
                throttled=trouble is not None and trouble.failure is ErrorKind.RATE_LIMIT,
                took=self._clock.monotonic() - began,
            )
        owners = await self._opened.crosswalk.owners(self._type, [one.id for one in found])
        return [one for one in found if owners.get(one.id, id_) == id_]

    # -- in doubt

    async def settle(self, row: Row) -> bool:
        """Look at one record in doubt and write down what that says; False: nobody can be asked just now."""
        id_, fields = row["source_id"], orjson.loads(row["mapped"] or "{}")
        results = self._turn.results
        try:
            found = await self.hits(id_, row["key"] or id_, fields)
        except ConnectorError as trouble:
            return await self._not_seen(row, trouble)
        if len(found) == 1 or (found and len(found) <= await self._twins(row)):
            await self._was_written(row, found[0])
            return True
        if not found:
            results.move(row["seq"], RecordState.READY)
            results.tell(row["seq"], "not applied", None, "looked: the target does not have it")
        else:
            ids = ", ".join(one.id for one in found[:5])
            reason = f"it may have been written, and the target has {len(found)} like it: {ids}"
            results.set_aside(
                row["seq"],
                RecordState.CONFLICT,
                ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several"),
                self._type,
            )
            results.tell(row["seq"], "conflict", "several", reason)
        await self._turn.commit()
        return True

    async def _twins(self, row: Row) -> int:
        """Records of the same content that are in doubt, this one included: any of them may be a hit."""
        asked = {"job": self._turn.batch.job, "type": self._type, "hash": row["hash"]}
        return int((await self._turn.read("job_twins", **asked))[0]["n"])

    async def _was_written(self, row: Row, found: TargetRecord) -> None:
        results, id_ = self._turn.results, row["source_id"]
        results.move(row["seq"], RecordState.WRITTEN, target_id=found.id)
        results.tell(row["seq"], "written", None, "looked: the target has it")
        results.written += 1
        taking = self._opened.crosswalk.taking(self._turn.batch.job, self._type, id_, found.id, row["hash"])
        try:
            await self._turn.commit(linking=taking)
        except WriteConflict:
            self._turn.forget()  # it is another's meanwhile, or may be; or the claim is lost
            await self._turn.look()
            self._stay_in_doubt(
                row, micros(_MET), "written", "another record of the same content is being written"
            )
            await self._turn.commit()

    async def _not_seen(self, row: Row, trouble: ConnectorError) -> bool:
        results, seq = self._turn.results, row["seq"]
        attempts = orjson.loads(row["attempts"])
        verdict = decide_lookup_error(trouble, self._opened.job.retry, attempts, chance=self._clock.chance())
        is_over = self._turn.follow(verdict, trouble, self._opened.looks)
        spent = None if verdict.attempts is None else json_parameter(verdict.attempts)
        results.tell(seq, f"look: {verdict.standing}", trouble.code or trouble.failure, trouble.reason)
        if verdict.standing is RecordState.UNKNOWN:
            wait = micros(verdict.park or verdict.after)
            self._stay_in_doubt(row, wait, trouble.failure.value, trouble.reason, attempts=spent)
        else:
            reason = f"nobody can tell whether it was written: {trouble.reason}"
            doubt = ConnectorError(ErrorKind.AMBIGUOUS, reason, code=trouble.code or trouble.failure.value)
            results.set_aside(seq, verdict.standing, doubt, self._type, attempts=spent)
        await self._turn.commit()
        return not is_over

    def _stay_in_doubt(
        self, row: Row, wait: int, code: str, reason: str, attempts: str | None = None
    ) -> None:
        self._turn.results.move(
            row["seq"],
            RecordState.UNKNOWN,
            due_at=self._turn.now + wait,
            mapped=row["mapped"],
            attempts=attempts,
            failure=ErrorKind.AMBIGUOUS.value,
            fingerprint=f"in_doubt/{self._type}//{code}",
            reason=reason[:1000],
        )

    # -- before a write

    async def check_plan_conflicts(
        self, items: list[PreparedRecord], results: RecordResults
    ) -> list[PreparedRecord]:
        """Those that may be written: looked for before a create, and still as the plan saw them."""
        asked = [item for item in items if self._is_asked(item)]
        if not asked:
            return items
        dropped: set[int] = set()
        line = iter(asked)

        async def work() -> None:
            for item in line:
                if not await self._may_go(item, results):
                    dropped.add(item.seq)

        await asyncio.gather(*(work() for _ in range(min(SIDE_BY_SIDE, len(asked)))))
        return [item for item in items if item.seq not in dropped]

    def _is_asked(self, item: PreparedRecord) -> bool:
        is_new = self._strategy is WriteStrategy.SEARCH and item.known is None
        return is_new or item.row["before"] is not None

    async def _may_go(self, item: PreparedRecord, results: RecordResults) -> bool:
        try:
            found = await self.hits(item.id, item.key, item.fields)
        except ConnectorError as trouble:
            verdict = decide_lookup_error(
                trouble, self._opened.job.retry, item.attempts, chance=self._clock.chance()
            )
            self._turn.follow(verdict, trouble, self._opened.looks)
            wait = verdict.park or verdict.after
            results.tell(item.seq, "look failed", trouble.code or trouble.failure, trouble.reason)
            if verdict.standing is RecordState.UNKNOWN:  # not sent yet: it is only tried again
                attempts = None if verdict.attempts is None else json_parameter(verdict.attempts)
                due_at = self._turn.now + micros(wait) if wait else None
                results.move(
                    item.seq,
                    RecordState.READY,
                    due_at=due_at,
                    attempts=attempts,
                    reason=trouble.reason[:1000],
                )
            else:
                results.set_aside(item.seq, RecordState.FAILED, trouble, self._type)
            return False
        if len(found) > 1:
            ids = ", ".join(one.id for one in found[:5])
            reason = f"the target has {len(found)} records under the key {item.key!r}: {ids}"
            several = ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several")
            results.set_aside(item.seq, RecordState.CONFLICT, several, self._type)
            return False
        return self._is_as_seen(item, found[0] if found else None, results)

    def _is_as_seen(self, item: PreparedRecord, found: TargetRecord | None, results: RecordResults) -> bool:
        before = item.row["before"]
        if before is not None and target_snapshot(self._opened, self._type, found) != before:
            if found is not None and not changed_fields(
                self._opened.mapper, self._type, item.fields, found.fields
            ):
                item.known = found.id
                results.same(item)
                return False
            was = "created" if before == ABSENT else "changed" if found is not None else "deleted"
            reason = f"it was {was} in the target after the plan was made"
            trouble = ConnectorError(ErrorKind.PERMANENT, reason, code=was)
            results.set_aside(item.seq, RecordState.CONFLICT, trouble, self._type)
            results.tell(item.seq, "conflict", was, reason)
            return False
        item.known = item.known or (None if found is None else found.id)
        return True


ABSENT = "-"


def target_snapshot(opened: OpenedJob, type_: str, found: TargetRecord | None) -> str:
    """What a plan remembers of a record of the target: the fields of the map only."""
    if found is None:
        return ABSENT
    if found.fields is None:
        return found.id
    return content_digest(opened.mapper.normalised(type_, found.fields))[:32]


def planned_action(found: Sequence[TargetRecord], differing: bool) -> PlannedAction:
    """What a plan says about what was found."""
    if len(found) > 1:
        return PlannedAction.CONFLICT
    if not found:
        return PlannedAction.CREATE
    return PlannedAction.UPDATE if differing else PlannedAction.UNCHANGED
