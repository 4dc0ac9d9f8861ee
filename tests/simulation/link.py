"""A process's connection to the one database of the world, as bad as the injector wants it.

The database is the real SQLite store with its real statements. A request travels, is carried out whatever
becomes of who asked, and its answer travels back; any of the three may take long or fail. Nodes see a store
on which many may work, so their liveness is that of PostgreSQL: beats and leases, no file lock.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Coroutine, Generator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from tidings.model.errors import StoreUnavailable
from tidings.model.task import NodeId, SettleResult, Task, TaskId, Transition
from tidings.store.port import ClaimRequest, ClaimResult, EnqueueResult, NextDue, Row, Step
from tidings.store.rate_limits import SlotAssignment
from tidings.store.write_state import WriteState

from .loop import Host

if TYPE_CHECKING:
    from .world import World

T = TypeVar("T")
PATIENCE = 6.0  # seconds after which a call is given up, as PostgreSQL's driver does
_READS = frozenset({"read", "load", "next_due"})


class Weather(Protocol):
    """What the injector wants of one call."""

    out: float  # seconds on the way there
    back: float
    fails: str  # "": not; "before" it was carried out; "after"


class Link:
    """`Store` for one process."""

    dialect = "sqlite"
    sole_worker = False
    bulk = 1000
    server = ""

    def __init__(self, world: World, host: Host) -> None:
        self._world = world
        self._host = host
        self.newest: dict[str, int] = {}
        self.wakes: list[Callable[[], None]] = []
        self.writes = WriteState()  # nobody asks for it here

    async def open(self, *, upgrade: bool = False, create: bool = True) -> None:
        """It is open."""

    async def close(self) -> None:
        """It stays open for the others."""

    async def damage(self) -> list[str]:
        """None."""
        return []

    def may_work(self) -> bool:
        """Any number of processes may."""
        return True

    async def read(self, name: str, **params: Any) -> list[Row]:
        """A read statement."""
        return await self._call("read", name, lambda: self._world.store.read(name, **params))

    async def load(self, name: str, ids: Sequence[TaskId]) -> Sequence[Sequence[Any]]:
        """A read statement over ids."""
        return await self._call("load", name, lambda: self._world.store.load(name, ids))

    async def write(self, steps: Sequence[Step]) -> list[list[Row]]:
        """Statements in one transaction."""
        return await self._call("write", steps[0].name, lambda: self._world.store.write(steps))

    async def change(self, steps: Sequence[Step], *, keys: Collection[Any]) -> list[list[Row]]:
        """`write`, with order keys."""
        return await self._call("change", steps[0].name, lambda: self._world.store.change(steps, keys=keys))

    async def enqueue(self, tasks: Sequence[Any], *rows: Any, **options: Any) -> EnqueueResult:
        """New tasks."""
        return await self._call("enqueue", "", lambda: self._world.store.enqueue(tasks, *rows, **options))

    async def keep(self, rows: Any, *, also: Sequence[Step] = ()) -> Sequence[TaskId]:
        """Rows without tasks."""
        return await self._call("keep", "", lambda: self._world.store.keep(rows, also=also))

    async def claim(self, node: NodeId, wish: ClaimRequest) -> ClaimResult:
        """Take due tasks; in some worlds the tasks are known before the claim is durable, as on a file."""

        async def carried_out() -> ClaimResult:
            claimed = await self._world.store.claim(node, wish)
            if claimed.durable is not None:
                await claimed.durable
            self._world.claimed(self._host, claimed.tasks)
            return claimed._replace(durable=None)

        if not self._world.plan.ahead:
            return await self._call("claim", "", carried_out)
        known: asyncio.Future[ClaimResult] = asyncio.get_running_loop().create_future()
        whole = asyncio.ensure_future(self._call("claim", "", carried_out, known))
        await asyncio.wait([whole, known], return_when=asyncio.FIRST_COMPLETED)
        return known.result()._replace(durable=_Stands(whole)) if known.done() else await whole

    async def start(self, node: NodeId, tasks: Sequence[Task]) -> set[TaskId]:
        """Starts are watched by the world: they witness what a fault left in doubt."""

        async def carried_out() -> set[TaskId]:
            marked = await self._world.store.start(node, tasks)
            self._world.marked(self._host, [task for task in tasks if task.id in marked])
            return marked

        return await self._call("start", "", carried_out)

    async def take_slots(self, queue: str, line: Any, gap: int) -> SlotAssignment:
        """Instants of a rate."""
        return await self._call("take_slots", queue, lambda: self._world.store.take_slots(queue, line, gap))

    async def next_due(self, queues: Collection[str]) -> NextDue:
        """When to look again."""
        return await self._call("next_due", "", lambda: self._world.store.next_due(queues))

    async def settle(self, node: NodeId, moves: Sequence[Transition], **options: Any) -> list[SettleResult]:
        """Move claimed tasks on."""

        async def carried_out() -> list[SettleResult]:
            before = self._world.standing(moves)
            answers = await self._world.store.settle(node, moves, **options)
            self._world.settled(self._host, node, before)
            return answers

        return await self._call("settle", "", carried_out)

    async def hint(self) -> None:
        """Tell the others, if the hint is not lost."""
        self._world.hint()

    def on_hint(self, wake: Callable[[], None]) -> None:
        """Be told."""
        self.wakes.append(wake)

    async def _call(
        self,
        verb: str,
        what: str,
        work: Callable[[], Coroutine[Any, Any, T]],
        known: asyncio.Future[ClaimResult] | None = None,
    ) -> T:
        loop = asyncio.get_running_loop()
        call = _Call(
            verb, what, work, self._world.nemesis.weather(self._host, verb), loop.create_future(), loop.time(), known
        )
        loop.call_later(min(call.weather.out, PATIENCE), self._arrive, call, context=self._world.server.context)
        answer: T = await call.answer
        return answer

    def _arrive(self, call: _Call) -> None:
        """The request is there; whoever sent it may be dead by now."""
        nemesis, weather = self._world.nemesis, call.weather
        if weather.out > PATIENCE:
            self._fail(call, "late")  # given up: the driver asked the server to stop
        elif weather.fails == "before" or nemesis.is_cut(self._host):
            self._fail(call, weather.fails or "cut")
        else:
            nemesis.strikes(self._host, call.verb, "before")
            work = call.work()
            if call.verb in _READS:  # over at once
                try:
                    work.send(None)
                except StopIteration as ended:
                    self._reply(call, ended.value)
            else:
                self._world.server.start(self._carry_out(call, work))

    async def _carry_out(self, call: _Call, work: Coroutine[Any, Any, Any]) -> None:
        try:
            answer = await work
        except Exception as error:  # the store's own refusal is an answer, too
            if not call.answer.done():
                call.answer.set_exception(error)
            return
        self._reply(call, answer)

    def _reply(self, call: _Call, answer: Any) -> None:
        """It was carried out; the answer travels, if it does."""
        world, weather = self._world, call.weather
        world.lives(self._host, call.what, answer)
        if call.verb not in _READS and call.what != "node_heartbeat":
            world.note("call", self._host.name, call.verb, call.what)
            world.check()
        if call.known is not None:
            call.known.set_result(answer)
        world.nemesis.strikes(self._host, call.verb, "after")
        if weather.fails or weather.out + weather.back > PATIENCE:
            self._fail(call, weather.fails or "late", min(weather.back, PATIENCE))
            return
        asyncio.get_running_loop().call_later(weather.back, self._hand_over, call, answer)

    def _hand_over(self, call: _Call, answer: Any) -> None:
        if self._world.nemesis.is_cut(self._host):
            self._fail(call, "cut")
        elif not call.answer.done():
            if call.what in ("node_heartbeat", "node_join") and answer[0]:
                self._host.beaten_at = call.asked
            call.answer.set_result(answer)

    def _fail(self, call: _Call, how: str, after: float = 0.0) -> None:
        self._world.note("call failed", self._host.name, call.verb, call.what, how)
        self._world.met[f"store call failed {how}"] += 1
        asyncio.get_running_loop().call_later(after, _refuse, call)


Work = Callable[[], Coroutine[Any, Any, Any]]


class _Call(NamedTuple):
    """One request under way."""

    verb: str
    what: str
    work: Work
    weather: Weather
    answer: asyncio.Future[Any]
    asked: float
    known: asyncio.Future[ClaimResult] | None  # where a claim is told before it is durable


def _refuse(call: _Call) -> None:
    if not call.answer.done():
        call.answer.set_exception(StoreUnavailable(f"{call.verb} {call.what} failed on purpose"))


class _Stands:
    """Says whether a claim that was told ahead is durable."""

    def __init__(self, whole: asyncio.Future[ClaimResult]) -> None:
        self._whole = whole

    def __await__(self) -> Generator[Any, None, bool]:
        yield from self._whole.__await__()
        return True
