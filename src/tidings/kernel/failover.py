"""Recovery after a failover or restore that lost committed data (a rewind of the database).

Tasks that were due may have been sent before the data was lost. All nodes share one row per server; one node
at a time recovers, and no node starts a task before it has finished. First, schedulers create their due tasks
again. Then due pending tasks get the outcome `unknown` and follow their channel's rule, as if their node had
died. Claimed tasks count as started and are left to the reaper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from ..model.task import NodeId, claimed_task
from ..model.time import SECOND
from ..observability.events import DatabaseRewound, Emit
from ..store.port import Row, Step, Store, WriteConflict, ordering_keys
from .actor import Actor, TaskCreator
from .decisions import decide_after_rewind
from .handler import Handler, collect_effects
from .heartbeats import RewindDetected

_PAGE = 500
_STALE = 10 * SECOND  # then another node takes over


class RewindRecovery:
    """One node's part in the recovery. `open` and `step` may be repeated at any time."""

    def __init__(
        self,
        store: Store,
        handlers: Mapping[str, Handler],
        *,
        emit: Emit,
        me: Callable[[], NodeId],
        actors: Iterable[Actor] = (),
    ) -> None:
        self._store = store
        self._handlers = handlers
        self._emit = emit
        self._me = me
        self._task_creators = [actor for actor in actors if isinstance(actor, TaskCreator)]

    async def open(self, found: RewindDetected) -> None:
        """Record the rewind, unless another node has done so."""
        known = {"server": self._store.server, "survived_at": found.survived_at, "again": found.again}
        await self._store.write([Step("rewind_open", known)])

    async def step(self) -> bool:
        """Recover from an open rewind. Return False while another node is working on it."""
        server = self._store.server
        open_ = [] if self._store.sole_worker else await self._store.read("rewind_find", server=server)
        if not open_:
            return True
        until = open_[0]["found_at"]
        try:
            await self._store.write([self._take(), Step("rewind_started", {"until": until})])
            for creator in self._task_creators:  # create again what was lost, while nothing can be claimed
                await creator.step()
            while page := await self._store.read("rewind_page", until=until, limit=_PAGE):
                await self._mark(page, until)
            finish = Step("rewind_finish", {"server": server, "node": self._me()}, needed=True)
            [row] = (await self._store.write([finish]))[0]
        except WriteConflict:
            return False
        self._emit(DatabaseRewound(self._me(), row["survived_at"], until, row["unknown"]))
        return True

    def _take(self, more: int = 0) -> Step:
        mine = {"server": self._store.server, "node": self._me(), "stale": _STALE, "more": more}
        return Step("rewind_take", mine, needed=True)

    async def _mark(self, page: list[Row], until: int) -> None:
        tasks = [claimed_task(row) for row in page]
        moves = [
            decide_after_rewind(task, row["on_unknown"], at=until + row["deadline"])
            for task, row in zip(tasks, page, strict=True)
        ]
        ids, claims, states, _, dues, *_ = map(list, zip(*moves, strict=True))
        settle = {"ids": ids, "claims": claims, "states": states, "dues": dues, "node": self._me()}
        settle["detail"] = moves[0].detail
        own = collect_effects(self._handlers, tasks, moves)
        steps = [self._take(len(page)), Step("rewind_settle", settle), *own]
        await self._store.change(steps, keys=ordering_keys(tasks))
