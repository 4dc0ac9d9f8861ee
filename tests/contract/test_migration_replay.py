"""After the first run: replays in order, mended records, fair turns, what is forgotten (C4, C8, C9, C12)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import timedelta
from typing import Any

import pytest

from tidings.migration import batch_handler, extractor, job_replay, reopened_batches, retention
from tidings.migration.connectors.port import ConnectorError, ErrorKind, Fields, SystemLimits
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.migration.retention import JobPruner
from tidings.model.errors import Conflict
from tidings.store.port import ClaimRequest, Step

from .migration_harness import Killed, Moving

NAME = {"name": {"path": "name", "required": True}}
TYPES: dict[str, Any] = {
    "notes": {"fields": {"text": "text", "person": {"path": "person", "reference": "people"}}},
    "people": {"fields": {**NAME, "company": {"path": "company", "reference": "companies"}}},
    "companies": {"fields": {**NAME, "boss": {"path": "boss", "reference": "companies"}}},
}


def refusing(*names: str) -> Any:
    """A target that does not like these names."""

    def fault(_type: str, _key: str, fields: Fields) -> ConnectorError | None:
        return ConnectorError(ErrorKind.VALIDATION, "no", code="422") if fields.get("name") in names else None

    return fault


async def test_parents_and_children_that_are_replayed_together_wait_for_each_other(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A boss, a company, a person and notes, all dead: one replay writes all, in small portions, too (C4)."""
    monkeypatch.setattr(reopened_batches, "PORTION", 2)
    moving.give("companies", [{"id": "1", "name": "C1", "boss": 2}, {"id": "2", "name": "C2"}])
    moving.give("people", [{"id": str(n), "name": f"P{n}", "company": 1} for n in range(5)])
    moving.give("notes", [{"id": str(n), "text": f"N{n}", "person": n} for n in range(5)])
    moving.books.fault = refusing("C2")
    id_ = await moving.run(TYPES)
    counts = (await moving.migrations.status(id_)).counts
    assert counts == {RecordState.REJECTED: 1, RecordState.FAILED: 11}

    moving.books.fault = lambda *_: None
    assert await moving.migrations.replay(id_, by="anna") == 12
    view = await moving.drive(id_)

    assert (view.state, view.reason) == (JobState.COMPLETED, None), await moving.migrations.dead(id_)
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 12}
    assert (await moving.migrations.verify(id_)).passed


async def test_children_whose_parents_stay_dead_fail_after_the_replay(moving: Moving) -> None:
    """Nobody waits for ever: the replay ends, and the cause is named."""
    moving.give("companies", [{"id": "1", "name": "C1"}])
    moving.give("people", [{"id": str(n), "name": f"P{n}", "company": 1} for n in range(5)])
    moving.give("notes", [])
    moving.books.fault = refusing("C1")
    id_ = await moving.run(TYPES)

    assert await moving.migrations.replay(id_, by="anna") == 6
    view = await moving.drive(id_)

    assert view.reason == "6 dead letters"
    assert {cause.failure for cause in await moving.migrations.dead(id_)} == {"validation", "dependency"}


async def dead(moving: Moving, types: Mapping[str, Any] = {"people": {"fields": NAME}}) -> str:
    """A job of which all, seven people among them, were quarantined for nothing that lasts."""
    moving.give("people", [{"id": str(number), "name": f"P{number}"} for number in range(7)])
    moving.books.fault = lambda *_: ConnectorError(ErrorKind.VALIDATION, "no", code="422")
    id_ = await moving.run(types)
    moving.books.fault = lambda *_: None
    return id_


def dying(moving: Moving, monkeypatch: pytest.MonkeyPatch, *, after: int) -> None:
    """The process is killed instead of opening one more portion than these."""
    write, left = moving.store.write, [after]

    async def killing(steps: Sequence[Step]) -> Any:
        if any(step.name == "job_reopen" for step in steps):
            if not left[0]:
                raise Killed
            left[0] -= 1
        return await write(steps)

    monkeypatch.setattr(moving.store, "write", killing)


async def test_a_large_replay_reopens_records_in_portions_and_counts_them_exactly(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C4: the job rests until the last one is open; the answer, the telling and the trail say how many."""
    monkeypatch.setattr(reopened_batches, "PORTION", 3)
    id_, told, states = await dead(moving), list[int](), list[str]()
    write = moving.store.write

    async def watching(steps: Sequence[Step]) -> Any:
        done = await write(steps)
        if any(step.name == "job_reopen" for step in steps):
            states.append((await moving.migrations.find(id_)).state)
        return done

    with pytest.MonkeyPatch.context() as watched:
        watched.setattr(moving.store, "write", watching)
        assert await moving.migrations.replay(id_, by="anna", tell=told.append) == 7

    assert told == [3, 6, 7] and states == ["paused", "paused", "running"]
    assert (await moving.migrations.status(id_)).per_second == 0
    trail = [(line["action"], line["detail"]) for line in await moving.migrations.audit(id_)]
    assert trail[-2:] == [("replay begun", "in portions"), ("replayed", "7 records")]
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 7}
    assert moving.books.writes == 14, "each was tried twice, and no more"


@pytest.mark.parametrize("waits", [True, False])
async def test_a_replay_killed_between_portions_leaves_the_rest_for_the_next(
    moving: Moving, monkeypatch: pytest.MonkeyPatch, *, waits: bool
) -> None:
    """C4: what is open is moved by itself after a while, the rest is still dead; none is opened twice."""
    monkeypatch.setattr(reopened_batches, "PORTION", 3)
    id_ = await dead(moving)
    with pytest.MonkeyPatch.context() as deadly:
        dying(moving, deadly, after=2)
        with pytest.raises(Killed):
            await moving.migrations.replay(id_, by="anna")
    view = await moving.migrations.find(id_)
    assert (view.state, view.reason) == (JobState.PAUSED, job_replay.REPLAY_PAUSE_REASON)
    assert [cause.count for cause in await moving.migrations.dead(id_)] == [1]
    if waits:
        moving.clock.advance(seconds=61)
        await moving.scheduler.step()
        view = await moving.drive(id_)
        assert (view.state, view.reason) == (JobState.COMPLETED, "1 dead letter")

    assert await moving.migrations.replay(id_, by="anna") == 1
    assert (await moving.drive(id_)).reason is None
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 7}
    assert moving.books.writes == 14


async def test_a_replay_stops_with_its_progress_when_the_job_changes_concurrently(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cancel between two portions holds: nothing more is opened, and the rest is named."""
    monkeypatch.setattr(reopened_batches, "PORTION", 3)
    id_, write = await dead(moving), moving.store.write

    async def meddling(steps: Sequence[Step]) -> Any:
        done = await write(steps)
        if any(step.name == "job_begin" for step in steps):
            await moving.migrations.cancel(id_, by="boris")
        return done

    monkeypatch.setattr(moving.store, "write", meddling)
    with pytest.raises(Conflict, match="changed concurrently after 3 records were reopened"):
        await moving.migrations.replay(id_, by="anna")

    assert (await moving.migrations.find(id_)).state is JobState.CANCELLED
    assert [cause.count for cause in await moving.migrations.dead(id_)] == [4]


@pytest.mark.parametrize("is_paused", [True, False])
async def test_a_replay_leaves_a_job_that_is_not_over_as_it_was(
    moving: Moving, monkeypatch: pytest.MonkeyPatch, *, is_paused: bool
) -> None:
    """Whoever paused it resumes it; one that runs rests only while the portions are opened."""
    monkeypatch.setattr(reopened_batches, "PORTION", 3)
    moving.give("companies", [{"id": "1", "name": "C1"}])
    id_ = await dead(moving, types={name: {"fields": NAME} for name in ("companies", "people")})
    assert await moving.migrations.replay(id_, by="anna", type="companies") == 1
    if is_paused:
        await moving.migrations.pause(id_, by="boris", reason="wait")

    assert await moving.migrations.replay(id_, by="anna", type="people") == 7

    view = await moving.migrations.find(id_)
    assert (str(view.state), view.reason) == (("paused", "wait") if is_paused else ("running", None))
    if is_paused:
        await moving.migrations.resume(id_, by="boris")
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 8}


async def test_the_rate_after_a_replay_is_that_of_the_replay(moving: Moving) -> None:
    """C10: what was moved before does not count as moved now."""
    moving.books.limits = SystemLimits(writes_per_second=10.0, concurrency=2)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(200)])
    moving.books.fault = refusing(*(f"P{n}" for n in range(20)))
    id_ = await moving.run({"people": {"fields": NAME}})
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


async def test_a_repaired_record_is_verified_in_its_repaired_form(moving: Moving) -> None:
    """C8: neither extra nor different; a second run writes nothing, until the source says something else."""
    rows: list[Any] = [{"id": str(n), "name": f"P{n}"} for n in range(8)]
    rows[2] = {"id": "2"}
    rows[3] = {"id": "3", "name": "a\u0000b"}
    rows[5] = '{"id": "5", "name": '
    rows[7] = {"id": "6", "name": "another 6"}
    moving.give("people", rows)
    id_ = await moving.run({"people": {"fields": NAME}})
    dead = [one["id"] async for one in moving.migrations.export(id_)]
    names = {name: f"mended {place}" for place, name in enumerate(dead)}
    assert len(names) == 4

    assert await moving.migrations.replay(id_, by="anna", repaired=mended(moving, id_, names)) == 4
    assert (await moving.drive(id_)).reason is None

    report = await moving.migrations.verify(id_)
    (found,) = report.types
    assert report.passed and (found.same, dict(found.counts)) == (8, {}), report.text()
    assert found.notes == ["4 records were repaired and are compared in their repaired form"]
    log = (await moving.migrations.record(id_, "people", "2"))["log"]
    assert [line["what"] for line in log] == ["rejected", "repaired", "written"]

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).reason is None
    assert moving.books.writes == writes
    assert (await moving.migrations.status(id_)).counts == {RecordState.UNCHANGED: 8}

    moving.give("people", [{"id": "2", "name": "P2"}, *rows[3:4]])
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert moving.books.rows["people"][moving.books.keys["people", "2"]]["name"] == "P2"
    assert moving.books.writes == writes + 1


async def join(moving: Moving) -> None:
    """A node that may claim."""
    await moving.worker.node.join()
    await moving.store.write(batch_handler.lane().join())


async def cut(moving: Moving, **more: Any) -> str:
    """A job whose first batches have their tasks."""
    id_ = await moving.create({"people": {"fields": NAME, "batch_size": 100}}, **more)
    await moving.migrations.run(id_, by="anna")
    await moving.extractor.step()
    await moving.scheduler.step()
    return id_


async def test_fair_scheduling_runs_a_small_job_before_the_backlog_of_another_tenant(moving: Moving) -> None:
    """C12: a tenant with many large jobs leaves the next free place to one with a small job."""
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(300)])
    for number in range(6):
        await cut(moving, tenant="large", name=f"large {number}")
    moving.clock.advance(seconds=1)
    await cut(moving, tenant="small")
    await cut(moving, tenant="urgent", priority=1)
    await join(moving)

    wish = ClaimRequest({batch_handler.QUEUE: 1}, 1)
    claimed = [(await moving.store.claim(moving.worker.node.id, wish)).tasks[0].tenant for _ in range(10)]

    assert claimed[:3] == ["urgent"] * 3, "its own priority comes first"
    assert claimed[3:7].count("large") <= 4 and "small" in claimed[3:8], claimed
    assert len(await moving.store.read("job_busy", tenant="large")) == 18


async def test_a_batch_yields_early_to_a_batch_of_higher_priority(moving: Moving) -> None:
    """C12: a second batch of a large job gives its place to the first of another within seconds."""
    moving.books.limits = SystemLimits(writes_per_second=10.0, concurrency=2)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(300)])
    await cut(moving, tenant="large")
    await join(moving)
    wish = ClaimRequest({batch_handler.QUEUE: 4}, 4)
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
    monkeypatch.setattr(extractor, "TYPES", 1)
    monkeypatch.setattr(extractor, "PAGES", 1)
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


async def test_retention_deletes_old_records_and_keeps_counts_audit_and_crosswalk(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C9: in portions, by whoever comes next if one dies; a new run still writes nothing twice."""
    monkeypatch.setattr(retention, "PAGE", 7)
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(30)])
    moving.books.fault = refusing("P3", "P4")
    id_ = await moving.run({"people": {"fields": NAME}})
    moving.books.fault = refusing("P4")
    assert await moving.migrations.replay(id_, by="anna") == 2
    await moving.drive(id_)
    before = (await moving.migrations.status(id_)).counts
    assert before == {RecordState.WRITTEN: 29, RecordState.REJECTED: 1}
    moving.clock.advance(hours=24 * 89)
    young = await moving.run({"people": {"fields": NAME}}, name="young")
    moving.clock.advance(hours=48)

    await forget(moving, steps=2)
    assert (await moving.migrations.status(id_)).counts == before, "at every moment"
    with pytest.raises(Conflict, match="have been deleted"):
        await moving.migrations.replay(id_, by="anna")
    assert await forget(moving) > 1

    status = await moving.migrations.status(id_)
    assert status.counts == before and status.job.pruned_at is not None
    assert await moving.migrations.records(id_) == [] and await moving.migrations.dead(id_) == []
    assert [line["action"] for line in await moving.migrations.audit(id_)][-1] == "forgotten"
    assert len(await moving.migrations.records(young)) == 30
    assert len((await moving.migrations.record(young, "people", "3"))["log"]) == 0, "it was there already"

    writes = moving.books.writes
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    assert (await moving.migrations.status(id_)).counts[RecordState.UNCHANGED] == 29
    assert moving.books.writes == writes + 1, "the one that was refused"
    assert (await moving.migrations.find(id_)).pruned_at is None
