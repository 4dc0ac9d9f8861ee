"""Running a migration: every record has one end, whatever fails, and nothing is written twice (C1-C8)."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tidings.migration import batch_handler, writer
from tidings.migration.connectors.port import WriteStrategy
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState

from .migration_harness import Crash, Moving, losing

PEOPLE = {"people": {"fields": {"name": "name"}}}


def people(count: int) -> list[dict[str, Any]]:
    return [{"id": str(number), "name": f"P{number}"} for number in range(count)]


async def test_every_record_of_the_source_is_in_the_target_once(moving: Moving) -> None:
    """The plain way, from file to target, and a second run writes nothing (C8)."""
    moving.give("people", people(1100))
    id_ = await moving.create(PEOPLE)
    await moving.migrations.run(id_, by="anna")

    view = await moving.drive(id_)

    assert view.state is JobState.COMPLETED, view.reason
    status = await moving.migrations.status(id_)
    assert (status.read, status.done, status.counts) == (1100, 1100, {RecordState.WRITTEN: 1100})
    assert sorted(row["name"] for row in moving.books.content("people")) == sorted(f"P{n}" for n in range(1100))
    assert (moving.books.writes, moving.books.finds) == (1100, 0)

    await moving.migrations.run(id_, by="anna")
    assert (await moving.drive(id_)).state is JobState.COMPLETED
    assert moving.books.writes == 1100
    again = await moving.migrations.status(id_)
    assert again.counts == {RecordState.UNCHANGED: 1100}


async def test_whatever_the_moment_of_a_crash_the_target_has_each_record_once(
    moving: Moving, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed at every commit boundary in turn, 5 % of the answers lost, creates without a key (C8)."""
    notes = [{"id": str(number), "text": f"note {number // 4}", "of": str(number // 4)} for number in range(260)]
    moving.give("notes", notes)
    moving.books.default = WriteStrategy.RECONCILE
    moving.books.lose = losing(0.05)
    monkeypatch.setattr(batch_handler, "CHUNK", 20)
    id_ = await moving.create({"notes": {"fields": {"text": "text", "of": "of"}}})
    await moving.migrations.run(id_, by="anna")
    plan = itertools.cycle(["started", "sent", "settled"])
    deaths = 0
    for blow in range(24):
        crash = Crash(next(plan), 1 + blow % 3)
        monkeypatch.setattr(writer, "crash_point", crash)
        view = await moving.drive(id_, rounds=6, may_go_on=True)
        if crash.is_over:
            deaths += 1
            await moving.bury()
        if view.state is not JobState.RUNNING:
            break
    monkeypatch.setattr(writer, "crash_point", lambda _name: None)
    await moving.bury()

    view = await moving.drive(id_)

    assert deaths >= 6
    assert view.state is JobState.COMPLETED, await moving.migrations.dead(id_)
    assert moving.books.content("notes") == sorted(
        ({"text": note["text"], "of": note["of"]} for note in notes), key=lambda row: json.dumps(row, sort_keys=True)
    )
    report = await moving.migrations.verify(id_)
    assert report.passed, report.text()
