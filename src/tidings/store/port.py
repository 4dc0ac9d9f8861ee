"""The store's port: three verbs in batches (enqueue, claim, settle), `start`, and named statements.

Whatever belongs together is written together: `also` carries the domain's own statements into the same
transaction. Both databases pass one contract suite; nothing above this line knows which one it has.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from ..model.task import NewTask, NodeId, SettleResult, Task, TaskId, Transition
from .rate_limits import SlotAssignment
from .write_state import WriteState

Row = dict[str, Any]
OrderingKey = tuple[str, str]  # queue, order key


class Step(NamedTuple):
    """One named statement with its parameters, to be run inside a transaction of the store's."""

    name: str
    params: Mapping[str, Any]
    only_if: int | None = None  # run only if that step, by its place, gave back rows
    needed: bool = False  # if it gives back no rows, nothing of its transaction is written (Outrun)


class WriteConflict(Exception):
    """A needed step gave back no rows: somebody else was faster, and nothing was written."""


class TableRows(NamedTuple):
    """A domain's own rows, one for each new task; the store puts the task's id in front of each.

    Where tasks have rows in several tables, the first tasks belong to the first `TableRows`, and so on.
    """

    table: str
    columns: tuple[str, ...]  # without the task's id, which is always the column `task`
    values: Sequence[tuple[Any, ...]]


def split_task_ids(
    rows: Sequence[TableRows], ids: Sequence[TaskId]
) -> Iterator[tuple[TableRows, Sequence[TaskId]]]:
    """Which ids belong to which rows."""
    first = 0
    for own in rows:
        yield own, ids[first : first + len(own.values)]
        first += len(own.values)
    assert not rows or first == len(ids), "one row for each task"


def ordering_keys(tasks: Iterable[Task | NewTask]) -> set[OrderingKey]:
    """The lines that these tasks stand in: whoever moves one of them must pass its line's turn on."""
    return {(task.queue, task.ordering_key) for task in tasks if task.ordering_key is not None}


class EnqueueRequest(NamedTuple):
    """What one `enqueue` writes."""

    tasks: Sequence[NewTask]
    rows: Sequence[TableRows]
    also: Sequence[Step]


class IdempotencyRecord(NamedTuple):
    """An idempotency key with what will be answered to it."""

    scope: str
    key: str
    digest: str
    answer: str
    expires_at: int


class EnqueueResult(NamedTuple):
    """The new tasks' ids; or, when the key had been used before, what was answered then."""

    ids: Sequence[TaskId]
    earlier: Row | None = None  # digest, answer


class ClaimResult(NamedTuple):
    """What a claim brought: tasks in the order they should start, and those whose time ran out unclaimed.

    Contents may be loaded while the disk still works on it; nothing may act before `durable`, which says
    whether what was loaded meanwhile stands. False: somebody else wrote in the same transaction; load again.
    """

    tasks: list[Task]
    expired: list[Task]
    durable: Awaitable[bool] | None = None  # raises what went wrong; None: it is already


class NextDue(NamedTuple):
    """The database's time, and when something can next be claimed (None: nothing waits)."""

    now: int
    at: int | None


class AttemptTally(NamedTuple):
    """How many attempts of a queue ended in one way, and how long they took together."""

    queue: str
    what: str
    n: int
    ms: int


class ClaimRequest(NamedTuple):
    """What a node could start now."""

    rooms: Mapping[str, int]  # free slots by queue
    room: int  # free slots in all
    fair: int = 0  # how many of them go to the oldest, whatever their priority
    limited: frozenset[str] = frozenset()  # queues with a rate
    keyed: frozenset[str] = frozenset()  # of these, those whose tasks get their instants from `take_slots`
    probes: frozenset[str] = frozenset()  # half-open queues this node may try


class Store(Protocol):
    """Truth at rest."""

    dialect: str
    sole_worker: bool  # at most one process works on this database at a time
    bulk: int  # new tasks that one transaction should take at the most
    writes: WriteState  # whether the last ones of this process were refused
    server: str  # which start of which server the newest connection leads to; constant for a file
    newest: dict[str, int]  # the newest task that this process has created, by server

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """Connect and check that the schema is the one this code knows; an empty one may be brought up."""

    async def damage(self) -> list[str]:
        """What is broken in the database's own structures; empty when all is well."""

    def may_work(self) -> bool:
        """Whether this process may claim: always, or only while it holds the file's work lock."""

    async def close(self) -> None:
        """Let go of everything."""

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement."""

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """Run a read statement over many ids; rows as tuples, for the hot path."""

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
        """Make tasks durable, together with the domain's rows. No tasks: a creation of the domain's.

        `together`: it may share a commit with others that say so. None of them touches a row of another's,
        and each of its needed steps gives back one row at the most.
        """

    async def keep(self, rows: TableRows, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Write the domain's rows under task ids of their own; the tasks are made of them later.

        `also` comes first here, so that a needed step can hold a row against others who would write.
        """

    async def claim(self, node: NodeId, wish: ClaimRequest) -> ClaimResult:
        """Take due tasks for a node: priority first, then earliest due."""

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        """Write down that these are about to act; gives back those that are still ours."""

    async def take_slots(self, queue: str, line: Sequence[tuple[TaskId, str]], gap: int) -> SlotAssignment:
        """Reserve send instants for claimed tasks of a queue with a rate, each with its recipient, between
        two of whose starts there must be `gap` microseconds."""

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """When to look again."""

    async def settle(
        self,
        node: NodeId,
        moves: Sequence[Transition],
        *,
        keys: Collection[OrderingKey] = (),
        tally: Sequence[AttemptTally] = (),
        also: Sequence[Step] = (),
    ) -> list[SettleResult]:
        """Move claimed tasks on, and give the turn of each order key in `keys` to the next of its line."""

    async def change(self, steps: Sequence[Step], *, keys: Collection[OrderingKey]) -> list[list[Row]]:
        """`write`, holding these order keys and passing their turn on."""

    async def hint(self) -> None:
        """Tell other processes that something is due at once. May be lost."""

    def on_hint(self, wake: Callable[[], None]) -> None:
        """Call `wake` when another process hints."""
