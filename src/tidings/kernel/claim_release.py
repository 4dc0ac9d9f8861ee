"""Releases unused claims, as if they had never been made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..model.errors import StoreUnavailable
from ..model.task import Task, TaskId, TaskState, Transition, claimed_task
from ..store.port import Store, ordering_keys
from .handler import Handler, collect_effects
from .heartbeats import Node

_HELD = 10_000  # more than a node can hold


class ClaimReleaser:
    """Releases claims of one node."""

    def __init__(self, store: Store, node: Node, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._node = node
        self._handlers = handlers

    async def release_claims(self, tasks: Sequence[Task], why: str, due: Callable[[int], int]) -> None:
        """Return tasks that were not started to pending; task number i becomes due at `due(i)`."""
        moves = [
            Transition(
                t.id, t.claim_no, TaskState.PENDING, t.attempts - 1, due(i), None, why, False, t.throttles, t.crashes
            )
            for i, t in enumerate(tasks)
        ]
        if moves:
            own = collect_effects(self._handlers, tasks, moves)
            # A task cancelled meanwhile does not return; that frees the next task of its ordering key.
            await self._store.settle(self._node.id, moves, keys=ordering_keys(tasks), also=own)

    async def release_untracked(self, mine: Callable[[], Collection[TaskId]]) -> None:
        """Release tasks that this node holds without knowing, after the response to a claim was lost."""
        held = await self._store.read("node_held", node=self._node.id, after=0, limit=_HELD)
        if not self._node.knows_server:
            raise StoreUnavailable("another database server responded", remedy="wait for the next heartbeat")
        known = mine()
        untracked = [claimed_task(row) for row in held if row["id"] not in known]
        await self.release_claims(untracked, "the response to its claim was lost", lambda i: untracked[i].due_at)
