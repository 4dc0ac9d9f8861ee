"""Plans, waves and links: what a run would do is said before, and then done exactly (C1)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from tidings.migration.connectors.port import (
    ConnectorError,
    ErrorKind,
    Fields,
    SystemLimits,
    TargetRecord,
    WriteStrategy,
)
from tidings.migration.jobs import JobState, PlannedAction
from tidings.migration.record_states import RecordState
from tidings.model.errors import Conflict, NotFound
from tidings.model.time import SECOND

from .migration_harness import Killed, Moving

COMPANIES = {"fields": {"name": {"path": "name", "required": True}}}
PEOPLE = {"fields": {"name": "name", "company": {"path": "company", "reference": "companies"}}}
BOTH: dict[str, Any] = {"people": PEOPLE, "companies": COMPANIES}


def some(moving: Moving) -> None:
    """Three companies, one of them bad; six people, one of a company that is not there."""
    moving.give("companies", [{"id": "1", "name": "Acme"}, {"id": "2", "name": "Blue"}, {"id": "3"}])
    rows = [{"id": str(n), "name": f"P{n}", "company": 1 + n % 2} for n in range(5)]
    moving.give("people", [*rows, {"id": "5", "name": "P5", "company": 3}])


async def planned(moving: Moving, **more: Any) -> str:
    id_ = await moving.create(BOTH, **more)
    await moving.migrations.plan(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.PLANNED
    return id_


async def test_a_run_does_exactly_what_the_dry_run_planned(moving: Moving) -> None:
    """Create, update field by field, unchanged, rejected, unresolved: nothing is written before that."""
    some(moving)
    moving.books.rows["companies"] = {"a": {"name": "Acme"}, "b": {"name": "Black"}}
    moving.books.keys = {("companies", "1"): "a", ("companies", "2"): "b"}

    id_ = await planned(moving)

    assert moving.books.writes == 0
    report = await moving.migrations.plan_report(id_)
    assert report.actions["companies"] == {
        PlannedAction.UNCHANGED: 1,
        PlannedAction.UPDATE: 1,
        PlannedAction.REJECTED: 1,
    }
    assert report.actions["people"] == {PlannedAction.CREATE: 5, PlannedAction.UNRESOLVED: 1}
    assert (report.reads, report.writes) == (6, 6), "each is looked up again before it is written"
    (update,) = await moving.migrations.plan_page(id_, action=PlannedAction.UPDATE)
    assert update["changes"] == [{"field": "name", "expected": '"Blue"', "found": '"Black"'}]
    with pytest.raises(Conflict, match="approve it"):
        await moving.migrations.run(id_, by="anna")

    await moving.migrations.approve(id_, by="boris")
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED

    assert moving.books.writes == report.writes
    assert {row["company"] for row in moving.books.rows["people"].values()} == {"a", "b"}
    counts = (await moving.migrations.status(id_)).counts
    wanted = {RecordState.WRITTEN: 6, RecordState.UNCHANGED: 1, RecordState.REJECTED: 1, RecordState.FAILED: 1}
    assert counts == wanted
    whos = [(line["actor"], line["action"]) for line in await moving.migrations.audit(id_)]
    assert ("boris", "approved") in whos and ("anna", "running") in whos


async def test_a_target_record_changed_after_the_plan_is_a_conflict(moving: Moving) -> None:
    """A record created or changed in between is not overwritten."""
    some(moving)
    moving.books.rows["companies"] = {"b": {"name": "Black"}}
    moving.books.keys = {("companies", "2"): "b"}
    id_ = await planned(moving)
    moving.books.rows["companies"] |= {"b": {"name": "Beige"}, "a": {"name": "Acme & Sons"}}
    moving.books.keys["companies", "1"] = "a"

    await moving.migrations.approve(id_, by="anna")
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)

    reasons = Counter(cause.reason for cause in await moving.migrations.dead(id_) if cause.type == "companies")
    assert reasons["it was changed in the target after the plan was made"] == 1
    assert reasons["it was created in the target after the plan was made"] == 1
    assert {row["name"] for row in moving.books.rows["companies"].values()} == {"Beige", "Acme & Sons"}


async def test_a_plan_reports_its_duration_and_an_exceeded_monthly_quota(moving: Moving) -> None:
    """Under the limits per second and per month, before the first call."""
    some(moving)
    moving.books.limits = SystemLimits(writes_per_second=2.0, per_month=4)

    id_ = await planned(moving)

    status = await moving.migrations.status(id_)
    assert (status.done, status.read) == (9, 9), "planned records count as done"
    report = await moving.migrations.plan_report(id_)
    assert (report.reads, report.writes, report.seconds, report.fits_this_month) == (7, 7, 3.5, False)
    assert any("exceeds the monthly quota: 7 calls needed, 4 left" in note for note in report.notes)

    await moving.migrations.approve(id_, by="anna")
    await moving.migrations.run(id_, by="anna")
    view = await moving.drive(id_)
    assert view.state is JobState.PAUSED and view.blocked_until is not None
    assert "calls is used up" in (view.reason or "")


async def test_a_plan_counts_the_lookup_before_each_write(moving: Moving) -> None:
    """100 reads and 400 writes per second: the reads decide how long it takes at least."""
    moving.give("companies", [{"id": str(n), "name": f"C{n}"} for n in range(50)])
    moving.give("people", [])
    moving.books.limits = SystemLimits(reads_per_second=100.0, writes_per_second=400.0)

    report = await moving.migrations.plan_report(await planned(moving))

    assert (report.reads, report.writes, report.seconds) == (50, 50, 0.5)


async def test_the_time_left_of_a_plan_follows_its_progress(moving: Moving) -> None:
    """Planned records count, not only rejected ones: halfway the time left is as long as the time so far."""
    moving.give("people", [{"id": str(n), "name": f"P{n}"} for n in range(600)])
    find = moving.books.find

    async def slow(type_: str, key: str, fields: Fields) -> Sequence[TargetRecord]:
        moving.clock.advance(0.1)
        return await find(type_, key, fields)

    moving.books.find = slow  # type: ignore[method-assign]
    id_ = await moving.create({"people": {"fields": {"name": "name"}}})
    await moving.migrations.plan(id_, by="anna")
    while not 200 <= (await moving.migrations.status(id_)).done < 600:
        await moving.step()
        moving.clock.advance(0.1)

    status = await moving.migrations.status(id_)
    passed = (moving.clock.now() - (status.job.started_at or 0)) / SECOND
    assert status.seconds_left == pytest.approx(passed * (600 - status.done) / status.done)


async def test_a_company_comes_before_its_people_and_a_parent_before_its_child(moving: Moving) -> None:
    """Waves by links; links within one type by passes; a circle by a second write."""
    moving.give("companies", [{"id": str(n), "name": f"C{n}", "boss": n + 1 if n < 4 else None} for n in range(5)])
    moving.give("people", [{"id": str(n), "name": f"P{n}", "company": n, "friend": (n + 1) % 5} for n in range(5)])
    boss = {"path": "boss", "reference": "companies"}
    friend = {"path": "friend", "reference": "people", "unresolved": "leave"}
    types = {
        "people": {"fields": {**PEOPLE["fields"], "friend": friend}},
        "companies": {"fields": {**COMPANIES["fields"], "boss": boss}},
    }
    id_ = await moving.create(types)
    await moving.migrations.run(id_, by="anna")

    view = await moving.drive(id_)

    assert view.state is JobState.COMPLETED and view.reason is None
    companies, people = moving.books.rows["companies"], moving.books.rows["people"]
    assert [companies[row["boss"]]["name"] for row in companies.values() if "boss" in row] == ["C4", "C3", "C2", "C1"]
    assert all(people[row["friend"]]["name"] == f"P{(int(row['name'][1:]) + 1) % 5}" for row in people.values())
    status = await moving.migrations.status(id_)
    assert status.counts == {RecordState.WRITTEN: 10} and sum(one.links_open for one in status.types) == 0
    (link,) = await moving.migrations.crosswalk(id_, "people", source_id="3")
    assert link["target_id"] in people


async def test_an_existing_target_record_is_found_before_a_create(moving: Moving) -> None:
    """Strategy search: looked for, then changed or created."""
    moving.books.default = WriteStrategy.SEARCH
    moving.books.rows["companies"] = {"a": {"name": "Old"}}
    moving.books.keys = {("companies", "1"): "a"}
    moving.give("companies", [{"id": "1", "name": "Acme"}, {"id": "2", "name": "Blue"}])
    id_ = await moving.create({"companies": COMPANIES})
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)

    assert [row["name"] for row in moving.books.content("companies")] == ["Acme", "Blue"]


async def test_only_what_has_changed_is_written_when_a_job_runs_again(moving: Moving) -> None:
    """The delta: by the content of the mapped record, not by its time."""
    some(moving)
    id_ = await moving.create(BOTH)
    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)
    before = moving.books.writes
    moving.give("companies", [{"id": "1", "name": "Acme"}, {"id": "2", "name": "Blue!"}, {"id": "3", "name": "New"}])

    await moving.migrations.run(id_, by="anna")
    await moving.drive(id_)

    assert moving.books.writes - before == 3, "a changed company, a new one, and the person who waited for it"
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 3, RecordState.UNCHANGED: 6}


async def test_a_poison_record_becomes_the_only_dead_letter(moving: Moving) -> None:
    """The kernel gives its batch up; halves of it are tried until one record is left (F31)."""
    moving.quarantine_after, moving.at_once = 2, 1
    moving.start()
    moving.give("companies", [{"id": str(n), "name": f"C{n}"} for n in range(40)])

    def deadly(_type: str, key: str, _fields: Fields) -> ConnectorError | None:
        if key == "17":
            raise Killed(key)
        return None

    moving.books.fault = deadly
    id_ = await moving.create({"companies": COMPANIES})
    await moving.migrations.run(id_, by="anna")
    for _ in range(60):
        view = await moving.drive(id_, rounds=20, may_go_on=True)
        if view.state is not JobState.RUNNING:
            break
        await moving.bury()

    assert view.state is JobState.COMPLETED
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: 39, RecordState.FAILED: 1}
    assert (await moving.migrations.dead(id_))[0].example == "17"


async def test_another_tenants_job_is_not_there(moving: Moving) -> None:
    """Tenants do not see each other."""
    moving.give("companies", [])
    id_ = await moving.create({"companies": COMPANIES}, tenant="red")
    assert (await moving.migrations.find(id_, tenant="red")).tenant == "red"
    with pytest.raises(NotFound, match="unknown migration"):
        await moving.migrations.run(id_, by="anna", tenant="blue")
    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    assert ErrorKind.PROGRAM not in [cause.failure for cause in await moving.migrations.dead(id_)]
