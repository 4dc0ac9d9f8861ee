"""Group commit for SQLite: many writes, one fsync.

Members run one after another on the event loop's thread, each in its own savepoint; only the wait of BEGIN
for another process and the fsync of COMMIT run outside it. So Python threads do not compete for the
interpreter, writes that arrive during an fsync form the next group, and nothing is acknowledged before COMMIT
has returned.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import apsw

from ..model.errors import StoreFull, StoreRefused, StoreUnavailable, StoreUnusable

T = TypeVar("T")


def _future() -> asyncio.Future[Any]:
    return asyncio.get_running_loop().create_future()


_MAX_GROUP = 200  # members per group


@dataclass(frozen=True, slots=True)
class _Member:
    """The work of one caller, and how to notify it."""

    work: Callable[[apsw.Connection], Any]
    future: asyncio.Future[Any]  # resolved after the commit
    early: asyncio.Future[Any] | None = None  # resolved before the commit
    is_routine: bool = False

    def fail(self, error: Exception) -> None:
        """Report the error once; a caller that got its result early gets it where it waits for the commit."""
        if self.early is not None and not self.early.done():
            self.early.set_exception(error)
            self.future.cancel()
        elif not self.future.done():
            self.future.set_exception(error)


class GroupWriter:
    """The only writer of one connection. `inline` commits on the same thread, for tests."""

    def __init__(self, connection: apsw.Connection, *, inline: bool, patience: float) -> None:
        self._connection = connection
        self._patience = patience
        self._thread = None if inline else ThreadPoolExecutor(1, thread_name_prefix="tidings-commit")
        self._waiting: deque[_Member] = deque()
        self._running: asyncio.Task[None] | None = None

    async def run(self, work: Callable[[apsw.Connection], T], *, is_routine: bool = False) -> T:
        """Run `work` in the next group. Return after its commit, or raise its error.

        Routine work changes only the states of tasks.
        """
        answer: T = await self._join(_Member(work, _future(), is_routine=is_routine))
        return answer

    async def run_ahead(self, work: Callable[[apsw.Connection], T]) -> tuple[T, asyncio.Future[bool]]:
        """Run routine `work` in the next group. Return before the commit, with a future for it.

        The future's result tells whether the whole group was routine.
        """
        member = _Member(work, _future(), _future(), is_routine=True)
        durable = self._join(member)
        assert member.early is not None
        return await member.early, durable

    def _join(self, member: _Member) -> asyncio.Future[Any]:
        self._waiting.append(member)
        if self._running is None:
            self._running = asyncio.create_task(self._drain())
        return member.future

    async def close(self) -> None:
        """Finish all requested work, then stop."""
        if self._running is not None:
            await self._running
        if self._thread is not None:
            self._thread.shutdown()

    async def _drain(self) -> None:
        try:
            while self._waiting:
                group = [self._waiting.popleft() for _ in range(min(_MAX_GROUP, len(self._waiting)))]
                try:
                    answers = await self._commit(group)
                except BaseException as error:
                    for member in group:
                        member.fail(_translate(error))
                    if not isinstance(error, Exception):
                        raise
                else:
                    is_routine = all(member.is_routine for member in group)
                    for member, (value, failure) in zip(group, answers, strict=True):
                        if failure is not None:
                            member.fail(failure)
                        elif not member.future.done():  # cancelled: the work is committed anyway
                            member.future.set_result(value if member.early is None else is_routine)
                if not self._waiting:
                    await asyncio.sleep(0)  # let callers submit again before this task ends
        finally:
            self._running = None

    async def _commit(self, group: list[_Member]) -> list[tuple[Any, Exception | None]]:
        await self._begin()
        try:
            answers = [self._run(member.work) for member in group]
            for member, (value, failure) in zip(group, answers, strict=True):
                if member.early is not None and failure is None and not member.early.done():
                    member.early.set_result(value)
            if self._thread is None:
                self._connection.execute("commit")
            else:
                await asyncio.get_running_loop().run_in_executor(self._thread, self._connection.execute, "commit")
        except BaseException:
            with contextlib.suppress(apsw.Error):
                if self._connection.in_transaction:
                    self._connection.execute("rollback")
            raise
        return answers

    async def _begin(self) -> None:
        """Take the file's write lock; another process may hold it briefly."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + self._patience
        while True:
            try:
                self._connection.execute("begin immediate")
                return
            except apsw.BusyError:
                if self._thread is None or loop.time() > give_up:
                    raise
                await asyncio.sleep(0.001)

    def _run(self, work: Callable[[apsw.Connection], Any]) -> tuple[Any, Exception | None]:
        self._connection.execute("savepoint member")
        try:
            value = work(self._connection)
        except (apsw.FullError, apsw.IOError, apsw.CorruptError):
            raise  # SQLite may have rolled back the whole transaction: the group fails together
        except Exception as error:
            if not self._connection.in_transaction:
                raise
            self._connection.execute("rollback to member")
            self._connection.execute("release member")
            return None, _translate(error)
        self._connection.execute("release member")
        return value, None


def _translate(error: BaseException, *, started: bool = True, folder: Path | None = None) -> Exception:
    """Translate a driver error; a refusal after the start is an outage, not a wrong database."""
    is_full = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_SHMSIZE  # no space for the WAL index
    if is_full or isinstance(error, apsw.FullError):
        return StoreFull("the disk under the database is full", remedy="free space; work resumes automatically")
    match error:
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnavailable("another process holds the database", remedy="retry shortly")
        case apsw.ReadOnlyError() | apsw.CantOpenError() | apsw.PermissionsError():
            problem = "the database cannot be written"
            remedy = f"check the owner, mode and mount of {folder or 'its folder'}"
            if started:
                return StoreRefused(problem, remedy=remedy, reason="read-only")
            return StoreUnusable(problem, remedy=remedy)
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreUnusable("the database file is damaged or not a database", remedy="restore a backup")
        case apsw.IOError():
            problem = f"the disk reported an error ({error})"
            return StoreRefused(problem, remedy="check the disk", reason="disk error")
        case Exception():
            return error
        case _:
            return StoreUnavailable("the writer was stopped", remedy="restart the process")


@contextlib.contextmanager
def translate_sqlite_errors(*, started: bool = True, folder: Path | None = None) -> Iterator[None]:
    """Translate driver errors of statements outside a group."""
    try:
        yield
    except apsw.Error as error:
        raise _translate(error, started=started, folder=folder) from error
