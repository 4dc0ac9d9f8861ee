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
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

from tidings import app as engine
from tidings.config import ChannelSettings, Settings
from tidings.drill.checker import DrillVerdict, InjectedFault, InjectionKind, check_logs
from tidings.drill.engine_records import count_unfinished, in_flight_messages, read_engine_records
from tidings.drill.harness import DrillHarness as BaseRig
from tidings.drill.harness import DrillProcess, run_receiver, spawn
from tidings.drill.json_log import LogTail

from ..launcher import fork_server
from ..time_limits import Limit, until
from .databases import Database
from .producer import CrashProducer
from .worker import CHANNEL

ROOT = Path(__file__).parents[2]
SCALE = float(os.environ.get("TIDINGS_CRASH_SCALE", "1"))
IS_FULL = SCALE >= 4  # the numbers that the project promises
_HISTORY = """
    select m.recipient, h.at, h.attempt, h.node, h.origin, h.state, h.category, h.detail
    from {0}history h join {0}messages m on m.task = h.task where m.recipient in ({refs})
"""
STANDSTILL = 60.0  # seconds without any progress after which a drill does not wait any longer


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
    quarantine_after: int = 100  # the injector kills here, not a message
    per_second: float | None = None


def fork(
    module: str, options: Mapping[str, Any], log: Path, *, cwd: Path = ROOT, env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start a process of a drill without loading the program again, unless a library must be preloaded."""
    if env is not None and "LD_PRELOAD" in env:
        return spawn(module, options, log, cwd=cwd, env=env)
    with log.open("ab") as errors:
        started = fork_server().start(
            module, json.dumps(options), stderr=errors, cwd=cwd, env=os.environ if env is None else env
        )
    return cast("subprocess.Popen[bytes]", started)  # it has the methods of it that a drill uses


def message_refs(prefix: str, count: int) -> list[str]:
    """Return the references of a drill's messages."""
    return [f"{prefix}-{number:05}" for number in range(count)]


def reasons(sender: DrillProcess, event: str) -> list[str]:
    """Return the reasons of an event in the log of a process."""
    mark = f'"event":"{event}"'.encode()
    return [json.loads(line)["reason"] for line in sender.log.read_bytes().splitlines() if mark in line]


class Rig(BaseRig):
    """A rig of the tests: workers with crash points, pauses and planted bugs. Made by `drill`."""

    def __init__(
        self, folder: Path, database: Database, options: Options, *, port: int, producer: CrashProducer
    ) -> None:
        super().__init__(folder, database, port=port, spawn=fork)
        self.database = database
        self.options = options
        self.producer = producer
        self._acked = LogTail(folder / "producer.jsonl", b'"acked"')

    def spawn(
        self, *, crash_at: str | None = None, surroundings: Mapping[str, str] | None = None, **more: Any
    ) -> DrillProcess:
        """Start a worker; `surroundings` are variables of its environment."""
        options = {**asdict(self.options), "database": self.database.worker_url, "port": self.port, **more}
        options["producer_log"] = str(self.folder / "producer.jsonl")
        log = self.folder / f"worker-{len(self.senders)}.jsonl"
        environment = {**os.environ, "TIDINGS_CRASH_AT": crash_at or "", **(surroundings or {})}
        return self.start("tests.crash.worker", options, log, cwd=ROOT, env=environment)

    async def working(self, *senders: DrillProcess) -> None:
        """Wait until these have joined."""

        def have_joined() -> bool:
            return self.has_failed() or all(sender.facts("node_joined") for sender in senders)

        assert await until(have_joined, STANDSTILL), "a worker did not start"

    async def until_seen(self, count: int, *, within: float = STANDSTILL) -> bool:
        """Wait until so many copies have arrived in all; False when none has come for that long."""
        return await until(lambda: self.seen() >= count or self.has_failed(), within, moved=self.seen)

    async def until_acknowledged(self, count: int) -> bool:
        """Wait until so many messages were accepted in all; False when none is any more."""
        acked = self._acked.count
        return await until(lambda: acked() >= count or self.has_failed(), STANDSTILL, moved=acked)

    async def idle(self, within: float = STANDSTILL) -> bool:
        """Wait until nothing waits or is at work; False when nothing has moved for that long."""
        limit, last = Limit(within), (-1, -1)
        while left := await count_unfinished(self.database):
            if (now := (left, self.seen())) != last:
                last = now
                limit.restart()
            elif self.has_failed() or limit.is_over():
                return False
            await asyncio.sleep(0.05)
        return True

    async def died(self, sender: DrillProcess, how: str, *, within: float = 60) -> InjectedFault:
        """Wait until it has killed itself at its crash point; kill it that long after it has joined."""
        limit, has_joined = Limit(within), False
        alive_at = time.time()
        while sender.is_alive:
            alive_at = time.time()
            if not has_joined and sender.facts("node_joined"):
                has_joined = True
                limit.restart()
            elif limit.is_over():
                return await self.kill(sender, f"never reached {how}")
            await asyncio.sleep(0.005)
        return await self.note_death(sender, alive_at, how)

    def seen_from(self, sender: DrillProcess) -> int:
        """Return how many copies have arrived from this sender."""
        return sum(copy.pid == sender.pid for copy in self.copies())

    async def note_death(self, sender: DrillProcess, begin: float, how: str) -> InjectedFault:
        """Log the death; a dead client's last statement may still be running in the server."""
        if not any(other.is_alive for other in self.senders):
            await self.database.left_alone()
        return await super().note_death(sender, begin, how)

    async def pause(self, sender: DrillProcess, seconds: float, *, heir: DrillProcess) -> InjectedFault:
        """SIGSTOP it for at least that long, and until another has sent what it had at work."""
        begin = time.time()
        sender.process.send_signal(signal.SIGSTOP)
        left = await in_flight_messages(self.database, sender.pid)
        await asyncio.sleep(seconds)
        limit = Limit(STANDSTILL)
        while await self._is_waiting(left, heir):
            assert not limit.is_over(), "nobody took over"
            await asyncio.sleep(0.1)
        return self.wake(sender, begin, "SIGSTOP", left)

    async def _is_waiting(self, left: Mapping[str, bool], heir: DrillProcess) -> bool:
        """Whether any of these is neither done nor sent by the one that takes over."""
        said = await read_engine_records(self.database)
        sent = {copy.ref for copy in self.copies() if copy.pid == heir.pid}
        return any(said[ref].state != "done" and ref not in sent for ref in left)

    def wake(self, sender: DrillProcess, begin: float, how: str, left: Mapping[str, bool]) -> InjectedFault:
        """SIGCONT what was stopped at `begin`, having this at work."""
        end = time.time()
        sender.process.send_signal(signal.SIGCONT)
        return self.note(InjectedFault(InjectionKind.PAUSE, sender.pid, begin, end, how, left))

    async def stopped(self, sender: DrillProcess) -> float:
        """Wait until it has stopped itself; gives the last moment at which it ran."""
        limit, ran_at = Limit(STANDSTILL), time.time()
        while Path(f"/proc/{sender.pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
            ran_at = time.time()
            assert not limit.is_over(), "it never reached the point where it should stop"
            await asyncio.sleep(0.005)
        return ran_at

    async def stop(self, sender: DrillProcess) -> int:
        """SIGTERM it and wait; gives its exit code."""
        sender.process.send_signal(signal.SIGTERM)
        assert await until(lambda: not sender.is_alive, 40), "it does not stop"
        return int(sender.process.returncode)

    async def verdict(self) -> DrillVerdict:
        """Judge, and print the record of each message of a violation: pytest shows it if the test fails."""
        records = await read_engine_records(self.database)
        verdict = check_logs(self.tried(), self.copies(), self.faults, records, deadline=self.options.deadline)
        if verdict.violations:
            print(verdict.violations, *await self._record(verdict.violations), sep="\n")
        return verdict

    async def _record(self, violations: Mapping[str, Sequence[str]]) -> list[str]:
        """Return the faults, and everything known of these messages, each in the order of time."""
        refs = {ref for found in violations.values() for ref in found}
        quoted = ", ".join("'" + ref.replace("'", "''") + "'" for ref in refs)
        try:
            rows = await self.database.rows(_HISTORY.replace("{refs}", quoted))
        except Exception as error:  # such as a damaged file: the violations matter more
            rows = [("", 0, f"no history: {error}")]
        tried = [line for line in self.tried() if line.ref in refs]
        known = [
            *((line.ref, line.tried, f"tried, due {line.due:.3f}") for line in tried),
            *((line.ref, line.acked, "accepted") for line in tried if line.acked is not None),
            *((copy.ref, copy.at, f"arrived: {copy}") for copy in self.copies() if copy.ref in refs),
            *((row[0], row[1] / 1e6, f"history: {tuple(row)[2:]}") for row in rows),
        ]
        faults = [
            fault._replace(held={ref: begun for ref, begun in fault.held.items() if ref in refs})
            for fault in self.faults
        ]
        return [*map(str, faults), *(f"{ref} {at:.3f} {what}" for ref, at, what in sorted(known))]

    def end(self) -> None:
        """End whatever still runs, each by its pid."""
        super().end()
        self.producer.close()


@contextlib.asynccontextmanager
async def drill(
    folder: Path, database: Database, options: Options = Options(), behavior: dict[str, Any] | None = None
) -> AsyncIterator[Rig]:
    """A rig with its receiver running and its database made."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("producer", "receiver"):
        (folder / f"{name}.jsonl").touch()
    channel = {"on_unknown": options.on_unknown, "deadline": f"{options.deadline}s"}
    channels = {CHANNEL: ChannelSettings("sandbox", channel)}
    app = engine.build(Settings(database=database.url, channels=channels, sandbox=False))
    with run_receiver(folder / "receiver.jsonl", behavior or {}, spawn=fork) as port:
        await app.open()
        rig = Rig(folder, database, options, port=port, producer=CrashProducer(app, folder / "producer.jsonl", CHANNEL))
        try:
            yield rig
        finally:
            rig.end()
            await app.close()


def portions(refs: Sequence[str], count: int) -> list[Sequence[str]]:
    """As many nearly equal parts."""
    return [refs[len(refs) * i // count : len(refs) * (i + 1) // count] for i in range(count)]


async def strike(rig: Rig, blow: str, refs: Sequence[str], chance: random.Random) -> InjectedFault:
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
            await asyncio.sleep(chance.uniform(0.0, 0.3))
        else:
            await rig.until_seen(before + chance.randint(1, max(1, round(len(refs) * 0.7))))
            await asyncio.sleep(chance.uniform(0, 0.03))
        fault = await rig.kill(sender, blow)
    await producing
    return fault
