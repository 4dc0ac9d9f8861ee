"""Secrets at rest: encrypted, bound to their row, rotated, never overwritten (S10)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import apsw
import asyncpg
import pytest

from tidings.config import ChannelSettings
from tidings.dispatch.claim_tokens import ClaimTokens
from tidings.migration.credentials import Credential
from tidings.model.errors import Conflict, Misconfigured, StoreUnusable
from tidings.store import encryption, sqlite_to_postgres
from tidings.store.encryption import KEY_FILE, Cipher, SecretLocation, key_id

from ..acceptance.harness import KEY as API_KEY
from ..acceptance.harness import AppHarness, house
from ..acceptance.program import run
from ..encryption import KEY

NEW = "0123456789abcdef" * 4
BODY = {"url": "https://example.com/hooks", "events": ["message.*"]}
ROOT = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3"
CHANNELS = {
    "orders": ChannelSettings("webhook", {"url": "https://example.com/orders", "secrets": [ROOT]}),
    "out": ChannelSettings("noop"),
}


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest) -> str:
    """Both databases."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
async def home(database: str) -> AsyncIterator[AppHarness]:
    """An engine behind a key."""
    credentials = {"crm": Credential("canary-of-the-crm", frozenset({"api.attio.com", "api.affinity.co"}))}
    async with house(database, api_keys=(API_KEY,), channels=CHANNELS, credentials=credentials) as made:
        made.http.headers["x-api-key"] = API_KEY
        yield made


async def execute(database: str, *statements: str) -> list[tuple[Any, ...]]:
    """Work on the database past the engine; gives the rows of all statements."""
    rows: list[tuple[Any, ...]] = []
    if database.startswith("sqlite"):
        connection = apsw.Connection(database.removeprefix("sqlite:///"))
        for statement in statements:
            rows += connection.execute(statement).fetchall()
        connection.close()
        return rows
    server = await asyncpg.connect(database, server_settings={"search_path": "tidings"})
    for statement in statements:
        rows += [tuple(row) for row in await server.fetch(statement)]
    await server.close()
    return rows


async def everything(database: str) -> str:
    """All that the database holds: the bytes of the file, or every row of every table."""
    if database.startswith("sqlite"):
        path = Path(database.removeprefix("sqlite:///"))
        return b"".join(one.read_bytes() for one in path.parent.glob(f"{path.name}*")).decode("latin-1")
    tables = await execute(
        database, "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname = 'tidings'"
    )
    rows = await execute(database, *(f"select t::text from {name} t" for (name,) in tables))
    assert len(tables) > 50
    return "\n".join(text for (text,) in rows)


async def stored(database: str) -> list[tuple[Any, ...]]:
    """Every encrypted value as it is stored."""
    return await execute(
        database, "select secret, old_secret from subscriptions order by id", "select value, '' from secrets"
    )


async def subscribe(home: AppHarness, **headers: str) -> dict[str, Any]:
    answer = await home.http.post("/v1/subscriptions", json=BODY, headers=headers)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_no_credential_is_in_the_database_in_clear(home: AppHarness, database: str) -> None:
    """Each kind is created as users create it; then the whole database is searched for it."""
    once = await subscribe(home, **{"idempotency-key": "once"})
    assert (await subscribe(home, **{"idempotency-key": "once"}))["secret"] == once["secret"]
    rotated = (await home.http.post(f"/v1/subscriptions/{once['id']}/rotate")).json()
    tokens = ClaimTokens()
    await tokens.load(home.app.store, home.app.cipher)
    key = (await home.http.post("/v1/keys", json={"name": "b", "role": "admin"})).json()["key"]
    signed = await home.http.post("/sign-in", data={"key": key}, headers={"origin": "http://localhost"})
    endpoint = await home.http.post("/v1/channels/orders/secret", json={"to": "https://example.com/orders"})
    job = {
        "name": "move", "types": {"people": {"fields": {"name": "name"}}},
        "source": {"kind": "affinity", "key": "credential:crm"},
        "target": {"kind": "attio", "key": "credential:crm"},
    }  # fmt: skip
    made = await home.http.post("/v1/migrations", json=job)
    assert made.status_code == 201, made.text
    job["source"] = {"kind": "affinity", "key": "canary-in-clear"}
    assert (await home.http.post("/v1/migrations", json=job)).status_code == 422

    held = await everything(database)
    assert once["id"] in held and "credential:crm" in held and "enc:v1:" in held
    secrets = [once["secret"], rotated["secret"], *endpoint.json()["secrets"], ROOT, key, API_KEY, KEY]
    secrets += [tokens._secret.hex(), *signed.cookies.values(), "canary-of-the-crm", "canary-in-clear"]
    assert signed.cookies and len(set(secrets)) == 11
    assert not [one for one in secrets if one.removeprefix("whsec_") in held]


async def test_a_secret_copied_to_another_row_is_refused(home: AppHarness, database: str) -> None:
    """The row is authenticated with it: nothing is signed there, and the other subscriptions go on."""
    mine, theirs = await subscribe(home), await subscribe(home)
    listeners: Any = home.app.channels["events"]
    await execute(
        database,
        f"update subscriptions set secret = (select secret from subscriptions where id = '{mine['id']}')"
        f" where id = '{theirs['id']}'",
    )
    await home.http.post(f"/v1/subscriptions/{theirs['id']}/test")
    await home.work()

    shown = (await home.http.get(f"/v1/subscriptions/{theirs['id']}")).json()
    assert "not signed" in shown["problem"] and "copied from another row" in shown["problem"]
    known, other = (listeners._listeners.known(one["id"]) for one in (mine, theirs))
    assert known.secrets == (mine["secret"],) and (other.secrets, other.keys) == ((), ())
    with pytest.raises(StoreUnusable, match="copied from another row"):
        home.app.cipher.decrypt(SecretLocation("subscriptions", "acme", mine["id"]), (await stored(database))[0][0])


async def test_a_missing_key_is_named_and_nothing_is_overwritten(database: str) -> None:
    """At the start, when a secret is stored, and when secrets are re-encrypted."""
    async with house(database) as home:
        made = await subscribe(home)
    before = await stored(database)
    async with house(database, encryption_keys=(NEW,)) as home:
        refused = await home.http.post("/v1/subscriptions", json=BODY)
        assert (refused.status_code, refused.json()["error"]["field"]) == (500, "encryption_keys")
        for call in (home.app.cipher.check(), home.app.cipher.reencrypt()):
            with pytest.raises(Misconfigured, match=f"encryption key {key_id(KEY)} .* is missing") as caught:
                await call
            assert "Add that key to encryption_keys" in caught.value.remedy
        removed = await home.http.delete(f"/v1/subscriptions/{made['id']}")
        assert removed.status_code == 200, "what cannot be decrypted can be removed"
        await subscribe(home)
    assert before != await stored(database)


async def test_without_a_key_postgresql_stores_no_secret(postgres_url: str) -> None:
    """Messages need none; the first secret names the setting and how to make a key."""
    async with house(postgres_url, encryption_keys=()) as home:
        await home.app.cipher.check()
        await home.accept()
        refused = await home.http.post("/v1/subscriptions", json=BODY)
        error = refused.json()["error"]
        assert (refused.status_code, error["field"]) == (409, "encryption_keys")
        assert "openssl rand -hex 32" in error["remedy"]
        with pytest.raises(Conflict, match="no encryption key"):
            await ClaimTokens().load(home.app.store, home.app.cipher)
    assert await stored(postgres_url) == []


async def test_keys_are_rotated_in_batches_and_can_be_interrupted(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stopped after a batch, both keys decrypt all; the second run does the rest, clear values too."""
    monkeypatch.setattr(encryption, "BATCH", 2)
    tokens, again = ClaimTokens(), ClaimTokens()
    async with house(database) as home:
        await tokens.load(home.app.store, home.app.cipher)
        made = [await subscribe(home) for _ in range(3)]
        rotated = (await home.http.post(f"/v1/subscriptions/{made[0]['id']}/rotate")).json()["secret"]
    await execute(database, f"update subscriptions set secret = '{ROOT}' where id = '{made[2]['id']}'")
    async with house(database, encryption_keys=(NEW, KEY)) as home:
        with pytest.raises(StoreUnusable, match="unencrypted"):
            await home.app.cipher.check()
        with pytest.raises(InterruptedError):
            await home.app.cipher.reencrypt(interrupt)
        assert sorted(value[7:15] for value in await values(database)) == sorted(
            [key_id(NEW)] * 2 + [key_id(KEY)] * 2 + [ROOT[7:15]]
        )
        assert await home.app.cipher.reencrypt() == (key_id(NEW), 3)
        assert await home.app.cipher.reencrypt() == (key_id(NEW), 0)
    async with house(database, encryption_keys=(NEW,)) as home:
        await home.app.cipher.check()
        await again.load(home.app.store, home.app.cipher)
        await home.work()
        events: Any = home.app.channels["events"]
        known = [events._listeners.known(one["id"]).secrets for one in made[:2]]
        assert known == [(rotated, made[0]["secret"]), (made[1]["secret"],)]
    assert again.of("phone", 7, 2) == tokens.of("phone", 7, 2)


def interrupt(_changed: int) -> None:
    """As a killed process: the batch before is committed."""
    raise InterruptedError


async def values(database: str) -> list[str]:
    return [value for row in await stored(database) for value in row if value]


async def test_on_one_file_a_key_is_created_with_the_first_secret(sqlite_file: Path) -> None:
    """Beside the database, for its owner only; one that is lost is not replaced."""
    file = sqlite_file.parent / KEY_FILE
    async with house(f"sqlite:///{sqlite_file}", encryption_keys=()) as home:
        await home.accept()
        assert not file.exists()
        made = await subscribe(home)
        assert file.stat().st_mode & 0o777 == 0o600
        other = Cipher(home.app.store, (), file)
        [(value, _)] = await stored(f"sqlite:///{sqlite_file}")
        assert other.decrypt(SecretLocation("subscriptions", "default", made["id"]), value) == made["secret"]
        key = file.read_text()
        assert key not in await everything(f"sqlite:///{sqlite_file}") and sorted(
            one.name for one in sqlite_file.parent.glob(f"{KEY_FILE}*")
        ) == [KEY_FILE]
    file.rename(sqlite_file.parent / "away")
    async with house(f"sqlite:///{sqlite_file}", encryption_keys=()) as home:
        for call in (home.app.cipher.check(), home.app.cipher.reencrypt()):
            with pytest.raises(Misconfigured, match=f"{key_id(key.strip())} .* is missing"):
                await call
        assert (await home.http.post("/v1/subscriptions", json=BODY)).status_code == 500
        assert not file.exists()
        (sqlite_file.parent / "away").rename(file)
        await home.app.cipher.check()


@pytest.mark.parametrize(
    ("content", "mode", "problem"),
    [(KEY, 0o644, "can be read by others"), ("", 0o600, "contains no"), ("ü" * 32, 0o600, "not text")],
)
async def test_a_key_file_that_cannot_be_used_is_refused(
    sqlite_file: Path, content: str, mode: int, problem: str
) -> None:
    """With what to do; it is not touched."""
    file = sqlite_file.parent / KEY_FILE
    file.write_text(content)
    file.chmod(mode)
    async with house(f"sqlite:///{sqlite_file}", encryption_keys=()) as home:
        with pytest.raises(Misconfigured, match=problem) as caught:
            await home.app.cipher.encrypt(SecretLocation("secrets", "", "x"), "text")
        assert caught.value.remedy and file.read_text() == content


async def test_processes_that_start_at_once_share_the_key_of_the_file(sqlite_file: Path) -> None:
    """The first file stays."""
    async with house(f"sqlite:///{sqlite_file}", encryption_keys=()) as home:
        file, place = sqlite_file.parent / KEY_FILE, SecretLocation("secrets", "", "x")
        ciphers = [Cipher(home.app.store, (), file) for _ in range(3)]
        for one in ciphers:
            assert one._known() == ()
        made = [await one.encrypt(place, "text") for one in ciphers]
        encryption._create(file)
        assert [one.decrypt(place, value) for one in ciphers for value in made] == ["text"] * 9


async def test_a_moved_database_keeps_its_secrets_under_the_same_key(sqlite_file: Path, bare_postgres_url: str) -> None:
    """The values move as they are; the key in the configuration opens them."""
    async with house(f"sqlite:///{sqlite_file}") as home:
        made = await subscribe(home)
    await sqlite_to_postgres.move_database(sqlite_file, bare_postgres_url, where="there")
    assert made["secret"].removeprefix("whsec_") not in await everything(bare_postgres_url)
    async with house(bare_postgres_url) as home:
        await home.work()
        events: Any = home.app.channels["events"]
        assert events._listeners.known(made["id"]).secrets == (made["secret"],)


def test_the_command_line_names_a_wrong_key_and_rotates(tmp_path: Path) -> None:
    """`serve` with a lost key ends with a clear error; after `db reencrypt` the old key is not needed."""
    made = run("subscriptions", "add", "--url", "https://example.com/hooks", "--events", "*", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    key = (tmp_path / "data" / KEY_FILE).read_text().strip()
    (tmp_path / "data" / KEY_FILE).unlink()
    lost = run("serve", "--port", "0", "--no-sandbox", folder=tmp_path)
    assert lost.returncode == 78 and key_id(key) in lost.stderr and "Traceback" not in lost.stderr
    assert not (tmp_path / "data" / KEY_FILE).exists()

    env = {"TIDINGS_ENCRYPTION_KEYS": f"{NEW},{key}"}
    told = run("db", "reencrypt", "--json", folder=tmp_path, env=env)
    assert json.loads(told.stdout) == {"key": key_id(NEW), "changed": 1}, told.stderr
    env = {"TIDINGS_ENCRYPTION_KEYS": NEW}
    assert run("db", "check", folder=tmp_path, env=env).returncode == 0
    shown = run("config", folder=tmp_path, env=env)
    assert "encryption_keys" in shown.stdout and NEW not in shown.stdout
