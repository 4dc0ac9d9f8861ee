"""Any order of the store's verbs keeps to the model: on SQLite always, on PostgreSQL in `make soak`."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tidings.kernel.clock import ManualClock
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from .machine import StoreMachine
from .world import MEMORY, template

EXAMPLES = int(os.environ.get("TIDINGS_MACHINE_EXAMPLES", "30"))


def profile(examples: int) -> settings:
    """The same examples every time."""
    return settings(
        max_examples=examples,
        stateful_step_count=25,
        derandomize=True,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@contextmanager
def folders() -> Iterator[Path]:
    """A folder in memory, where there is one."""
    with tempfile.TemporaryDirectory(dir=MEMORY, prefix="machine-") as folder:
        yield Path(folder)


@pytest.mark.timeout(600)
def test_any_order_of_verbs_keeps_to_the_model_on_a_file() -> None:
    """Who may move a task, from which state and with which claim (design rules 4 and 5)."""
    furnished = template()
    with folders() as folder:

        async def opened(clock: ManualClock) -> Store:
            path = folder / "machine.db"
            for left in folder.glob("machine.db*"):
                left.unlink()
            shutil.copy(furnished, path)
            store = SqliteStore(path, now=clock.now, inline=True)
            await store.open()
            return store

        class OnSqlite(StoreMachine):
            pass

        OnSqlite.opened = staticmethod(opened)
        run_state_machine_as_test(OnSqlite, settings=profile(EXAMPLES))


@pytest.mark.postgres
@pytest.mark.crash
@pytest.mark.skipif("TIDINGS_MACHINE_EXAMPLES" not in os.environ, reason="runs in make soak")
@pytest.mark.timeout(3600)
def test_any_order_of_verbs_keeps_to_the_model_on_postgresql(postgres_url: str) -> None:
    """The same promises, kept by other statements."""

    async def opened(clock: ManualClock) -> Store:
        connection = await asyncpg.connect(postgres_url)
        await connection.execute("truncate tidings.tasks, tidings.history, tidings.nodes, tidings.queues cascade")
        await connection.close()
        store = PostgresStore(postgres_url, now=clock.now, connections=2)
        await store.open()
        return store

    class OnPostgres(StoreMachine):
        pass

    OnPostgres.opened = staticmethod(opened)
    run_state_machine_as_test(OnPostgres, settings=profile(EXAMPLES))
