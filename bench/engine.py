"""This engine, wired for a measurement: the real store, kernel and delivery, and a channel that counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, ClassVar

from tidings.kernel.clock import SystemClock
from tidings.kernel.gc_tuning import tune_gc
from tidings.kernel.lanes import Lane
from tidings.kernel.runner import RunnerOptions
from tidings.kernel.worker import Worker
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome
from tidings.model.task import OnUnknown
from tidings.observability.events import BatchSettled, Emit, Event
from tidings.observability.log import LogOptions, fan_out, log_sink
from tidings.outbound.channels.base import Channel, ChannelTraits
from tidings.outbound.channels.noop import NoopChannel, NoopSettings
from tidings.outbound.delivery import Delivery
from tidings.outbound.message_validation import MESSAGE_KIND
from tidings.outbound.messages import MessageService
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from .payload import content

CHANNEL = "bench"


class Marking:
    """A no-op channel that notes when it was called; `note` gets each message."""

    kind: ClassVar[str] = "marking"

    def __init__(self, on_unknown: OnUnknown, note: Callable[[Message], None] | None = None) -> None:
        self._inner = NoopChannel(NoopSettings(on_unknown=on_unknown))
        self.traits: ChannelTraits = self._inner.traits
        self.first: float | None = None
        self._note = note

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Nothing to check."""

    async def send(self, message: Message) -> Outcome:
        """Note it, do nothing."""
        if self.first is None:
            self.first = time.perf_counter()
        if self._note is not None:
            self._note(message)
        return Done()

    async def lookup(self, message: Message) -> Outcome:
        """It was done."""
        return Done()

    async def close(self) -> None:
        """Nothing to close."""


class Engine:
    """One node on one database."""

    def __init__(self, url: str, channel: Channel, *, slots: int, sinks: Sequence[Emit] | None = None) -> None:
        """`sinks` are told what happens; unless they are given, the log is, as in production."""
        self.clock = SystemClock()
        self.store: Store = (
            PostgresStore(url)
            if url.startswith("postgres")
            else SqliteStore(Path(url.removeprefix("sqlite:///")), now=self.clock.wall)
        )
        lane = Lane(CHANNEL, on_unknown=channel.traits.on_unknown, deadline=channel.traits.deadline)
        channels = {CHANNEL: channel}
        self.messages = MessageService(self.store, self.clock, channels)
        self.worker = Worker(
            self.store,
            self.clock,
            {CHANNEL: lane},
            {MESSAGE_KIND: Delivery(self.store, channels, now=self.clock.now)},
            emit=fan_out(*((log_sink(LogOptions("json")),) if sinks is None else sinks), self._heard),
            options=RunnerOptions(concurrency=slots),
        )
        self.settled = 0
        self.last = 0.0
        self.progress = asyncio.Event()

    def _heard(self, event: Event) -> None:
        if isinstance(event, BatchSettled):
            self.settled += event.record_count
            self.last = time.perf_counter()
            self.progress.set()

    async def fill(self, n: int, *, at: Callable[[int], int | None] = lambda _: None, to: str = "") -> float:
        """Accept n messages in one bulk call; gives messages/s."""

        async def drafts() -> AsyncIterator[tuple[int, Draft]]:
            for number in range(n):
                made = content(number)
                due = at(number)
                data = None if due is None else {"due": due}
                yield number, Draft(CHANNEL, to or made["to"], made["text"], data=data, at=due)

        began = time.perf_counter()
        accepted = 0
        async for lines in self.messages.accept_many(drafts()):
            accepted += sum(line.error is None for line in lines)
        assert accepted == n, f"only {accepted} of {n} were accepted"
        return n / (time.perf_counter() - began)

    async def until_settled(self, n: int, *, cap: float = 600) -> None:
        """Wait until so many are settled."""
        async with asyncio.timeout(cap):
            while self.settled < n:
                self.progress.clear()
                await self.progress.wait()

    async def tidy(self) -> None:
        """What peers and raw limits get too between filling and draining."""
        if isinstance(self.store, PostgresStore):
            async with self.store._connection() as connection:
                for table in ("tasks", "messages"):
                    await connection.execute(f"vacuum analyze {table}", timeout=300)
                await connection.execute("checkpoint", timeout=300)
        tune_gc()  # as `tidings serve` does before it works

    async def verify(self, n: int) -> None:
        """Every message done, two history rows each."""
        sql = "select (select count(*) from tasks where state = 'done'), (select count(*) from history)"
        found: Any
        if isinstance(self.store, PostgresStore):
            async with self.store._connection() as connection:
                found = tuple(await connection.fetchrow(sql, timeout=300))
        else:
            assert isinstance(self.store, SqliteStore) and self.store._reader is not None
            found = self.store._reader.execute(sql).fetchone()
        assert found == (n, 2 * n), f"the end state is wrong: {found}"


@asynccontextmanager
async def engine(
    url: str, channel: Channel, *, slots: int, sinks: Sequence[Emit] | None = None
) -> AsyncIterator[Engine]:
    """An opened engine; its worker is not started yet."""
    made = Engine(url, channel, slots=slots, sinks=sinks)
    await made.store.open()
    for lane in made.worker.runner._lanes.values():
        await made.store.write(lane.join())
    try:
        yield made
    finally:
        await made.worker.stop()
        await channel.close()
        await made.store.close()
