"""The store fixtures: every test of the contract runs on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tidings.kernel.clock import ManualClock
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from .migration_harness import Moving


@pytest.fixture
def clock() -> ManualClock:
    """Time moved by hand."""
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store, opened."""
    made: Store
    if request.param == "sqlite":
        made = SqliteStore(request.getfixturevalue("sqlite_file"), now=clock.now, inline=True)
    else:
        made = PostgresStore(request.getfixturevalue("postgres_url"), now=clock.now, connections=4)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
async def moving(store: Store, clock: ManualClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Moving:
    """Files, books, and a node that moves records between them."""
    from .migration_harness import Moving

    return Moving(store, clock, tmp_path, monkeypatch)
