"""Roles, recycling, a slow database, a standby, and what a dead dispatcher leaves (B5, B12, C12)."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidings import app as engine
from tidings.cli.process_recycler import EXIT_CODE, Recycler, recycle_reason
from tidings.config import ChannelSettings, Settings
from tidings.dispatch.roles import Partition, ProcessRole, ProcessShare
from tidings.kernel.backpressure import MAX_REST, SLOW_CLAIM, Backpressure
from tidings.kernel.clock import ManualClock
from tidings.kernel.heartbeats import DISPATCHER_PREFIX
from tidings.kernel.lanes import Lane
from tidings.kernel.reaper import Reaper
from tidings.model.errors import Invalid, StoreUnavailable
from tidings.model.message import Draft
from tidings.model.task import NewTask, NodeId, OnUnknown, TaskState, Transition
from tidings.observability.events import BatchSettled, Event, StoreError, StoreSlow, TransportAttempts, discard_event
from tidings.store.migrations import load_migrations
from tidings.store.port import ClaimRequest, Row, Step, Store
from tidings.store.postgres import PostgresStore
from tidings.store.read_replica import REPLICA_READS, ReplicaStore
from tidings.store.statements import load_statements

CHANNELS = {"phone": ChannelSettings("noop", {}), "mail": ChannelSettings("noop", {})}


def built(tmp_path: Path, share: ProcessShare, **more: Any) -> engine.App:
    settings = Settings(
        **{"database": f"sqlite:///{tmp_path}/tidings.db", "channels": CHANNELS, "sandbox": False, **more}
    )
    return engine.build(settings, share=share)


def runs(app: engine.App) -> set[str]:
    return set(app.worker.runner._lanes)


def acts(app: engine.App) -> set[str]:
    return {actor.name for actor, _ in app.worker._actors}


def test_a_process_takes_the_channels_and_duties_of_its_roles(tmp_path: Path) -> None:
    """Workers claim, schedulers act, and one without either role claims nothing."""
    everything = built(tmp_path, ProcessShare())
    worker = built(tmp_path, ProcessShare(frozenset({ProcessRole.WORKER}), frozenset({"phone"})))
    scheduler = built(tmp_path, ProcessShare(frozenset({ProcessRole.SCHEDULER})))

    assert runs(everything) >= {"phone", "mail", "events"} and "scheduler" in acts(everything)
    assert runs(worker) == {"phone"} and not acts(worker)
    hooks = built(
        tmp_path, ProcessShare(frozenset({ProcessRole.WORKER})), channels={"hooks": ChannelSettings("webhook")}
    )
    assert acts(hooks) == {"destination_breakers"}, "whoever sends webhooks learns which receivers are left alone"
    assert not runs(scheduler) and "scheduler" in acts(scheduler)


def test_channels_of_the_broker_are_left_to_dispatchers(tmp_path: Path) -> None:
    """Workers send the others; the engine's own queues never leave the database."""
    broker = {"broker": "amqp://127.0.0.1:1/", "broker_channels": ("phone",)}
    worker = built(tmp_path, ProcessShare(frozenset({ProcessRole.WORKER})), **broker)
    dispatcher = built(tmp_path, ProcessShare(frozenset({ProcessRole.DISPATCHER})), **broker)

    assert "phone" not in runs(worker) and "mail" in runs(worker)
    assert runs(dispatcher) == {"phone"} and acts(dispatcher) == {"dispatch_recovery"}


def test_parts_divide_the_channels_and_leave_none_out(tmp_path: Path) -> None:
    """Every queue is served by exactly one of three (B12)."""
    parts = [
        runs(built(tmp_path, ProcessShare(frozenset({ProcessRole.WORKER}), part=Partition(number, 3))))
        for number in (1, 2, 3)
    ]

    whole = runs(built(tmp_path, ProcessShare()))
    assert set().union(*parts) == whole and sum(map(len, parts)) == len(whole)


def test_a_channel_that_does_not_exist_cannot_be_served(tmp_path: Path) -> None:
    """The sentence names those that do."""
    with pytest.raises(Invalid, match=r"unknown channel 'phon'.*mail, .*phone"):
        built(tmp_path, ProcessShare(queues=frozenset({"phon"})))


async def test_a_worker_leaves_other_channels_alone(store: Store, clock: ManualClock) -> None:
    """One step claims what is its own and nothing else (C12)."""
    share = ProcessShare(frozenset({ProcessRole.WORKER}), frozenset({"phone"}))
    app = engine.build(Settings(channels=CHANNELS, sandbox=False), clock=clock, store=store, share=share)
    for lane in app.lanes.values():
        await store.write(lane.join())
    for channel in CHANNELS:
        await app.messages.accept(Draft(channel, "ada", "hello"))
    await app.worker.node.join()

    done = await app.worker.runner.step()

    assert done.claimed == 1
    assert (await app.messages.page(channel="mail")).items[0]["state"] == "pending"


@pytest.mark.parametrize(
    ("done", "used", "after", "limit", "is_time"),
    [
        (999, 100, 1000, None, False),
        (1000, 100, 1000, None, True),
        (5, 100 << 20, None, 100 << 20, True),
        (5, None, None, 1, False),  # where the system does not say
        (10**9, 10**12, None, None, False),
    ],
)
def test_a_process_is_recycled_after_so_many_messages_or_so_much_memory(
    done: int, used: int | None, after: int | None, limit: int | None, is_time: bool
) -> None:
    """And says why (C12)."""
    assert (recycle_reason(done, used, after=after, memory_limit=limit) is not None) is is_time


async def test_a_recycled_process_asks_for_its_stop_and_ends_with_75(monkeypatch: pytest.MonkeyPatch) -> None:
    """On which a supervisor starts it again; what was sent by transports counts as well."""
    monkeypatch.setattr("tidings.cli.process_recycler._INTERVAL", 0)
    asked: list[bool] = []
    recycler = Recycler(100, None, lambda: asked.append(True))
    recycler.take(BatchSettled(1, 60, {"done": 60}, 1.0))
    recycler.take(TransportAttempts("t", 40))

    await recycler.watch(discard_event)

    assert asked and recycler.code == EXIT_CODE == 75


def test_a_slow_database_is_asked_less_often_and_the_log_says_so() -> None:
    """Told once; the rest is as long as the claim was, and ends when claims are quick again (B12)."""
    events: list[Event] = []
    pressure = Backpressure(events.append)

    rests = []
    for seconds in (0.01, SLOW_CLAIM, SLOW_CLAIM, 60.0, SLOW_CLAIM / 4):
        pressure.note(seconds)
        rests.append(pressure.rest)

    assert rests == [0.0, SLOW_CLAIM, SLOW_CLAIM, MAX_REST, 0.0]
    assert events == [StoreSlow(round(SLOW_CLAIM * 1000))]


# -- a standby


class _Away:
    """A standby that does not answer."""

    async def open(self, **_: Any) -> None:
        raise StoreUnavailable("the standby does not answer")


async def test_heavy_reads_go_to_the_standby_and_nothing_else_does(postgres_url: str) -> None:
    """Here a session that may only read: lists work, and what is claimed or written goes to the primary."""
    primary = PostgresStore(postgres_url, connections=2)
    await primary.open()
    reads: list[str] = []

    class Standby(PostgresStore):
        async def read(self, name: str, **params: Any) -> list[Row]:
            reads.append(name)
            return await super().read(name, **params)

    joint = "&" if "?" in postgres_url else "?"
    read_only = f"{postgres_url}{joint}options=-cdefault_transaction_read_only%3Don"
    both = ReplicaStore(primary, Standby(read_only, connections=1), emit=discard_event)
    try:
        await both.enqueue([NewTask("phone", "message", 0)])
        await both.read("counts", most=10)
        await both.read("now")

        assert reads == ["counts"]
    finally:
        await both.close()
        await primary.close()


async def test_while_the_standby_is_away_the_primary_answers(store: Store) -> None:
    """A list is worth more than where it comes from; the log says so once, not for each read."""
    events: list[Event] = []
    both = ReplicaStore(store, _Away(), emit=events.append)  # type: ignore[arg-type]

    await store.enqueue([NewTask("phone", "message", 0)])

    assert [(await both.read("counts", most=10))[0]["heads"] for _ in range(3)] == [1, 1, 1]
    assert [type(event) for event in events] == [StoreError]


def test_no_statement_that_writes_or_decides_is_heavy() -> None:
    """Claims never go to a standby: what is heavy only selects (B12)."""
    heavy = [load_statements(dialect)[name] for dialect in ("sqlite", "postgres") for name in REPLICA_READS]

    writes = re.compile(r"\b(insert into|update \w+ set|delete from|for update)\b", re.IGNORECASE)
    assert not [one.name for one in heavy if writes.search(one.sql)]


async def test_a_channel_is_pausing_until_nothing_of_it_is_in_flight(store: Store, clock: ManualClock) -> None:
    """What is with transports ends as it would; only then is it quiet (design 7)."""
    app = engine.build(Settings(channels=CHANNELS, sandbox=False), clock=clock, store=store)
    for lane in app.lanes.values():
        await store.write(lane.join())
    await app.messages.accept(Draft("phone", "ada", "hello"))
    me = NodeId((await _join(store, "worker:1"))["id"])
    [task] = (await store.claim(me, ClaimRequest({"phone": 1}, 1))).tasks

    answer = await app.outbound.channels.pause("phone")
    await store.settle(me, [Transition(task.id, task.claim_no, TaskState.DONE, 1)])

    assert (answer["state"], (await app.outbound.channels.one("phone"))["state"]) == ("pausing", "paused")


# -- what a dead dispatcher leaves


@pytest.mark.parametrize(("heirs", "age", "taken"), [(False, 299, 0), (False, 301, 1), (True, 301, 0)])
async def test_the_reaper_leaves_a_dispatchers_tasks_to_recovery(
    store: Store, clock: ManualClock, heirs: bool, age: int, taken: int
) -> None:
    """A transport may still be sending. Without an heir they are in doubt after five minutes (B5)."""
    lane = Lane("phone", on_unknown=OnUnknown.HOLD)
    await store.write(lane.join())
    [id_] = (await store.enqueue([NewTask("phone", "message", clock.now())])).ids
    dead = NodeId((await _join(store, f"{DISPATCHER_PREFIX}a:1"))["id"])
    await store.claim(dead, ClaimRequest({"phone": 1}, 1))
    await store.write([Step("node_dead", {"id": dead, "heartbeat": 0})])
    clock.advance(seconds=age)
    if heirs and not store.sole_worker:
        await _join(store, f"{DISPATCHER_PREFIX}b:2")
    me = NodeId((await _join(store, f"{DISPATCHER_PREFIX}me:3" if heirs else "worker:3"))["id"])
    reaper = Reaper(
        store,
        clock,
        {"phone": lane},
        handlers={},
        node_timeout=timedelta(seconds=10),
        emit=discard_event,
        me=lambda: me,
    )

    found = await reaper.step()

    task = (await store.read("task_look", id=id_))[0]
    assert (found.unknown, task["state"]) == (taken, "failed" if taken else "processing")


async def _join(store: Store, name: str) -> Row:
    return (await store.write([Step("node_join", {"name": name, "info": "{}"})]))[0][0]


# -- rolling upgrade


async def test_old_code_runs_on_every_newer_schema(bare_postgres_url: str) -> None:
    """Migrations only add: no column goes or changes its type, and a new one can be left out (F34).

    So the statements of a release run on the schema of any later one, and its processes may live on while a
    newer one takes over.
    """
    import asyncpg

    connection = await asyncpg.connect(bare_postgres_url)
    try:
        await connection.execute("create schema tidings; set search_path = tidings")
        before: dict[tuple[str, str], Any] = {}
        for migration in load_migrations("postgres"):
            await connection.execute(migration.sql)
            rows = await connection.fetch(
                """select table_name, column_name, data_type, is_nullable, column_default
                from information_schema.columns where table_schema = 'tidings'"""
            )
            now = {(row["table_name"], row["column_name"]): row for row in rows}
            tables = {table for table, _ in before}
            gone = [key for key in before if key not in now]
            changed = [key for key in before if key in now and before[key]["data_type"] != now[key]["data_type"]]
            needed = [
                key
                for key, row in now.items()
                if key not in before
                and key[0] in tables
                and row["is_nullable"] == "NO"
                and row["column_default"] is None
            ]
            assert not (gone or changed or needed), (migration.name, gone, changed, needed)
            before = now
    finally:
        await connection.close()
