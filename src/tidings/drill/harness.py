"""The harness: starts, kills and ends the processes of a drill, and reads its three logs.

Processes are started and ended here, each by its pid. They end automatically with the harness, however it
ends.
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
from typing import Any

from ..model.errors import OperatorError
from .checker import InjectedFault, InjectionKind, ProducerEntry, ReceivedCopy
from .engine_records import StatementReader, in_flight_messages
from .json_log import JsonLog, LogTail, read_log

_LOOK = 0.005  # seconds between two reads of a log


class DrillProcess:
    """One process and its log file."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self.log = log

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def facts(self, event: str) -> int:
        """Return how often it logged an event."""
        return self.log.read_bytes().count(f'"event":"{event}"'.encode())

    def end(self) -> None:
        """Kill it if it is running, and close its pipes."""
        if self.is_alive:
            self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                pipe.close()


def spawn(module: str, options: Mapping[str, Any], log: Path, **how: Any) -> subprocess.Popen[bytes]:
    """Start a process that ends with us: it watches a pipe that we hold."""
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
        spawn: Callable[..., subprocess.Popen[bytes]] = spawn,
    ) -> None:
        self._spawn, self.folder, self.port = spawn, folder, port
        self.began = time.monotonic()
        self.faults: list[InjectedFault] = []
        self.senders: list[DrillProcess] = []
        self._books = database
        self._journal = JsonLog(folder / "injector.jsonl")
        self._arrived = LogTail(folder / "receiver.jsonl")

    def start(self, module: str, options: Mapping[str, Any], log: Path, **how: Any) -> DrillProcess:
        """Start a process; its first argument is the options as JSON."""
        sender = DrillProcess(self._spawn(module, options, log, **how), log)
        self.senders.append(sender)
        return sender

    async def kill(self, sender: DrillProcess, how: str = "random") -> InjectedFault:
        """SIGKILL a process, and log what it had in flight."""
        begin = time.time()
        sender.process.kill()
        sender.process.wait()
        return await self.note_death(sender, begin, how)

    async def note_death(self, sender: DrillProcess, begin: float, how: str) -> InjectedFault:
        """Log the death of a process that was alive at `begin`."""
        end = time.time()
        held = await in_flight_messages(self._books, sender.pid)
        return self.note(InjectedFault(InjectionKind.KILL, sender.pid, begin, end, how, held))

    def end(self) -> None:
        """End all running processes, each by its pid."""
        for sender in self.senders:
            sender.end()
        self._journal.close()

    def note(self, fault: InjectedFault) -> InjectedFault:
        """Append to the injector's log."""
        self.faults.append(fault)
        self._journal.write(fault._asdict())
        return fault

    def has_failed(self) -> bool:
        """Raise OperatorError if a process failed; otherwise return False."""
        for sender in self.senders:
            code = sender.process.poll()
            if code is not None and code > 0:
                reason = sender.log.read_text(errors="replace").strip().rpartition("\n")[2]
                raise OperatorError(f"a process of the drill exited with {code}: {reason or 'no output'}")
        return False

    def seen(self) -> int:
        """Return how many copies have arrived."""
        return self._arrived.count()

    def tried(self) -> list[ProducerEntry]:
        """Read the producer's log, the latest line of each message."""
        last = {line["ref"]: {"acked": None, **line} for line in read_log(self.folder / "producer.jsonl")}
        return [ProducerEntry(**line) for line in last.values()]

    def repeated(self) -> int:
        """Return how many messages were requested more than once after a lost answer."""
        calls = Counter(line["ref"] for line in read_log(self.folder / "producer.jsonl") if "acked" not in line)
        return sum(count > 1 for count in calls.values())

    def copies(self) -> list[ReceivedCopy]:
        """Read the receiver's log."""
        return [ReceivedCopy(**line) for line in read_log(self.folder / "receiver.jsonl")]


@contextlib.contextmanager
def run_receiver(
    log: Path, behavior: Mapping[str, Any], *, spawn: Callable[..., subprocess.Popen[bytes]] = spawn, **how: Any
) -> Iterator[int]:
    """Run the receiver process during a drill; yields its port."""
    errors = log.with_suffix(".log")
    receiver = DrillProcess(spawn("tidings.drill.receiver", {**behavior, "log": str(log)}, errors, **how), errors)
    try:
        assert receiver.process.stdout is not None
        yield int(receiver.process.stdout.readline())
    finally:
        receiver.end()


async def wait_until(condition: Callable[[], bool], within: float) -> bool:
    """Poll a condition; return False when it did not hold in time."""
    give_up = time.monotonic() + within
    while True:
        if condition():
            return True
        if time.monotonic() > give_up:
            return False
        await asyncio.sleep(_LOOK)
