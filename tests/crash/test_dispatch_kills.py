"""Transports, dispatchers and RabbitMQ itself killed with -9 under load, or blocked (B15, B17, F40–F46)."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.dispatch.cleaning import clean

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.drill.engine_records import read_engine_records
from tidings.drill.harness import DrillProcess
from tidings.testing import RabbitBroker

from ..time_limits import until
from .conftest import Report
from .databases import Database, SqliteFile
from .rig import IS_FULL, Options, Rig, drill, message_refs, portions, reasons, scaled
from .worker import CHANNEL

pytestmark = [
    pytest.mark.crash,
    pytest.mark.postgres,
    pytest.mark.xdist_group("rabbitmq"),
    *([] if IS_FULL else [pytest.mark.timeout(300)]),
]

_DEADLINE = 3.0  # seconds: a process of a busy machine has stood still for one, and such a doubt has no witness
_BOUNDS = 5.0  # seconds, more than every bound of what was claimed
_AT_WORK = """select m.recipient from {0}tasks t join {0}messages m on m.task = t.id
where t.state = 'processing'"""


def dispatcher(rig: Rig, url: str) -> DrillProcess:
    return rig.spawn(broker=url, roles=["dispatcher"])


def transport(rig: Rig, url: str, crash_at: str | None = None) -> DrillProcess:
    return rig.spawn(broker=url, roles=["transport"], slots=8, crash_at=crash_at)


async def connected(*senders: DrillProcess) -> None:
    """Wait until these have reached the broker."""
    assert await until(lambda: all(sender.facts("broker_reached") for sender in senders))


async def at_work(database: Database) -> dict[str, bool]:
    """What is with transports now: any of it may be lost with one of them."""
    return {row[0]: True for row in await database.rows(_AT_WORK)}


async def kill_transport(rig: Rig, victim: DrillProcess, blow: str | None) -> None:
    """At random, or at its own crash point; what was at work is the injector's witness."""
    before = await at_work(rig.database)
    if blow is None:
        fault = await rig.kill(victim)
    else:
        fault = await rig.died(victim, blow)
    left = {**before, **await at_work(rig.database)}
    rig.note(fault._replace(held=left))


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_killed_transports_and_dispatchers_lose_nothing_and_repeat_nothing_in_silence(
    tmp_path: Path, postgres_database: Database, rabbit_url: str, on_unknown: str, report: Report
) -> None:
    """Random, at the start mark, after the send; a dispatcher in between: the ledger finds no crime."""
    await clean(rabbit_url, CHANNEL, 40)
    chance = random.Random(f"fleet {on_unknown}")
    blows: list[str | None] = [None, "sent:9", *(["started:2"] if on_unknown == "hold" else [])]
    kills = blows * scaled(1, 5)
    parts = portions(message_refs("d", scaled(400, 4000)), len(kills) + 2)
    options = Options(on_unknown=on_unknown, lease=2.0, beat=0.2, deadline=_DEADLINE)
    async with drill(tmp_path / "drill", postgres_database, options) as rig:
        head, second, steady = (make(rig, rabbit_url) for make in (dispatcher, dispatcher, transport))
        await connected(head, second)
        for blow, refs in zip(kills, parts, strict=False):
            victim = transport(rig, rabbit_url, crash_at=blow)
            await connected(victim)
            before = rig.seen()
            producing = asyncio.create_task(rig.producer.produce(refs))
            if blow is None:
                await rig.until_seen(before + chance.randint(1, len(refs) // 2))
            await kill_transport(rig, victim, blow)
            await producing
        before = rig.seen()
        producing = asyncio.create_task(rig.producer.produce(parts[-2]))
        await rig.until_seen(before + len(parts[-2]) // 3)
        await rig.kill(head, "dispatcher")
        await producing
        await rig.producer.produce(parts[-1])
        idle = await rig.idle()
        codes = await asyncio.gather(rig.stop(steady), rig.stop(second))
        verdict = await rig.verdict()
        doubted = sum(book.unknown for book in (await read_engine_records(rig.database)).values())
        inherited = second.facts("tasks_recovered")
    report(rig, verdict, kills=len(rig.faults), inherited=inherited, doubted=doubted)

    assert idle and list(codes) == [0, 0]
    assert not verdict.violations
    assert doubted, "no transport died with something begun: this run proves nothing (R7)"
    if on_unknown == "hold":
        assert not verdict.duplicates
    else:
        assert not verdict.held and verdict.delivered == len(rig.tried())


@pytest.mark.parametrize("on_unknown", ["resend", "hold"] if IS_FULL else ["hold"])
async def test_a_killed_broker_loses_nothing_and_work_resumes_automatically(
    tmp_path: Path, postgres_database: Database, rabbit: RabbitBroker, on_unknown: str, report: Report
) -> None:
    """Everything waits, and goes on with the same processes when RabbitMQ is back (F40, F41)."""
    await clean(rabbit.url, CHANNEL, 40)
    parts = portions(message_refs("b", scaled(300, 3000)), 2)
    options = Options(on_unknown=on_unknown, deadline=_DEADLINE)
    async with drill(tmp_path / "drill", postgres_database, options) as rig:
        head, *pair = (make(rig, rabbit.url) for make in (dispatcher, transport, transport))
        await connected(head, *pair)
        producing = asyncio.create_task(rig.producer.produce(parts[0]))
        await rig.until_seen(len(parts[0]) // 3)
        begin = time.time()
        left = await at_work(rig.database)
        await asyncio.to_thread(rabbit.kill)
        left |= await at_work(rig.database)
        await asyncio.to_thread(rabbit.start)
        rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "kill -9 of RabbitMQ", left))
        await producing
        await rig.producer.produce(parts[1])
        idle = await rig.idle()
        codes = await asyncio.gather(*(rig.stop(sender) for sender in (*pair, head)))
        verdict = await rig.verdict()
    noticed: list[Any] = reasons(head, "broker_lost")
    report(rig, verdict, kills_of_rabbitmq=1, noticed=len(noticed))

    assert idle and codes == [0, 0, 0], "the same processes go on"
    assert not verdict.violations
    assert on_unknown == "resend" or not verdict.duplicates
    assert noticed, "nobody noticed: this run proves nothing (R7)"


@asynccontextmanager
async def blocked(rabbit: RabbitBroker) -> AsyncIterator[None]:
    """Its memory alarm rings: whoever publishes is not read any more."""
    await asyncio.to_thread(rabbit.control, "set_vm_memory_high_watermark", "0.00000001")
    try:
        yield
    finally:
        await asyncio.to_thread(rabbit.control, "set_vm_memory_high_watermark", "0.6")


async def test_a_broker_that_blocks_its_publishers_holds_up_what_it_has_and_nothing_is_lost(
    tmp_path: Path, sqlite_database: SqliteFile, rabbit: RabbitBroker, report: Report
) -> None:
    """Messages are accepted as ever; what was claimed waits beyond its bounds and is not called lost; when
    the broker takes again, everything goes out, and what goes out twice says so (F46)."""
    await clean(rabbit.url, CHANNEL, 40)
    options = Options(lease=2.0, beat=0.2, deadline=1.0)
    async with drill(tmp_path / "drill", sqlite_database, options) as rig:
        head, hand = dispatcher(rig, rabbit.url), transport(rig, rabbit.url)
        await connected(head, hand)
        await rig.producer.produce(message_refs("before", 10))
        await rig.until_seen(10)
        begin = time.time()
        async with blocked(rabbit):
            await rig.producer.produce(message_refs("during", 60))
            await asyncio.sleep(_BOUNDS)
            meanwhile = rig.seen()
        idle = await rig.idle()
        rig.note(InjectedFault(InjectionKind.CUT, 0, begin, time.time(), "the broker blocks its publishers"))
        codes = await asyncio.gather(rig.stop(head), rig.stop(hand))
        verdict = await rig.verdict()
    report(rig, verdict, sent_while_blocked=meanwhile - 10)

    assert idle and list(codes) == [0, 0], "the same processes go on"
    assert not verdict.violations and verdict.delivered == len(rig.tried())
    assert meanwhile < len(rig.tried()), "nobody was held up: this run proves nothing (R7)"
