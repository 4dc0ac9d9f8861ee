"""The audit trail is a chain of hashes: changed or deleted lines are found, retention is no gap (S22)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import httpx
import pytest

from tidings.access.audit import PRUNE, AuditLog, audit_entry
from tidings.access.audit_chain import ChainVerification, verify_chain
from tidings.access.caller import COMMAND_LINE
from tidings.kernel.clock import ManualClock
from tidings.kernel.retention import RetentionPruner
from tidings.model.errors import Invalid
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

from ..acceptance.harness import KEY
from ..acceptance.program import run, serving


class Trail:
    """An audit trail, and somebody who can write to its database."""

    def __init__(self, store: Store, clock: ManualClock, url: str) -> None:
        self.store = store
        self.clock = clock
        self.audit = AuditLog(store)
        self._url = url

    async def add(self, *whats: str) -> None:
        """Write lines, each in a transaction of its own."""
        for what in whats:
            await self.audit.note(audit_entry(COMMAND_LINE, what, target="ü '\"", status=200, detail="x" * 90))

    async def tamper(self, *statements: str) -> None:
        """Write to the database past the engine."""
        if isinstance(self.store, SqliteStore):
            connection = apsw.Connection(str(self.store.path))
            for statement in statements:
                connection.execute(statement).fetchall()
            connection.close()
            return
        server = await asyncpg.connect(self._url)
        for statement in statements:
            await server.execute(statement)
        await server.close()

    async def unlock(self) -> None:
        """Remove what the database itself holds against it, as its owner can."""
        on = "" if isinstance(self.store, SqliteStore) else " on audit"
        await self.tamper(f"drop trigger audit_append_only{on}", f"drop trigger audit_kept{on}")

    async def prune(self, keep: timedelta) -> None:
        """What the engine does every hour."""
        while not await RetentionPruner("audit", self.store, self.clock, dict.fromkeys(PRUNE, keep)).step():
            pass

    async def check(self, head: str | None = None) -> ChainVerification:
        """Verify it."""
        return await verify_chain(self.store, head=head)


@pytest.fixture(params=["sqlite", "postgres"])
async def trail(request: pytest.FixtureRequest, sqlite_file: Path) -> AsyncIterator[Trail]:
    """An empty trail on either database."""
    clock, url, store = ManualClock(), "", None
    made: Store
    if request.param == "sqlite":
        made = store = SqliteStore(sqlite_file, now=clock.now, inline=True)
    else:
        url = request.getfixturevalue("postgres_url")
        made = PostgresStore(url, now=clock.now, connections=8)
    await made.open()
    yield Trail(store or made, clock, url)
    await made.close()


async def test_an_untouched_trail_is_intact(trail: Trail) -> None:
    """Single lines and batches; an empty trail, too."""
    assert await trail.check() == (True, 0, [], None, None)
    await trail.add("a", "b")
    for number in range(2500):
        trail.audit.note_soon(audit_entry(COMMAND_LINE, f"messages.accept {number}"))
    await trail.audit.close()
    found = await trail.check()
    assert (found.intact, found.lines, found.problems) == (True, 2502, [])
    assert found.head is not None and found.head.startswith("2502:")


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("update audit set actor = 'nobody' where n = 3", ["entry 3 was changed"]),
        ("update audit set at = at + 1 where n = 3", ["entry 3 was changed"]),
        ("update audit set detail = null where n = 3", ["entry 3 was changed"]),
        ("update audit set hash = 'x' where n = 3", ["entry 3 was changed", "entry 4 was changed"]),
        ("delete from audit where n = 1", ["entry 1 is missing"]),
        ("delete from audit where n in (2, 3)", ["entries 2 to 3 are missing"]),
        ("delete from audit where n >= 4", ["entries 4 to 5 are missing at the end"]),
        ("delete from audit_chain", ["the end of the chain is missing"]),
    ],
)
async def test_a_changed_or_deleted_line_is_found(trail: Trail, statement: str, problem: list[str]) -> None:
    """By whoever can write to the database past the engine."""
    await trail.add("a", "b", "c", "d", "e")
    await trail.unlock()
    await trail.tamper(statement)
    found = await trail.check()
    assert not found.intact
    assert found.problems == problem


async def test_the_database_refuses_to_change_or_delete_lines(trail: Trail) -> None:
    """Without taking its triggers away first."""
    await trail.add("a", "b")
    for statement in ("update audit set actor = 'x'", "delete from audit where n = 2", "delete from audit"):
        with pytest.raises(Exception, match="append-only"):
            await trail.tamper(statement)
    if isinstance(trail.store, PostgresStore):
        with pytest.raises(asyncpg.RaiseError, match="append-only"):
            await trail.tamper("truncate audit")
    assert (await trail.check()).lines == 2


async def test_a_noted_head_finds_a_trail_that_was_written_anew(trail: Trail) -> None:
    """A chain can be computed again by whoever owns the database; what was noted elsewhere cannot."""
    await trail.add("a", "b", "c")
    head = (await trail.check()).head
    await trail.add("d")
    assert (await trail.check(head)).intact
    await trail.unlock()
    await trail.tamper("delete from audit", "delete from audit_chain")
    await trail.add("a", "other", "c", "d")
    assert (await trail.check()).intact
    assert (await trail.check(head)).problems == ["entry 3 does not match the saved head"]
    await trail.tamper("delete from audit", "delete from audit_chain")
    assert (await trail.check(head)).problems == ["the end of the chain is missing"]
    await trail.add("a")
    assert (await trail.check(head)).problems == ["the saved head is entry 3, but the log ends with entry 1"]
    with pytest.raises(Invalid, match="invalid head"):
        await trail.check("3:xyz")


async def test_retention_keeps_the_trail_verifiable(trail: Trail) -> None:
    """The oldest lines go, the chain begins behind them, and a line that is deleted later is still found."""
    await trail.add("a", "b", "c")
    head = (await trail.check()).head
    trail.clock.advance(60)
    await trail.add("d", "e")
    await trail.prune(timedelta(seconds=30))
    found = await trail.check(head)
    assert (found.intact, found.lines, found.pruned_until is not None) == (True, 2, True)
    await trail.prune(timedelta(seconds=30))
    trail.clock.advance(60)
    await trail.prune(timedelta(seconds=30))
    found = await trail.check()
    assert (found.intact, found.lines) == (True, 0)
    await trail.add("f", "g")
    assert (await trail.check()).lines == 2
    await trail.unlock()
    await trail.tamper("delete from audit where n = 6")
    assert (await trail.check()).problems == ["entry 6 is missing"]


async def test_retention_prunes_only_lines_in_a_row(trail: Trail) -> None:
    """A clock that was set back leaves a newer line before older ones: they wait for it."""
    await trail.add("a")
    trail.clock.advance(120)
    await trail.add("ahead")
    trail.clock.jump(-100)
    await trail.add("b")
    trail.clock.advance(100)
    await trail.prune(timedelta(seconds=60))
    found = await trail.check()
    assert (found.intact, found.lines) == (True, 2)


async def test_lines_from_before_the_chain_are_left_alone(trail: Trail) -> None:
    """A database that was upgraded: they have no hash, are not verified, and are pruned by age."""
    old = "insert into audit (at, tenant, actor, action) values ({at}, 'default', 'ada', 'old')"
    now = trail.clock.now()
    await trail.tamper(*[old.format(at=now)] * 3)
    assert (await trail.check()).intact
    await trail.add("a", "b")
    found = await trail.check()
    assert (found.intact, found.lines) == (True, 2)
    trail.clock.advance(60)
    await trail.add("c")
    await trail.prune(timedelta(seconds=30))
    found = await trail.check()
    assert (found.intact, found.lines) == (True, 1)


async def test_concurrent_writers_form_one_chain(trail: Trail) -> None:
    """Many transactions at once, some of them rolled back, and a pruner beside them."""
    stores: list[Store] = [trail.store]
    if isinstance(trail.store, PostgresStore):
        stores += [PostgresStore(trail._url, now=trail.clock.now, connections=8) for _ in range(2)]
        for one in stores[1:]:
            await one.open()
    trails = [AuditLog(store) for store in stores]

    async def write(number: int) -> None:
        await trails[number % len(trails)].note(audit_entry(COMMAND_LINE, f"change {number}"))

    await asyncio.gather(*(write(number) for number in range(200)), trail.prune(timedelta(hours=1)))
    found = await trail.check()
    assert (found.intact, found.lines, found.problems) == (True, 200, [])
    for one in stores[1:]:
        await one.close()


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_the_trail_is_verified_on_the_command_line(
    request: pytest.FixtureRequest, tmp_path: Path, database: str
) -> None:
    """`tidings audit verify`, beside a served engine: 0 and a head, or 1 and what is wrong."""
    url = request.getfixturevalue("postgres_url") if database == "postgres" else ""
    words = ("--database", url) if url else ()
    with serving(tmp_path, *words, env={"TIDINGS_API_KEYS": KEY}) as served:
        page = served.address("dashboard")
        for name in ("ada", "bob", "eve"):
            body = {"name": name, "role": "viewer"}
            httpx.post(f"{page}/v1/keys", json=body, headers={"x-api-key": KEY})
        first = run("audit", "verify", "--json", *words, folder=tmp_path)
        found: dict[str, Any] = json.loads(first.stdout)
        assert (first.returncode, found["intact"], found["lines"]) == (0, True, 3)
        again = run("audit", "verify", "--head", found["head"], *words, folder=tmp_path)
        assert again.returncode == 0 and "3 entries verified" in again.stdout
        assert run("audit", "verify", "--head", "x", *words, folder=tmp_path).returncode == 2

    statements = ("drop trigger audit_kept{on}", "delete from audit where n = 2")
    if url:
        asyncio.run(_execute(url, *(one.format(on=" on audit") for one in statements)))
    else:
        connection = apsw.Connection(str(tmp_path / "data" / "tidings.db"))
        for one in statements:
            connection.execute(one.format(on="")).fetchall()
        connection.close()
    broken = run("audit", "verify", *words, folder=tmp_path)
    assert broken.returncode == 1 and "entry 2 is missing" in broken.stdout
    told = json.loads(run("audit", "verify", "--json", *words, folder=tmp_path).stdout)
    assert (told["intact"], told["problems"]) == (False, ["entry 2 is missing"])


async def _execute(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    for statement in statements:
        await connection.execute(statement)
    await connection.close()
