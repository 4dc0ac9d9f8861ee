"""Moving a SQLite file to PostgreSQL: everything arrives, nothing is worked on twice, a death is harmless."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Conflict, StoreUnavailable, StoreUnusable
from tidings.model.message import Draft
from tidings.model.time import DAY, HOUR
from tidings.store import sqlite_to_postgres
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

WHERE = "postgresql://there"


def app_on(url: str, clock: ManualClock) -> App:
    """An engine on one of the two databases."""
    settings = Settings(database=url, channels={"out": ChannelSettings("noop")})
    path = settings.database_path
    store = PostgresStore(url, now=clock.now) if path is None else SqliteStore(path, now=clock.now, inline=True)
    return build(settings, clock=clock, store=store)


async def work(app: App) -> None:
    """Join, do all that is due, and leave."""
    await app.worker.node.join()
    for actor in app.actors:
        await actor.step()
    while (await app.worker.runner.step()).claimed:
        pass
    await app.worker.node.leave()


@pytest.fixture
async def lived_in(sqlite_url: str, clock: ManualClock) -> AsyncIterator[Path]:
    """A file with something in most tables: sent, failed and waiting, plans, people, history of two days."""
    app = app_on(sqlite_url, clock)
    await app.open()
    await app.messages.accept(Draft("out", "ada", "sent yesterday"))
    await work(app)
    clock.advance_to(clock.now() + DAY)
    await app.messages.accept(Draft("out", "ada", 'sent today "quoted" äöü 🚀'))
    await work(app)
    await app.messages.accept(Draft("out", "bob", "later", at=clock.now() + HOUR))
    await app.outbound.contacts.create({"name": "Ada", "addresses": {"out": "ada"}})
    body = {"rule": {"every": "1h"}, "message": {"channel": "out", "to": "ada", "text": "tick"}}
    await app.outbound.schedules.create(body, timezone=app.settings.timezone)
    await app.outbound.channels.pause("out", reason="by hand")
    await app.outbound.channels.resume("out")
    await app.close()
    path = app.settings.database_path
    assert path is not None
    yield path


async def test_everything_arrives_and_goes_on_there(lived_in: Path, bare_postgres_url: str, clock: ManualClock) -> None:
    """Every row of every table; what waited is sent once, ids and days of history go on."""
    seen: list[str] = []
    counted = await sqlite_to_postgres.move_database(
        lived_in, bare_postgres_url, where=WHERE, progress=lambda table, _n: seen.append(table)
    )
    assert (counted["tasks"], counted["messages"], counted["schedules"], counted["contacts"]) == (3, 3, 1, 1)
    assert counted["history"] >= 4 and set(seen) == {name for name, rows in counted.items() if rows}

    app = app_on(bare_postgres_url, clock)
    await app.open()
    before = {row["to"]: row["state"] for row in (await app.messages.page()).items}
    assert before == {"ada": "sent", "bob": "pending"}
    clock.advance(3600)
    await work(app)
    rows = (await app.messages.page()).items
    assert sorted((row["text"], row["state"]) for row in rows if row["to"] == "bob") == [("later", "sent")]
    assert len([row for row in rows if row["text"] == "tick"]) == 1, "the schedule fired there"
    new = await app.messages.accept(Draft("out", "cyd", "new"))
    tasks = await app.store.read("message_newest", kind="message", tenant="default", window=1000, limit=10)
    assert len({row["task"] for row in tasks}) == len(tasks) == 5 and new.id
    await app.close()
    connection = await asyncpg.connect(bare_postgres_url)
    loose = await connection.fetchval("select count(*) from tidings.history_rest")
    await connection.close()
    assert loose == 0, "each day of the history can be dropped by itself"


async def test_the_file_refuses_to_be_worked_on(lived_in: Path, bare_postgres_url: str, clock: ManualClock) -> None:
    """Nothing is sent twice; to ask again says the same, until the target goes on; a person may undo."""
    counted = await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)
    old = SqliteStore(lived_in, now=clock.now, inline=True)
    with pytest.raises(StoreUnusable, match=f"was moved to {WHERE}"):
        await old.open()
    await old.close()
    assert await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE) == counted
    app = app_on(bare_postgres_url, clock)
    await app.open()
    await app.messages.accept(Draft("out", "ada", "new"))
    await app.close()
    with pytest.raises(Conflict, match="has changed since"):
        await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)

    assert sqlite_to_postgres.undo_move(lived_in) and not sqlite_to_postgres.undo_move(lived_in)
    await old.open()
    await old.close()


async def test_a_file_in_use_or_a_filled_target_is_refused(
    lived_in: Path, bare_postgres_url: str, clock: ManualClock
) -> None:
    """Nothing is changed, and the file can be used as before."""
    user = SqliteStore(lived_in, now=clock.now, inline=True)
    await user.open()
    with pytest.raises(Conflict, match="has this database open"):
        await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)
    await user.close()
    app = app_on(bare_postgres_url, clock)
    await app.open()
    await app.close()
    with pytest.raises(Conflict, match="the target is not empty"):
        await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)
    await user.open()
    await user.close()


async def test_a_death_before_the_commit_leaves_one_side_and_the_command_goes_on(
    lived_in: Path, bare_postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut when the file is marked and the other side not yet durable: nobody can work."""
    mark = sqlite_to_postgres._mark
    targets: list[Any] = []
    tables = sqlite_to_postgres._tables

    async def noted(source: apsw.Connection, target: Any) -> Any:
        targets.append(target)
        return await tables(source, target)

    def marked_and_cut(source: apsw.Connection, where: str) -> None:
        mark(source, where)
        targets[0].terminate()

    monkeypatch.setattr(sqlite_to_postgres, "_tables", noted)
    monkeypatch.setattr(sqlite_to_postgres, "_mark", marked_and_cut)
    with pytest.raises(StoreUnavailable, match="run the same command again"):
        await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)
    old = SqliteStore(lived_in, now=clock.now, inline=True)
    with pytest.raises(StoreUnusable, match="was moved"):
        await old.open()
    await old.close()
    monkeypatch.undo()
    assert (await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE))["tasks"] == 3


async def test_a_difference_undoes_everything(
    lived_in: Path, bare_postgres_url: str, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that did not arrive as it left is found before anything counts."""
    copy = sqlite_to_postgres._copy

    async def spoilt(source: Any, target: Any, table: sqlite_to_postgres.CopiedTable, told: Any) -> None:
        await copy(source, target, table, told)
        if table.name == "messages":
            await target.execute("update messages set content = 'x' where recipient = 'bob'")

    monkeypatch.setattr(sqlite_to_postgres, "_copy", spoilt)
    with pytest.raises(StoreUnusable, match="the table messages differs after the copy"):
        await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE)
    monkeypatch.undo()
    assert (await sqlite_to_postgres.move_database(lived_in, bare_postgres_url, where=WHERE))["messages"] == 3, (
        "the target was left empty"
    )
