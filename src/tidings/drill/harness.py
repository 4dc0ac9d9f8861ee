"""The rig: processes that can be killed, three logs with an owner each, and what the judge says of them.

Processes are started here and ended here, each by its own pid. They end by themselves when the rig does,
however that ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Protocol

import orjson

from ..model.errors import OperatorError
from .checker import DrillVerdict, InjectedFault, InjectionKind, ProducerEntry, ReceivedCopy, check_logs
from .engine_records import StatementReader, count_unfinished, in_flight_messages, read_engine_records
from .json_log import JsonLog, LogTail, read_log

_LOOK = 0.005  # seconds between two looks at a log
_LOOK_AT_DATABASE = 0.05


class ProcessHandle(Protocol):
    """What a rig uses of a process; `subprocess.Popen` has it."""

    pid: int
    stdin: IO[bytes] | None
    stdout: IO[bytes] | None
    returncode: int | Any

    def poll(self) -> int | None: ...
    def wait(self, timeout: float | None = None) -> int: ...
    def send_signal(self, sig: int, /) -> None: ...
    def kill(self) -> None: ...


class DrillProcess:
    """One process, and the file that it writes its facts to."""

    def __init__(self, process: ProcessHandle, log: Path) -> None:
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

    def end(self) -> None:
        """Kill it if it still runs."""
        if self.is_alive:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def spawn(module: str, options: Mapping[str, Any], log: Path, **how: Any) -> subprocess.Popen[bytes]:
    """A process that ends with us: it holds one end of a pipe, and we the other."""
    with log.open("ab") as errors:
        return subprocess.Popen(
            [sys.executable, "-m", module, json.dumps(options)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, **how,
        )  # fmt: skip


class DrillHarness:
    """The processes and the three logs of one drill."""

    def __init__(
        self,
        folder: Path,
        database: StatementReader,
        *,
        port: int,
        deadline: float,
        spawn: Callable[..., ProcessHandle] = spawn,
    ) -> None:
        self._spawn = spawn
        self.folder = folder
        self.port = port
        self.began = time.monotonic()
        self.faults: list[InjectedFault] = []
        self.senders: list[DrillProcess] = []
        self._books = database
        self._deadline = deadline
        self._journal = JsonLog(folder / "injector.jsonl")
        self._arrived = LogTail(folder / "receiver.jsonl")

    # -- processes

    def start(self, module: str, options: Mapping[str, Any], log: Path, **how: Any) -> DrillProcess:
        """Start a process of ours; its first argument is the options as JSON."""
        sender = DrillProcess(self._spawn(module, options, log, **how), log)
        self.senders.append(sender)
        return sender

    async def kill(self, sender: DrillProcess, how: str = "random") -> InjectedFault:
        """SIGKILL it, and write down what it left behind."""
        begin = time.time()
        sender.process.kill()
        sender.process.wait()
        return await self.note_death(sender, begin, how)

    async def note_death(self, sender: DrillProcess, begin: float, how: str) -> InjectedFault:
        """It was alive at `begin`, and is not any more."""
        end = time.time()
        if not any(other.is_alive for other in self.senders):
            await self.left_alone()
        return self.note(
            InjectedFault(
                InjectionKind.KILL,
                sender.pid,
                begin,
                end,
                how,
                await in_flight_messages(self._books, sender.pid),
            )
        )

    async def left_alone(self) -> None:
        """Nobody is left who works."""

    def end(self) -> None:
        """End whatever still runs, each by its pid."""
        for sender in self.senders:
            sender.end()
        self._journal.close()

    def note(self, fault: InjectedFault) -> InjectedFault:
        """One line of the injector's log."""
        self.faults.append(fault)
        self._journal.write(fault._asdict())
        return fault

    def has_failed(self) -> bool:
        """Refuse to go on with a process that ended by an error of its own."""
        for sender in self.senders:
            code = sender.process.poll()
            if code is not None and code > 0:
                said = sender.log.read_text(errors="replace").strip().rpartition("\n")[2]
                raise OperatorError(f"a process of the drill ended with {code}: {said or 'it said nothing'}")
        return False

    # -- progress

    def seen(self) -> int:
        """How many copies have arrived."""
        return self._arrived.count()

    async def until_seen(self, count: int, *, within: float = 60) -> bool:
        """Wait until so many copies have arrived in all."""
        return await wait_until(lambda: self.seen() >= count or self.has_failed(), within)

    async def idle(self, within: float) -> bool:
        """Wait until nothing waits or is at work."""
        give_up = time.monotonic() + within
        while await count_unfinished(self._books):
            if time.monotonic() > give_up or self.has_failed():
                return False
            await asyncio.sleep(_LOOK_AT_DATABASE)
        return True

    # -- the three logs

    def tried(self) -> list[ProducerEntry]:
        """The producer's log, the latest line of each message."""
        last = {line["ref"]: {"acked": None, **line} for line in read_log(self.folder / "producer.jsonl")}
        return [ProducerEntry(**line) for line in last.values()]

    def acknowledged(self) -> int:
        """How many messages were accepted."""
        return sum(line.acked is not None for line in self.tried())

    def repeated(self) -> int:
        """How many messages were asked for more than once, because a call had no answer."""
        calls = Counter(
            line["ref"] for line in read_log(self.folder / "producer.jsonl") if "acked" not in line
        )
        return sum(count > 1 for count in calls.values())

    def copies(self) -> list[ReceivedCopy]:
        """The receiver's log."""
        return [ReceivedCopy(**line) for line in read_log(self.folder / "receiver.jsonl")]

    async def verdict(self) -> DrillVerdict:
        """What the judge says."""
        said = await read_engine_records(self._books)
        return check_logs(self.tried(), self.copies(), self.faults, said, deadline=self._deadline)


@contextlib.contextmanager
def run_receiver(
    log: Path, behavior: Mapping[str, Any], *, spawn: Callable[..., ProcessHandle] = spawn, **how: Any
) -> Iterator[int]:
    """Run the receiver's process for the length of a drill; yields its port."""
    errors = log.with_suffix(".log")
    receiver = DrillProcess(
        spawn("tidings.drill.receiver", {**behavior, "log": str(log)}, errors, **how), errors
    )
    try:
        assert receiver.process.stdout is not None
        yield int(receiver.process.stdout.readline())
    finally:
        receiver.end()


async def wait_until(condition: Callable[[], bool], within: float) -> bool:
    """Wait until something holds, looking every few milliseconds; False when it never did."""
    give_up = time.monotonic() + within
    while True:
        if condition():
            return True
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(_LOOK)


def message_refs(prefix: str, count: int) -> list[str]:
    """The references of a drill's messages."""
    return [f"{prefix}-{number:05}" for number in range(count)]
