"""Planning: the whole pipeline, writes replaced by rows of a plan. The run then does exactly that.

A record that the target has the same is unchanged at once. What was seen of the others is remembered: if it
is not so any more when the run comes to it, that is a conflict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from ..kernel.clock import Clock
from ..model.time import micros
from ..store.port import Row, Store
from .comparing import changes
from .crosswalk import packed
from .jobs import Action
from .limits import Limiter, Sleep
from .looking import SIDE_BY_SIDE, Looker, image, planned_action
from .policies import judge_look
from .preparing import Item, Preparer
from .report import Change
from .turns import Stop, Turn
from .words import Failure, Standing, Strategy, Trouble, Written

CHUNK = 200

_ASKED = frozenset({Strategy.UPSERT, Strategy.SEARCH, Strategy.MARK})


class Planner:
    """One turn that writes nothing but the plan."""

    def __init__(self, store: Store, clock: Clock, turn: Turn, sleep: Sleep) -> None:
        self._clock = clock
        self._turn = turn
        self._opened = turn.opened
        self._type = turn.batch.type
        self._looker = Looker(turn, clock, sleep)
        self._preparer = Preparer(store, turn.opened, self._type, turn.batch.round, ahead=True)
        self._strategy = turn.opened.target.strategy(turn.opened.job.type(self._type).target)
        self._is_deaf = False  # the target cannot be asked
        self._after = 0

    async def work(self) -> Stop | None:
        """Until the batch is planned, or something stops it."""
        while True:
            row, stop = await self._turn.look()
            if stop is not None:
                await self._turn.commit()
                return stop
            rows = await self._turn.open_records(self._after, CHUNK)
            if not rows:
                await self._turn.commit()
                return None
            self._after = rows[-1]["seq"]
            stop = await self._plan(rows, asks=bool(row["looks"]))
            await self._turn.commit()
            if stop is not None:
                return stop
            await self._turn.note(self._opened.looks)

    async def _plan(self, rows: Sequence[Row], *, asks: bool) -> Stop | None:
        results = self._turn.results
        try:
            items = await self._preparer.prepare(rows, results)
        except Trouble as trouble:
            return self._turn.unprepared(trouble)
        if self._preparer.has_own_key and items:
            for item in items:
                results.move(item.seq, Standing.EXTRACTED, key=item.key)
            await self._turn.commit()
            items = await self._preparer.first_of_each_key(items, self._turn.results)
        line = iter(items)

        async def work(limiter: Limiter) -> None:
            for item in line:
                await self._plan_one(item, limiter, asks=asks)

        await asyncio.gather(*(work(self._opened.looks) for _ in range(min(SIDE_BY_SIDE, len(items)))))
        return None

    async def _plan_one(self, item: Item, limiter: Limiter, *, asks: bool) -> None:
        results = self._turn.results
        if item.row["same"]:
            results.same(item, action=Action.UNCHANGED)
            return
        if not asks or self._is_deaf or self._strategy not in _ASKED:
            blind = Action.UPDATE if item.known else Action.CREATE
            self._put(item, Action.WRITE if self._is_deaf else blind, None, ())
            return
        try:
            found = await self._looker.hits(item.id, item.key, item.fields)
        except Trouble as trouble:
            self._not_seen(item, trouble, limiter)
            return
        self._seen(item, found)

    def _seen(self, item: Item, found: Sequence[Written]) -> None:
        differing: Sequence[Change] = ()
        if len(found) == 1:
            differing = changes(self._opened.mapper, self._type, item.fields, found[0].fields)
        is_told = len(found) == 1 and found[0].fields is not None
        action = planned_action(found, bool(differing) or not is_told)
        if action is Action.CONFLICT:
            reason = f"the target has {len(found)} records under the key {item.key!r}"
            trouble = Trouble(Failure.AMBIGUOUS, reason, code="several")
            self._turn.results.set_aside(item.seq, Standing.CONFLICT, trouble, self._type, action=action)
            return
        if action is Action.UNCHANGED:
            item.known = found[0].id
            self._turn.results.same(item, action=action)
            return
        self._put(item, action, image(self._opened, self._type, found[0] if found else None), differing)

    def _put(self, item: Item, action: Action, before: str | None, differing: Sequence[Change]) -> None:
        told = packed([change._asdict() for change in differing]) if differing else None
        self._turn.results.move(
            item.seq, Standing.READY, action=action.value, before=before, changes=told, hash=item.hash
        )

    def _not_seen(self, item: Item, trouble: Trouble, limiter: Limiter) -> None:
        if trouble.failure is Failure.PERMANENT:
            self._is_deaf = True
            self._put(item, Action.WRITE, None, ())
            return
        verdict = judge_look(trouble, self._opened.job.retry, item.tries, chance=self._clock.chance())
        self._turn.follow(verdict, trouble, limiter)
        wait = verdict.park or verdict.after
        if verdict.standing is Standing.UNKNOWN:
            tries = None if verdict.tries is None else packed(verdict.tries)
            due_at = self._turn.now + micros(wait) if wait else None
            self._turn.results.move(item.seq, Standing.EXTRACTED, due_at=due_at, tries=tries)
        else:
            self._turn.results.set_aside(
                item.seq, Standing.FAILED, trouble, self._type, action=Action.CONFLICT.value
            )


def calls_of(actions: Mapping[Action, int], strategy: Strategy, bulk: int) -> int:
    """How many calls to the target a type costs. Pure."""
    writes = sum(actions.get(action, 0) for action in (Action.CREATE, Action.UPDATE, Action.WRITE))
    looks = actions.get(Action.CREATE, 0) if strategy is Strategy.SEARCH else 0
    return -(-writes // bulk) + looks
