"""The writer: sends prepared records within what the target bears, and says what came of each.

Whatever may not be sent twice is written down as `claimed` before its call; an answer that did not come makes
it `unknown`. A claim is used within two seconds or given up, so that no late call meets somebody's look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import timedelta

from ..kernel.clock import Clock
from ..kernel.crashpoints import point
from ..model.time import SECOND, micros
from ..store.port import Row
from .connections import Opened
from .crosswalk import packed
from .limits import Sleep
from .looking import Looker
from .policies import HEALTH, is_repeatable, judge
from .preparing import Item, Results
from .turns import Turn
from .words import Failure, Standing, Trouble, Written

LATEST = 0.1  # seconds after its instant at which a call may still begin
BEGIN_WITHIN = 2.0  # seconds after its claim at which a call may still begin

BEGIN_WITH, MOST = 16, 500  # calls between two commits, at first and at the most
EVERY = 0.5  # seconds that should lie between two commits


def doubtful_for(call_within: timedelta) -> timedelta:
    """How long a claim of somebody who died must be left alone: until then its call may still arrive."""
    return call_within + timedelta(seconds=BEGIN_WITHIN + 1)


def look_after(call_within: timedelta) -> timedelta:
    """How long to wait with the look after an answer that did not come."""
    return min(max(call_within / 10, timedelta(seconds=1)), timedelta(seconds=5))


def share_of(row: Row) -> int:
    """How many calls at once are this batch's: all batches at one system share what it bears."""
    return max(1, int(row["concurrency"]) // max(1, int(row["sharing"])))


def portion_after(portion: int, calls: int, took: float) -> int:
    """How many calls go between two commits, so that these are about half a second apart. Pure."""
    if took > 2 * EVERY:
        return max(1, portion // 2)
    return min(MOST, portion * 2) if calls >= portion and took < EVERY / 2 else portion


class Writer:
    """Sends for one turn."""

    def __init__(self, turn: Turn, clock: Clock, looker: Looker, sleep: Sleep) -> None:
        self._turn = turn
        self._clock = clock
        self._looker = looker
        self._sleep = sleep
        self._opened: Opened = turn.opened
        self._type = turn.batch.type
        self._target_type = turn.opened.job.type(self._type).target
        self._strategy = turn.opened.target.strategy(self._target_type)
        self._is_over = False
        self._late = 0.0  # seconds by which an instant was missed
        self._portion = BEGIN_WITH

    def needs_claim(self, item: Item) -> bool:
        """Whether a crash during its call would leave a doubt."""
        return not is_repeatable(self._strategy, item.known)

    async def send(self, waiting: list[Item], row: Row) -> float:
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
        chosen = await self._looker.still_as_planned(chosen, self._turn.results)
        claimed_at = await self._claim(chosen)
        point("started")
        groups = [chosen[begin : begin + bulk] for begin in range(0, len(chosen), bulk)]
        left = await self._call_all(groups, instants, share, claimed_at)
        if instants is not None:
            self._opened.writes.learn(self._late)
        point("sent")
        await self._turn.commit()
        point("settled")
        waiting[:0] = left
        self._portion = portion_after(self._portion, calls, self._clock.monotonic() - began)
        await self._turn.note(self._opened.writes, at_once=self._is_over)
        return 0.0

    async def _claim(self, items: Sequence[Item]) -> float:
        """Intent before effect: durable before the first call."""
        results = self._turn.results
        for item in items:
            if self.needs_claim(item):
                results.move(
                    item.seq,
                    Standing.CLAIMED,
                    claimed_at=self._turn.now,
                    key=_own_key(item),
                    mapped=packed(dict(item.fields)),
                    hash=item.hash,
                )
        await self._turn.commit()
        return self._clock.monotonic()

    async def _call_all(
        self, groups: Sequence[Sequence[Item]], instants: Sequence[int] | None, share: int, claimed_at: float
    ) -> list[Item]:
        """All calls, side by side as far as the target bears; gives what was not sent."""
        line = iter(zip(groups, instants or [0] * len(groups), strict=False))
        left: list[Item] = []

        async def work(line: Iterator[tuple[Sequence[Item], int]]) -> None:
            for group, instant in line:
                if not await self._is_in_time(instant, claimed_at):
                    self._give_up(group, left)
                elif len(group) == 1:
                    await self._call_one(group[0])
                else:
                    await self._call_many(group)

        await asyncio.gather(*(work(line) for _ in range(min(share, len(groups)))))
        await self._say_who_was_merged()
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

    def _give_up(self, group: Sequence[Item], left: list[Item]) -> None:
        """Not sent: open again."""
        for item in group:
            if self.needs_claim(item):
                self._turn.results.move(item.seq, Standing.READY)
            left.append(item)

    async def _call_one(self, item: Item) -> None:
        began = self._clock.monotonic()
        answer: Written | Trouble
        try:
            answer = await self._opened.target.write(self._target_type, item.key, item.fields, item.known)
        except Trouble as trouble:
            answer = trouble
        except Exception as error:  # a connector may do anything; its record must not vanish with it
            answer = _surprise(error)
        self._count(answer, self._clock.monotonic() - began)
        self._take(item, answer)

    async def _call_many(self, group: Sequence[Item]) -> None:
        began = self._clock.monotonic()
        given = [(item.key, item.fields, item.known) for item in group]
        answers: Sequence[Written | Trouble]
        try:
            answers = await self._opened.target.write_many(self._target_type, given)
        except Trouble as trouble:
            answers = [trouble] * len(group)
        except Exception as error:  # as above
            answers = [_surprise(error)] * len(group)
        worst = next((one for one in answers if isinstance(one, Trouble)), answers[0])
        self._count(worst, self._clock.monotonic() - began)
        for item, answer in zip(group, answers, strict=True):
            self._take(item, answer)

    def _count(self, answer: Written | Trouble, took: float) -> None:
        is_trouble = isinstance(answer, Trouble)
        failure = answer.failure if isinstance(answer, Trouble) else None
        self._turn.count(
            self._opened.writes,
            good=not is_trouble,
            failed=failure in HEALTH,
            throttled=failure is Failure.RATE_LIMIT,
            took=took,
        )

    def _take(self, item: Item, answer: Written | Trouble) -> None:
        """What came of one record."""
        if isinstance(answer, Written):
            self._written(self._turn.results, item, answer)
        else:
            self._failed(item, answer)

    def _written(self, results: Results, item: Item, answer: Written) -> None:
        if item.links:
            results.move(item.seq, Standing.WRITTEN, hash=item.hash, target_id=answer.id, links=True)
        else:
            results.plain.append((item.seq, answer.id, item.hash))
        results.links.append((item.id, answer.id, item.hash))
        results.tell(item.seq, "updated" if item.known else "written")
        results.written += self._turn.batch.phase != "links"

    def _failed(self, item: Item, trouble: Trouble) -> None:
        results, now = self._turn.results, self._turn.now
        verdict = judge(
            trouble,
            self._opened.job.retry,
            item.tries,
            repeatable=is_repeatable(self._strategy, item.known),
            known=item.known,
            doubt=look_after(self._opened.call_within),
            chance=self._clock.chance(),
        )
        self._is_over = self._turn.follow(verdict, trouble, self._opened.writes) or self._is_over
        tries = None if verdict.tries is None else packed(verdict.tries)
        results.tell(item.seq, verdict.standing.value, trouble.code or trouble.failure, trouble.reason)
        if verdict.standing in (Standing.READY, Standing.UNKNOWN):
            kept = packed(dict(item.fields)) if verdict.standing is Standing.UNKNOWN else None
            results.move(
                item.seq,
                verdict.standing,
                due_at=now + micros(verdict.after) if verdict.after else None,
                key=_own_key(item),
                mapped=kept,
                hash=item.hash,
                tries=tries,
                reason=trouble.reason[:1000],
                **_doubt(verdict.standing, trouble, self._type),
            )
            return
        results.set_aside(item.seq, verdict.standing, trouble, self._type, tries=tries, key=_own_key(item))
        results.written -= self._turn.batch.phase == "links"

    async def _say_who_was_merged(self) -> None:
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
                results.move(places[target_id], Standing.WRITTEN, target_id=target_id, reason=reason)


def _own_key(item: Item) -> str | None:
    return None if item.key == item.id else item.key


def _doubt(standing: Standing, trouble: Trouble, type_: str) -> dict[str, str]:
    """What is in doubt is listed with what was set aside."""
    if standing is not Standing.UNKNOWN:
        return {}
    return {"failure": trouble.failure.value, "fingerprint": f"in_doubt/{type_}//{trouble.failure}"}


def _surprise(error: Exception) -> Trouble:
    """An error of the program: perhaps after the request had left."""
    reason = f"{type(error).__name__}: {error}"[:300]
    return Trouble(Failure.PROGRAM, reason, sent=True, code=type(error).__name__)
