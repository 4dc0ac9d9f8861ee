"""A model of the store's port in a few lines, and a machine that compares a real store with it, step by step.

The model knows what each verb promises: who may move a task, from which state, with which claim. It knows no
SQL, no batches and no order of claims.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, multiple, rule

from tidings.kernel import task_actions
from tidings.kernel.clock import ManualClock
from tidings.kernel.lanes import Lane
from tidings.kernel.task_actions import TaskActionResult, expire_tasks
from tidings.model.task import NewTask, NodeId, SettleResult, Task, TaskId, TaskState, Transition
from tidings.model.time import SECOND
from tidings.store.port import ClaimRequest, Step, Store

QUEUES = ("one", "two")


@dataclass(frozen=True, slots=True)
class Known:
    """What the model knows of a task."""

    queue: str
    due_at: int
    expires_at: int | None = None
    key: str | None = None
    state: str = "pending"
    node: int | None = None
    claim_no: int = 0
    attempts: int = 0
    unknown: bool = False
    is_started: bool = False
    cancel_requested: bool = False

    def settles(self, move: Transition, node: int) -> bool:
        """The fence: whether this move may be made in this node's name."""
        return (self.state, self.node, self.claim_no) == ("processing", node, move.claim_no)

    def moved(self, move: Transition) -> Known:
        """As it is after a move."""
        to = "cancelled" if move.to is TaskState.PENDING and self.cancel_requested else move.to.value
        due = self.due_at if move.due_at is None else move.due_at
        is_unknown = self.unknown or move.unknown
        return replace(self, state=to, node=None, attempts=move.attempts, due_at=due, unknown=is_unknown)


class StoreMachine(RuleBasedStateMachine):
    """Any order of verbs, people's wishes, deaths and time."""

    opened: Callable[[ManualClock], Coroutine[Any, Any, Store]]  # how a test gets its store

    claims = Bundle("claims")

    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock()
        self.runner = asyncio.Runner()
        self.model: dict[int, Known] = {}
        self.nodes: list[NodeId] = []

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Ask the store."""
        return self.runner.run(work)

    @initialize()
    def open(self) -> None:
        """A store with two queues and two nodes."""
        self.store: Store = self.run(type(self).opened(self.clock))
        for name in QUEUES:
            self.run(self.store.write(Lane(name).join()))
        for name in ("a", "b"):
            self.nodes.append(self.run(self._join(name)))

    async def _join(self, name: str) -> NodeId:
        return NodeId((await self.store.write([Step("node_join", {"name": name, "info": "{}"})]))[0][0]["id"])

    def teardown(self) -> None:
        """Close what was opened."""
        if hasattr(self, "store"):
            self.run(self.store.close())
        self.runner.close()

    # -- the verbs

    @rule(
        queue=st.sampled_from(QUEUES),
        after=st.integers(0, 3),
        lasts=st.none() | st.integers(1, 4),
        key=st.sampled_from((None, None, "k")),
        n=st.integers(1, 3),
    )
    def enqueue(self, queue: str, after: int, lasts: int | None, key: str | None, n: int) -> None:
        """New tasks wait."""
        due = self.clock.now() + after * SECOND
        expires = None if lasts is None or key else due + lasts * SECOND
        ids = self.run(self.store.enqueue([NewTask(queue, "kind", due, ordering_key=key, expires_at=expires)] * n)).ids
        self.model |= {id_: Known(queue, due, expires, key) for id_ in ids}

    @rule(target=claims, node=st.integers(0, 1), room=st.integers(1, 4))
    def claim(self, node: int, room: int) -> Any:
        """Takes what is due and nobody's, never more than there is room; what has expired comes apart."""
        me, now = self.nodes[node], self.clock.now()
        claimed = self.run(self._claim(me, ClaimRequest(dict.fromkeys(QUEUES, room), room)))
        may = {id_ for id_, known in self.model.items() if self._is_claimable(known, now)}
        met = [task.id for task in (*claimed.tasks, *claimed.expired)]
        assert len(met) == len(set(met)) <= room, "more than there was room for"
        assert set(met) <= may, "claimed what was not to be had"
        assert met or not may, "left what was due"
        for task in claimed.tasks:
            known = self.model[task.id]
            assert known.expires_at is None or known.expires_at > now, "claimed too late"
            self.model[task.id] = replace(
                known, state="processing", node=me, claim_no=known.claim_no + 1, attempts=known.attempts + 1,
                is_started=False,
            )  # fmt: skip
            assert (task.claim_no, task.attempts) == (known.claim_no + 1, known.attempts + 1)
        self._expire(claimed.expired)
        return multiple(*((me, task) for task in claimed.tasks))

    async def _claim(self, node: NodeId, wish: ClaimRequest) -> Any:
        claimed = await self.store.claim(node, wish)
        if claimed.durable is not None:
            await claimed.durable
        return claimed

    def _expire(self, tasks: list[Task]) -> None:
        if tasks:
            self.run(expire_tasks(self.store, [task._asdict() for task in tasks], 0))
            for task in tasks:
                self.model[task.id] = replace(self.model[task.id], state="expired")

    def _is_claimable(self, known: Known, now: int) -> bool:
        if known.state != "pending" or known.due_at > now:
            return False
        line = [
            k for k in self.model.values()
            if known.key is not None and (k.queue, k.key) == (known.queue, known.key)
        ]  # fmt: skip
        return not any(k.state == "processing" for k in line)

    @rule(claim=claims)
    def start(self, claim: tuple[NodeId, Task]) -> None:
        """Only by who holds it."""
        node, task = claim
        marked = self.run(self.store.start(node, [task]))
        known = self.model[task.id]
        holds = (known.state, known.node, known.claim_no) == ("processing", node, task.claim_no)
        assert (task.id in marked) == holds
        if holds:
            self.model[task.id] = replace(known, is_started=True)

    @rule(
        claim=claims,
        to=st.sampled_from((TaskState.DONE, TaskState.DONE, TaskState.FAILED, TaskState.PENDING)),
        detail=st.sampled_from((None, "r")), unknown=st.booleans(), after=st.integers(0, 3),
    )  # fmt: skip
    def settle(self, claim: tuple[NodeId, Task], to: TaskState, detail: str | None, unknown: bool, after: int) -> None:
        """Only by the claim that holds it; a late one changes nothing, and a repeated one is told 'kept'."""
        node, task = claim
        due = self.clock.now() + after * SECOND if to is TaskState.PENDING else None
        is_unknown = unknown and to is not TaskState.DONE
        self._settle(node, Transition(task.id, task.claim_no, to, task.attempts, due, None, detail, is_unknown))

    def _settle(self, node: int, move: Transition) -> None:
        known = self.model[move.id]
        keys = set() if known.key is None else {(known.queue, known.key)}
        [answer] = self.run(self.store.settle(NodeId(node), [move], keys=keys))
        if known.settles(move, node):
            after = self.model[move.id] = known.moved(move)
            wanted = SettleResult.KEPT if after.state == move.to else SettleResult.CANCELLED
            assert answer is wanted
        else:
            is_repeated = known.state == move.to and known.claim_no == move.claim_no
            assert answer is (SettleResult.KEPT if is_repeated else SettleResult.CLAIM_LOST)

    # -- deaths and time

    @rule(node=st.integers(0, 1))
    def die(self, node: int) -> None:
        """A node dies: what it held goes back, in doubt where it had started; then it is gone."""
        old = self.nodes[node]
        rows = self.run(self.store.read("node_held", node=old, after=0, limit=100))
        held = {id_ for id_, known in self.model.items() if known.node == old and known.state == "processing"}
        assert {row["id"] for row in rows} == held
        assert {row["id"] for row in rows if row["started_at"]} == {id_ for id_ in held if self.model[id_].is_started}
        for row in rows:
            started = row["started_at"] is not None
            move = Transition(
                TaskId(row["id"]), row["claim_no"], TaskState.FAILED if started else TaskState.PENDING,
                row["attempts"] if started else row["attempts"] - 1, None, None, "its node died", started,
            )  # fmt: skip
            self._settle(old, move)
        assert self.run(self.store.write([Step("node_gone", {"id": old})]))[0], "it holds nothing any more"
        self.nodes[node] = self.run(self._join("again"))

    @rule(seconds=st.integers(1, 3))
    def wait(self, seconds: int) -> None:
        """Time passes."""
        self.clock.advance(seconds)

    # -- people

    @rule(pick=st.integers(0, 50))
    def cancel(self, pick: int) -> None:
        """What waits or has failed is cancelled; what is at work is asked."""
        if (id_ := self._picked(pick)) is not None:
            known = self.model[id_]
            answer, _ = self.run(task_actions.cancel(self.store, id_, reason="said so"))
            if known.state in ("pending", "failed"):
                assert answer is TaskActionResult.DONE
                self.model[id_] = replace(known, state="cancelled", cancel_requested=True)
            elif known.state == "processing":
                assert answer is TaskActionResult.ASKED
                self.model[id_] = replace(known, cancel_requested=True)
            else:
                assert answer is TaskActionResult.REFUSED

    @rule(pick=st.integers(0, 50))
    def retry(self, pick: int) -> None:
        """A dead letter starts afresh."""
        if (id_ := self._picked(pick)) is not None:
            known, now = self.model[id_], self.clock.now()
            answer, _ = self.run(task_actions.retry(self.store, id_, due_at=now, expires_at=None, reason="again"))
            assert (answer is TaskActionResult.DONE) == (known.state == "failed")
            if known.state == "failed":
                self.model[id_] = replace(
                    known, state="pending", attempts=0, due_at=now, expires_at=None, cancel_requested=False
                )

    @rule(pick=st.integers(0, 50), after=st.integers(0, 3))
    def reschedule(self, pick: int, after: int) -> None:
        """Only what waits."""
        if (id_ := self._picked(pick)) is not None:
            known, due = self.model[id_], self.clock.now() + after * SECOND
            answer, _ = self.run(task_actions.reschedule(self.store, id_, due_at=due, expires_at=None))
            assert (answer is TaskActionResult.DONE) == (known.state == "pending")
            if known.state == "pending":
                self.model[id_] = replace(known, due_at=due, expires_at=None)

    @rule(pick=st.integers(0, 50))
    def prove(self, pick: int) -> None:
        """Evidence moves what waits or is in doubt, and nothing else."""
        if (id_ := self._picked(pick)) is not None:
            known = self.model[id_]
            moved = self.run(task_actions.record_sent_evidence(self.store, id_, node=None, detail="a receipt"))
            may = known.state == "pending" or (known.state == "failed" and known.unknown)
            assert moved == may
            if may:
                self.model[id_] = replace(known, state="done")

    def _picked(self, pick: int) -> int | None:
        return sorted(self.model)[pick % len(self.model)] if self.model else None

    # -- always

    async def _look(self) -> dict[int, Any]:
        return {id_: await task_actions.get_task(self.store, id_) for id_ in self.model}

    @invariant()
    def agrees(self) -> None:
        """The database says of every task what the model says."""
        for id_, row in self.run(self._look()).items():
            known = self.model[id_]
            said = (row["state"], row["claim_no"], row["attempts"], bool(row["unknown"]), row["due_at"])
            assert said == (known.state, known.claim_no, known.attempts, known.unknown, known.due_at)
            assert known.state != "processing" or row["node"] == known.node
