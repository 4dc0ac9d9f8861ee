"""The writer: sends prepared records within the target's rate limits and records each result.

A write that must not be repeated is stored as `claimed` before its call; without an answer it becomes
`unknown`. A claim is used within two seconds or given up, so that no late call races a lookup. A file is copied to
disk before its claim, because the target wants its length and a download may take long.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from ..kernel.clock import Clock
from ..kernel.crash_points import crash_point
from ..model.errors import error_text
from ..model.time import SECOND
from ..store.port import Row
from .adaptive_batch_size import INITIAL_COMMIT_SIZE, next_commit_size
from .batch_attempt import BatchAttempt, BatchStop
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, SupportsBulk, SupportsDownload, SupportsUpload, TargetRecord
from .crosswalk import to_json
from .error_policy import decide_write_error, is_repeatable
from .prepared_records import PreparedRecord, RecordResults
from .rate_limits import Sleep
from .reconciliation import RecordReconciler
from .record_states import RecordState

LATEST = 0.1  # seconds after its slot at which a call may still begin
BEGIN_WITHIN = 2.0  # seconds after its claim at which a call may still begin


def claim_uncertain_for(call_within: timedelta) -> timedelta:
    """Return how long the claim of a crashed worker is left alone: until then its call may still arrive."""
    return call_within + timedelta(seconds=BEGIN_WITHIN + 1)


def lookup_delay(call_within: timedelta) -> timedelta:
    """Return how long to wait before looking up a write without an answer."""
    return min(max(call_within / 10, timedelta(seconds=1)), timedelta(seconds=5))


def share_of(row: Row) -> int:
    """Return this batch's share of the system's concurrency."""
    return max(1, int(row["concurrency"]) // max(1, int(row["sharing"])))


class Writer:
    """Sends records for one attempt."""

    def __init__(self, attempt: BatchAttempt, clock: Clock, reconciler: RecordReconciler, sleep: Sleep) -> None:
        self._attempt, self._clock, self._reconciler, self._sleep = attempt, clock, reconciler, sleep
        self._opened: OpenedJob = attempt.opened
        self._type = attempt.batch.type
        self._target_type = attempt.opened.job.type(self._type).target
        self._strategy = attempt.opened.target.strategy(self._target_type)
        self._is_stopped = False
        self._late = 0.0  # seconds by which a slot was missed
        self._commit_size = INITIAL_COMMIT_SIZE
        self._file_limit = attempt.opened.file_limit(self._type)
        self._file: BinaryIO | None = None  # the content of the record that is being sent
        self.stop: BatchStop | None = None  # why no more records can be sent

    def needs_claim(self, item: PreparedRecord) -> bool:
        """Whether a crash during its call would leave an unknown outcome."""
        return not is_repeatable(self._strategy, item.known)

    async def send(self, waiting: list[PreparedRecord], row: Row) -> float:
        """Send as many of `waiting` as may go now; return the seconds to wait before the next call.

        Sent records are removed from `waiting` and their results committed.
        """
        if self._file_limit is not None:
            await self._send_file(waiting.pop(0), self._file_limit)
            return 0.0
        bulk, share = self._opened.limits.bulk, share_of(row)
        self._is_stopped = False  # the state was just reloaded: a short pause may be over
        self._late = 0.0
        instants: list[int] | None = None
        calls = min(-(-len(waiting) // bulk), max(self._commit_size, share), self._attempt.room(row))
        began = self._clock.monotonic()
        if row["step"]:
            taken = await self._opened.writes.take(calls)
            if not taken.instants:
                return taken.wait
            instants, calls = taken.instants, len(taken.instants)
        chosen = waiting[: calls * bulk]
        del waiting[: len(chosen)]
        chosen = await self._reconciler.check_plan_conflicts(chosen, self._attempt.results, lookup=bool(row["lookup"]))
        claimed_at = await self._claim(chosen)
        crash_point("started")
        groups = [chosen[begin : begin + bulk] for begin in range(0, len(chosen), bulk)]
        left = await self._call_all(groups, instants, share, claimed_at)
        if instants is not None:
            self._opened.writes.adjust_lag(self._late)
        crash_point("sent")
        await self._attempt.commit()
        crash_point("settled")
        waiting[:0] = left
        self._commit_size = next_commit_size(self._commit_size, calls, self._clock.monotonic() - began)
        await self._attempt.note(self._opened.writes, at_once=self._is_stopped)
        return 0.0

    async def _send_file(self, item: PreparedRecord, limit: int) -> None:
        """Copy one file to the target, unless its parent record already has it; a changed one is rejected."""
        self._is_stopped = False
        with TemporaryFile() as file:
            try:
                found = [] if item.known else await self._reconciler.hits(item.id, item.key, item.fields)
                if not found and not item.known:
                    await self._download(item, file, limit)
                    await self._opened.uploads.wait_for_slot(self._sleep)
            except ConnectorError as error:
                self.stop = self._attempt.follow_errors("file", [(item.row, error)])
            else:
                self._file = None if item.known else file
                if found:
                    item.known = found[0].id
                    self._attempt.results.add_unchanged(item)  # undo leaves what this job did not create
                else:
                    claimed_at = await self._claim([item])
                    crash_point("started")
                    await self._call_all([[item]], None, 1, claimed_at)
                    crash_point("sent")
            await self._attempt.commit()
        await self._attempt.note(self._opened.writes, at_once=self._is_stopped)

    async def _download(self, item: PreparedRecord, file: BinaryIO, limit: int) -> None:
        source, type_ = self._opened.source, self._opened.job.type(self._type).source
        if not isinstance(source, SupportsDownload) or not source.has_file(type_):
            raise ConnectorError(ErrorKind.PERMANENT, f"the source has no content for {type_}: check the job with lint")
        await self._opened.reads.wait_for_slot(self._sleep)
        await source.download(type_, item.id, file, limit)
        size, wanted = file.tell(), item.fields.get("size")
        if wanted is not None and size != wanted:
            reason = f"the source returned {size:,} bytes of the file, but its record says {wanted:,}"
            raise ConnectorError(ErrorKind.TEMPORARY, reason, field="size")

    async def _claim(self, items: Sequence[PreparedRecord]) -> float:
        """Commit the claims before the first call (intent before effect)."""
        results = self._attempt.results
        for item in items:
            if self.needs_claim(item):
                results.move(
                    item.seq,
                    RecordState.CLAIMED,
                    claimed_at=self._attempt.now,
                    key=_own_key(item),
                    mapped=to_json(dict(item.fields)),
                    hash=item.hash,
                )
        await self._attempt.commit()
        return self._clock.monotonic()

    async def _call_all(
        self, groups: Sequence[Sequence[PreparedRecord]], instants: Sequence[int] | None, share: int, claimed_at: float
    ) -> list[PreparedRecord]:
        """Make all calls with the given concurrency; return what was not sent."""
        line = iter(zip(groups, instants or [0] * len(groups), strict=False))
        left: list[PreparedRecord] = []

        async def work(line: Iterator[tuple[Sequence[PreparedRecord], int]]) -> None:
            for group, instant in line:
                if not await self._is_in_time(instant, claimed_at):
                    self._release(group, left)
                else:
                    await self._call(group)

        await asyncio.gather(*(work(line) for _ in range(min(share, len(groups)))))
        await self._log_merged_records()
        return left

    async def _is_in_time(self, instant: int, claimed_at: float) -> bool:
        """Wait for the slot; return False if the slot was missed or the claim is too old."""
        if instant:
            early = (instant - self._clock.now()) / SECOND
            if early > 0:
                await self._sleep(early)
            if -early > LATEST:
                self._late = max(self._late, -early)
                return False
        return not self._is_stopped and self._clock.monotonic() - claimed_at <= BEGIN_WITHIN

    def _release(self, group: Sequence[PreparedRecord], left: list[PreparedRecord]) -> None:
        for item in group:
            if self.needs_claim(item):
                self._attempt.results.move(item.seq, RecordState.READY)
            left.append(item)

    async def _call(self, group: Sequence[PreparedRecord]) -> None:
        began, target, first = self._clock.monotonic(), self._opened.target, group[0]
        answers: Sequence[TargetRecord | ConnectorError]
        try:
            if self._file is not None:
                answers = [await cast(SupportsUpload, target).upload(self._target_type, first.fields, self._file)]
            elif len(group) == 1:
                answers = [await target.write(self._target_type, first.key, first.fields, first.known)]
            else:
                given = [(item.key, item.fields, item.known) for item in group]
                answers = await cast(SupportsBulk, target).write_many(self._target_type, given)
        except ConnectorError as error:
            answers = [error] * len(group)
        except Exception as error:  # whatever a connector raises, its records must not be lost
            answers = [self._unexpected(error)] * len(group)
        worst = next((one for one in answers if isinstance(one, ConnectorError)), None)
        self._attempt.count(self._opened.writes, worst, self._clock.monotonic() - began)
        for item, answer in zip(group, answers, strict=True):
            if isinstance(answer, TargetRecord):
                self._written(self._attempt.results, item, answer)
            else:
                self._failed(item, answer)

    def _unexpected(self, error: Exception) -> ConnectorError:
        """Return an error for an unexpected exception, which is logged; the request may have been sent."""
        self._attempt.results.exceptions[type(error).__name__] = error
        return ConnectorError(ErrorKind.PROGRAM, error_text(error)[:300], sent=True, code=type(error).__name__)

    def _written(self, results: RecordResults, item: PreparedRecord, answer: TargetRecord) -> None:
        if item.links:
            results.move(item.seq, RecordState.WRITTEN, hash=item.hash, target_id=answer.id, links=True)
        else:
            results.plain.append((item.seq, answer.id, item.hash))
        results.links.append((item.id, answer.id, item.hash))
        results.add_log(item.seq, "updated" if item.known else "written")
        results.written += self._attempt.batch.phase != "links"

    def _failed(self, item: PreparedRecord, error: ConnectorError) -> None:
        results = self._attempt.results
        decision = decide_write_error(
            error,
            self._opened.job.retry,
            item.attempts,
            repeatable=is_repeatable(self._strategy, item.known),
            known=item.known,
            doubt=lookup_delay(self._opened.call_within),
            chance=self._clock.chance(),
        )
        self._is_stopped = self._attempt.follow(decision, error, self._opened.writes) or self._is_stopped
        results.add_log(item.seq, decision.state.value, error.code or error.failure, error.reason)
        if decision.state in (RecordState.READY, RecordState.UNKNOWN):
            more = self._unknown_fields(item, error) if decision.state is RecordState.UNKNOWN else {}
            decision = decision._replace(throttle=None)  # the whole system waits, not this record
            self._attempt.postpone(
                item.seq, decision.state, decision, error, key=_own_key(item), hash=item.hash, **more
            )
            return
        attempts = None if decision.attempts is None else to_json(decision.attempts)
        results.add_dead_letter(item.seq, decision.state, error, self._type, attempts=attempts, key=_own_key(item))
        results.written -= self._attempt.batch.phase == "links"

    def _unknown_fields(self, item: PreparedRecord, error: ConnectorError) -> dict[str, str]:
        """Return the request of a write with an unknown outcome, and the fields that list it with the dead letters."""
        cause = f"unknown/{self._type}//{error.failure}"
        return {"mapped": to_json(dict(item.fields)), "failure": error.failure.value, "fingerprint": cause}

    async def _log_merged_records(self) -> None:
        """Note source records that the target has merged into one, since one was overwritten."""
        results = self._attempt.results
        owners = await self._opened.crosswalk.owners(self._type, {target_id for _, target_id, _ in results.links})
        places = {target_id: seq for seq, target_id, _ in results.plain}
        for id_, target_id, _ in results.links:
            owner = owners.setdefault(target_id, id_)
            if owner != id_ and target_id in places:
                reason = f"the target merged it with {self._type} {owner}"
                results.move(places[target_id], RecordState.WRITTEN, target_id=target_id, reason=reason)


def _own_key(item: PreparedRecord) -> str | None:
    return None if item.key == item.id else item.key
