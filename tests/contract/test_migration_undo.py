"""The way back: what a job created is taken out again; what others changed, or may own, stays (C9)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.migration import job_undo
from tidings.migration.connectors import registry
from tidings.migration.connectors.port import ConnectorError, ErrorKind, WriteStrategy
from tidings.migration.job_undo import UndoneRecord, UndoOutcome
from tidings.migration.jobs import JobState, UndoProgress
from tidings.migration.record_states import RecordState
from tidings.model.errors import Conflict
from tidings.model.time import SECOND
from tidings.store.port import Store

from .migration_harness import Books, Killed, Moving

TYPES: dict[str, Any] = {
    "people": {"fields": {"name": "name", "company": {"path": "company", "reference": "companies"}}},
    "companies": {"fields": {"name": "name"}},
}


@pytest.fixture
async def moving(store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Two companies, one of them there already under its key, and five people; planned, approved and run."""
    world = Moving(store, clock, tmp_path, monkeypatch)
    world.give("companies", [{"id": "1", "name": "C1"}, {"id": "2", "name": "C2"}])
    world.give("people", [{"id": str(n), "name": f"P{n}", "company": 1 + n % 2} for n in range(5)])
    return world


async def run(moving: Moving, *, planned: bool = True, types: dict[str, Any] = TYPES) -> str:
    """A job, run until it is over."""
    id_ = await moving.create(types)
    if planned:
        await moving.migrations.plan(id_, by="anna")
        await moving.drive(id_)
        await moving.migrations.approve(id_, by="anna")
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    return id_


async def undo(moving: Moving, id_: str, *, dry_run: bool = False) -> list[UndoneRecord]:
    """Undo it; gives what became of each record."""
    told: list[UndoneRecord] = []
    counts = await moving.migrations.undo(id_, by="anna", dry_run=dry_run, tell=told.append)
    assert counts == Counter(one.result for one in told)
    return told


async def test_undo_deletes_created_records_and_keeps_existing_or_changed_ones(moving: Moving) -> None:
    """A dry run says it; people go before their companies; afterwards a new run writes them again."""
    moving.books.rows["companies"] = {"there": {"name": "Old"}}
    moving.books.keys = {("companies", "2"): "there"}
    id_ = await run(moving)
    of = {row["name"]: key for key, row in moving.books.rows["people"].items()}
    moving.books.rows["people"][of["P3"]]["name"] = "changed by hand"
    del moving.books.rows["people"][of["P4"]], moving.books.keys["people", "4"]

    wanted = {
        **{("people", number): UndoOutcome.ERASED for number in "012"},
        ("people", "3"): UndoOutcome.CHANGED,
        ("people", "4"): UndoOutcome.GONE,
        ("companies", "1"): UndoOutcome.ERASED,
    }
    said = await undo(moving, id_, dry_run=True)
    assert {(one.type, one.source_id): one.result for one in said} == wanted
    assert moving.books.erased == 0 and len(moving.books.rows["people"]) == 4
    done = await undo(moving, id_)

    assert done == said and [one.type for one in done] == ["people"] * 5 + ["companies"]
    assert moving.books.content("people") == [{"name": "changed by hand", "company": "there"}]
    assert moving.books.content("companies") == [{"name": "C2"}]
    status = await moving.migrations.status(id_)
    assert status.counts == {RecordState.WRITTEN: 2, RecordState.SKIPPED: 5} and status.done == 7
    assert await moving.migrations.crosswalk(id_, "people", source_id="0") == []
    assert (await moving.migrations.record(id_, "people", "0"))["log"][-1]["what"] == "undone"
    (line,) = [line for line in await moving.migrations.audit(id_) if line["action"] == "undone"]
    assert line["detail"] == "1 changed, 4 erased, 1 gone"
    assert [one.result for one in await undo(moving, id_)] == [UndoOutcome.CHANGED], "what is undone stays so"

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    assert moving.books.writes - writes == 5


async def test_undo_keeps_upserted_records_that_were_not_looked_up_before(moving: Moving) -> None:
    """It may have changed somebody's record: listed as unsure. What is only ever created is sure."""
    moving.books.strategies["people"] = WriteStrategy.RECONCILE
    id_ = await run(moving, planned=False)

    results = Counter((one.type, one.result) for one in await undo(moving, id_))

    assert results == {("people", UndoOutcome.ERASED): 5, ("companies", UndoOutcome.UNSURE): 2}
    assert moving.books.erased == 5


async def test_an_interrupted_undo_is_audited_and_can_continue_immediately(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """'Slow down' is waited for; another error ends it, what was taken out by then is written down (C9)."""
    monkeypatch.setattr(job_undo, "PORTION", 4)
    monkeypatch.setattr(job_undo, "SIDE_BY_SIDE", 2)
    id_ = await run(moving)
    slow, calls = [ConnectorError(ErrorKind.RATE_LIMIT, "slow", wait=timedelta(0))], 0

    def fault(*_: object) -> ConnectorError | None:
        nonlocal calls
        calls += 1
        return slow.pop() if slow else ConnectorError(ErrorKind.SERVER, "HTTP 500") if calls > 3 else None

    moving.books.fault = fault
    with pytest.raises(Conflict, match=r"could not be undone: HTTP 500.*to continue"):
        await undo(moving, id_)
    assert len(moving.books.content("people")) == 3
    assert (await moving.migrations.status(id_)).counts[RecordState.SKIPPED] == 2
    line = (await moving.migrations.audit(id_))[-1]
    assert (line["action"], line["detail"]) == ("undo interrupted", "2 erased")
    moving.books.fault = lambda *_: None

    assert len(await undo(moving, id_)) == 5

    assert moving.books.content("people") == moving.books.content("companies") == []
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED


async def test_a_job_cannot_start_during_its_undo(moving: Moving) -> None:
    """Neither a run nor a plan nor a second undoing; one that died is in the way for its lease only."""
    id_ = await run(moving)

    async def dying(*_: object) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as deadly:
        deadly.setattr(moving.books, "erase", dying)
        deadly.setattr(job_undo.JobUndo, "_release", dying)
        with pytest.raises(Killed):
            await undo(moving, id_)
    for begin in (moving.migrations.run, moving.migrations.plan):
        with pytest.raises(Conflict, match="being undone"):
            await begin(id_, by="boris")
    with pytest.raises(Conflict, match="being undone"):
        await undo(moving, id_)

    moving.clock.advance(seconds=31)
    undo_shown = (await moving.migrations.status(id_)).undo
    assert undo_shown == UndoProgress(is_running=False, deleted=0, left=7)
    assert len(await undo(moving, id_)) == 7


async def test_the_status_shows_the_progress_of_an_undo(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deleted and left records after each portion, and nothing after its end."""
    monkeypatch.setattr(job_undo, "PORTION", 2)
    id_, erase, seen = await run(moving), moving.books.erase, list[UndoProgress | None]()

    async def watched(type_: str, id_of_record: str) -> None:
        seen.append((await moving.migrations.status(id_)).undo)
        await erase(type_, id_of_record)

    monkeypatch.setattr(moving.books, "erase", watched)
    await undo(moving, id_)

    assert [one and (one.is_running, one.deleted, one.left) for one in seen] == [
        (True, 0, 7), (True, 0, 7), (True, 2, 5), (True, 2, 5), (True, 4, 3), (True, 5, 2), (True, 5, 2),
    ]  # fmt: skip
    assert (await moving.migrations.status(id_)).undo is None


async def test_the_lease_of_an_undo_is_renewed_while_the_target_is_slow(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A call that takes longer than the lease neither loses it nor lets another undo begin."""
    monkeypatch.setattr(job_undo, "LEASE", SECOND // 50)
    id_, erase = await run(moving), moving.books.erase

    async def slow(type_: str, id_of_record: str) -> None:
        version = (await moving.store.read("job_find", id=id_))[0]["version"]
        while (await moving.store.read("job_find", id=id_))[0]["version"] == version:
            moving.clock.advance(0.001)
            await asyncio.sleep(0)  # until the lease was renewed
        await erase(type_, id_of_record)

    monkeypatch.setattr(moving.books, "erase", slow)
    assert Counter(one.result for one in await undo(moving, id_)) == {UndoOutcome.ERASED: 7}


async def test_a_record_repaired_by_replay_is_undone(moving: Moving) -> None:
    """The plan rejected it, so it is looked up before it is written: it is surely ours."""
    moving.give("people", [{"id": "0", "name": "P0", "company": 1}, {"id": "1", "name": "", "company": 1}])
    id_ = await run(moving, types={**TYPES, "people": {"fields": {"name": {"path": "name", "required": True}}}})
    assert (await moving.migrations.status(id_)).counts[RecordState.REJECTED] == 1

    async def repaired() -> AsyncIterator[tuple[str, str, dict[str, Any]]]:
        yield "people", "1", {"name": "Repaired", "company": 1}

    assert await moving.migrations.replay(id_, by="anna", repaired=repaired()) == 1
    await moving.drive(id_)
    assert len(moving.books.content("people")) == 2

    assert Counter(one.result for one in await undo(moving, id_)) == {UndoOutcome.ERASED: 4}
    assert moving.books.content("people") == []


async def test_an_undo_preview_looks_at_the_first_records_only(moving: Moving) -> None:
    """A page need not wait for all of them."""
    id_, finds = await run(moving), moving.books.finds
    counts = await moving.migrations.undo(id_, by="anna", dry_run=True, tell=lambda _: None, most=3)

    assert counts == {UndoOutcome.ERASED: 3} and moving.books.finds - finds == 3


class Keeping:
    """The same books, but nothing can be taken out."""

    def __init__(self, books: Books) -> None:
        self._books = books

    def __getattr__(self, name: str) -> Any:
        if name == "erase":
            raise AttributeError(name)
        return getattr(self._books, name)


async def test_a_target_that_cannot_delete_says_so(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is changed, and the remedy is said."""
    id_ = await run(moving)
    monkeypatch.setattr(registry, "target", lambda *_, **__: Keeping(moving.books))
    moving.start()
    with pytest.raises(Conflict, match="cannot delete"):
        await undo(moving, id_)
    assert len(moving.books.content("people")) == 5
