"""The writer: sends prepared records within what the target bears, and says what came of each.

Whatever may not be sent twice is written down as `claimed` before its call; an answer that did not come makes
it `unknown`. A claim is used within two seconds or given up, so that no late call meets somebody's look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta

from ..kernel.clock import Clock
from ..kernel.crash_points import crash_point
from ..model.time import SECOND, micros
from ..store.port import Row
from .batch_attempt import BatchAttempt
from .connector_pool import OpenedJob
from .connectors.port import ConnectorError, ErrorKind, RecordState, TargetRecord
from .crosswalk import json_parameter
from .error_policy import HEALTH_ERRORS, decide_write_error, is_repeatable
from .prepared_records import PreparedRecord, RecordResults
from .rate_limits import Sleep
from .reconciliation import RecordReconciler

LATEST = 0.1  # seconds after its instant at which a call may still begin
BEGIN_WITHIN = 2.0  # seconds after its claim at which a call may still begin

BEGIN_WITH, MOST = 16, 500  # calls between two commits, at first and at the most
EVERY = 0.5  # seconds that should lie between two commits


def claim_uncertain_for(call_within: timedelta) -> timedelta:
    """How long a claim of somebody who died must be left alone: until then its call may still arrive."""
    return call_within + timedelta(seconds=BEGIN_WITHIN + 1)


def lookup_delay(call_within: timedelta) -> timedelta:
    """How long to wait with the look after an answer that did not come."""
    return min(max(call_within / 10, timedelta(seconds=1)), timedelta(seconds=5))


def share_of(row: Row) -> int:
    """How many calls at once are this batch's: all batches at one system share what it bears."""
    return max(1, int(row["concurrency"]) // max(1, int(row["sharing"])))


def next_commit_size(portion: int, calls: int, took: float) -> int:
    """How many calls go between two commits, so that these are about half a second apart. Pure."""
    if took > 2 * EVERY:
        return max(1, portion // 2)
    return min(MOST, portion * 2) if calls >= portion and took < EVERY / 2 else portion


class Writer:
    """Sends for one turn."""

    def __init__(self, turn: BatchAttempt, clock: Clock, reconciler: RecordReconciler, sleep: Sleep) -> None:
        self._turn = turn
        self._clock = clock
        self._reconciler = reconciler
        self._sleep = sleep
        self._opened: OpenedJob = turn.opened
        self._type = turn.batch.type
        self._target_type = turn.opened.job.type(self._type).target
        self._strategy = turn.opened.target.strategy(self._target_type)
        self._is_over = False
        self._late = 0.0  # seconds by which an instant was missed
        self._portion = BEGIN_WITH

    def needs_claim(self, item: PreparedRecord) -> bool:
        """Whether a crash during its call would leave a doubt."""
        return not is_repeatable(self._strategy, item.known)

    async def send(self, waiting: list[PreparedRecord], row: Row) -> float:
        """Send the first of these, as many as may go now; gives the seconds to wait before the next time.

        What was sent is taken out of `waiting`, and what came of it is written down.
        """
        bulk, share = self._opened.limits.bulk, share_of(row)
        self._is_over = False  # whoever sends has looked anew: a short pause may be over
        self._late = 0.0
        instants: list[int] | None = None
        calls = min(-(-len(waiting) // bulk), max(self._portion, share), self._turn.room(row))
        began = self._clock.monotonic()
        if row["step"]:
            taken = await self._opened.writes.take(calls)
            if not taken.instants:
                return taken.wait
            instants, calls = taken.instants, len(taken.instants)
        chosen = waiting[: calls * bulk]
        del waiting[: len(chosen)]
        chosen = await self._reconciler.check_plan_conflicts(chosen, self._turn.results)
        claimed_at = await self._claim(chosen)
        crash_point("started")
        groups = [chosen[begin : begin + bulk] for begin in range(0, len(chosen), bulk)]
        left = await self._call_all(groups, instants, share, claimed_at)
        if instants is not None:
            self._opened.writes.learn(self._late)
        crash_point("sent")
        await self._turn.commit()
        crash_point("settled")
        waiting[:0] = left
        self._portion = next_commit_size(self._portion, calls, self._clock.monotonic() - began)
        await self._turn.note(self._opened.writes, at_once=self._is_over)
        return 0.0

    async def _claim(self, items: Sequence[PreparedRecord]) -> float:
        """Intent before effect: durable before the first call."""
        results = self._turn.results
        for item in items:
            if self.needs_claim(item):
                results.move(
                    item.seq,
                    RecordState.CLAIMED,
                    claimed_at=self._turn.now,
                    key=_own_key(item),
                    mapped=json_parameter(dict(item.fields)),
                    hash=item.hash,
                )
        await self._turn.commit()
        return self._clock.monotonic()

    async def _call_all(
        self,
        groups: Sequence[Sequence[PreparedRecord]],
        instants: Sequence[int] | None,
        share: int,
        claimed_at: float,
    ) -> list[PreparedRecord]:
        """All calls, side by side as far as the target bears; gives what was not sent."""
        line = iter(zip(groups, instants or [0] * len(groups), strict=False))
        left: list[PreparedRecord] = []

        async def work(line: Iterator[tuple[Sequence[PreparedRecord], int]]) -> None:
            for group, instant in line:
                if not await self._is_in_time(instant, claimed_at):
                    self._give_up(group, left)
                elif len(group) == 1:
                    await self._call_one(group[0])
                else:
                    await self._call_many(group)

        await asyncio.gather(*(work(line) for _ in range(min(share, len(groups)))))
        await self._log_merged_records()
        return left

    async def _is_in_time(self, instant: int, claimed_at: float) -> bool:
        """Wait for its instant; one that was missed is not used, and a claim not used late."""
        if instant:
            early = (instant - self._clock.now()) / SECOND
            if early > 0:
                await self._sleep(early)
            if -early > LATEST:
                self._late = max(self._late, -early)
                return False
        return not self._is_over and self._clock.monotonic() - claimed_at <= BEGIN_WITHIN

    def _give_up(self, group: Sequence[PreparedRecord], left: list[PreparedRecord]) -> None:
        """Not sent: open again."""
        for item in group:
            if self.needs_claim(item):
                self._turn.results.move(item.seq, RecordState.READY)
            left.append(item)

    async def _call_one(self, item: PreparedRecord) -> None:
        began = self._clock.monotonic()
        answer: TargetRecord | ConnectorError
        try:
            answer = await self._opened.target.write(self._target_type, item.key, item.fields, item.known)
        except ConnectorError as trouble:
            answer = trouble
        except Exception as error:  # a connector may do anything; its record must not vanish with it
            answer = _surprise(error)
        self._count(answer, self._clock.monotonic() - began)
        self._take(item, answer)

    async def _call_many(self, group: Sequence[PreparedRecord]) -> None:
        began = self._clock.monotonic()
        given = [(item.key, item.fields, item.known) for item in group]
        answers: Sequence[TargetRecord | ConnectorError]
        try:
            answers = await self._opened.target.write_many(self._target_type, given)
        except ConnectorError as trouble:
            answers = [trouble] * len(group)
        except Exception as error:  # as above
            answers = [_surprise(error)] * len(group)
        worst = next((one for one in answers if isinstance(one, ConnectorError)), answers[0])
        self._count(worst, self._clock.monotonic() - began)
        for item, answer in zip(group, answers, strict=True):
            self._take(item, answer)

    def _count(self, answer: TargetRecord | ConnectorError, took: float) -> None:
        is_trouble = isinstance(answer, ConnectorError)
        failure = answer.failure if isinstance(answer, ConnectorError) else None
        self._turn.count(
            self._opened.writes,
            good=not is_trouble,
            failed=failure in HEALTH_ERRORS,
            throttled=failure is ErrorKind.RATE_LIMIT,
            took=took,
        )

    def _take(self, item: PreparedRecord, answer: TargetRecord | ConnectorError) -> None:
        """What came of one record."""
        if isinstance(answer, TargetRecord):
            self._written(self._turn.results, item, answer)
        else:
            self._failed(item, answer)

    def _written(self, results: RecordResults, item: PreparedRecord, answer: TargetRecord) -> None:
        if item.links:
            results.move(item.seq, RecordState.WRITTEN, hash=item.hash, target_id=answer.id, links=True)
        else:
            results.plain.append((item.seq, answer.id, item.hash))
        results.links.append((item.id, answer.id, item.hash))
        results.tell(item.seq, "updated" if item.known else "written")
        results.written += self._turn.batch.phase != "links"

    def _failed(self, item: PreparedRecord, trouble: ConnectorError) -> None:
        results, now = self._turn.results, self._turn.now
        verdict = decide_write_error(
            trouble,
            self._opened.job.retry,
            item.attempts,
            repeatable=is_repeatable(self._strategy, item.known),
            known=item.known,
            doubt=lookup_delay(self._opened.call_within),
            chance=self._clock.chance(),
        )
        self._is_over = self._turn.follow(verdict, trouble, self._opened.writes) or self._is_over
        attempts = None if verdict.attempts is None else json_parameter(verdict.attempts)
        results.tell(item.seq, verdict.standing.value, trouble.code or trouble.failure, trouble.reason)
        if verdict.standing in (RecordState.READY, RecordState.UNKNOWN):
            kept = json_parameter(dict(item.fields)) if verdict.standing is RecordState.UNKNOWN else None
            results.move(
                item.seq,
                verdict.standing,
                due_at=now + micros(verdict.after) if verdict.after else None,
                key=_own_key(item),
                mapped=kept,
                hash=item.hash,
                attempts=attempts,
                reason=trouble.reason[:1000],
                **_doubt(verdict.standing, trouble, self._type),
            )
            return
        results.set_aside(
            item.seq, verdict.standing, trouble, self._type, attempts=attempts, key=_own_key(item)
        )
        results.written -= self._turn.batch.phase == "links"

    async def _log_merged_records(self) -> None:
        """Two records of the source that the target has put together: said, since one was written over."""
        results = self._turn.results
        owners = await self._opened.crosswalk.owners(
            self._type, {target_id for _, target_id, _ in results.links}
        )
        places = {target_id: seq for seq, target_id, _ in results.plain}
        for id_, target_id, _ in results.links:
            owner = owners.setdefault(target_id, id_)
            if owner != id_ and target_id in places:
                reason = f"the target has put it together with {self._type} {owner}"
                results.move(places[target_id], RecordState.WRITTEN, target_id=target_id, reason=reason)


def _own_key(item: PreparedRecord) -> str | None:
    return None if item.key == item.id else item.key


def _doubt(standing: RecordState, trouble: ConnectorError, type_: str) -> dict[str, str]:
    """What is in doubt is listed with what was set aside."""
    if standing is not RecordState.UNKNOWN:
        return {}
    return {"failure": trouble.failure.value, "fingerprint": f"in_doubt/{type_}//{trouble.failure}"}


def _surprise(error: Exception) -> ConnectorError:
    """An error of the program: perhaps after the request had left."""
    reason = f"{type(error).__name__}: {error}"[:300]
    return ConnectorError(ErrorKind.PROGRAM, reason, sent=True, code=type(error).__name__)
