"""This engine's side of every measurement, each run in a fresh process by its own name.

    python -m bench.ours drain_postgres --dsn postgresql://... --n 100000 --slots 256 --started-marks

The database given is empty and nobody else's. Each function prepares what it needs, measures, verifies the
end state (a wrong one is an error, never a figure) and gives back messages per second or the named figures.
Peers and raw limits run `vacuum analyze` and `checkpoint` between filling and draining; so do we.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import apsw
import orjson

from tidings.model.message import Message
from tidings.model.task import NodeId, OnUnknown, TaskState, Transition
from tidings.model.time import SECOND
from tidings.outbound.channels.webhook import WebhookChannel, WebhookSettings
from tidings.outbound.message_validation import MESSAGE_COLUMNS
from tidings.store.migrations import load_migrations
from tidings.store.port import ClaimRequest, Step
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore
from tidings.store.task_rows import COLUMNS as TASK_COLUMNS

from . import limits
from .bare_client import SECRET, receiver
from .calls import serve
from .engine import CHANNEL, Engine, Marking, engine
from .figures import spread
from .payload import content
from .resident import resident_mb

_WARM = 20  # polls before those that count


async def drain_postgres(
    dsn: str, n: int, slots: int = 256, started_marks: bool = False, snapshot: bool = False
) -> float:
    """Messages/s: n accepted first, then one worker with a no-op channel, 2 history rows each, fenced.

    The clock runs from the first send to the last settle committed. With `started_marks` the channel does not
    resend, so a mark is committed before each send. With `snapshot` another connection holds an old one.
    """
    return await _drain(dsn, n, slots, OnUnknown.HOLD if started_marks else OnUnknown.RESEND, snapshot)


async def drain_sqlite(path: str, n: int, slots: int = 256) -> float:
    """The same on a SQLite file (WAL, synchronous FULL)."""
    return await _drain(f"sqlite:///{path}", n, slots, OnUnknown.RESEND)


async def _drain(url: str, n: int, slots: int, on_unknown: OnUnknown, snapshot: bool = False) -> float:
    channel = Marking(on_unknown)
    async with engine(url, channel, slots=slots) as ours:
        await ours.fill(n)
        await ours.tidy()
        holder = await _old_snapshot(ours) if snapshot else None
        ours.worker.start()
        await ours.until_settled(n)
        if holder is not None:
            await holder.close()
        await ours.verify(n)
        assert channel.first is not None
        return n / (ours.last - channel.first)


async def _old_snapshot(ours: Engine) -> Any:
    import asyncpg

    assert isinstance(ours.store, PostgresStore)
    connection = await asyncpg.connect(ours.store._dsn)
    await connection.execute(f"begin isolation level repeatable read; select 1 from {ours.store.schema}.tasks limit 1")
    return connection


async def bulk_accept_postgres(dsn: str, n: int) -> float:
    """Messages/s through the bulk accept of n messages in one call, validation included."""
    async with engine(dsn, Marking(OnUnknown.RESEND), slots=1) as ours:
        return await ours.fill(n)


def copy_target(n: int) -> tuple[str, Sequence[limits.Load]]:
    """The real schema as DDL, and the rows that n accepted messages leave in each table, content first."""
    ddl = "".join(migration.sql for migration in load_migrations("postgres"))
    ids = [f"019a{i:08x}-0000-7000-8000-{i:012x}" for i in range(n)]
    now = time.time_ns() // 1000
    messages, tasks = [], []
    for i in range(n):
        made = content(i)
        body = orjson.dumps({"text": made["text"]}).decode()
        messages.append((i, now, now, ids[i], "default", CHANNEL, made["to"], body, False))
        tasks.append((i, "default", CHANNEL, "message", 5, now, now, None, None, True, now + 86_400 * SECOND, None))
    return ddl, [
        limits.Load("messages", ("task", *MESSAGE_COLUMNS), messages),
        limits.Load("tasks", TASK_COLUMNS, tasks),
    ]


async def raw_copy_postgres(dsn: str, n: int) -> dict[str, Any]:
    """Raw COPY of the same rows into the same tables with the same indexes: `per_s` and `bytes_per_s`."""
    ddl, loads = copy_target(n)
    return await limits.copy(dsn, ddl, loads)


async def lag(url: str, n: int = 500, over: float = 20) -> dict[str, float]:
    """Start minus due in ms for n messages at random instants over so many seconds: p50, p95, p99, max."""
    chance = random.Random(7)
    late = await _started(url, n, lambda first: lambda _: first + round(chance.random() * over * SECOND))
    assert min(late) >= 0, f"one started {-min(late)} µs early"
    return spread([value / 1000 for value in late])


async def burst(url: str, n: int = 2_000) -> dict[str, float]:
    """n messages due at one instant: seconds until the first (`first_s`) and last (`last_s`) started."""
    late = await _started(url, n, lambda first: lambda _: first)
    assert min(late) >= 0, f"one started {-min(late)} µs early"
    return {"first_s": round(min(late) / SECOND, 4), "last_s": round(max(late) / SECOND, 4)}


async def _started(url: str, n: int, plan: Any) -> list[int]:
    """How many microseconds after its due time each of n messages started, with a running worker."""
    late: list[int] = []

    def note(message: Message) -> None:
        late.append(time.time_ns() // 1000 - message.content["data"]["due"])

    async with engine(url, Marking(OnUnknown.RESEND, note), slots=256) as ours:
        ours.worker.start()
        await ours.fill(20, at=lambda _: time.time_ns() // 1000 - 1)  # everything warm
        await ours.until_settled(20)
        late.clear()
        first = time.time_ns() // 1000 + 4 * SECOND
        await ours.fill(n, at=plan(first))
        assert time.time_ns() // 1000 < first, "accepting took too long"
        await ours.until_settled(20 + n)
        await ours.verify(20 + n)
    return late


async def claim_latency(
    url: str,
    *,
    future: int = 5_000_000,
    keyed: int = 100_000,
    paused: int = 100_000,
    queues: int = 20,
    polls: int = 300,
) -> dict[str, float]:
    """Milliseconds for an empty poll and a claim of 100, among future, ordered and paused rows.

    Gives back `empty_p50_ms`, `empty_p99_ms`, `claim_p50_ms`, `claim_p99_ms`, and the same of `next_due`.
    """
    async with engine(url, Marking(OnUnknown.RESEND), slots=256) as ours:
        store = ours.store
        names = [f"q{i:02d}" for i in range(queues)]
        for name in [*names, "paused"]:
            known = {"name": name, "on_unknown": "resend", "deadline": SECOND, "stop_on_failure": False}
            await store.write([Step("queue_join", known)])
        await store.write([Step("queue_pause", {"name": "paused", "reason": "bench"})])
        await _stand_in_the_way(ours, future, keyed, paused, queues)
        await ours.tidy()
        me = NodeId((await store.write([Step("node_join", {"name": "bench", "info": "{}"})]))[0][0]["id"])
        served = [*names, "paused"]
        wish = ClaimRequest({name: 100 for name in served}, 100, 12)
        empty: list[float] = []
        due: list[float] = []
        for poll in range(_WARM + polls):
            if poll == _WARM:  # a process that has been up for a moment: statements planned, pages in memory
                empty, due = [], []
            began = time.perf_counter()
            claimed = await store.claim(me, wish)
            empty.append((time.perf_counter() - began) * 1000)
            assert not claimed.tasks
            began = time.perf_counter()
            await store.next_due(served)
            due.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(0.002)
        hundred = [await _claim_hundred(ours, me, wish, names) for _ in range(polls // 3)]
    found = {"empty": spread(empty), "next": spread(due), "claim": spread(hundred)}
    return {f"{name}_{key}_ms": value for name, values in found.items() for key, value in values.items()}


async def _claim_hundred(ours: Engine, me: NodeId, wish: ClaimRequest, names: list[str]) -> float:
    from tidings.model.task import NewTask

    now = ours.clock.now()
    await ours.store.enqueue([NewTask(names[i % len(names)], "message", now - i, priority=i % 10) for i in range(100)])
    began = time.perf_counter()
    claimed = await ours.store.claim(me, wish)
    took = (time.perf_counter() - began) * 1000
    assert len(claimed.tasks) == 100, f"claimed {len(claimed.tasks)}"
    await ours.store.settle(me, [Transition(t.id, t.claim_no, TaskState.DONE, 1) for t in claimed.tasks])
    return took


async def _stand_in_the_way(ours: Engine, future: int, keyed: int, paused: int, queues: int) -> None:
    """Rows that no claim may touch: in the future, behind an order key, on a paused channel."""
    now = ours.clock.now()
    columns = "id, tenant, queue, kind, priority, due_at, changed_at, ordering_key, first_due, head"
    day = 86_400 * SECOND
    kinds = {
        "future": f"n, 'default', 'q' || substr('0' || (n % {queues}), -2), 'message', n % 10, "
        f"{now} + {day} + (n * 7919) % (30 * {day}), {now}, null, null, {{true}}",
        "keyed": f"n, 'default', 'q00', 'message', 5, {now} - 1000000 + n % 1000, {now}, 'one key', "
        f"{now} - 1000000 + n % 1000, {{false}}",
        "paused": f"n, 'default', 'paused', 'message', 5, {now} - 1000000 + n % 1000, {now}, null, null, {{true}}",
    }
    first = 1
    for kind, count in (("future", future), ("keyed", keyed), ("paused", paused)):
        if isinstance(ours.store, PostgresStore):
            values = (
                kinds[kind]
                .format(true="true", false="false")
                .replace(f"substr('0' || (n % {queues}), -2)", f"lpad((n % {queues})::text, 2, '0')")
            )
            async with ours.store._connection() as connection:
                await connection.execute(
                    f"insert into tasks ({columns}) select {values} from generate_series("
                    f"{first}::bigint, {first + count - 1}) n",
                    timeout=1200,
                )
                await connection.execute(f"select setval('task_ids', {first + count})")
        else:
            assert isinstance(ours.store, SqliteStore)
            values = kinds[kind].format(true="1", false="0")
            sql = (
                f"with recursive s(n) as (select {first} union all select n + 1 from s where n < {first + count - 1}) "
                f"insert into tasks ({columns}) select {values} from s"
            )
            await ours.store._run(partial(_execute, sql))
        first += count


def _execute(sql: str, connection: apsw.Connection) -> None:
    connection.execute(sql).fetchall()


async def memory(url: str, n: int = 1_000_000) -> dict[str, float]:
    """Resident memory while n drain: after a tenth (`early_mb`) and at the end (`late_mb`)."""
    async with engine(url, Marking(OnUnknown.RESEND), slots=256) as ours:
        await ours.fill(n)
        filled = resident_mb()
        ours.worker.start()
        await ours.until_settled(n // 10, cap=1200)
        early = resident_mb()
        await ours.until_settled(n, cap=1200)
        late = resident_mb()
        await ours.verify(n)
    return {"filled_mb": filled, "early_mb": early, "late_mb": late}


async def webhook_rate(path: str, n: int, in_flight: int = 100) -> float:
    """Messages/s through the signed webhook channel to a loopback receiver, on a SQLite file."""
    settings = WebhookSettings(secrets=(SECRET,), allow_private=True, allow_http=True)
    with receiver() as base:
        made = Engine(
            f"sqlite:///{path}", WebhookChannel(settings, now=lambda: time.time_ns() // 1000), slots=in_flight
        )
        await made.store.open()
        for lane in made.worker.runner._lanes.values():
            await made.store.write(lane.join())
        await made.fill(n, to=f"{base}/hook")
        began = time.perf_counter()
        made.worker.start()
        await made.until_settled(n)
        rate = n / (made.last - began)
        await made.verify(n)
        await made.worker.stop()
        await made.store.close()
        return rate


if __name__ == "__main__":
    serve(
        [
            drain_postgres,
            drain_sqlite,
            bulk_accept_postgres,
            raw_copy_postgres,
            lag,
            burst,
            claim_latency,
            memory,
            webhook_rate,
        ]
    )
