"""The crash rig: real worker processes on a real store, a receiver, and an injector that kills them.

Each log has one owner. Processes are started here and ended here, each by its own pid.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from tidings import app as engine
from tidings.config import ChannelSettings, Settings

from .books import Database, books, held, unfinished
from .journal import Journal, lines
from .ledger import Copy, Fault, Kind, Tried, Verdict, judge
from .producer import Producer
from .worker import CHANNEL

ROOT = Path(__file__).parents[2]
SCALE = float(os.environ.get("TIDINGS_CRASH_SCALE", "1"))
IS_FULL = SCALE >= 4  # the numbers that the project promises


def scaled(quick: int, full: int) -> int:
    """A number for `make test`, and in proportion from the full drill on."""
    return round(full * SCALE / 4) if IS_FULL else round(quick * max(1.0, SCALE))


@dataclass(frozen=True, slots=True)
class Options:
    """How the workers of a drill are set; deadlines and leases are short, so that a drill is."""

    on_unknown: str = "resend"
    slots: int = 32
    lease: float = 3.0
    beat: float = 0.5
    deadline: float = 2.0
    poison_after: int = 100  # the injector kills here, not a message


class Sender:
    """One worker process."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self.log = log

    @property
    def is_alive(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def facts(self, event: str) -> int:
        """How often it told a fact."""
        return self.log.read_bytes().count(f'"event":"{event}"'.encode())

    def reasons(self, event: str) -> list[str]:
        """What it said about a fact, each time."""
        mark = f'"event":"{event}"'.encode()
        return [orjson.loads(line)["reason"] for line in self.log.read_bytes().splitlines() if mark in line]


class Rig:
    """One drill: its processes and its three logs. Made by `drill`."""

    def __init__(
        self, folder: Path, database: Database, options: Options, *, port: int, producer: Producer
    ) -> None:
        self.folder = folder
        self.database = database
        self.options = options
        self.producer = producer
        self.began = time.monotonic()
        self.faults: list[Fault] = []
        self.senders: list[Sender] = []
        self._port = port
        self._journal = Journal(folder / "injector.jsonl")
        self._seen = 0
        self._read_up_to = 0

    # -- processes

    def spawn(self, *, crash_at: str | None = None, **more: Any) -> Sender:
        """Start a worker."""
        options = {**asdict(self.options), "database": self.database.worker_url, "port": self._port, **more}
        options["producer_log"] = str(self.folder / "producer.jsonl")
        environment = {**os.environ, "TIDINGS_CRASH_AT": crash_at or ""}
        log = self.folder / f"worker-{len(self.senders)}.jsonl"
        with log.open("ab") as errors:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.crash.worker", json.dumps(options)],
                cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors,
            )  # fmt: skip
        self.senders.append(Sender(process, log))
        return self.senders[-1]

    async def working(self, *senders: Sender, within: float = 20) -> None:
        """Wait until these have joined."""
        assert await until(lambda: all(sender.facts("node_joined") for sender in senders), within)

    async def kill(self, sender: Sender, how: str = "random") -> Fault:
        """SIGKILL it, and write down what it left behind."""
        begin = time.time()
        sender.process.kill()
        sender.process.wait()
        return await self._note_death(sender, begin, how)

    async def died(self, sender: Sender, how: str, *, within: float = 20) -> Fault:
        """Wait until it has killed itself at its crash point; if it never does, kill it."""
        give_up = time.time() + within
        alive_at = time.time()
        while sender.is_alive:
            alive_at = time.time()
            if alive_at > give_up:
                return await self.kill(sender, f"never reached {how}")
            await asyncio.sleep(0.005)
        return await self._note_death(sender, alive_at, how)

    async def _note_death(self, sender: Sender, begin: float, how: str) -> Fault:
        end = time.time()
        if not any(other.is_alive for other in self.senders):
            await self.database.left_alone()
        return self.note(Fault(Kind.KILL, sender.pid, begin, end, how, await held(self.database, sender.pid)))

    async def pause(self, sender: Sender, seconds: float) -> Fault:
        """SIGSTOP it for a while."""
        begin = time.time()
        sender.process.send_signal(signal.SIGSTOP)
        left = await held(self.database, sender.pid)
        await asyncio.sleep(seconds)
        return self.wake(sender, begin, "SIGSTOP", left)

    def wake(self, sender: Sender, begin: float, how: str, left: Mapping[str, bool]) -> Fault:
        """SIGCONT what was stopped at `begin`, having this at work."""
        end = time.time()
        sender.process.send_signal(signal.SIGCONT)
        return self.note(Fault(Kind.PAUSE, sender.pid, begin, end, how, left))

    async def stopped(self, sender: Sender, *, within: float = 20) -> float:
        """Wait until it has stopped itself; gives the last moment at which it ran."""
        ran_at = time.time()
        give_up = ran_at + within
        while Path(f"/proc/{sender.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            ran_at = time.time()
            assert ran_at < give_up, "it never reached the point where it should stop"
            await asyncio.sleep(0.005)
        return ran_at

    async def stop(self, sender: Sender, *, within: float = 40) -> int:
        """SIGTERM it and wait; gives its exit code."""
        sender.process.send_signal(signal.SIGTERM)
        assert await until(lambda: not sender.is_alive, within), "it does not stop"
        return int(sender.process.returncode)

    def end(self) -> None:
        """End whatever still runs, each by its pid."""
        for sender in self.senders:
            if sender.is_alive:
                sender.process.kill()
            sender.process.wait()
            if sender.process.stdout is not None:
                sender.process.stdout.close()
        self._journal.close()
        self.producer.close()

    def note(self, fault: Fault) -> Fault:
        """One line of the injector's log."""
        self.faults.append(fault)
        self._journal.write(fault._asdict())
        return fault

    def _has_failed(self) -> bool:
        """Refuse to go on with a worker that ended by an error of its own."""
        for sender in self.senders:
            code = sender.process.poll()
            assert code is None or code <= 0, f"a worker failed: {sender.log.read_text()[-2000:]}"
        return False

    # -- progress

    def seen(self) -> int:
        """How many copies have arrived."""
        with (self.folder / "receiver.jsonl").open("rb") as log:
            log.seek(self._read_up_to)
            new = log.read()
        self._seen += new.count(b"\n")
        self._read_up_to += len(new)
        return self._seen

    async def until_seen(self, count: int, *, within: float = 20) -> bool:
        """Wait until so many copies have arrived in all."""
        return await until(lambda: self.seen() >= count or self._has_failed(), within)

    async def idle(self, within: float) -> bool:
        """Wait until nothing waits or is at work."""
        give_up = time.time() + within
        while await unfinished(self.database):
            if time.time() > give_up or self._has_failed():
                return False
            await asyncio.sleep(0.05)
        return True

    # -- the three logs

    def tried(self) -> list[Tried]:
        """The producer's log, the latest line of each message."""
        last = {line["ref"]: {"acked": None, **line} for line in lines(self.folder / "producer.jsonl")}
        return [Tried(**line) for line in last.values()]

    def acknowledged(self) -> int:
        """How many messages were accepted."""
        return sum(line.acked is not None for line in self.tried())

    def copies(self) -> list[Copy]:
        """The receiver's log."""
        return [Copy(**line) for line in lines(self.folder / "receiver.jsonl")]

    async def verdict(self) -> Verdict:
        """What the judge says."""
        said = await books(self.database)
        return judge(self.tried(), self.copies(), self.faults, said, deadline=self.options.deadline)


async def until(condition: Callable[[], bool], within: float) -> bool:
    """Wait until something holds, looking every few milliseconds; False when it never did."""
    give_up = time.monotonic() + within
    while True:
        if condition():
            return True
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(0.005)


@contextlib.asynccontextmanager
async def drill(
    folder: Path, database: Database, options: Options = Options(), manners: dict[str, Any] | None = None
) -> AsyncIterator[Rig]:
    """A rig with its receiver running and its database made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("producer", "receiver"):
        (folder / f"{name}.jsonl").touch()
    channel = {"on_unknown": options.on_unknown, "deadline": f"{options.deadline}s"}
    channels = {CHANNEL: ChannelSettings("sandbox", channel)}
    app = engine.build(Settings(database=database.url, channels=channels, sandbox=False))
    with _receiver(folder / "receiver.jsonl", manners or {}) as port:
        await app.open()
        rig = Rig(
            folder, database, options, port=port, producer=Producer(app, folder / "producer.jsonl", CHANNEL)
        )
        try:
            yield rig
        finally:
            rig.end()
            await app.close()


@contextlib.contextmanager
def _receiver(log: Path, manners: dict[str, Any]) -> Iterator[int]:
    """The receiver's process; gives its port."""
    with subprocess.Popen(
        [sys.executable, "-m", "tests.crash.receiver", json.dumps({**manners, "log": str(log)})],
        cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def names(prefix: str, count: int) -> list[str]:
    """The references of a drill's messages."""
    return [f"{prefix}-{number:05}" for number in range(count)]


def portions(refs: Sequence[str], count: int) -> list[Sequence[str]]:
    """As many nearly equal parts."""
    return [refs[len(refs) * i // count : len(refs) * (i + 1) // count] for i in range(count)]


async def strike(rig: Rig, blow: str, refs: Sequence[str], chance: random.Random) -> Fault:
    """Give a worker something to do, and have it killed: at random, while it starts, or at a crash point."""
    before = rig.seen()
    producing = asyncio.create_task(
        rig.producer.produce(refs, single=chance.random() < 0.3, delays=(0, 0, 0, chance.uniform(0, 1)))
    )
    point = blow if ":" in blow else None
    sender = rig.spawn(crash_at=point)
    if point:
        fault = await rig.died(sender, blow)
    else:
        if blow == "boot":
            await asyncio.sleep(chance.uniform(0.05, 1.0))
        else:
            await rig.until_seen(before + chance.randint(1, max(1, round(len(refs) * 0.7))))
            await asyncio.sleep(chance.uniform(0, 0.03))
        fault = await rig.kill(sender, blow)
    await producing
    return fault
