"""Troubles of a migration: each kind of error has its policy; a bad record never stops its batch (C3-C6)."""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest

from tidings.migration.connectors.port import ConnectorError, ErrorKind, Fields, SystemLimits, WriteStrategy
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState

from .migration_harness import Moving

PEOPLE: dict[str, Any] = {"people": {"fields": {"name": {"path": "name", "required": True}}}}


def people(count: int, **more: Any) -> list[dict[str, Any]]:
    return [{"id": str(number), "name": f"P{number}", **more} for number in range(count)]


async def test_dead_letters_are_grouped_by_cause_and_replayed_after_a_repair(moving: Moving) -> None:
    """One in fifty is bad, in every way: named, grouped, the rest goes on; replay touches only those (C4)."""
    rows: list[Any] = people(200)
    rows[10] = {"id": "10"}  # a required field is missing
    rows[20] = {"id": "20", "name": "a\u0000b"}  # a null byte
    rows[30] = '{"id": "30", "name": '  # not JSON
    rows[40] = {"id": "40", "name": "x" * 2_000_000}  # larger than a line may be
    rows[50] = {"id": "49", "name": "another 49"}  # an id that is there already
    moving.give("people", rows)
    moving.books.fault = lambda _t, key, _f: (
        ConnectorError(ErrorKind.VALIDATION, "HTTP 422: no such stage", field="stage", code="422")
        if key == "60"
        else None
    )

    id_ = await moving.run(PEOPLE)

    status = await moving.migrations.status(id_)
    assert status.job.state is JobState.COMPLETED and status.job.reason == "6 dead letters"
    assert status.counts == {RecordState.WRITTEN: 194, RecordState.REJECTED: 6}
    causes = {cause.example: cause.reason for cause in await moving.migrations.dead(id_)}
    assert "rule: required" in causes["10"] and "null byte" in causes["20"] and "422" in causes["60"]
    assert any("duplicate id" in reason for reason in causes.values())
    assert len(moving.books.content("people")) == 194
    assert (await moving.migrations.record(id_, "people", "60"))["log"][-1]["code"] == "422"

    moving.books.fault = lambda *_: None
    before = moving.books.writes

    async def repaired() -> Any:
        async for one in moving.migrations.export(id_):
            if one["id"] == "10":
                yield "people", "10", {**one["fields"], "name": "P10"}

    assert await moving.migrations.replay(id_, by="anna", repaired=repaired()) == 1
    await moving.drive(id_)
    cause = next(c for c in await moving.migrations.dead(id_) if c.example == "60")
    assert await moving.migrations.replay(id_, by="anna", fingerprint=cause.fingerprint) == 1
    await moving.drive(id_)
    assert moving.books.writes - before == 2
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 196, RecordState.REJECTED: 4}
    assert [line["action"] for line in await moving.migrations.audit(id_)].count("replayed") == 2


async def test_retry_after_throttles_the_whole_system_and_costs_no_attempt(moving: Moving) -> None:
    """429 with a wait, again and again: everybody waits, nobody fails (C3, C5)."""
    moving.give("people", people(120))
    began, allowed = moving.clock.now(), 40

    def throttle(*_: object) -> ConnectorError | None:
        nonlocal allowed
        allowed -= 1
        if allowed < 0:
            allowed = 40
            return ConnectorError(ErrorKind.RATE_LIMIT, "slow down", wait=timedelta(seconds=30))
        return None

    moving.books.fault = throttle
    id_ = await moving.run(PEOPLE)

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 120}
    assert moving.clock.now() - began >= 2 * 30_000_000
    record = (await moving.store.read("job_record_find", job=1, type="people", source_id="40"))[0]
    assert record["attempts"] == "{}"


async def test_each_kind_of_error_has_the_attempts_of_its_retry_policy(moving: Moving) -> None:
    """Server errors five, time-outs three, then it is failed and the others go on (C3)."""
    moving.give("people", people(4))
    attempts: dict[str, int] = {}

    def fault(_type: str, key: str, _fields: Fields) -> ConnectorError | None:
        attempts[key] = attempts.get(key, 0) + 1
        kinds = {"1": ErrorKind.SERVER, "2": ErrorKind.TIMEOUT}
        return ConnectorError(kinds[key], "down", sent=True) if key in kinds else None

    moving.books.fault = fault
    id_ = await moving.run(PEOPLE)

    assert attempts == {"0": 1, "1": 5, "2": 3, "3": 1}
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 2, RecordState.FAILED: 2}


async def test_wrong_credentials_pause_the_job_immediately_with_an_event(moving: Moving) -> None:
    """No retry, the records untouched, somebody is told; after the repair it goes on (C3)."""
    moving.give("people", people(50))
    moving.books.fault = lambda *_: ConnectorError(ErrorKind.CREDENTIALS, "HTTP 401: the key is not valid")

    id_ = await moving.run(PEOPLE)

    view = await moving.migrations.find(id_)
    assert view.state is JobState.PAUSED and "401" in (view.reason or "")
    assert moving.books.writes <= 8
    told = [row for row in await moving.store.read("outbox_page", limit=50) if row["type"] == "migration.paused"]
    assert len(told) == 1

    moving.books.fault = lambda *_: None
    await moving.migrations.resume(id_, by="anna")
    await moving.drive(id_)
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 50}


async def test_an_exhausted_quota_pauses_the_job_until_its_reset(moving: Moving) -> None:
    """Not a failure, and not a short wait: it goes on by itself when the month is over."""
    moving.give("people", people(30))
    reset = moving.clock.now() + 9 * 86_400_000_000

    def fault(*_: object) -> ConnectorError | None:
        if moving.clock.now() < reset and moving.books.writes > 10:
            return ConnectorError(ErrorKind.QUOTA, "the month is used up", wait=timedelta(days=9))
        return None

    moving.books.fault = fault
    id_ = await moving.run(PEOPLE)
    view = await moving.migrations.find(id_)
    assert view.state is JobState.PAUSED and view.blocked_until is not None
    moving.clock.advance_to(view.blocked_until)
    await moving.scheduler.step()

    await moving.drive(id_)
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 30}


async def test_many_program_errors_with_one_cause_pause_the_job(moving: Moving) -> None:
    """A broken connector is no bad data."""
    moving.give("people", people(400))

    def broken(*_: object) -> ConnectorError | None:
        raise KeyError("oops")

    moving.books.fault = broken
    id_ = await moving.run(PEOPLE)

    view = await moving.migrations.find(id_)
    assert view.state is JobState.PAUSED and "for the same cause" in (view.reason or "")
    assert moving.books.writes < 400


async def test_an_unknown_outcome_that_cannot_be_looked_up_becomes_a_conflict(moving: Moving) -> None:
    """A create without a key whose answer was lost, on a target that cannot be asked."""
    moving.give("people", people(3))
    moving.books.default = WriteStrategy.RECONCILE
    moving.books.blind = ConnectorError(ErrorKind.PERMANENT, "it cannot be asked")
    moving.books.lose = lambda _t, key, _f: (
        ConnectorError(ErrorKind.TIMEOUT, "no answer", sent=True) if key == "1" else None
    )

    id_ = await moving.run(PEOPLE)

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 2, RecordState.CONFLICT: 1}
    assert moving.books.writes == 3


async def test_pause_resume_and_cancel_are_seen_between_two_chunks(moving: Moving) -> None:
    """Durable flags: what is written stays, what is open stays open, and the sum is right."""
    moving.books.limits = SystemLimits(writes_per_second=10.0, concurrency=2)
    moving.give("people", people(300))
    id_ = await moving.create(PEOPLE)
    await moving.migrations.run(id_, by="anna")
    await moving.step()
    await moving.migrations.pause(id_, by="anna", reason="lunch")
    while await moving.step():
        pass
    written = moving.books.writes
    moving.clock.advance(minutes=10)
    await moving.step()
    assert moving.books.writes == written > 0

    await moving.migrations.resume(id_, by="anna")
    moving.clock.advance(seconds=1)
    await moving.step()
    assert moving.books.writes > written
    await moving.migrations.cancel(id_, by="anna")
    await moving.drive(id_)
    for _ in range(3):
        await moving.step()
    status = await moving.migrations.status(id_)
    assert status.job.state is JobState.CANCELLED
    assert status.counts[RecordState.WRITTEN] == moving.books.writes < 300
    assert sum(status.counts.values()) == 300


async def test_a_slow_database_does_not_keep_a_paced_target_waiting_for_ever(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each commit takes longer than an instant may be late; the next instants lie further ahead."""
    moving.books.default = WriteStrategy.RECONCILE
    moving.books.limits = SystemLimits(writes_per_second=50.0, concurrency=4)
    moving.give("people", people(60))
    write = moving.store.write

    async def slowly(steps: Any) -> Any:
        moving.clock.advance(seconds=0.2)
        return await write(steps)

    monkeypatch.setattr(moving.store, "write", slowly)
    began = moving.clock.now()
    id_ = await moving.run(PEOPLE)

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 60}
    assert moving.clock.now() - began < 120_000_000


async def test_a_duplicate_key_becomes_a_dead_letter_instead_of_an_overwrite(moving: Moving) -> None:
    """The later one is quarantined, and the reason names the first."""
    rows = [{"id": str(n), "name": f"P{n}", "mail": f"{n % 4}@x.org"} for n in range(6)]
    moving.give("people", rows)

    id_ = await moving.run({"people": {"key": "mail", "fields": {"name": "name"}}})

    assert [row["name"] for row in moving.books.content("people")] == ["P0", "P1", "P2", "P3"]
    causes = await moving.migrations.dead(id_)
    assert sum(cause.count for cause in causes) == 2
    assert all("already used by people" in cause.reason for cause in causes)


async def test_an_upsert_without_an_answer_is_sent_again(moving: Moving) -> None:
    """No look, no second record."""
    moving.give("people", people(20))
    lost: set[str] = set()

    def lose(_type: str, key: str, _fields: Fields) -> ConnectorError | None:
        if key in ("3", "7") and key not in lost:
            lost.add(key)
            return ConnectorError(ErrorKind.TIMEOUT, "no answer", sent=True)
        return None

    moving.books.lose = lose
    id_ = await moving.run(PEOPLE)

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 20}
    assert (moving.books.writes, moving.books.finds) == (22, 0)
    assert len(moving.books.content("people")) == 20


async def test_a_source_that_changes_during_the_read_is_detected_and_noted(moving: Moving) -> None:
    """The file is another one between two pages: the job stops with the remedy, nothing half written."""
    moving.give("people", people(2500))
    id_ = await moving.create(PEOPLE)
    await moving.migrations.run(id_, by="anna")
    from tidings.migration import extractor

    extract_pages, extractor.PAGES = extractor.PAGES, 1
    try:
        await moving.extractor.step()
        moving.give("people", [json.loads(json.dumps(row)) for row in people(2600)])
        view = await moving.drive(id_)
    finally:
        extractor.PAGES = extract_pages

    assert view.state is JobState.PAUSED
    assert "changed while it was being read" in (view.reason or "")


async def test_a_hanging_call_times_out_and_is_reconciled_by_a_lookup(moving: Moving) -> None:
    """The hard time limit (C12): the open record is unknown, and written once all the same."""
    moving.give("people", people(12))
    moving.books.default = WriteStrategy.RECONCILE
    write, hung = moving.books.write, [True]

    async def hanging(type_: str, key: str, fields: Fields, known: str | None) -> Any:
        written = await write(type_, key, fields, known)
        if key == "5" and hung.pop():
            hung.append(False)
            await asyncio.Event().wait()
        return written

    moving.books.write = hanging  # type: ignore[method-assign]
    id_ = await moving.run(PEOPLE, limits={"soft_limit": "100ms", "hard_limit": "200ms"})

    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 12}
    assert len(moving.books.content("people")) == 12
    log = (await moving.migrations.record(id_, "people", "5"))["log"]
    assert [line["what"] for line in log] == ["unknown", "written"]


async def test_a_credential_that_is_not_set_is_named_and_nothing_is_called(moving: Moving) -> None:
    """The job waits for a person; the variable is said, its value never is (C3)."""
    moving.give("people", people(3))
    target = {"kind": "http", "url": "https://example.org/x", "token": "env:NO_SUCH_TOKEN"}
    id_ = await moving.run(PEOPLE, target=target)

    view = await moving.migrations.find(id_)
    assert view.state is JobState.PAUSED and "NO_SUCH_TOKEN" in (view.reason or "")
    assert moving.books.writes == 0
