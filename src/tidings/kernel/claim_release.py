"""Returns: claims that go back unused, as if they had never been made."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..model.errors import StoreUnavailable
from ..model.task import Task, TaskId, TaskState, Transition
from ..store.port import Store, ordering_keys
from .handler import Handler, collect_effects
from .heartbeats import Node

_HELD = 10_000  # more than a node can hold


class ClaimReleaser:
    """One node's."""

    def __init__(self, store: Store, node: Node, handlers: Mapping[str, Handler]) -> None:
        self._store = store
        self._node = node
        self._handlers = handlers

    async def release_claims(self, tasks: Sequence[Task], why: str, due: Callable[[int], int]) -> None:
        """These were not begun; the i-th is due at `due(i)`."""
        moves = [
            Transition(
                t.id,
                t.claim_no,
                TaskState.PENDING,
                t.attempts - 1,
                due(i),
                None,
                why,
                False,
                t.throttles,
                t.crashes,
            )
            for i, t in enumerate(tasks)
        ]
        if moves:
            own = collect_effects(self._handlers, tasks, moves)
            # One that was cancelled meanwhile does not come back: the next in its line is free then.
            await self._store.settle(self._node.id, moves, keys=ordering_keys(tasks), also=own)

    async def release_untracked(self, mine: Callable[[], Collection[TaskId]]) -> None:
        """After a claim whose answer was lost: what we hold without knowing it goes back."""
        held = await self._store.read("node_held", node=self._node.id, after=0, limit=_HELD)
        if not self._node.knows_server:
            raise StoreUnavailable("another server answers", remedy="the next heartbeat decides")
        known = mine()
        strangers = [
            Task(*(row[name] for name in Task._fields[:14])) for row in held if row["id"] not in known
        ]
        await self.release_claims(
            strangers, "the answer to its claim was lost", lambda i: strangers[i].due_at
        )
