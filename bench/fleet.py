"""A fleet for drills of limits and isolation: real worker processes, a real sandbox process, its ledger.

Every process is started here and ended here, each by its own pid.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import uvloop

from tidings.app import build
from tidings.config import ChannelSettings, Settings
from tidings.kernel import retry
from tidings.model.time import SECOND

ROOT = Path(__file__).resolve().parent.parent

_POLICY = {"backoff": "fixed", "initial_delay": "200ms", "max_attempts": 1000}

Channels = Mapping[str, tuple[str, Mapping[str, Any]]]  # name -> kind, options


class Sandbox:
    """A running sandbox: where it answers, and what it wrote down."""

    def __init__(self, url: str, ledger: Path) -> None:
        self.url = url
        self._ledger = ledger

    def break_(self, kind: str, **more: Any) -> int:
        """Set a fault; gives its number."""
        body = json.dumps({"kind": kind, **more}).encode()
        request = Request(f"{self.url}/sandbox/faults", body, {"content-type": "application/json"})
        with urlopen(request, timeout=10) as answer:
            return int(json.load(answer)["id"])

    def heal(self, fault: int | None = None) -> None:
        """Take one fault away, or all."""
        one = "" if fault is None else f"/{fault}"
        with urlopen(Request(f"{self.url}/sandbox/faults{one}", method="DELETE"), timeout=10):
            pass

    def lines(self) -> list[dict[str, Any]]:
        """Every request, in the order of arrival."""
        return [json.loads(line) for line in self._ledger.read_bytes().splitlines()]


@contextmanager
def sandbox(folder: Path) -> Iterator[Sandbox]:
    """Run the simulated providers in a separate process."""
    ledger = folder / "sandbox.jsonl"
    command = [sys.executable, "-m", "tidings.sandbox", "--port", "0", "--mail-port", "0", "--ledger", str(ledger)]
    with _started(command) as process:
        assert process.stdout is not None
        said = process.stdout.readline()
        found = re.search(r"(http://\S+?)/?\s*$", said)
        assert found is not None, f"the sandbox did not start: {said!r}"
        yield Sandbox(found[1], ledger)


@contextmanager
def workers(count: int, database: str, channels: Channels, **settings: Any) -> Iterator[list[int]]:
    """So many processes that work on this database; gives their pids once all of them do."""
    wanted = {"database": database, "channels": channels, **settings}
    command = [sys.executable, "-m", "bench.fleet", json.dumps(wanted)]
    with ExitStack() as stack:
        processes = [stack.enter_context(_started(command)) for _ in range(count)]
        for process in processes:
            assert process.stdout is not None
            said = process.stdout.readline()
            assert said == "works\n", f"a worker did not start: {said!r}"
        yield [process.pid for process in processes]


@contextmanager
def _started(command: Sequence[str]) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(timeout=15)
            except subprocess.TimeoutExpired:
                process.kill()


def micros_of(said: str) -> int:
    """An instant as the ledger writes it."""
    moment = datetime.fromisoformat(said).astimezone(UTC)
    return int(moment.timestamp()) * SECOND + moment.microsecond


def settings_of(
    database: str, channels: Channels, *, slots: int = 100, policy: Mapping[str, Any] | None = None
) -> Settings:
    """An engine with these channels; `policy` is the one called `drill`."""
    return Settings(
        database=database,
        channels={name: ChannelSettings(kind, options) for name, (kind, options) in channels.items()},
        policies={"drill": retry.parse_policy("drill", policy or _POLICY)},
        concurrency=slots,
        sandbox=False,
    )


async def _work(wanted: Mapping[str, Any]) -> None:
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    app = build(settings_of(**wanted))
    await app.open()
    app.worker.start()
    while not app.worker.is_working:  # noqa: ASYNC110  (it has no event)
        await asyncio.sleep(0.01)
    print("works", flush=True)
    await asked.wait()
    await app.close()


if __name__ == "__main__":
    uvloop.run(_work(json.loads(sys.argv[1])))
