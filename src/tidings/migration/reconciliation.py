"""Reconciliation: looks up records whose write has an unknown outcome, and detects conflicts with a plan.

    matches in the target    outcome
    one                      written
    none                     not applied: ready again
    several                  one of them if that many uncertain records have the same content, else a conflict
Matches that the crosswalk assigns to another record do not count. Reconciliation only reads the target.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import timedelta

import orjson

from ..kernel.clock import Clock
from ..store.port import Row, WriteConflict
from .batch_attempt import BatchAttempt
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, Fields, TargetRecord, WriteStrategy
from .crosswalk import to_json
from .error_policy import ErrorDecision, decide_lookup_error
from .jobs import PlannedAction
from .mapping.content_hash import content_digest
from .prepared_records import PreparedRecord, RecordResults
from .rate_limits import Sleep
from .record_states import RecordState

SIDE_BY_SIDE = 8  # concurrent lookups
_MET = timedelta(seconds=1)


class RecordReconciler:
    """Looks up records for one attempt."""

    def __init__(self, attempt: BatchAttempt, clock: Clock, sleep: Sleep) -> None:
        self._attempt, self._clock, self._sleep = attempt, clock, sleep
        self._opened: OpenedJob = attempt.opened
        self._type = attempt.batch.type
        self._target_type = attempt.opened.job.type(self._type).target
        self._strategy = attempt.opened.target.strategy(self._target_type)

    async def hits(self, id_: str, key: str, fields: Fields) -> list[TargetRecord]:
        """Find the record in the target by key or content, without records that belong to others."""
        await self._opened.lookups.wait_for_slot(self._sleep)
        began = self._clock.monotonic()
        failure: ConnectorError | None = None
        try:
            found = await self._opened.target.find(self._target_type, key, fields)
        except ConnectorError as error:
            failure = error
            raise
        finally:
            self._attempt.count(self._opened.lookups, failure, self._clock.monotonic() - began)
        owners = await self._opened.crosswalk.owners(self._type, [one.id for one in found])
        return [one for one in found if owners.get(one.id, id_) == id_]

    async def settle(self, row: Row) -> bool:
        """Look up one uncertain record and commit the result; False when the target cannot be queried now."""
        id_, fields = row["source_id"], orjson.loads(row["mapped"] or "{}")
        results = self._attempt.results
        try:
            found = await self.hits(id_, row["key"] or id_, fields)
        except ConnectorError as error:
            return await self._lookup_failed(row, error)
        if len(found) == 1 or (found and len(found) <= await self._twins(row)):
            await self._was_written(row, found[0])
            return True
        if not found and self._opened.job.retry.is_exhausted(orjson.loads(row["attempts"])):
            reason = f"all attempts are used, and it is not in the target: {row['reason']}"
            used_up = ConnectorError(ErrorKind(row["failure"]), reason)
            results.add_dead_letter(row["seq"], RecordState.FAILED, used_up, self._type)
            results.add_log(row["seq"], "failed", used_up.failure, reason)
        elif not found:
            results.move(row["seq"], RecordState.READY)
            results.add_log(row["seq"], "not applied", None, "lookup: not in the target")
        else:
            ids = ", ".join(one.id for one in found[:5])
            reason = f"its outcome is unknown, and the target has {len(found)} matching records: {ids}"
            results.add_dead_letter(
                row["seq"],
                RecordState.CONFLICT,
                ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several"),
                self._type,
            )
            results.add_log(row["seq"], "conflict", "several", reason)
        await self._attempt.commit()
        return True

    async def _twins(self, row: Row) -> int:
        """Count uncertain records of the same content, this one included: any of them may be the match."""
        asked = {"job": self._attempt.batch.job, "type": self._type, "hash": row["hash"]}
        return int((await self._attempt.read("job_twins", **asked))[0]["n"])

    async def _was_written(self, row: Row, found: TargetRecord) -> None:
        results, id_ = self._attempt.results, row["source_id"]
        results.move(row["seq"], RecordState.WRITTEN, target_id=found.id)
        results.add_log(row["seq"], "written", None, "lookup: found in the target")
        results.written += 1
        taking = self._opened.crosswalk.claim_steps(self._attempt.batch.job, self._type, id_, found.id, row["hash"])
        try:
            await self._attempt.commit(linking=taking)
        except WriteConflict:
            self._attempt.forget()  # another record claimed the match, or our claim was lost
            await self._attempt.check()
            error = ConnectorError(ErrorKind.AMBIGUOUS, "another record with the same content is being written")
            self._stay_unknown(row, ErrorDecision(RecordState.UNKNOWN, _MET), error)
            await self._attempt.commit()

    async def _lookup_failed(self, row: Row, error: ConnectorError) -> bool:
        results, seq = self._attempt.results, row["seq"]
        attempts = orjson.loads(row["attempts"])
        decision = decide_lookup_error(error, self._opened.job.retry, attempts, chance=self._clock.chance())
        is_over = self._attempt.follow(decision, error, self._opened.lookups)
        results.add_log(seq, f"lookup: {decision.state}", error.code or error.failure, error.reason)
        if decision.state is RecordState.UNKNOWN:
            self._stay_unknown(row, decision, error)
        else:
            reason = f"the outcome of the write cannot be determined: {error.reason}"
            unknown = ConnectorError(ErrorKind.AMBIGUOUS, reason, code=error.code or error.failure.value)
            spent = None if decision.attempts is None else to_json(decision.attempts)
            results.add_dead_letter(seq, decision.state, unknown, self._type, attempts=spent)
        await self._attempt.commit()
        return not is_over

    def _stay_unknown(self, row: Row, decision: ErrorDecision, error: ConnectorError) -> None:
        listed = {"failure": ErrorKind.AMBIGUOUS.value, "fingerprint": f"unknown/{self._type}//{error.failure}"}
        self._attempt.postpone(row["seq"], RecordState.UNKNOWN, decision, error, mapped=row["mapped"], **listed)

    async def check_plan_conflicts(
        self, items: list[PreparedRecord], results: RecordResults, *, lookup: bool
    ) -> list[PreparedRecord]:
        """Return the records that may be written: new to the target, or unchanged since the plan saw them.

        `lookup`: the plan looked records up. Those it rejected are looked up now, so that undo knows them as new.
        """
        asked = [item for item in items if self._needs_lookup(item, lookup=lookup)]
        if not asked:
            return items
        dropped: set[int] = set()
        line = iter(asked)

        async def work() -> None:
            for item in line:
                if not await self._may_be_written(item, results):
                    dropped.add(item.seq)

        await asyncio.gather(*(work() for _ in range(min(SIDE_BY_SIDE, len(asked)))))
        return [item for item in items if item.seq not in dropped]

    def _needs_lookup(self, item: PreparedRecord, *, lookup: bool) -> bool:
        if item.row["before"] is not None:
            return True
        is_repaired = lookup and item.row["action"] is not None and self._strategy is WriteStrategy.UPSERT
        return item.known is None and (is_repaired or self._strategy is WriteStrategy.SEARCH)

    async def _may_be_written(self, item: PreparedRecord, results: RecordResults) -> bool:
        try:
            found = await self.hits(item.id, item.key, item.fields)
        except ConnectorError as error:
            decision = decide_lookup_error(error, self._opened.job.retry, item.attempts, chance=self._clock.chance())
            self._attempt.follow(decision, error, self._opened.lookups)
            results.add_log(item.seq, "lookup failed", error.code or error.failure, error.reason)
            if decision.state is RecordState.UNKNOWN:  # not sent yet, so it is retried
                self._attempt.postpone(item.seq, RecordState.READY, decision, error)
            else:
                results.add_dead_letter(item.seq, RecordState.FAILED, error, self._type)
            return False
        if len(found) > 1:
            ids = ", ".join(one.id for one in found[:5])
            reason = f"the target has {len(found)} records under the key {item.key!r}: {ids}"
            several = ConnectorError(ErrorKind.AMBIGUOUS, reason, code="several")
            results.add_dead_letter(item.seq, RecordState.CONFLICT, several, self._type)
            return False
        return self._matches_plan(item, found[0] if found else None, results)

    def _matches_plan(self, item: PreparedRecord, found: TargetRecord | None, results: RecordResults) -> bool:
        before = item.row["before"]
        if before is not None and target_snapshot(self._opened, self._type, found) != before:
            if found is not None and not self._opened.mapper.changed_fields(self._type, item.fields, found.fields):
                item.known = found.id
                results.add_unchanged(item)
                return False
            was = "created" if before == ABSENT else "changed" if found is not None else "deleted"
            reason = f"it was {was} in the target after the plan was made"
            error = ConnectorError(ErrorKind.PERMANENT, reason, code=was)
            results.add_dead_letter(item.seq, RecordState.CONFLICT, error, self._type)
            results.add_log(item.seq, "conflict", was, reason)
            return False
        if before is None and self._strategy is WriteStrategy.UPSERT:
            results.move(item.seq, RecordState.READY, before=target_snapshot(self._opened, self._type, found))
        item.known = item.known or (None if found is None else found.id)
        return True


ABSENT = "-"


def target_snapshot(opened: OpenedJob, type_: str, found: TargetRecord | None) -> str:
    """Return what a plan remembers of a target record: a digest of the mapped fields."""
    if found is None:
        return ABSENT
    if found.fields is None:
        return found.id
    return content_digest(opened.mapper.normalised(type_, found.fields))[:32]


def planned_action(found: Sequence[TargetRecord], differing: bool) -> PlannedAction:
    """Return the planned action for the records found in the target."""
    if len(found) > 1:
        return PlannedAction.CONFLICT
    if not found:
        return PlannedAction.CREATE
    return PlannedAction.UPDATE if differing else PlannedAction.UNCHANGED
