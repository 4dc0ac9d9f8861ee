"""Batches of a migration: their sizes and states, the breaker they share, and the time they may take."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from tidings.kernel.clock import ManualClock
from tidings.migration.connectors.port import ConnectorError, ErrorKind, Fields, TargetRecord
from tidings.migration.job_file import SOFT, read_job
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.model.time import MINUTE

from .moving import Killed, Moving

NAME = {"fields": {"name": "name"}}


def rows(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "name": f"P{number}"} for number in range(count)]


async def states(moving: Moving, round_: int = 1) -> dict[str, int]:
    """How many batches of the first job are in which state."""
    return {row["state"]: row["n"] for row in await moving.store.read("job_batch_states", job=1, round=round_)}


def test_each_record_type_has_its_batch_size() -> None:
    """C1: contacts 1000, companies 500, notes 2000, activities 1500, files 100; any other type 1000."""
    sizes = {"contacts": 1000, "companies": 500, "notes": 2000, "activities": 1500, "files": 100, "deals": 1000}
    ends = {"source": {"kind": "ndjson", "path": "from"}, "target": {"kind": "ndjson", "path": "to"}}

    job = read_job({"name": "move", "types": dict.fromkeys(sizes, NAME), **ends})

    assert {name: job.type(name).batch_size for name in sizes} == sizes


async def test_a_batch_is_pending_then_processing_then_retrying_until_it_is_completed(moving: Moving) -> None:
    """C2: a batch whose target fails for a while is tried again, and completes when all its records have."""
    moving.give("people", rows(3))
    refused = {"2": 2}  # how often each record is still refused
    moving.books.fault = lambda _type, key, _fields: _down(refused, key)
    id_ = await moving.create({"people": NAME})
    await moving.migrations.run(id_, by="anna")
    await moving.extractor.step()
    await moving.foreman.step()
    seen = [await states(moving)]
    write = moving.books.write

    async def watched(type_: str, key: str, fields: Fields, known: str | None) -> TargetRecord:
        seen.append(await states(moving))
        return await write(type_, key, fields, known)

    moving.books.write = watched  # type: ignore[method-assign]
    for _ in range(400):
        await moving.step()
        seen.append(await states(moving))
        if (await moving.migrations.find(id_)).state is JobState.COMPLETED:
            break
        moving.clock.advance(seconds=1)

    order = [state for before, state in zip([{}, *seen], seen, strict=False) if state != before]
    assert order == [
        {"pending": 1}, {"processing": 1}, {"failed": 1}, {"retrying": 1}, {"failed": 1},
        {"retrying": 1}, {"completed": 1},
    ]  # fmt: skip
    assert len(moving.books.content("people")) == 3


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


async def test_an_event_is_emitted_after_the_third_failure_of_a_target(moving: Moving) -> None:
    """C3: an event says so, once while it lasts."""
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
    await moving.run({"people": NAME})

    events = [row["type"] for row in await moving.store.read("outbox_page", limit=50)]
    assert events.count("migration.breaker_opened") == 1
    assert told_after and 3 <= told_after[0] <= 3 + moving.books.limits.concurrency


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


def _down(left: dict[str, int], key: str) -> ConnectorError | None:
    left[key] = left.get(key, 0) - 1
    return ConnectorError(ErrorKind.SERVER, "HTTP 503") if left[key] >= 0 else None
