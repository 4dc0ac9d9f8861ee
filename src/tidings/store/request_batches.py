"""Request batches: requests that arrive while one is running share the next round trip.

The first request does not wait; under load more requests share one round trip. A batch starts after its
requests were made, so its results are as fresh as if each had run alone.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Hashable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Generic, TypeVar

from ..model.task import TaskId
from .port import EnqueueRequest, Step, TableRows, split_task_ids

Q = TypeVar("Q")
A = TypeVar("A")
K = TypeVar("K", bound=Hashable)

_ENOUGH = 20  # requests for a second group at once


class RequestBatcher(Generic[Q, A]):
    """Runs requests in groups, few at once; `answer` returns a result or an error for each."""

    def __init__(
        self,
        answer: Callable[[Sequence[Q]], Awaitable[Sequence[A | Exception]]],
        *,
        most: int = 100,  # per group
        at_once: int = 1,  # groups; a second one starts only if there are enough requests
    ) -> None:
        self._answer = answer
        self._most = most
        self._at_once = at_once
        self._waiting: deque[tuple[Q, asyncio.Future[A]]] = deque()
        self._running: set[asyncio.Task[None] | None] = set()

    async def ask(self, question: Q) -> A:
        """Return the result, or raise the error."""
        asked: asyncio.Future[A] = asyncio.get_running_loop().create_future()
        self._waiting.append((question, asked))
        many = not self._running or len(self._waiting) >= _ENOUGH
        if many and len(self._running) < self._at_once:
            self._running.add(asyncio.create_task(self._run()))
        return await asked

    async def _run(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(self._most, len(self._waiting)))]
                group = [(question, asked) for question, asked in group if not asked.done()]
                if group:
                    await self._tell(group)
        finally:  # without an await since the check: the next request starts a new run
            self._running.discard(asyncio.current_task())

    async def _tell(self, group: Sequence[tuple[Q, asyncio.Future[A]]]) -> None:
        answers: Sequence[A | Exception]
        try:
            answers = await self._answer([question for question, _ in group])
        except Exception as error:  # raised to all callers of the group
            answers = [error] * len(group)
        for (_, asked), answer in zip(group, answers, strict=True):
            if asked.done():
                continue  # the caller has gone
            if isinstance(answer, Exception):
                asked.set_exception(answer)
            else:
                asked.set_result(answer)


class BatchedLookup(Generic[K, A]):
    """A `RequestBatcher` for reads: each key is read once per group."""

    def __init__(self, read: Callable[[Sequence[K]], Awaitable[Mapping[K, A]]], *, most: int = 100) -> None:
        self._read = read
        self._together: RequestBatcher[K, A] = RequestBatcher(self._answers, most=most)

    async def find(self, key: K) -> A:
        """Return the value. Raises KeyError if there is none."""
        return await self._together.ask(key)

    async def _answers(self, keys: Sequence[K]) -> Sequence[A | Exception]:
        found = await self._read(list(dict.fromkeys(keys)))
        return [found[key] if key in found else KeyError(key) for key in keys]


def split_ids_by_request(group: Sequence[EnqueueRequest], ids: Sequence[TaskId]) -> list[Sequence[TaskId]]:
    """Assign the ids to the tasks of each request."""
    left = iter(ids)
    return [list(islice(left, len(one.tasks))) for one in group]


def merge_rows(
    group: Sequence[EnqueueRequest], ids: Sequence[Sequence[TaskId]]
) -> Iterator[tuple[TableRows, Sequence[TaskId]]]:
    """Return the rows of a group by table, with their tasks' ids."""
    tables: dict[tuple[str, tuple[str, ...]], tuple[list[tuple[Any, ...]], list[TaskId]]] = {}
    for one, its_ids in zip(group, ids, strict=True):
        for rows, own in split_task_ids(one.rows, its_ids):
            values, places = tables.setdefault((rows.table, rows.columns), ([], []))
            values += rows.values
            places += own
    for (table, columns), (values, places) in tables.items():
        yield TableRows(table, columns, values), places


def merge_steps(lines: Sequence[Sequence[Step]]) -> Iterator[list[Step]]:
    """Merge the steps of several transactions: in order within each, those of one name at a time."""
    waiting = [deque(line) for line in lines if line]
    while waiting:
        later = {step.name for line in waiting for step in islice(line, 1, None)}
        heads = [line[0].name for line in waiting]
        name = next((head for head in heads if head not in later), heads[0])
        yield [line.popleft() for line in waiting if line[0].name == name]
        waiting = [line for line in waiting if line]
