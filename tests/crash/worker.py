"""A worker process of the crash drills: the real engine with one channel, until it is stopped or killed.

Options come as JSON in the first argument. Facts go to standard error, one JSON line each. `TIDINGS_CRASH_AT`
arms a crash point; `pause_at` stops the process at one instead, once.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import signal
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import uvloop

from tidings import app as engine
from tidings.config import ChannelSettings, Settings
from tidings.dispatch.roles import ProcessRole, ProcessShare
from tidings.drill.json_log import JsonLog
from tidings.drill.parent_watch import end_with_parent
from tidings.kernel import attempts, crash_points, retry, settler, start_marks
from tidings.model.message import Message
from tidings.model.outcome import Outcome
from tidings.observability.log import LogOptions, log_sink
from tidings.outbound.channels.sandbox import SandboxChannel
from tidings.store.postgres_steps import PostgresSteps
from tidings.store.sqlite_steps import SqliteSteps
from tidings.wire import http_client

from ..encryption import KEY
from .planted_bugs import PLANTS
from .producer import CrashProducer

CHANNEL = "drill"


def settings(options: dict[str, Any]) -> Settings:
    """One sandbox channel towards the receiver; the path tells who sends."""
    channel = {
        "url": f"http://{options.get('host', '127.0.0.1')}:{options['port']}/from/{os.getpid()}",
        "on_unknown": options["on_unknown"],
        "deadline": f"{options['deadline']}s",
        "policy": "drill",
    }
    if options.get("per_second"):
        channel["per_second"] = options["per_second"]
    policy = retry.parse_policy("drill", {"backoff": "fixed", "initial_delay": "100ms", "max_attempts": 1000})
    return Settings(
        database=options["database"],
        channels={CHANNEL: ChannelSettings("sandbox", channel)},
        policies={"drill": policy},
        concurrency=options["slots"],
        node_timeout=timedelta(seconds=options["lease"]),
        heartbeat_interval=timedelta(seconds=options["beat"]),
        quarantine_after=options["quarantine_after"],
        breaker_timeout=timedelta(seconds=options.get("breaker_timeout", 60)),
        broadcast_batch_size=options.get("window", 1000),
        broadcast_batches=1 if "window" in options else 10,
        sandbox=False,
        broker=(options["broker"],) if "broker" in options else (),
        encryption_keys=(KEY,),
        broker_message_ttl=timedelta(seconds=options.get("broker_message_ttl", 1.0)),
    )


def enter(network: str) -> None:
    """This process is on that host from now on; before it has threads."""
    libc = ctypes.CDLL(None, use_errno=True)
    with Path(network).open() as file:
        if libc.setns(file.fileno(), 0):
            raise OSError(ctypes.get_errno(), f"cannot enter {network}")


def arm_pause(spec: str) -> None:
    """Stop (not kill) this process at the n-th pass of a crash point, once."""
    wanted, _, passes = spec.partition(":")
    left = int(passes or 1)

    def point(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGSTOP)
        crash_points.crash_point(name)

    for passing in (attempts, settler, start_marks):
        passing.crash_point = point  # type: ignore[attr-defined]


def arm_poison() -> None:
    """A channel that takes its process down with some messages."""
    send = SandboxChannel.send

    async def deadly(self: SandboxChannel, message: Message) -> Outcome:
        if message.recipient.startswith("poison"):
            os.kill(os.getpid(), signal.SIGKILL)
        return await send(self, message)

    SandboxChannel.send = deadly  # type: ignore[method-assign]


def arm_statement(spec: str) -> None:
    """Die at the n-th run of a named statement: behind it, and before its transaction is committed."""
    wanted, _, passes = spec.partition(":")
    left = int(passes or 1)

    def passed(name: str) -> None:
        nonlocal left
        if name == wanted:
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)

    on_postgres, on_sqlite = PostgresSteps.run, SqliteSteps.rows

    async def run(self: PostgresSteps, connection: Any, step: Any) -> Any:
        rows = await on_postgres(self, connection, step)
        passed(step.name)
        return rows

    def rows(self: SqliteSteps, connection: Any, name: str, params: Any) -> Any:
        found = on_sqlite(self, connection, name, params)
        passed(name)
        return found

    PostgresSteps.run, SqliteSteps.rows = run, rows  # type: ignore[method-assign]


def arm_send_log(path: str, slow: float) -> None:
    """Log when each request is handed to the HTTP client, which takes `slow` seconds longer to build."""
    journal, build = JsonLog(path), http_client._new_client

    class Recorder:
        def __init__(self, *how: Any) -> None:
            time.sleep(slow)  # in a thread, as on a machine that is busy while a process starts
            self._client = build(*how)

        def request(self, method: str, url: Any) -> Any:
            journal.write({"at": time.time(), "pid": os.getpid()})
            return self._client.request(method, url)

        async def close(self) -> None:
            await self._client.close()

    http_client._new_client = Recorder  # type: ignore[assignment]


async def work(options: dict[str, Any]) -> None:
    """Open, work, and close in order when asked."""
    asked = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, asked.set)
    emit = log_sink(LogOptions("json", "debug"))
    roles = options.get("roles")
    share = ProcessShare() if roles is None else ProcessShare(frozenset(map(ProcessRole, roles)))
    if roles == ["transport"]:
        carrier = engine.build_transport(settings(options), share=share, emit=emit)
        await carrier.transport.start()
        await asked.wait()
        await carrier.close()
        return
    app = engine.build(settings(options), emit=emit, share=share)
    await app.open()
    if app.dispatcher is not None:
        await app.dispatcher.start()
    app.worker.start()
    if options.get("produce"):
        await CrashProducer(app, options["producer_log"], CHANNEL).produce(options["produce"], single=True)
        page = await app.messages.page(limit=1000)
        print(len(page.items), flush=True)
    await asked.wait()
    await app.close()


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    if given.get("network"):
        enter(given["network"])
    end_with_parent()
    if given.get("plant"):
        PLANTS[given["plant"]]()
    if given.get("pause_at"):
        arm_pause(given["pause_at"])
    if given.get("dies_in"):
        arm_statement(given["dies_in"])
    if given.get("poison"):
        arm_poison()
    if given.get("sends"):
        arm_send_log(given["sends"], given["slow_client"])
    uvloop.run(work(given))
