"""The world of one seed: the real kernel on the real SQLite store, a receiver, an injector, people.

Everything that chance decides comes from the seed, and time is virtual, so a seed is a replay.
"""

from __future__ import annotations

import asyncio
import atexit
import gc
import hashlib
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import apsw

from tidings.drill.checker import ProducerEntry
from tidings.kernel.runner import RunnerOptions
from tidings.kernel.worker import Worker
from tidings.model.errors import TemporaryError
from tidings.model.task import NewTask, Task, Transition
from tidings.model.time import SECOND, micros
from tidings.observability.events import (
    ChannelStopped,
    ClaimLost,
    Event,
    NodeFenced,
    NodeLost,
    StoreSlow,
    TasksExpired,
    TasksReaped,
)
from tidings.store.port import IdempotencyRecord
from tidings.store.sqlite import SqliteStore

from .clock import START, HostClock
from .judge import Books, checked, judged, read_books
from .link import Link
from .loop import Host, VirtualLoop
from .nemesis import Nemesis
from .people import People
from .plan import BEAT, LANES, LEASE, Order, Plan, drawn
from .receiver import Manners, Receiver, Sender

MEMORY = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
_CALM = 60.0  # seconds after the storm in which everything must have come to an end
_TRIGGERS = """
create table moves (at integer, task integer, origin text, state text, claim_no integer, node integer);
create trigger moved after update of state on tasks when old.state <> new.state begin
  insert into moves values (tidings_now(), new.id, old.state, new.state, new.claim_no, new.node); end;
"""


@dataclass(slots=True)
class Node:
    """A process with an engine in it."""

    host: Host
    clock: HostClock
    link: Link
    worker: Worker


@dataclass(slots=True)
class Report:
    """What one world came to."""

    seed: int
    violations: dict[str, list[str]]
    met: Counter[str]
    seconds: float
    trace: list[str]
    counts: dict[str, float] = field(default_factory=dict)

    @property
    def digest(self) -> str:
        """The trace in one word."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()[:16]


class World:
    """Built and run once."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan = plan
        self.server = Host("server", 0)  # what is carried out, whoever asked
        self.met: Counter[str] = Counter()
        self.trace: list[str] = []
        self.violations: dict[str, list[str]] = {}
        self.poison: set[str] = set()
        self.tried: dict[str, ProducerEntry] = {}
        self.starts: list[tuple[int, str, float]] = []  # pid, message, when
        self.lost_claims: list[tuple[Host, int]] = []
        self.nodes: list[Node] = []
        self.hosts: list[Host] = []
        self._loop = asyncio.get_running_loop()
        self._pids = 1
        self.store = SqliteStore(folder / "world.db", now=self.now, inline=True)
        self.nemesis = Nemesis(self, plan, seed=f"nemesis {plan.seed}")
        self.receiver = Receiver(self, Manners(plan.weights), seed=f"receiver {plan.seed}")
        self.people = People(self, seed=f"people {plan.seed}")
        if "poison" in plan.faults:
            self.poison.add(plan.orders[len(plan.orders) // 2].ref)

    def now(self) -> int:
        """The database's time."""
        return START + round(self._loop.time() * SECOND)

    @property
    def seconds(self) -> float:
        """Since the world began."""
        return self._loop.time()

    def later(self, delay: float, what: Callable[[], object]) -> None:
        """Let something happen, whoever is alive then."""
        self._loop.call_later(delay, what, context=self.server.context)

    def note(self, *words: object) -> None:
        """One line of the trace."""
        self.trace.append(f"{self._loop.time():.6f} " + " ".join(map(str, words)))

    # -- life

    async def run(self) -> None:
        """The storm, then the calm in which everything must end."""
        await self.store.open()
        for _ in range(self.plan.nodes):
            self.nodes.append(self._boot(f"node{len(self.nodes)}"))
        producing = self.server.start(self._produce())
        storm = self.server.start(self.nemesis.storm())
        people = self.server.start(self.people.meddle()) if "people" in self.plan.faults else None
        await asyncio.wait([task for task in (producing, storm, people) if task is not None])
        for task in (producing, storm, people):
            if task is not None:
                task.result()
        await self._calm()

    async def _calm(self) -> None:
        end = self._loop.time() + _CALM
        await self.people.resume_all()
        for node in self.nodes:
            node.clock.skew = 0.0
        while self._loop.time() < end and not self._is_idle():  # noqa: ASYNC110
            await asyncio.sleep(1.0)
        await asyncio.sleep(LEASE + BEAT + 2)  # whoever is dead must be known to be
        self.check()
        stops = [node.host.start(node.worker.stop()) for node in self.nodes]
        _, stuck = await asyncio.wait(stops, timeout=60)
        if stuck:
            self.violations["a node that does not stop"] = [f"{len(stuck)} of {len(stops)}"]

    def _is_idle(self) -> bool:
        if any(not node.host.is_alive or node.host.is_paused for node in self.nodes):
            return False
        row = self.query("select count(*) from tasks where state in ('pending', 'processing')")[0]
        return not row[0] and len(self.tried) == len(self.plan.orders)

    def _boot(self, name: str) -> Node:
        self._pids += 1
        host = Host(f"{name}:{self._pids}", self._pids)
        self.hosts.append(host)
        clock = HostClock(self._loop.time, seed=f"{self.plan.seed} {host.name}")
        clock.skew = self.nemesis.skew()
        link = Link(self, host)

        def made() -> Worker:
            return Worker(
                link,
                clock,
                LANES,
                {"send": Sender(self, host, link, LANES)},
                emit=lambda event: self._told(host, event),
                options=RunnerOptions(self.plan.slots, timedelta(seconds=1), timedelta(seconds=5)),
                node_timeout=timedelta(seconds=LEASE),
                heartbeat_interval=timedelta(seconds=BEAT),
                memory_limit=1 << 40,
                name=host.name,
            )

        host.clock = clock
        worker = host.context.run(made)
        host.context.run(worker.start)
        self.note("boots", host.name)
        return Node(host, clock, link, worker)

    def node_of(self, host: Host) -> Node:
        """The node that runs in a process."""
        return next(node for node in self.nodes if node.host is host)

    def kill(self, host: Host, how: str) -> None:
        """Its memory is gone; somebody starts another one a little later."""
        host.kill()
        self.nemesis.killed(host, how)
        self._again(host)

    def stop(self, host: Host) -> None:
        """Asked politely; then somebody starts another one."""
        node = self.node_of(host)
        self.note("stops", host.name)

        async def stopping() -> None:
            await node.worker.stop()
            self._again(host)

        host.start(stopping())

    def _again(self, host: Host) -> None:
        delay = 0.3 + self.nemesis._random.random() * 8
        self._loop.call_later(delay, self._reboot, host, context=self.server.context)

    def _reboot(self, host: Host) -> None:
        for place, node in enumerate(self.nodes):
            if node.host is host:
                host.kill()
                self.nodes[place] = self._boot(host.name.partition(":")[0])

    # -- what happens

    def hint(self) -> None:
        """Something is due: tell every node, unless the hint is lost."""
        if self.nemesis.loses_hint():
            self.met["hint lost"] += 1
            return
        for node in self.nodes:
            for wake in node.link.wakes:
                self._loop.call_later(0.002, wake, context=node.host.context)

    def claimed(self, host: Host, tasks: list[Task]) -> None:
        """A claim was carried out."""
        if tasks and not host.is_alive:
            self.met["claimed for the dead"] += 1
        self.starts += [
            (host.pid, task.tenant, self._loop.time()) for task in tasks if not LANES[task.queue].marks_start
        ]
        self.met["suspect claimed"] += sum(task.crashes >= 2 for task in tasks)

    def lives(self, host: Host, statement: str, answer: Any) -> None:
        """Beats and deaths: nobody may be given up whose beat has moved within a lease."""
        if statement == "node_join":
            host.nodes.add(answer[0][0]["id"])
        if statement in ("node_join", "node_heartbeat") and answer[0]:
            host.seen_at = self.seconds
        if statement in ("node_dead", "node_gone") and answer[0]:
            given_up = next(other for other in self.hosts if answer[0][0]["id"] in other.nodes)
            is_last = answer[0][0]["id"] == max(given_up.nodes)
            if is_last and given_up is not host and self.seconds - given_up.seen_at < LEASE:
                self.accuse("a living node was given up", given_up.name)

    def standing(self, moves: Sequence[Transition]) -> dict[int, tuple[Any, ...]]:
        """How these tasks stand: state, node, start, message, queue."""
        question = "select state, node, started_at, tenant, queue from tasks where id = ?"
        return {move.id: self.query(question, move.id)[0] for move in moves}

    def settled(self, host: Host, node: int, before: Mapping[int, tuple[Any, ...]]) -> None:
        """A settle was carried out in a node's name: it may touch that node's tasks only, and in time."""
        for task, (state, holder, started_at, ref, queue) in before.items():
            after = self.query("select state from tasks where id = ?", task)[0][0]
            if state != "processing" or after == state:
                continue
            if holder != node:
                self.accuse("settled what another held", ref)
            ripe = 0 if started_at is None else started_at + micros(LANES[queue].deadline)
            if node not in host.nodes and ripe > self.now():
                self.accuse("taken before its deadline", ref)

    def marked(self, host: Host, tasks: list[Task]) -> None:
        """These starts were written down."""
        self.starts += [(host.pid, task.tenant, self._loop.time()) for task in tasks]

    def _told(self, host: Host, event: Event) -> None:
        match event:
            case TasksReaped(released=given, unknown=doubt, quarantined=aside):
                self.met["reaped and given back"] += given
                self.met["reaped in doubt"] += doubt
                self.met["set aside as poison"] += aside
            case ClaimLost(task=task):
                self.met["ClaimLost"] += 1
                self.lost_claims.append((host, task))
            case NodeFenced() | NodeLost() | StoreSlow() | TasksExpired():
                self.met[type(event).__name__] += 1
            case ChannelStopped(state=how):
                self.met[f"channel {how}"] += 1
            case _:
                return
        self.note("told", host.name, event)

    async def _produce(self) -> None:
        link = Link(self, Host("producer", 1))
        await asyncio.gather(*(self._accept(link, order) for order in self.plan.orders))

    async def _accept(self, link: Link, order: Order) -> None:
        """Accepted once: a call that failed is repeated with the same key."""
        await asyncio.sleep(order.at)
        expires = None if order.expires is None else _instant(order.expires)
        new = NewTask(order.queue, "send", _instant(order.due), order.ref, order.priority, order.key, expires)
        once = IdempotencyRecord("simulation", order.ref, "d", "{}", _instant(1e6))
        began = self._loop.time()
        while True:
            with suppress(TemporaryError):
                answer = await link.enqueue([new], once=once)
                self.met["accepted at the second try"] += answer.earlier is not None
                break
            await asyncio.sleep(0.3)
        self.tried[order.ref] = ProducerEntry(order.ref, order.ref, order.due, began, self._loop.time())
        await link.hint()

    # -- judging

    def query(self, question: str, *values: object) -> list[tuple[Any, ...]]:
        """A look at the database from outside."""
        reader = self.store._reader
        assert reader is not None
        return list(reader.execute(question, values))

    def check(self) -> None:
        """The rules that hold after every write."""
        for name, what in checked(self.query):
            self.accuse(name, what)

    def accuse(self, name: str, what: str) -> None:
        """A rule is broken."""
        if what not in self.violations.setdefault(name, []):
            self.violations[name].append(what)
            self.note("CRIME", name, what)

    def books(self) -> Books:
        """What the engine says at the end."""
        return read_books(self.query)

    def demolish(self) -> None:
        """Drop what never ended, without running it again."""
        for host in (self.server, *self.hosts):
            host.kill()
            for task in list(host._tasks):
                with suppress(RuntimeError, GeneratorExit, Exception):
                    task.get_coro().close()


def simulate(
    seed: int, *, hours: float = 0, plan: Plan | None = None, arrange: Callable[[World], None] | None = None
) -> Report:
    """Run the world of a seed to its end, and judge it. `arrange` prepares a world for one story."""
    plan = plan or drawn(seed, hours=hours)
    loop = VirtualLoop()
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="world-") as folder:
        shutil.copy(template(), Path(folder) / "world.db")
        gc_was = gc.isenabled()
        gc.disable()
        asyncio.set_event_loop(loop)
        try:
            return loop.run_until_complete(_whole(plan, Path(folder), arrange))
        finally:
            asyncio.set_event_loop(None)
            loop.close()
            if gc_was:
                gc.enable()


async def _whole(plan: Plan, folder: Path, arrange: Callable[[World], None] | None) -> Report:
    world = World(plan, folder)
    if arrange is not None:
        arrange(world)
    await world.run()
    violations, counts = judged(world)
    report = Report(plan.seed, violations, world.met, asyncio.get_running_loop().time(), world.trace, counts)
    world.demolish()
    for connection in (world.store._reader, world.store._connection):
        if connection is not None:
            connection.close()
    return report


@cache
def template() -> Path:
    """A database with all tables and the watching triggers, made once for this process."""
    folder = tempfile.mkdtemp(dir=MEMORY, prefix="world-template-")
    path = Path(folder) / "world.db"

    async def make() -> None:
        store = SqliteStore(path, now=lambda: START, inline=True)
        await store.open()
        await store.close()

    with asyncio.Runner() as runner:
        runner.run(make())
    connection = apsw.Connection(str(path))
    connection.create_scalar_function("tidings_now", lambda *_: START, 0)
    connection.execute(_TRIGGERS)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return path


def _instant(seconds: float) -> int:
    return START + round(seconds * SECOND)
