"""Health while the database answers and refuses writes: a full disk, a read-only server (F15)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from time import monotonic
from urllib.parse import urlsplit

import asyncpg
import httpx
import pytest

from tidings.model.errors import TidingsError
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore
from tidings.store.write_state import REFUSAL_HOLD

from .harness import AppHarness, house

MESSAGE = {"channel": "out", "to": "ada", "text": "x" * 4000}
LIFT = 2**31


@pytest.fixture(params=["sqlite", "postgres"])
async def home(request: pytest.FixtureRequest, sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine on either database, that works."""
    postgres = request.param == "postgres"
    async with house(request.getfixturevalue("postgres_url") if postgres else sqlite_url) as built:
        yield built


@pytest.fixture
async def server(postgres_url: str) -> AsyncIterator[AppHarness]:
    """An engine on PostgreSQL."""
    async with house(postgres_url) as built:
        yield built


async def administer(home: AppHarness, *statements: str) -> None:
    """Run statements of the server's owner on a connection of its own."""
    store = home.app.store
    assert isinstance(store, PostgresStore)
    connection = await asyncpg.connect(store._dsn, server_settings={"default_transaction_read_only": "off"})
    try:
        for statement in statements:
            await connection.execute(statement)
    finally:
        await connection.close()


async def fill(home: AppHarness, *, full: bool = True) -> None:
    """Let the database take no new page; on PostgreSQL with the error of a full disk (53100)."""
    store = home.app.store
    if isinstance(store, SqliteStore):
        assert store._connection is not None
        store._connection.execute(f"pragma max_page_count = {1 if full else LIFT}")
    elif full:
        await administer(
            home,
            "create function tidings.refuse() returns trigger language plpgsql as"
            " $$ begin raise exception 'could not extend file' using errcode = '53100'; end $$",
            "create trigger refuse before insert on tidings.tasks execute function tidings.refuse()",
        )
    else:
        await administer(home, "drop trigger refuse on tidings.tasks")


async def accept_until_refused(home: AppHarness) -> httpx.Response:
    """The first answer that is not a success; pages that are there are used up before."""
    for _ in range(200):
        answer = await home.http.post("/v1/messages", json=MESSAGE)
        if not answer.is_success:
            return answer
    raise AssertionError("nothing was refused")


async def statuses(home: AppHarness) -> tuple[int, int, int, list[str]]:
    """What the routes of health answer, and why."""
    whole = await home.http.get("/health")
    ready = await home.http.get("/health/ready")
    scheduler = await home.http.get("/health/scheduler")
    return whole.status_code, ready.status_code, scheduler.status_code, whole.json()["reasons"]


async def test_health_fails_while_the_disk_is_full_and_recovers_with_the_next_accept(home: AppHarness) -> None:
    """A heartbeat that fits into a page that is there proves nothing; a message that is stored does."""
    await home.work()
    await fill(home)
    refused = await accept_until_refused(home)
    await home.app.worker.node.beat()
    during = await statuses(home)
    await fill(home, full=False)
    accepted = await home.http.post("/v1/messages", json=MESSAGE)
    after = await statuses(home)

    assert (refused.status_code, refused.headers["retry-after"]) == (507, "5")
    assert refused.json()["error"]["code"] == "store_full"
    assert during == (503, 503, 503, ["the database refuses writes: disk full"])
    assert accepted.status_code == 201
    assert after == (200, 200, 200, [])


async def test_health_asks_for_a_new_attempt_when_nothing_was_tried_for_a_while(
    home: AppHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a process that a load balancer left out because it is not ready would never come back."""
    await home.work()
    await fill(home)
    await accept_until_refused(home)
    before = (await statuses(home))[1]
    monkeypatch.setattr("tidings.store.write_state.monotonic", lambda: monotonic() + REFUSAL_HOLD)
    assert (before, (await statuses(home))[1]) == (503, 200)


async def test_health_fails_while_the_server_is_read_only_and_recovers_with_the_next_heartbeat(
    server: AppHarness,
) -> None:
    """25006, as after a failover to a standby: 503 until any write goes through."""
    await server.work()
    turn = "alter database {0} set default_transaction_read_only = {1}"
    database = urlsplit(server.app.settings.database).path.removeprefix("/")
    cut = "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()" \
        " and pid <> pg_backend_pid()"  # fmt: skip
    await administer(server, turn.format(database, "on"), cut)
    for _ in range(20):  # on the connections that were cut, then on new ones
        refused = await accept_until_refused(server)
        if server.app.store.writes.refusal is not None:
            break
    during = await statuses(server)
    await administer(server, turn.format(database, "off"), cut)
    for _ in range(20):
        try:
            await server.app.worker.node.beat()
            break
        except TidingsError:
            continue
    after = await statuses(server)

    assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
    assert during == (503, 503, 503, ["the database refuses writes: read-only"])
    assert after == (200, 200, 200, [])


async def test_health_fails_while_the_role_may_not_write(server: AppHarness) -> None:
    """42501 after the start is an outage, and health says so without naming the role or the table."""
    await server.work()
    raised = "$$ begin raise exception 'permission denied for table tasks' using errcode = '42501'; end $$"
    await administer(
        server,
        f"create function tidings.denied() returns trigger language plpgsql as {raised}",
        "create trigger denied before insert on tidings.tasks execute function tidings.denied()",
    )
    await accept_until_refused(server)
    during = await statuses(server)
    await administer(server, "drop trigger denied on tidings.tasks")
    await server.accept()

    assert during == (503, 503, 503, ["the database refuses writes: permission denied"])
    assert (await statuses(server))[:3] == (200, 200, 200)
