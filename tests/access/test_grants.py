"""A key never grants, rotates or revokes more than it has (S2)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

from tidings.access.permissions import AREAS

from ..acceptance.harness import KEY, AppHarness, house


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine behind a key, on either database."""
    async with house(request.getfixturevalue(request.param), api_keys=(KEY,)) as made:
        made.http.headers["x-api-key"] = KEY
        yield made


async def make(http: httpx.AsyncClient, name: str, **fields: Any) -> dict[str, Any]:
    """A new key."""
    answer = await http.post("/v1/keys", json={"name": name, "role": "admin", **fields})
    assert answer.status_code == 201, answer.text
    made: dict[str, Any] = answer.json()
    return made


async def test_a_key_cannot_grant_more_than_it_has(home: AppHarness) -> None:
    """Role, tenant, scopes, rate and life: each field that goes beyond is named, and nothing is made."""
    own = {"scopes": ["keys", "messages"], "rate": 20, "expires_in": "30d"}
    scoped = home.client(**{"x-api-key": (await make(home.http, "scoped", **own))["key"]})
    for wish, field in (
        ({"scopes": None}, "scopes"),
        ({"scopes": []}, "scopes"),
        ({"scopes": ["keys", "audit"]}, "scopes"),
        ({"scopes": list(AREAS)}, "scopes"),
        ({"rate": None}, "rate"),
        ({"rate": 21}, "rate"),
        ({"expires_in": None}, "expires_in"),
        ({"expires_in": "31d"}, "expires_in"),
    ):
        answer = await scoped.post("/v1/keys", json={"name": "eve", "role": "admin", **own, **wish})
        assert (answer.status_code, answer.json()["error"]["field"]) == (403, field), wish
        assert answer.json()["error"]["remedy"]
    assert [one["name"] for one in (await home.http.get("/v1/keys")).json()["items"]] == ["scoped"]
    less = {"scopes": ["messages"], "rate": 5, "expires_in": "1d", "role": "sender"}
    assert (await scoped.post("/v1/keys", json={"name": "less", **less})).status_code == 201


async def test_a_key_cannot_rotate_or_revoke_one_that_may_do_more(home: AppHarness) -> None:
    """Whoever rotates a key holds it: a scoped admin would become any other."""
    target = await make(home.http, "ada")
    spare = await make(home.http, "bob")
    scoped = await make(home.http, "scoped", scopes=["keys"])
    one = home.client(**{"x-api-key": scoped["key"]})
    for action in ("rotate", "revoke"):
        answer = await one.post(f"/v1/keys/{target['id']}/{action}")
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")
    assert (await home.client(**{"x-api-key": target["key"]}).get("/v1/messages")).status_code == 200

    equal = await make(home.http, "equal", scopes=["keys"])
    assert (await one.post(f"/v1/keys/{equal['id']}/revoke")).status_code == 200
    assert (await one.post(f"/v1/keys/{scoped['id']}/rotate")).status_code == 200, "its own, always"
    whole = home.client(**{"x-api-key": spare["key"]})
    assert (await whole.post(f"/v1/keys/{target['id']}/revoke")).status_code == 200


async def test_the_page_of_keys_holds_the_same_rules(home: AppHarness) -> None:
    """One function serves every face."""
    target = await make(home.http, "ada")
    scoped = home.client(**{"x-api-key": (await make(home.http, "scoped", scopes=["keys"]))["key"]}, accept="text/html")
    made = await scoped.post("/keys", data={"name": "eve", "role": "admin"})
    assert made.status_code == 403 and "cannot grant more" in made.text
    told = await scoped.post(f"/keys/{target['id']}/rotate")
    assert "problem=" in told.headers["location"]
    assert (await home.client(**{"x-api-key": target["key"]}).get("/v1/messages")).status_code == 200


async def test_the_metrics_role_reads_metrics_and_nothing_else(home: AppHarness) -> None:
    """For Prometheus: no route but one, and no session."""
    made = await make(home.http, "prometheus", role="metrics")
    one = home.client(**{"x-api-key": made["key"]})
    assert (await one.get("/metrics")).status_code == 200
    for path in ("/v1/messages", "/", "/openapi.json", "/v1/keys", "/nodes", "/settings", "/v1/alerts"):
        assert (await one.get(path)).status_code in (403, 404), path
    assert (await one.post("/v1/messages", json={})).status_code == 403
    assert "wrong=1" in (await one.post("/sign-in", data={"key": made["key"]})).headers["location"]
    other = await make(home.http, "foreign", role="metrics", tenant="acme")
    assert (await home.client(**{"x-api-key": other["key"]}).get("/metrics")).status_code == 403
