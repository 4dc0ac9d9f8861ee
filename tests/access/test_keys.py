"""Keys, sessions, rates and the audit trail, on both databases (S1, S10, S16, S22)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tidings.access.audit import PRUNE, audit_entry, sanitize
from tidings.access.caller import COMMAND_LINE, Caller, acting_as
from tidings.access.permissions import ROLE_PERMISSIONS, Permission, Role, may
from tidings.access.rate_limits import ApiKeyRateLimiter
from tidings.access.service import AccessService, open_access
from tidings.kernel.clock import ManualClock
from tidings.kernel.retention import RetentionPruner
from tidings.model.errors import Conflict, Invalid, NotFound, RateLimited
from tidings.model.time import MINUTE, SECOND, iso
from tidings.store.port import Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore

CONFIGURED = "0123456789abcdef0123456789abcdef"


@pytest.fixture
def clock() -> ManualClock:
    """Time moved by hand."""
    return ManualClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def store(request: pytest.FixtureRequest, tmp_path: Path, clock: ManualClock) -> AsyncIterator[Store]:
    """An empty store, opened."""
    made: Store
    if request.param == "sqlite":
        made = SqliteStore(tmp_path / "tidings.db", now=clock.now, inline=True)
    else:
        made = PostgresStore(request.getfixturevalue("postgres_url"), now=clock.now, connections=4)
    await made.open()
    yield made
    await made.close()


@pytest.fixture
def access(store: Store, clock: ManualClock) -> AccessService:
    """With one key in the settings."""
    return open_access(store, clock, (CONFIGURED,), is_local=True)


async def make(access: AccessService, **fields: Any) -> dict[str, Any]:
    """A new key."""
    return await access.keys.create({"name": "billing", "role": "sender"} | fields)


def test_roles_are_a_ladder() -> None:
    """S2: each role may do what those below it may; what is not in the table is denied."""
    ladder = [ROLE_PERMISSIONS[role] for role in reversed(Role)]
    assert all(lower < upper for lower, upper in pairwise(ladder))
    assert ladder[-1] == set(Permission)
    assert not may(Role.VIEWER, Permission.SEND) and not may(Role.OPERATOR, Permission.ADMIN)


async def test_a_key_opens_until_it_expires_or_is_revoked(access: AccessService, clock: ManualClock) -> None:
    """S1: 256 bits, shown once, kept as a hash; the caller has its role, tenant, scopes and rate."""
    made = await make(access, tenant="acme", scopes=["messages"], rate=7, expires_in="1h")
    assert len(made["key"]) == 4 + 8 + 1 + 43 and made["prefix"] == made["key"][:12]
    expected = Caller("billing", Role.SENDER, "acme", made["id"], frozenset({"messages"}), 7)
    assert await access.authenticator.caller(made["key"], None) == expected
    assert "key" not in await access.keys.show(made["id"])

    clock.advance(3600)
    assert await access.authenticator.caller(made["key"], None) is None
    other = await make(access, name="other")
    assert await access.authenticator.by_key(other["key"]) is not None
    await access.keys.revoke(other["id"])
    assert await access.authenticator.by_key(other["key"]) is None
    with pytest.raises(Conflict, match="was revoked"):
        await access.keys.rotate(other["id"])
    states = {row["name"]: row["state"] for row in (await access.keys.page(of="*")).items}
    assert states == {"billing": "expired", "other": "revoked"}


async def test_a_rotated_key_has_an_overlap(access: AccessService, clock: ManualClock) -> None:
    """S1: both secrets open for the overlap, then the new one alone; the name of the key stays."""
    made = await make(access)
    rotated = await access.keys.rotate(made["id"], overlap="1h")
    assert rotated["key"] != made["key"] and rotated["prefix"] == made["prefix"]
    assert (
        await access.authenticator.by_key(made["key"]) == await access.authenticator.by_key(rotated["key"]) is not None
    )

    clock.advance(3601)
    assert await access.authenticator.by_key(made["key"]) is None
    assert await access.authenticator.by_key(rotated["key"]) is not None
    newest = await access.keys.rotate(made["id"], overlap="0")
    assert await access.authenticator.by_key(rotated["key"]) is None
    assert await access.authenticator.by_key(newest["key"]) is not None


async def test_another_process_notices_a_revoked_key_within_a_second(
    access: AccessService, store: Store, clock: ManualClock
) -> None:
    """What was read is good for a second, so that a busy key costs one read a second."""
    made, elsewhere = await make(access), open_access(store, clock, (), is_local=False)
    assert await elsewhere.authenticator.by_key(made["key"]) is not None
    await access.keys.revoke(made["id"])

    clock.advance(1)
    assert await elsewhere.authenticator.by_key(made["key"]) is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "command line"}, "name"),
        ({"name": "settings:1"}, "name"),
        ({"role": "root"}, "role"),
        ({"tenant": "Ac me"}, "tenant"),
        ({"scopes": ["mesages"]}, "scopes"),
        ({"rate": 0}, "rate"),
        ({"expires_in": "soon"}, "expires_in"),
        ({"expires_in": "99999d"}, "expires_in"),
        ({"digest": "x"}, "digest"),
    ],
)
async def test_a_key_that_cannot_be_made_is_said_in_one_sentence(
    tmp_path: Path, clock: ManualClock, fields: dict[str, Any], field: str
) -> None:
    """S4: the field and the remedy, and nothing is written. A name is free again once its key is revoked."""
    store = SqliteStore(tmp_path / "t.db", now=clock.now, inline=True)
    await store.open()
    access = open_access(store, clock, (), is_local=True)
    with pytest.raises(Invalid) as told:
        await make(access, **fields)
    assert told.value.field == field and told.value.remedy
    assert (await access.keys.page(of="*")).items == []
    assert (await access.audit.page(of="*")).items == []
    await store.close()


async def test_a_name_is_used_once_at_a_time(access: AccessService) -> None:
    """So a name in the audit trail means one key; in another tenant, and after a revocation, it is free."""
    first = await make(access)
    with pytest.raises(Conflict, match="already"):
        await make(access)
    await make(access, tenant="acme")
    await access.keys.revoke(first["id"])
    await make(access)


async def test_a_session_ends_with_its_time_its_key_and_its_browser(
    access: AccessService, store: Store, clock: ManualClock
) -> None:
    """S1: only the hash of a session is kept; it dies with a revoked key, also one of the settings."""
    made = await make(access)
    signed = [await access.authenticator.sign_in(key, "::1") for key in (made["key"], CONFIGURED, made["key"])]
    tokens = [one[0] for one in signed if one is not None]
    assert await access.authenticator.sign_in("wrong", "::1") is None
    callers = [await access.authenticator.caller(None, token) for token in tokens]
    assert [one.role for one in callers if one] == [Role.SENDER, Role.ADMIN, Role.SENDER]

    await access.authenticator.sign_out(tokens[2])
    assert await access.authenticator.caller(None, tokens[2]) is None
    await access.keys.revoke(made["id"])
    assert await access.authenticator.caller(None, tokens[0]) is None
    changed = open_access(store, clock, (CONFIGURED[::-1],), is_local=True)
    assert await changed.authenticator.caller(None, tokens[1]) is None
    clock.advance(hours=12)
    assert await access.authenticator.caller(None, tokens[1]) is None
    await RetentionPruner(
        "audit", store, clock, {**dict.fromkeys(PRUNE, timedelta(days=365)), "session_prune": timedelta()}
    ).step()
    assert await store.read("session_find", digest="x", now=0) == []


async def test_the_door_stands_open_until_there_is_a_key(store: Store, clock: ManualClock) -> None:
    """S20: on loopback without a key this machine may do everything; elsewhere nobody, and never again."""
    access = open_access(store, clock, (), is_local=True)
    assert await access.authenticator.caller(None, None) is not None
    assert await access.authenticator.caller("junk", None) is not None
    assert await access.authenticator.caller(f"tdk_00000000_{'x' * 43}", None) is None, "a key that is none is told so"
    assert not await open_access(store, clock, (), is_local=False).authenticator.is_open()
    admin = await make(access, name="ada", role="admin", expires_in="1h")
    assert await access.authenticator.caller(None, None) is None

    clock.advance(hours=2)
    assert not await access.authenticator.is_open(), "an expired admin opens nothing"
    await access.keys.revoke(admin["id"])
    assert not await access.authenticator.is_open(), "nor does a revoked one"


async def test_a_rate_holds_over_processes(access: AccessService, store: Store, clock: ManualClock) -> None:
    """S16: two processes and a restart share one rate; what is too much is told when to come again."""
    made = await make(access, rate=8)
    caller = await access.authenticator.by_key(made["key"])
    assert caller is not None
    nodes = [ApiKeyRateLimiter(store, clock), ApiKeyRateLimiter(store, clock)]

    async def burst(times: int) -> int:
        passed = 0
        for number in range(times):
            try:
                await nodes[number % 2].spend(caller)
                passed += 1
            except RateLimited as error:
                assert error.seconds == 1 and "billing" in error.problem
        return passed

    assert await burst(40) == 8
    nodes[0] = ApiKeyRateLimiter(store, clock)
    assert await burst(10) == 0, "a restart gives nothing back"
    clock.advance(0.5)
    assert await burst(40) == 4
    clock.advance(60)
    assert await burst(40) == 8, "no more than a second's worth is ever to its credit"
    await asyncio.gather(*(nodes[0].spend(COMMAND_LINE) for _ in range(20)))


async def test_the_last_use_is_written_once_a_minute(access: AccessService, clock: ManualClock) -> None:
    """Looking at a busy key costs no write."""
    made, used = await make(access), []
    for _ in range(4):
        await access.authenticator.by_key(made["key"])
        used.append((await access.keys.show(made["id"]))["last_used_at"])
        clock.advance(40)
    start = clock.now() - 160 * SECOND
    assert used == [iso(start), iso(start), iso(start + 80 * SECOND), iso(start + 80 * SECOND)]


async def test_no_secret_is_kept(access: AccessService, store: Store) -> None:
    """S9, S10: neither a key nor a session stands in the database or in the trail."""
    made = await make(access)
    rotated = await access.keys.rotate(made["id"])
    signed = await access.authenticator.sign_in(rotated["key"], "::1")
    assert signed is not None
    await access.audit.note(audit_entry(COMMAND_LINE, "x", target=made["key"], detail=f"by {made['key']}\x1b[2J"))

    said = str((await access.audit.page()).items)
    secrets = [made["key"][13:], rotated["key"][13:], signed[0]]
    assert f"{made['prefix']}_***" in said and "\x1b" not in said
    if isinstance(store, SqliteStore):
        files = b"".join(path.read_bytes() for path in store.path.parent.glob("tidings.db*"))
        assert b"billing" in files
        said += files.decode("latin-1")
    assert not [secret for secret in secrets if secret in said]
    assert sanitize("x" * 500) == "x" * 200


async def test_the_trail_is_append_only_and_forgotten_by_age(
    access: AccessService, store: Store, clock: ManualClock
) -> None:
    """S22: a key's change and its line are one transaction; lines of other tenants are not seen."""
    with acting_as(Caller("ada", origin="10.0.0.1")):
        made = await make(access, tenant="acme")
        with pytest.raises(Conflict):
            await make(access, tenant="acme")
        await access.keys.revoke(made["id"])
    told = (await access.audit.page()).items
    assert [(row["action"], row["actor"], row["origin"], row["target"]) for row in told] == [
        ("keys.revoke", "ada", "10.0.0.1", made["id"]),
        ("keys.create", "ada", "10.0.0.1", made["id"]),
    ]
    assert (await access.audit.page(tenant="acme")).items == []
    with pytest.raises(NotFound):
        await access.audit.page(of="default", tenant="acme")
    with pytest.raises(Exception, match="append-only"):
        await change(store)

    for _ in range(3):
        access.audit.note_soon(audit_entry(COMMAND_LINE, "messages.accept", status=201))
    await access.audit.close()
    first = await access.audit.page(limit=2)
    rest = await access.audit.page(limit=10, after=first.next)
    assert [len(first.items), len(rest.items)] == [2, 3]
    clock.advance(MINUTE / SECOND)
    assert await RetentionPruner("audit", store, clock, dict.fromkeys(PRUNE, timedelta(seconds=59))).step() == 3600
    assert (await access.audit.page(of="*")).items == []


async def change(store: Store) -> None:
    """Somebody tries to rewrite what was done."""
    statement = "update audit set actor = 'nobody'"
    if isinstance(store, PostgresStore):
        async with store._connection() as connection:
            await connection.execute(statement)
    elif isinstance(store, SqliteStore):
        assert store._connection is not None
        store._connection.execute(statement).fetchall()


async def test_a_key_of_a_stranger_is_not_there(access: AccessService) -> None:
    """S3: a tenant's admin reaches its own keys only; the tenant default runs the engine and reaches all."""
    ours, theirs = await make(access), await make(access, tenant="acme")
    for wish in (access.keys.show, access.keys.rotate, access.keys.revoke):
        with pytest.raises(NotFound):
            await wish(ours["id"], tenant="acme")
    assert [row["id"] for row in (await access.keys.page(tenant="acme")).items] == [theirs["id"]]
    assert (await access.keys.show(theirs["id"]))["tenant"] == "acme"
