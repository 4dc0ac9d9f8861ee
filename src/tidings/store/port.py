"""The store's port: three verbs in batches (enqueue, claim, settle), `start`, and named statements.

Related writes share a transaction: `also` carries a domain's own statements into it. Both databases pass one
contract suite; the layers above do not know which one they use.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..model.task import NewTask, NodeId, SettleResult, Task, TaskId, Transition
from .rate_limits import SlotAssignment
from .write_state import WriteState

Row = dict[str, Any]
OrderingKey = tuple[str, str]  # queue, ordering key


class Step(NamedTuple):
    """One named statement with its parameters, to run inside a transaction of the store."""

    name: str
    params: Mapping[str, Any]
    only_if: int | None = None  # run only if the step with this index returned rows
    needed: bool = False  # if it returns no rows, the whole transaction is rolled back (WriteConflict)


class WriteConflict(Exception):
    """A needed step returned no rows: another process was faster, and nothing was written."""


class TableRows(NamedTuple):
    """A domain's rows, one for each new task; the store adds the task's id in front of each.

    If tasks have rows in several tables, the first tasks belong to the first `TableRows`, and so on.
    """

    table: str
    columns: tuple[str, ...]  # without the task's id, which is always the column `task`
    values: Sequence[tuple[Any, ...]]


def split_task_ids(rows: Sequence[TableRows], ids: Sequence[TaskId]) -> Iterator[tuple[TableRows, Sequence[TaskId]]]:
    """Assign the ids to the rows of each table."""
    first = 0
    for own in rows:
        yield own, ids[first : first + len(own.values)]
        first += len(own.values)
    assert not rows or first == len(ids), "one row per task"


def ordering_keys(tasks: Iterable[Task | NewTask]) -> set[OrderingKey]:
    """Return the ordering keys of these tasks: moving one of them must free the next task of its key."""
    return {(task.queue, task.ordering_key) for task in tasks if task.ordering_key is not None}


class EnqueueRequest(NamedTuple):
    """What one `enqueue` writes."""

    tasks: Sequence[NewTask]
    rows: Sequence[TableRows]
    also: Sequence[Step]


class IdempotencyRecord(NamedTuple):
    """An idempotency key with the response that repeated calls get."""

    scope: str
    key: str
    digest: str
    answer: str
    expires_at: int


class EnqueueResult(NamedTuple):
    """The new tasks' ids; or the earlier response, if the idempotency key was used before."""

    ids: Sequence[TaskId]
    earlier: Row | None = None  # digest, response


class ClaimResult(NamedTuple):
    """Claimed tasks in starting order, and tasks that expired unclaimed.

    Contents may be loaded before the claim is durable, but nothing may be sent before `durable`. Its result
    tells whether the loaded contents are valid; False: others wrote in the same transaction, load again.
    """

    tasks: list[Task]
    expired: list[Task]
    durable: Awaitable[bool] | None = None  # raises the error of the commit; None: already durable


class NextDue(NamedTuple):
    """The database's time, and when a task can next be claimed (None: nothing is pending)."""

    now: int
    at: int | None


class AttemptTally(NamedTuple):
    """Number and total duration of a queue's attempts with one outcome."""

    queue: str
    what: str
    n: int
    ms: int


class ClaimRequest(NamedTuple):
    """What a node can start now."""

    rooms: Mapping[str, int]  # free slots by queue
    room: int  # free slots in total
    fair: int = 0  # slots for the oldest tasks, whatever their priority
    limited: frozenset[str] = frozenset()  # queues with a rate limit
    keyed: frozenset[str] = frozenset()  # those whose tasks get their slots from `take_slots`
    probes: frozenset[str] = frozenset()  # half-open queues for which this node may send a probe


class Store(Protocol):
    """Durable storage of tasks and of the domains' rows."""

    dialect: str
    sole_worker: bool  # at most one process works on this database at a time
    bulk: int  # maximum number of new tasks per transaction
    writes: WriteState  # whether recent writes of this process were refused
    server: str  # identifies the server and its start; constant for a file
    newest: dict[str, int]  # the newest task that this process has created, by server

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Connect and check the schema; create it in an empty database, upgrade it if asked."""

    async def damage(self) -> list[str]:
        """Return corruption found in the database's own structures; empty if there is none."""

    def may_work(self) -> bool:
        """Whether this process may claim: always, or only while it holds the file's work lock."""

    async def close(self) -> None:
        """Close all connections."""

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement."""

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """Run a read statement for many ids; rows as tuples, for the hot path."""

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        """Run statements in one transaction; all or none."""

    async def enqueue(
        self,
        tasks: Sequence[NewTask],
        *rows: TableRows,
        once: IdempotencyRecord | None = None,
        also: Sequence[Step] = (),
        together: bool = False,
    ) -> EnqueueResult:
        """Store tasks durably, together with the domain's rows; without tasks, only the domain's.

        `together` allows sharing a commit with others. They must not touch each other's rows, and each needed
        step must return at most one row.
        """

    async def keep(self, rows: TableRows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Write the domain's rows under new task ids; their tasks are created later.

        `also` runs first, so that a needed step can lock a row against concurrent writers.
        """

    async def claim(self, node: NodeId, request: ClaimRequest) -> ClaimResult:
        """Claim due tasks for a node: by priority, then due time."""

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        """Write start marks. Return the tasks that this node still holds."""

    async def take_slots(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> SlotAssignment:
        """Reserve send times for claimed tasks; those of one recipient are `gap` microseconds apart."""

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """Return when a task can next be claimed."""

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderingKey] = (),
        tally: Sequence[AttemptTally] = (),
        also: Sequence[Step] = (),
    ) -> list[SettleResult]:
        """Write transitions fenced by node id and claim number (the fencing token).

        Also free the next task of each ordering key in `keys`. A lost claim is an ordinary result.
        """

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderingKey]) -> list[list[Row]]:
        """Run `write` while locking these ordering keys, and free their next tasks."""

    async def hint(self) -> None:
        """Wake other processes: something is due now. May be lost."""

    def on_hint(self, wake: Callable[[], None]) -> None:
        """Call `wake` when another process sends a hint."""
