"""A target whose disk is really full, and gets room again (C3, C8, F63)."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tidings.kernel.clock import ManualClock
from tidings.migration.connectors.port import ConnectorError, Fields, TargetRecord
from tidings.migration.connectors.sql import SqlTarget
from tidings.migration.connectors.sql_database import SqlSettings
from tidings.migration.jobs import JobState
from tidings.migration.record_states import RecordState
from tidings.store.port import Store

from .migration_harness import Moving

_PEOPLE = 300
_TYPES: dict[str, Any] = {"people": {"fields": {"name": {"path": "name"}, "note": {"path": "note"}}}}


class Brimming(SqlTarget):
    """A real database on a small disk; somebody makes room after it has refused twice."""

    def __init__(self, path: Path) -> None:
        super().__init__(SqlSettings(f"sqlite:///{path}"), lambda: 0)
        self._filler = path.with_name("filler")
        self.refused: list[str] = []

    def fill(self) -> None:
        """No room from now on."""
        with self._filler.open("wb", buffering=0) as file:
            try:
                while file.write(bytes(4096)):
                    pass
            except OSError:
                return

    async def write_many(
        self, type_: str, records: Sequence[tuple[str, Fields, str | None]]
    ) -> Sequence[TargetRecord | ConnectorError]:
        try:
            return await super().write_many(type_, records)
        except ConnectorError as trouble:
            self.refused.append(trouble.reason)
            if len(self.refused) == 2:
                self._filler.unlink()
            raise


@pytest.fixture
async def moving(store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Files, a target, and a node between them."""
    return Moving(store, clock, tmp_path, monkeypatch)


async def test_a_target_whose_disk_is_full_is_tried_again_and_then_has_everything_once(
    moving: Moving, disk: Callable[[str], Path]
) -> None:
    """It says no, is waited for by its policy, and the run goes on from the last commit (C3, C8, F63)."""
    path = disk("2m") / "new.db"
    with closing(sqlite3.connect(path)) as there:
        there.execute("create table people (id text primary key, name text, note text)")
    moving.give("people", [{"id": str(n), "name": f"P{n}", "note": "x" * 2000} for n in range(_PEOPLE)])
    target = Brimming(path)
    moving.books = target  # type: ignore[assignment]
    target.fill()

    id_ = await moving.create(_TYPES)
    await moving.migrations.run(id_, by="anna")
    view = await moving.drive(id_)
    await target.close()

    assert len(target.refused) >= 2 and all("full" in reason for reason in target.refused)
    assert view.state is JobState.COMPLETED
    assert (await moving.migrations.status(id_)).counts == {RecordState.WRITTEN: _PEOPLE}
    with closing(sqlite3.connect(path)) as there:
        assert there.execute("select count(*), count(distinct name) from people").fetchone() == (
            _PEOPLE, _PEOPLE,
        )  # fmt: skip
