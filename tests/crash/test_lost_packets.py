"""Packets are lost, and the link flaps (B17, F29)."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from tidings.drill.checker import InjectedFault, InjectionKind
from tidings.drill.engine_records import read_engine_records

from .conftest import Report
from .databases import SqliteFile
from .lossy import IS_POSSIBLE, lossy
from .rig import Options, drill, message_refs, scaled

pytestmark = [
    pytest.mark.crash,
    pytest.mark.skipif(not IS_POSSIBLE, reason="only Linux loses packets when it is asked to"),
]

_DEADLINE = 1.5
_DEAD = 2.5  # seconds: what is under way then meets its deadline


async def test_a_line_that_loses_packets_and_flaps_loses_no_message(
    tmp_path: Path, sqlite_database: SqliteFile, report: Report
) -> None:
    """A fifth of all packets is lost, and the line is dead for longer than a deadline: what never left is
    tried again, what may have arrived is in doubt and says so, and everything arrives (F29)."""
    parts = [message_refs(f"m{part}", scaled(50, 200)) for part in range(scaled(1, 4) + 1)]
    options = Options(deadline=_DEADLINE)
    async with drill(tmp_path / "drill", sqlite_database, options) as rig:
        async with lossy(rig.port) as line:
            begin = time.time()
            line.lose(0.2)
            worker = rig.spawn(port=line.port, breaker_timeout=1)
            await rig.working(worker)
            for refs in parts[:-1]:
                producing = asyncio.create_task(rig.producer.produce(refs))
                await rig.until_seen(rig.seen() + 5)
                line.lose(1)
                await asyncio.sleep(_DEAD)
                line.lose(0.2)
                await producing
            await rig.producer.produce(parts[-1])
            idle = await rig.idle()
            code = await rig.stop(worker)
        # Not at idle: an attempt that met its deadline may be retransmitted after the next one was delivered.
        rig.note(InjectedFault(InjectionKind.PARTITION, worker.pid, begin, time.time(), "lost packets"))
        verdict = await rig.verdict()
        doubted = sum(book.unknown for book in (await read_engine_records(rig.database)).values())
    report(rig, verdict, doubted=doubted)

    assert idle and code == 0
    assert not verdict.violations
    assert verdict.delivered == len(rig.tried())
    assert doubted, "nothing was lost on the way: this run proves nothing (R7)"


async def test_nothing_arrives_over_a_lossy_line_after_its_end() -> None:
    """So the drill knows when the fault ended: the receiver has read all that the line had accepted, and what
    a sender sends or retransmits later does not get through."""
    read, may_read = asyncio.Event(), asyncio.Event()
    arrived: list[bytes] = []

    async def receive(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        arrived.append(await reader.readexactly(1))
        read.set()
        await may_read.wait()
        arrived.append(await reader.read())
        writer.close()

    async def pass_on(first: bytes, port: int) -> None:
        async with lossy(port) as line:
            sender = (await asyncio.open_connection("127.0.0.1", line.port))[1]
            senders.append(sender)
            sender.write(first)
            await read.wait()

    senders: list[asyncio.StreamWriter] = []
    async with await asyncio.start_server(receive, "127.0.0.1", 0) as server:
        line = asyncio.create_task(pass_on(b"12", server.sockets[0].getsockname()[1]))
        await read.wait()
        for _ in range(10):
            await asyncio.sleep(0)
        assert not line.done(), "it does not wait until the receiver has read everything"
        senders[0].write(b"3")
        may_read.set()
        await line
        senders[0].close()

    assert arrived == [b"1", b"2"]
