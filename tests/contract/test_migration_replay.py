"""After the first run: replays in order, mended records, fair turns, what is forgotten (C4, C8, C9, C12)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.migration import batches, extract, forgetting, opening
from tidings.migration.forgetting import JobPruner
from tidings.migration.jobs import JobState
from tidings.migration.words import Failure, Fields, Limits, Standing, Trouble
from tidings.model.errors import Refused
from tidings.store.port import Store, Wish

from .moving import Moving

NAME = {"name": {"path": "name", "required": True}}
TYPES: dict[str, Any] = {
    "notes": {"fields": {"text": "text", "person": {"path": "person", "reference": "people"}}},
    "people": {"fields": {**NAME, "company": {"path": "company", "reference": "companies"}}},
    "companies": {"fields": {**NAME, "boss": {"path": "boss", "reference": "companies"}}},
}


@pytest.fixture
def moving(store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Files, books, and a node between them."""
    return Moving(store, clock, tmp_path, monkeypatch)


async def run(moving: Moving, types: Mapping[str, Any], **more: Any) -> str:
    """A job, run until it rests."""
    id_ = await moving.create(types, **more)
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    return id_


def refusing(*names: str) -> Any:
    """A target that does not like these names."""

    def fault(_type: str, _key: str, fields: Fields) -> Trouble | None:
        return Trouble(Failure.VALIDATION, "no", code="422") if fields.get("name") in names else None

    return fault


async def test_parents_and_children_that_are_replayed_together_wait_for_each_other(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A boss, a company, a person and notes, all dead: one replay writes all, in small portions, too (C4)."""
    monkeypatch.setattr(opening, "LARGEST_BATCH", 2)
    moving.give("companies", [{"id": "1", "name": "C1", "boss": 2}, {"id": "2", "name": "C2"}])
    moving.give("people", [{"id": str(n), "name": f"P{n}", "company": 1} for n in range(5)])
    moving.give("notes", [{"id": str(n), "text": f"N{n}", "person": n} for n in range(5)])
    moving.books.fault = refusing("C2")
    id_ = await run(moving, TYPES)
    counts = (await moving.migrations.status(id_)).counts
    assert counts == {Standing.REJECTED: 1, Standing.FAILED: 11}

    moving.books.fault = lambda *_: None
    assert await moving.migrations.replay(id_, by="anna") == 12
    view = await moving.drive(id_)

    assert (view.state, view.reason) == (JobState.COMPLETED, None), await moving.migrations.dead(id_)
    assert (await moving.migrations.status(id_)).counts == {Standing.WRITTEN: 12}
    assert (await moving.migrations.verify(id_)).passed


async def test_children_whose_parents_stay_dead_fail_after_the_replay(moving: Moving) -> None:
    """Nobody waits for ever: the replay ends, and the cause is named."""
    moving.give("companies", [{"id": "1", "name": "C1"}])
    moving.give("people", [{"id": str(n), "name": f"P{n}", "company": 1} for n in range(5)])
    moving.give("notes", [])
    moving.books.fault = refusing("C1")
    id_ = await run(moving, TYPES)

    assert await moving.migrations.replay(id_, by="anna") == 6
    view = await moving.drive(id_)

    assert view.reason == "6 records were set aside"
    assert {cause.failure for cause in await moving.migrations.dead(id_)} == {"validation", "dependency"}


async def test_the_rate_after_a_replay_is_that_of_the_replay(moving: Moving) -> None:
    """C10: what was moved before does not count as moved now."""
    moving.books.limits = Limits(writes_per_second=10.0, concurrency=2)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(200)])
    moving.books.fault = refusing(*(f"P{n}" for n in range(20)))
    id_ = await run(moving, {"people": {"fields": NAME}})
    assert 5 < (await moving.migrations.status(id_)).per_second <= 11

    moving.clock.advance(hours=5)
    moving.books.fault = lambda *_: None
    assert await moving.migrations.replay(id_, by="anna") == 20
    assert (await moving.migrations.status(id_)).per_second == 0
    await moving.drive(id_)

    assert 3 < (await moving.migrations.status(id_)).per_second <= 11


async def mended(moving: Moving, id_: str, names: Mapping[str, str]) -> AsyncIterator[Any]:
    """Records with other names, whatever the source says."""
    async for one in moving.migrations.export(id_):
        if one["id"] in names:
            yield one["type"], one["id"], {**(one["fields"] or {}), "name": names[one["id"]]}


async def test_a_mended_record_is_verified_as_it_was_mended_and_stays_so(moving: Moving) -> None:
    """C8: neither extra nor different; a second run writes nothing, until the source says something else."""
    rows: list[Any] = [{"id": str(n), "name": f"P{n}"} for n in range(8)]
    rows[2] = {"id": "2"}
    rows[3] = {"id": "3", "name": "a\u0000b"}
    rows[5] = '{"id": "5", "name": '
    rows[7] = {"id": "6", "name": "another 6"}
    moving.give("people", rows)
    id_ = await run(moving, {"people": {"fields": NAME}})
    dead = [one["id"] async for one in moving.migrations.export(id_)]
    names = {name: f"mended {place}" for place, name in enumerate(dead)}
    assert len(names) == 4

    assert await moving.migrations.replay(id_, by="anna", repaired=mended(moving, id_, names)) == 4
    assert (await moving.drive(id_)).reason is None

    report = await moving.migrations.verify(id_)
    (found,) = report.types
    assert report.passed and (found.same, dict(found.counts)) == (8, {}), report.text()
    assert found.notes == ["4 records were mended on their way, and are compared as they were mended"]
    log = (await moving.migrations.record(id_, "people", "2"))["log"]
    assert [line["what"] for line in log] == ["rejected", "mended", "written"]

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).reason is None
    assert moving.books.writes == writes
    assert (await moving.migrations.status(id_)).counts == {Standing.UNCHANGED: 8}

    moving.give("people", [{"id": "2", "name": "P2"}, *rows[3:4]])
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert moving.books.rows["people"][moving.books.keys["people", "2"]]["name"] == "P2"
    assert moving.books.writes == writes + 1


async def join(moving: Moving) -> None:
    """A node that may claim."""
    await moving.worker.node.join()
    await moving.store.write(batches.lane().join())


async def cut(moving: Moving, **more: Any) -> str:
    """A job whose first batches have their tasks."""
    id_ = await moving.create({"people": {"fields": NAME, "batch_size": 100}}, **more)
    await moving.migrations.run(id_, by="anna")
    await moving.extractor.step()
    await moving.foreman.step()
    return id_


async def test_a_small_job_goes_before_the_crowd_of_another_tenant(moving: Moving) -> None:
    """C12: a tenant with many large jobs leaves the next free place to one with a small job."""
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(300)])
    for number in range(6):
        await cut(moving, tenant="large", name=f"large {number}")
    moving.clock.advance(seconds=1)
    await cut(moving, tenant="small")
    await cut(moving, tenant="urgent", priority=1)
    await join(moving)

    wish = Wish({batches.QUEUE: 1}, 1)
    claimed = [(await moving.store.claim(moving.worker.node.id, wish)).tasks[0].tenant for _ in range(10)]

    assert claimed[:3] == ["urgent"] * 3, "its own priority comes first"
    assert claimed[3:7].count("large") <= 4 and "small" in claimed[3:8], claimed
    assert len(await moving.store.read("job_busy", tenant="large")) == 18


async def test_a_turn_ends_early_when_one_waits_that_comes_before_it(moving: Moving) -> None:
    """C12: a second batch of a large job gives its place to the first of another within seconds."""
    moving.books.limits = Limits(writes_per_second=10.0, concurrency=2)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(300)])
    await cut(moving, tenant="large")
    await join(moving)
    wish = Wish({batches.QUEUE: 4}, 4)
    tasks = (await moving.store.claim(moving.worker.node.id, wish)).tasks
    assert [task.priority for task in tasks] == [5, 6, 6]
    await cut(moving, tenant="small")
    contents, lengths = await moving.handler.load(tasks), []

    for task in tasks[:2]:
        began = moving.clock.now()
        await moving.handler.run(task, contents[task.id])
        lengths.append((moving.clock.now() - began) / 1e6)

    assert lengths[0] >= 9 and lengths[1] < 3, lengths


async def test_sources_are_read_in_turn(moving: Moving, monkeypatch: pytest.MonkeyPatch) -> None:
    """C12: a job with much to read does not keep the next one from its first page."""
    monkeypatch.setattr(extract, "TYPES", 1)
    monkeypatch.setattr(extract, "PAGES", 1)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(2500)])
    ids = []
    for tenant in ("large", "small"):
        ids.append(await moving.create({"people": {"fields": NAME}}, tenant=tenant))
        await moving.migrations.run(ids[-1], by="anna")
    for _ in ids:
        await moving.extractor.step()
        moving.clock.advance(seconds=1)

    assert [(await moving.migrations.status(id_)).read for id_ in ids] == [1000, 1000]


async def forget(moving: Moving, steps: int = 100) -> float:
    """Some steps of a pruner; gives its last wait."""
    pruner, wait = JobPruner(moving.store, moving.clock, timedelta(days=90)), 0.0
    for _ in range(steps):
        if (wait := await pruner.step()) > 1:
            break
    return wait


async def test_old_records_are_forgotten_and_counts_audit_and_crosswalk_stay(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C9: in portions, by whoever comes next if one dies; a new run still writes nothing twice."""
    monkeypatch.setattr(forgetting, "PAGE", 7)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(30)])
    moving.books.fault = refusing("P3", "P4")
    id_ = await run(moving, {"people": {"fields": NAME}})
    moving.books.fault = refusing("P4")
    assert await moving.migrations.replay(id_, by="anna") == 2
    await moving.drive(id_)
    before = (await moving.migrations.status(id_)).counts
    assert before == {Standing.WRITTEN: 29, Standing.REJECTED: 1}
    moving.clock.advance(hours=24 * 89)
    young = await run(moving, {"people": {"fields": NAME}}, name="young")
    moving.clock.advance(hours=48)

    await forget(moving, steps=2)
    assert (await moving.migrations.status(id_)).counts == before, "at every moment"
    with pytest.raises(Refused, match="forgotten"):
        await moving.migrations.replay(id_, by="anna")
    assert await forget(moving) > 1

    status = await moving.migrations.status(id_)
    assert status.counts == before and status.job.forgotten_at is not None
    assert await moving.migrations.records(id_) == [] and await moving.migrations.dead(id_) == []
    assert [line["what"] for line in await moving.migrations.audit(id_)][-1] == "forgotten"
    assert len(await moving.migrations.records(young)) == 30
    assert len((await moving.migrations.record(young, "people", "3"))["log"]) == 0, "it was there already"

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert (await moving.migrations.status(id_)).counts[Standing.UNCHANGED] == 29
    assert moving.books.writes == writes + 1, "the one that was refused"
    assert (await moving.migrations.find(id_)).forgotten_at is None
