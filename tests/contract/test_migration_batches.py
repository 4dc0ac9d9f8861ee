"""Batches of a migration: their sizes and states, the breaker they share, and the time they may take."""

from __future__ import annotations

import asyncio
import tracemalloc
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.migration import serializers
from tidings.migration.connectors import registry
from tidings.migration.connectors.port import ConnectorError, ErrorKind, Fields, TargetRecord, WriteStrategy
from tidings.migration.job_file import HARD, SOFT, read_job
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.model.time import MINUTE
from tidings.observability.events import BatchFinished, BatchStarted, UnexpectedError

from .migration_harness import Killed, Moving
from .receiver import receiving

unpatched_target = registry.target

NAME = {"fields": {"name": "name"}}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "name": f"P{number}"} for number in range(count)]


async def shown(moving: Moving, id_: str) -> tuple[str, int]:
    """State and attempt of the only batch, as the API shows it."""
    (batch,) = await moving.migrations.batches(id_)
    plain = serializers.batch(batch)
    return plain["state"], plain["attempt"]


async def states(moving: Moving, round_: int = 1) -> dict[str, int]:
    """How many batches of the first job are in which state."""
    return {row["state"]: row["n"] for row in await moving.store.read("job_batch_states", job=1, round=round_)}


def test_each_record_type_has_its_batch_size() -> None:
    """C1: contacts 1000, companies 500, notes 2000, activities 1500, files 100; any other type 1000."""
    sizes = {"contacts": 1000, "companies": 500, "notes": 2000, "activities": 1500, "files": 100, "deals": 1000}
    ends = {"source": {"kind": "ndjson", "path": "from"}, "target": {"kind": "ndjson", "path": "to"}}

    types = {**dict.fromkeys(sizes, NAME), "scans": {**NAME, "to": "files"}}
    job = read_job({"name": "move", "types": types, **ends})

    assert {name: job.type(name).batch_size for name in types} == {**sizes, "scans": 100}


@pytest.mark.parametrize(("refusals", "ended"), [(2, "completed"), (99, "failed_final")])
async def test_a_batch_goes_through_each_state(moving: Moving, refusals: int, ended: str) -> None:
    """C2: pending, processing, failed, retrying, then completed, or failed_final once a record's attempts are used."""
    moving.give("people", rows(3))
    refused = {"2": refusals}
    moving.books.fault = lambda _type, key, _fields: _down(refused, key)
    id_ = await moving.create({"people": NAME}, retry={"max_attempts": 3})
    await moving.migrations.run(id_, by="anna")
    await moving.extractor.step()
    await moving.scheduler.step()
    seen = [await shown(moving, id_)]
    write = moving.books.write

    async def watched(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        seen.append(await shown(moving, id_))
        return await write(type_, key, fields, known)

    moving.books.write = watched  # type: ignore[method-assign]
    while (await moving.migrations.find(id_)).state is JobState.RUNNING:
        await moving.step()
        seen.append(await shown(moving, id_))
        moving.clock.advance(seconds=1)

    order = [now for before, now in pairwise([None, *seen]) if now != before]
    assert order == [
        ("pending", 1), ("processing", 1), ("failed", 2), ("retrying", 2), ("failed", 3), ("retrying", 3),
        (ended, 3),
    ]  # fmt: skip
    states = (await moving.migrations.status(id_)).batches
    assert {str(state): n for state, n in states.items()} == {ended: 1}
    assert len(moving.books.content("people")) == (3 if ended == "completed" else 2)
    started = [event for event in moving.events if isinstance(event, BatchStarted)]
    finished = [event for event in moving.events if isinstance(event, BatchFinished)]
    assert [(one.record_count, one.batch_size, one.attempt) for one in started] == [(3, 3, 1), (1, 3, 2), (1, 3, 3)]
    assert [(one.record_count, one.attempt, one.state) for one in finished] == [
        (2, 1, "failed"), (0, 2, "failed"), (1, 3, ended),
    ]  # fmt: skip
    assert {(one.job, one.tenant) for one in started} == {(id_, "default")}
    assert {(one.job, one.tenant) for one in finished} == {(id_, "default")}


async def test_a_batch_after_a_crash_is_retrying(moving: Moving) -> None:
    """C2: the attempt after a crash is a retry, and the log says so."""
    moving.give("people", rows(3))

    def deadly(_type: str, key: str, _fields: Fields) -> ConnectorError | None:
        raise Killed(key)

    moving.books.fault = deadly
    id_ = await moving.create({"people": NAME})
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert await shown(moving, id_) == ("processing", 1)
    moving.books.fault = lambda *_: None
    await moving.bury()
    await moving.drive(id_)

    last = [event for event in moving.events if isinstance(event, BatchFinished)][-1]
    assert (last.state, last.attempt) == ("completed", 2)


async def test_a_poison_batch_is_bisected_down_to_the_record(moving: Moving) -> None:
    """C2: each half is a new batch; the one with only the record that kills ends as failed_final."""
    moving.quarantine_after, moving.at_once = 2, 1
    moving.start()
    moving.give("people", rows(40))

    def deadly(_type: str, key: str, _fields: Fields) -> ConnectorError | None:
        if key == "17":
            raise Killed(key)
        return None

    moving.books.fault = deadly
    id_ = await moving.create({"people": NAME})
    await moving.migrations.run(id_, by="anna")
    for _ in range(60):
        view = await moving.drive(id_, rounds=20, may_go_on=True)
        if view.state is not JobState.RUNNING:
            break
        await moving.bury()

    found = await states(moving)
    assert found["failed_final"] == 1, found
    assert set(found) == {"completed", "failed_final"}
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 39, RecordState.FAILED: 1}


async def test_the_circuit_breaker_opens_for_a_minute_after_five_failures_in_a_row(moving: Moving) -> None:
    """C6: the breaker of the target opens, no record is called for meanwhile, then the job completes."""
    moving.give("people", rows(60))
    back = moving.clock.now() + MINUTE // 2
    calls: list[int] = []

    def fault(*_: object) -> ConnectorError | None:
        moving.clock.advance(0.2)  # as long as it takes to say no
        calls.append(moving.clock.now())
        return ConnectorError(ErrorKind.SERVER, "HTTP 503") if calls[-1] < back else None

    moving.books.fault = fault
    id_ = await moving.run({"people": NAME})

    while_down = sum(at < back for at in calls)
    assert 5 <= while_down < 60, "it opened before every record had failed"
    assert calls[while_down] - calls[while_down - 1] >= MINUTE, "nobody called while it was open"
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 60}


@pytest.mark.parametrize("alert_after", [3, 5])
async def test_an_event_is_emitted_after_alert_after_failures_of_a_target(moving: Moving, alert_after: int) -> None:
    """C3: an event says so, once while it lasts; the default is 3."""
    moving.give("people", rows(60))
    back = moving.clock.now() + MINUTE // 2
    told_after: list[int] = []
    calls = 0

    async def write(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        nonlocal calls
        events = [row["type"] for row in await moving.store.read("outbox_page", limit=50)]
        if "migration.breaker_opened" in events and not told_after:
            told_after.append(calls)
        calls += 1
        moving.clock.advance(0.6)  # longer than the time between two notes of a batch
        if moving.clock.now() < back:
            raise ConnectorError(ErrorKind.SERVER, "HTTP 503")
        return await books(type_, key, fields, known)

    books = moving.books.write
    moving.books.write = write  # type: ignore[method-assign]
    await moving.run({"people": NAME}, **({} if alert_after == 3 else {"retry": {"alert_after": alert_after}}))

    events = [row["type"] for row in await moving.store.read("outbox_page", limit=50)]
    assert events.count("migration.breaker_opened") == 1
    assert told_after and alert_after <= told_after[0] <= alert_after + moving.books.limits.concurrency


async def test_a_batch_over_its_soft_time_limit_commits_and_releases_the_rest(
    moving: Moving, clock: ManualClock
) -> None:
    """C12: 50 minutes unless the job says otherwise; what was written stays, nothing is left in doubt."""
    assert timedelta(minutes=50) == SOFT
    moving.give("people", rows(30))
    write = moving.books.write

    async def slow(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        clock.advance(1)
        return await write(type_, key, fields, known)

    moving.books.write = slow  # type: ignore[method-assign]
    id_ = await moving.create({"people": NAME}, limits={"soft_limit": "3s", "hard_limit": "1h"})
    await moving.migrations.run(id_, by="anna")
    while not moving.books.writes:
        await moving.step()
    after_one_turn = moving.books.writes

    view = await moving.drive(id_)

    assert 3 <= after_one_turn < 9, "the first turn gave the rest back"
    assert view.state is JobState.COMPLETED
    assert moving.books.writes == 30, "what was committed is not written again"
    log = (await moving.migrations.record(id_, "people", "29"))["log"]
    assert [line["what"] for line in log] == ["written"]


async def test_a_batch_over_its_hard_time_limit_is_stopped_and_its_open_record_reconciled(moving: Moving) -> None:
    """C12: the call in flight is cancelled, its record is unknown, and a lookup settles it; nothing is doubled."""
    assert timedelta(hours=1) == HARD
    moving.books.default = WriteStrategy.MARK  # a repeated write would create a second record
    moving.give("people", rows(3))
    write = moving.books.write

    async def hangs_once(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        written = await write(type_, key, fields, known)
        if key == "1" and moving.books.writes <= 3:
            await asyncio.Event().wait()  # the answer never comes
        return written

    moving.books.write = hangs_once  # type: ignore[method-assign]
    id_ = await moving.create({"people": NAME}, limits={"soft_limit": "50ms", "hard_limit": "100ms"})
    await moving.migrations.run(id_, by="anna")
    while not moving.books.writes:
        await moving.step()
    (batch,) = await moving.migrations.batches(id_)
    assert (batch["state"], batch["reason"]) == ("failed", "hard time limit reached")

    await moving.drive(id_)

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 3}
    assert len(moving.books.content("people")) == 3
    assert moving.books.finds > 0
    log = [line["what"] for line in (await moving.migrations.record(id_, "people", "1"))["log"]]
    assert log == ["unknown", "written"]


async def test_batches_shrink_in_a_job_with_a_slow_target(moving: Moving) -> None:
    """C1: a second per record makes batches of 150 last minutes; the next ones have the least size."""
    moving.give("people", rows(750))
    write = moving.books.write

    async def slow(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        moving.clock.advance(1)
        return await write(type_, key, fields, known)

    moving.books.write = slow  # type: ignore[method-assign]
    id_ = await moving.run({"people": {**NAME, "batch_size": 150}})

    sizes = sorted(batch["size"] for batch in await moving.migrations.batches(id_))
    assert sizes == [50, 100, 150, 150, 150, 150], "the first four are cut before anything was measured"


async def test_batches_grow_in_a_job_with_a_fast_target(moving: Moving) -> None:
    """C1: ten milliseconds per record allow 6,000 records in a minute."""
    moving.give("people", rows(1000))
    write = moving.books.write

    async def fast(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        moving.clock.advance(0.01)
        return await write(type_, key, fields, known)

    moving.books.write = fast  # type: ignore[method-assign]
    id_ = await moving.run({"people": {**NAME, "batch_size": 100}})

    assert sorted(batch["size"] for batch in await moving.migrations.batches(id_)) == [100, 100, 100, 100, 600]


async def test_an_unexpected_exception_is_logged_with_its_traceback_and_the_batch_retried(moving: Moving) -> None:
    """Of a connector that reads attributes, or one that writes; the line names job, batch and tenant."""
    moving.give("people", rows(3))
    known, raised = moving.books.attributes, [KeyError("page")]

    async def attributes(type_: str) -> Any:
        if raised:
            raise raised.pop()
        return await known(type_)

    def fails(_type: str, key: str, _fields: Fields) -> None:
        if key == "1":
            raise ZeroDivisionError("oops")

    moving.books.attributes = attributes  # type: ignore[method-assign]
    moving.books.default = WriteStrategy.MARK
    moving.books.fault = fails
    id_ = await moving.run({"people": NAME})

    lines = [event for event in moving.events if isinstance(event, UnexpectedError)]
    assert [line.error for line in lines] == ["KeyError: 'page'", "ZeroDivisionError: oops"]
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 2, RecordState.FAILED: 1}
    assert {line.job for line in lines} == {id_} and all("Traceback" in line.exception for line in lines)
    log = [line["what"] for line in (await moving.migrations.record(id_, "people", "1"))["log"]]
    assert log == ["unknown", "failed"], "the lookup did not find it, and a program error is not repeated"


async def test_independent_records_are_written_in_parallel(moving: Moving) -> None:
    """C7: as many calls at once as the target allows, never more."""
    moving.give("people", rows(40))
    write, in_flight, most = moving.books.write, 0, 0

    async def counted(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        await asyncio.sleep(0)
        in_flight -= 1
        return await write(type_, key, fields, known)

    moving.books.write = counted  # type: ignore[method-assign]
    await moving.run({"people": NAME})

    assert most == moving.books.limits.concurrency == 4
    assert len(moving.books.content("people")) == 40


async def test_connections_to_a_target_are_pooled(moving: Moving) -> None:
    """C7: 60 calls of a job, up to 4 at once, use at most 4 connections."""
    moving.give("people", rows(60))
    async with receiving() as receiver:
        given = {"url": f"{receiver.url}/people", "body": {"name": "{%name%}"}, "key_header": "idempotency-key"}
        moving.books = unpatched_target("http", {**given, "target_id": "receipt"})  # type: ignore[assignment]
        id_ = await moving.run({"people": NAME}, limits={"concurrency": 4})
        await moving.connections.close()

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 60}
    assert len(receiver.requests) == 60 and 1 <= receiver.connections <= 4


@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
async def test_the_memory_of_a_job_does_not_grow_with_its_records(moving: Moving) -> None:
    """C7: records are streamed: three times as many, with 4 KB each, need no more memory at the peak."""
    moving.at_once = 1
    moving.start()

    async def write(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        return TargetRecord(f"t{key}")

    moving.books.write = write  # type: ignore[method-assign]
    peaks = []
    for name, count in (("few", 1000), ("many", 3000)):
        moving.give(name, ({"id": str(number), "name": "x" * 4000} for number in range(count)))
        tracemalloc.start()
        id_ = await moving.run({name: {**NAME, "batch_size": 500}})
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert (await moving.migrations.status(id_)).done == count
        moving.events.clear()

    few, many = peaks
    assert many - few < 2_000_000, f"{few:,} bytes for 1,000 records, {many:,} for 3,000"


def _down(left: dict[str, int], key: str) -> ConnectorError | None:
    left[key] = left.get(key, 0) - 1
    return ConnectorError(ErrorKind.SERVER, "HTTP 503") if left[key] >= 0 else None
