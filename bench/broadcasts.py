"""Broadcasts against the engine's own drain, and a million addresses as a stream.

    python -m bench.broadcasts ratio --n 100000        # both in one run, one after the other, PostgreSQL
    python -m bench.broadcasts stream --n 1000000      # NDJSON in, memory, first message after it is frozen

Each figure is of a fresh database on a private server; a wrong end state is an error, never a figure.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.model.message import Draft
from tidings.observability.events import BatchSettled, Event
from tidings.outbound.broadcasts.service import BroadcastService
from tidings.outbound.contacts import uploads
from tidings.store.postgres import PostgresStore
from tidings.testing import PostgresCluster

from .resident import peak_mb, resident_mb

CHANNEL = "bench"
TEXT = "Water is rising: please move to the school on the hill. Bring warm clothes."
LINE = '{{"address": "+49151{0:08}"}}\n'
PIECE = 2000  # lines


class Watch:
    """Counts what is settled."""

    def __init__(self) -> None:
        self.settled = 0
        self.first = self.last = 0.0
        self._news = asyncio.Event()

    def __call__(self, event: Event) -> None:
        """One event of the engine."""
        if isinstance(event, BatchSettled):
            self.last = time.perf_counter()
            self.first = self.first or self.last
            self.settled += event.record_count
            self._news.set()

    async def until(self, n: int) -> None:
        """Wait until so many are settled."""
        async with asyncio.timeout(600):
            while self.settled < n:
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def engine(url: str, slots: int) -> AsyncIterator[tuple[App, Watch]]:
    """The whole engine with a no-op channel; its worker is not started."""
    watch = Watch()
    settings = Settings(database=url, channels={CHANNEL: ChannelSettings("noop")}, concurrency=slots,
                        channel_concurrency=slots, sandbox=False)  # fmt: skip
    app = build(settings, emit=watch)
    await app.open()
    try:
        yield app, watch
    finally:
        await app.close()


async def tidy(app: App) -> None:
    """Statistics and a checkpoint, as between filling and draining everywhere in these benches."""
    if isinstance(app.store, PostgresStore):
        async with app.store._connection() as connection:
            for table in ("tasks", "messages"):
                await connection.execute(f"vacuum analyze {table}", timeout=300)
            await connection.execute("checkpoint", timeout=300)


async def drain(url: str, n: int, slots: int) -> float:
    """Messages a second: n single messages accepted first, then sent."""
    async with engine(url, slots) as (app, watch):

        async def drafts() -> AsyncIterator[tuple[int, Draft]]:
            for number in range(n):
                yield number, Draft(CHANNEL, f"+49151{number:08}", TEXT)

        async for _ in app.messages.accept_many(drafts()):
            pass
        await tidy(app)
        began = time.perf_counter()
        app.worker.start()
        await watch.until(n)
        return n / (watch.last - began)


async def broadcast(url: str, n: int, slots: int) -> float:
    """Recipients a second: from the moment it is frozen to the last one done."""
    async with engine(url, slots) as (app, watch):
        made = await app.outbound.broadcast_creator.create({"channel": CHANNEL, "text": TEXT, "recipients": "upload"})
        id_ = made.answer["id"]
        await app.outbound.broadcast_creator.upload(
            id_, uploads.read_rows(lines(n), "ndjson", largest=10_000, most_lines=n), freezes=False
        )
        await tidy(app)
        app.worker.start()
        while not app.worker.is_working:  # noqa: ASYNC110  (it has no event)
            await asyncio.sleep(0.01)
        began = time.perf_counter()
        await app.outbound.broadcast_creator.freeze(id_)
        await watch.until(n)
        took = watch.last - began
        await ended(app, id_, n)
        return n / took


async def stream(url: str, n: int, slots: int, *, whole: bool) -> dict[str, float]:
    """n addresses as NDJSON: rows a second, memory of the process, first message after it is frozen.

    Unless the `whole` is to be sent, it is cancelled after some seconds, and everybody must be accounted for.
    """
    async with engine(url, slots) as (app, watch):
        app.worker.start()
        made = await app.outbound.broadcast_creator.create({"channel": CHANNEL, "text": TEXT, "recipients": "upload"})
        id_ = made.answer["id"]
        began = time.perf_counter()
        rows = uploads.read_rows(lines(n), "ndjson", largest=10_000, most_lines=n)
        shown = await app.outbound.broadcast_creator.upload(id_, rows)
        frozen = time.perf_counter()
        assert shown["total"] == n
        await watch.until(1)
        figures = {
            "rows_per_s": round(n / (frozen - began)),
            "first_sent_s": round(watch.first - frozen, 3),
            "memory_mb_loaded": resident_mb(),
        }
        if whole:
            await watch.until(n)
            figures["sent_per_s"] = round(n / (watch.last - frozen))
            await ended(app, id_, n)
        else:
            await watch.until(min(n, 20_000))
            broadcasts = BroadcastService(app.store, app.clock)
            await broadcasts.cancel(id_)
            counts = (await broadcasts.show(id_))["counts"]
            assert sum(counts.values()) == n, counts
        return {**figures, "memory_mb_peak": peak_mb()}


async def lines(n: int) -> AsyncIterator[bytes]:
    """An upload in pieces."""
    for first in range(0, n, PIECE):
        yield "".join(LINE.format(number) for number in range(first, min(n, first + PIECE))).encode()


async def ended(app: App, id_: str, n: int) -> None:
    """The end state: everybody sent, and the broadcast completed."""
    broadcasts = BroadcastService(app.store, app.clock)
    async with asyncio.timeout(30):
        while True:
            shown = await broadcasts.show(id_)
            if shown["state"] == "completed":
                break
            await asyncio.sleep(0.05)
    assert shown["counts"]["sent"] == n, shown["counts"]


def main() -> None:
    """One measurement, as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["ratio", "stream"])
    parser.add_argument("--n", type=int, default=100_000)
    parser.add_argument("--slots", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--whole", action="store_true", help="stream: send all of it, too")
    parser.add_argument("--sqlite", action="store_true", help="on a SQLite file instead of PostgreSQL")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tidings-bench-") as folder:
        if given.sqlite:
            print(json.dumps(_measure(given, lambda name: f"sqlite:///{folder}/{name}.db")))
            return
        Path(folder).chmod(0o755)
        with PostgresCluster(Path(folder) / "data") as cluster:
            print(json.dumps(_measure(given, cluster.create_database)))


def _measure(given: argparse.Namespace, database: object) -> dict[str, object]:
    import uvloop

    assert callable(database)
    if given.what == "stream":
        return dict(uvloop.run(stream(database("stream"), given.n, given.slots, whole=given.whole)))
    own, cast = [], []
    for number in range(given.rounds):
        own.append(uvloop.run(drain(database(f"own{number}"), given.n, given.slots)))
        cast.append(uvloop.run(broadcast(database(f"cast{number}"), given.n, given.slots)))
    ratios = [round(b / a, 3) for a, b in zip(own, cast, strict=True)]
    return {"drain_per_s": [round(v) for v in own], "broadcast_per_s": [round(v) for v in cast], "ratio": ratios}


if __name__ == "__main__":
    main()
