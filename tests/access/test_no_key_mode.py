"""No-key mode: open to this machine only, and closed for good by the first key (S1, S20)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tidings.access.service import open_access
from tidings.config import Settings
from tidings.model.errors import Conflict, Misconfigured

from ..acceptance.harness import KEY, AppHarness, house
from ..acceptance.program import run, serving

FORWARDED = (
    {"x-forwarded-for": "203.0.113.9"},
    {"x-forwarded-host": "tidings.example.com"},
    {"x-forwarded-proto": "https"},
    {"forwarded": "for=203.0.113.9"},
    {"x-real-ip": "203.0.113.9"},
    {"via": "1.1 proxy"},
)


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine without a key, on either database."""
    async with house(request.getfixturevalue(request.param)) as made:
        yield made


async def make(home: AppHarness, http: httpx.AsyncClient | None = None, **fields: Any) -> dict[str, Any]:
    """A new key, made through the API."""
    answer = await (http or home.http).post("/v1/keys", json={"name": "ada", "role": "admin"} | fields)
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_no_key_mode_refuses_requests_that_a_proxy_forwarded(home: AppHarness) -> None:
    """A reverse proxy on the same machine would otherwise open everything to the world."""
    assert (await home.http.get("/v1/messages", headers={"host": "127.0.0.1"})).status_code == 200
    for headers in FORWARDED:
        for path in ("/v1/messages", "/", "/keys", "/calendar.ics"):
            answer = await home.http.get(path, headers={"host": "127.0.0.1", **headers})
            assert answer.status_code == 403, (path, headers)
        assert "tidings keys create" in answer.text
        body = {"name": "eve", "role": "admin"}
        assert (await home.http.post("/v1/keys", json=body, headers=headers)).status_code == 403
    assert (await home.http.get("/v1/keys")).json()["items"] == []
    assert (await home.http.get("/health/live", headers=FORWARDED[0])).status_code == 200


async def test_a_forwarded_request_with_a_key_is_served(home: AppHarness) -> None:
    """Proxies are refused in no-key mode only."""
    key = (await make(home))["key"]
    for headers in FORWARDED:
        answer = await home.http.get("/v1/messages", headers={"x-api-key": key, **headers})
        assert answer.status_code == 200


async def test_no_key_mode_stays_closed_once_a_key_has_existed(home: AppHarness) -> None:
    """Neither an expired nor a revoked key opens it again; a new one is made on the machine itself."""
    first = await make(home, expires_in="1h")
    admin = home.client(**{"x-api-key": first["key"]})
    viewer = await make(home, admin, name="eve", role="viewer", expires_in="30m")
    assert (await admin.post(f"/v1/keys/{viewer['id']}/revoke")).status_code == 200
    assert (await home.http.get("/v1/messages")).status_code == 401

    home.clock.advance(hours=2)
    assert (await home.http.get("/v1/messages")).status_code == 401
    await home.app.access.keys.revoke(first["id"])  # expired: it is not the last one that works
    home.clock.advance(2)
    assert (await home.http.get("/v1/messages")).status_code == 401
    recovered = await home.app.access.keys.create({"name": "bob", "role": "admin"})
    answer = await home.http.get("/v1/messages", headers={"x-api-key": recovered["key"]})
    assert answer.status_code == 200


async def test_the_first_key_of_no_key_mode_is_an_admin_key(home: AppHarness) -> None:
    """It ends the mode, so any other key would lock out whoever makes it."""
    for fields in ({"role": "sender"}, {"tenant": "acme"}, {"scopes": ["keys"]}):
        answer = await home.http.post("/v1/keys", json={"name": "ada", "role": "admin"} | fields)
        assert (answer.status_code, answer.json()["error"]["field"]) == (403, "role"), fields
    assert (await home.http.get("/v1/keys")).json()["items"] == []


async def test_the_last_admin_key_is_never_revoked(home: AppHarness) -> None:
    """Scoped admins, other tenants' admins and expired ones do not count; a key of the settings does."""
    one = await make(home)
    admin = home.client(**{"x-api-key": one["key"]})
    await make(home, admin, name="scoped", scopes=["messages"])
    await make(home, admin, name="acme", tenant="acme")
    await make(home, admin, name="brief", expires_in="1h")
    home.clock.advance(hours=1)
    answer = await admin.post(f"/v1/keys/{one['id']}/revoke")
    assert answer.status_code == 409 and "last admin key" in answer.json()["error"]["message"]
    assert (await admin.get("/v1/messages")).status_code == 200
    lines = (await admin.get("/v1/audit", params={"action": "keys.revoke"})).json()["items"]
    assert [line["status"] for line in lines] == [409]

    two = await make(home, admin, name="bob")
    both = [home.app.access.keys.revoke(key["id"]) for key in (one, two)]
    done = await asyncio.gather(*both, return_exceptions=True)
    assert sum(isinstance(one, Conflict) for one in done) == 1, "at once, too"
    configured = open_access(home.app.store, home.clock, (KEY,), is_local=True)
    left = next(key for key, result in zip((one, two), done, strict=True) if isinstance(result, Conflict))
    assert (await configured.keys.revoke(left["id"]))["state"] == "revoked"


def test_no_key_mode_behind_a_proxy_and_after_the_last_key_as_a_user_meets_it(tmp_path: Path) -> None:
    """The served program and its commands: forwarded 403, last key kept, recovery on the machine."""
    with serving(tmp_path) as served, httpx.Client(base_url=served.address("dashboard")) as http:
        assert http.get("/v1/messages").status_code == 200
        assert http.get("/v1/messages", headers=FORWARDED[0]).status_code == 403
        made = http.post("/v1/keys", json={"name": "ada", "role": "admin"}).json()
        assert http.get("/v1/messages").status_code == 401
        refused = run("keys", "revoke", made["id"], folder=tmp_path)
        assert refused.returncode == 2 and "last admin key" in refused.stderr
        lost = run("keys", "create", "bob", "--role", "admin", "--json", folder=tmp_path)
        assert lost.returncode == 0, lost.stderr
        assert run("keys", "revoke", made["id"], folder=tmp_path).returncode == 0
    with serving(tmp_path) as served:
        assert httpx.get(f"{served.address('dashboard')}/v1/messages").status_code == 401


def test_no_key_mode_stays_closed_when_the_keys_of_the_settings_are_removed(tmp_path: Path) -> None:
    """A variable that is missing after a restart opens nothing."""
    with serving(tmp_path, env={"TIDINGS_API_KEYS": KEY}) as served:
        assert httpx.get(f"{served.address('dashboard')}/v1/messages").status_code == 401
    with serving(tmp_path) as served:
        assert httpx.get(f"{served.address('dashboard')}/v1/messages").status_code == 401


def test_a_public_url_needs_a_key() -> None:
    """A server that others reach by its public address is not this machine's own, wherever it listens."""
    with pytest.raises(Misconfigured) as told:
        Settings(public_url="https://tidings.example.com").require_key_unless_local(has_admin=False)
    assert told.value.field == "public_url"
    Settings(public_url="http://localhost:8020").require_key_unless_local(has_admin=False)
    Settings(public_url="https://tidings.example.com").require_key_unless_local(has_admin=True)


def test_the_folder_of_the_database_is_private(tmp_path: Path) -> None:
    """The engine makes it for its own user; one that is there already is left as it is."""
    made = run("keys", "create", "ada", "--role", "admin", folder=tmp_path)
    assert made.returncode == 0, made.stderr
    assert (tmp_path / "data").stat().st_mode & 0o777 == 0o700
