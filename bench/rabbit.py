"""This engine through RabbitMQ: one dispatcher on PostgreSQL, two transports without a database.

    python -m bench.rabbit drain --dsn postgresql://... --broker amqp://... --n 20000

All messages are accepted before, with their channel paused. The clock runs from its resumption to the last
outcome committed, with two history rows each and every claim fenced. Peers only acknowledge.
"""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from tidings import app as wiring
from tidings.app import App
from tidings.config import ChannelSettings, Settings
from tidings.dispatch.roles import ProcessRole, ProcessShare
from tidings.observability.events import BatchSettled, Event
from tidings.observability.log import LogOptions, log_sink
from tidings.store.port import Step
from tidings.store.postgres import PostgresStore

from .calls import ROOT, serve
from .engine import CHANNEL
from .payload import content

TRANSPORTS = 2
SLOTS = 2000  # in flight, of the dispatcher


async def drain(dsn: str, broker: str, n: int, started_marks: bool = False) -> float:
    """Messages/s through dispatcher and transports; with `started_marks` starts are reported first."""
    settings = _settings(broker, started_marks, dsn)
    settled = Settled()
    app = wiring.build(settings, emit=settled.take, share=ProcessShare(frozenset({ProcessRole.DISPATCHER})))
    await app.open()
    await app.store.write([Step("queue_pause", {"name": CHANNEL, "reason": "bench"})])
    assert app.dispatcher is not None
    try:
        await _fill(app, n)
        await _tidy(app)
        await app.dispatcher.start()
        app.worker.start()
        with _transports(broker, started_marks):
            await asyncio.sleep(5)  # everybody is connected, and the new queues have settled
            began = time.perf_counter()
            await app.store.write([Step("queue_resume", {"name": CHANNEL})])
            app.worker.runner.wake()
            await settled.until(n)
        await _verify(app, n)
        return n / (settled.last - began)
    finally:
        await app.close()


async def transport(broker: str, slots: int = 200, started_marks: bool = False) -> float:
    """Carry until stopped."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    settings = _settings(broker, started_marks, None, slots)
    carrier = wiring.build_transport(settings, share=ProcessShare(frozenset({ProcessRole.TRANSPORT})), emit=_LOG)
    await carrier.transport.start()
    await asked.wait()
    await carrier.close(1)
    return 0.0


class Settled:
    """Counts what was written down."""

    def __init__(self) -> None:
        self._count = 0
        self.last = 0.0
        self._progress = asyncio.Event()

    def take(self, event: Event) -> None:
        """A sink for events."""
        if isinstance(event, BatchSettled):
            self._count += event.outcomes.get("done", 0)
            self.last = time.perf_counter()
            self._progress.set()
        else:
            _LOG(event)

    async def until(self, n: int, cap: float = 600) -> None:
        """Wait until so many are done."""
        async with asyncio.timeout(cap):
            while self._count < n:
                self._progress.clear()
                await self._progress.wait()


_LOG = log_sink(LogOptions("json", "warning"))


def _settings(broker: str, started_marks: bool, dsn: str | None, slots: int = SLOTS) -> Settings:
    channel = {"on_unknown": "hold" if started_marks else "resend"}
    channels = {CHANNEL: ChannelSettings("noop", channel)}
    settings = Settings(
        channels=channels, sandbox=False, broker=(broker,), concurrency=slots, encryption_keys=("be" * 32,)
    )
    return settings if dsn is None else replace(settings, database=dsn)


async def _fill(app: App, n: int) -> None:
    from tidings.model.message import Draft

    async def drafts() -> Any:
        for number in range(n):
            made = content(number)
            yield number, Draft(CHANNEL, made["to"], made["text"])

    async for lines in app.messages.accept_many(drafts()):
        assert not any(line.error for line in lines)


async def _tidy(app: App) -> None:
    """Statistics and a quiet disk, as after a pause; as for the other measurements."""
    assert isinstance(app.store, PostgresStore)
    async with app.store._connection() as connection:
        for table in ("tasks", "messages"):
            await connection.execute(f"vacuum analyze {table}", timeout=300)
        await connection.execute("checkpoint", timeout=300)


async def _verify(app: App, n: int) -> None:
    assert isinstance(app.store, PostgresStore)
    sql = "select (select count(*) from tasks where state = 'done'), (select count(*) from history)"
    async with app.store._connection() as connection:
        found = tuple(await connection.fetchrow(sql, timeout=300))
    assert found == (n, 2 * n), f"the end state is wrong: {found}"


@contextmanager
def _transports(broker: str, started_marks: bool) -> Iterator[None]:
    command = [sys.executable, "-m", "bench.rabbit", "transport", "--broker", broker]
    command += ["--started-marks"] if started_marks else []
    with ExitStack() as stack:
        children = [
            stack.enter_context(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL))
            for _ in range(TRANSPORTS)
        ]
        try:
            yield
        finally:
            for child in children:
                child.terminate()


if __name__ == "__main__":
    serve([drain, transport])
