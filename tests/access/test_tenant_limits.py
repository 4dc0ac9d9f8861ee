"""What a tenant may send: on which channels, and how many messages a day (S3, S16)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import orjson
import pytest

from tidings.config import load
from tidings.model.errors import Misconfigured
from tidings.outbound.tenant_quotas import TenantLimits

from ..acceptance.harness import KEY, AppHarness, house

LIMITS = {
    "acme": TenantLimits(frozenset({"out"}), 10),
    "none": TenantLimits(frozenset(), None),
    "free": TenantLimits(None, None),
}


@pytest.fixture(params=["sqlite_url", "postgres_url"])
async def home(request: pytest.FixtureRequest) -> AsyncIterator[AppHarness]:
    """An engine with limited tenants, on either database."""
    async with house(request.getfixturevalue(request.param), api_keys=(KEY,), tenants=LIMITS) as made:
        made.http.headers["x-api-key"] = KEY
        yield made


async def caller(home: AppHarness, tenant: str) -> httpx.AsyncClient:
    """A sender of this tenant."""
    body = {"name": tenant, "role": "sender", "tenant": tenant}
    return home.client(**{"x-api-key": (await home.http.post("/v1/keys", json=body)).json()["key"]})


def message(channel: str = "out", **more: Any) -> dict[str, Any]:
    """A message for tomorrow, so that nothing is sent meanwhile."""
    return {"channel": channel, "to": "ada", "text": "hello", "in": "30h", **more}


async def test_a_tenant_sends_on_its_channels_only(home: AppHarness) -> None:
    """Messages, bulk lines, schedules and broadcasts alike; others are not limited."""
    acme = await caller(home, "acme")
    plan = {"name": "s", "rule": {"daily": "09:00"}, "message": {"channel": "careful", "to": "a", "text": "x"}}
    cast = {"name": "b", "channel": "careful", "text": "x", "addresses": ["ada"], "trigger": "MANUAL"}
    for path, body in (("/v1/messages", message("careful")), ("/v1/schedules", plan), ("/v1/broadcasts", cast)):
        answer = await acme.post(path, json=body)
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), answer.text
        assert answer.json()["error"]["field"].endswith("channel")
    lines = await acme.post("/v1/messages:bulk", content=orjson.dumps(message("careful")))
    assert orjson.loads(lines.content.splitlines()[0])["error"]["code"] == "forbidden"
    assert (await acme.get("/v1/messages")).json()["items"] == []
    assert (await acme.post("/v1/messages", json=message())).status_code == 201
    nobody = await caller(home, "none")
    assert (await nobody.post("/v1/messages", json=message())).status_code == 403
    for tenant in ("free", "other"):
        one = await caller(home, tenant)
        assert (await one.post("/v1/messages", json=message("careful"))).status_code == 201


async def test_a_quota_holds_for_a_day_and_for_all_at_once(home: AppHarness) -> None:
    """Ten a day, however many ask at the same time; a repeated call costs nothing; midnight gives it back."""
    acme, free = await caller(home, "acme"), await caller(home, "free")
    key = {"idempotency-key": "k"}
    first = [await acme.post("/v1/messages", json=message(), headers=key) for _ in range(3)]
    assert len({one.json()["id"] for one in first}) == 1
    answers = await asyncio.gather(*(acme.post("/v1/messages", json=message()) for _ in range(20)))
    assert sorted(one.status_code for one in answers) == [201] * 9 + [429] * 11
    refused = next(one for one in answers if one.status_code == 429)
    assert refused.json()["error"]["code"] == "rate_limited" and int(refused.headers["retry-after"]) <= 86_400
    again = await acme.post("/v1/messages", json=message(), headers=key)
    assert again.json()["id"] == first[0].json()["id"]
    assert (await free.post("/v1/messages", json=message())).status_code == 201

    home.clock.advance(int(refused.headers["retry-after"]))
    assert (await acme.post("/v1/messages", json=message())).status_code == 201


async def test_bulk_lines_and_broadcasts_are_counted(home: AppHarness) -> None:
    """What does not fit is refused as a whole, and takes nothing."""
    acme = await caller(home, "acme")

    async def bulk(n: int) -> list[dict[str, Any]]:
        answer = await acme.post("/v1/messages:bulk", content=b"\n".join([orjson.dumps(message())] * n))
        return [orjson.loads(line) for line in answer.content.splitlines()][:-1]

    async def cast(n: int) -> httpx.Response:
        body = {"name": f"b{n}", "channel": "out", "text": "x", "trigger": "MANUAL"}
        return await acme.post("/v1/broadcasts", json={**body, "addresses": [f"a{i}" for i in range(n)]})

    assert {line["error"]["code"] for line in await bulk(11)} == {"rate_limited"}
    assert all("id" in line for line in await bulk(4))
    assert (await cast(7)).status_code == 429
    assert (await cast(4)).status_code == 201
    assert (await acme.post("/v1/messages", json=message())).status_code == 201
    assert (await cast(2)).status_code == 429
    assert (await acme.post("/v1/messages", json=message())).status_code == 201
    assert (await acme.post("/v1/messages", json=message())).status_code == 429


async def test_schedules_are_counted(home: AppHarness) -> None:
    """An occurrence takes one of its day; with none left it is not made, and the schedule says why."""
    acme = await caller(home, "acme")
    plan = {"name": "s", "rule": {"every": "1m"}, "message": {"channel": "out", "to": "ada", "text": "x"}}
    made = await acme.post("/v1/schedules", json=plan)
    assert made.status_code == 201, made.text
    for _ in range(15):
        home.clock.advance(60)
        await home.work()
    found = (await acme.get("/v1/messages", params={"limit": 100})).json()["items"]
    assert len(found) == 10
    shown = (await acme.get(f"/v1/schedules/{made.json()['id']}")).text
    assert "too few" in shown


@pytest.mark.parametrize(
    ("table", "field"),
    [
        ("[tenants.acme]\nchannel = 1", "tenants.acme.channel"),
        ('[tenants.acme]\nchannels = ["nowhere"]', "tenants.acme.channels"),
        ('[tenants.acme]\nchannels = "phone"', "tenants.acme.channels"),
        ("[tenants.acme]\nmessages_per_day = -1", "tenants.acme.messages_per_day"),
        ("[tenants.acme]\nmessages_per_day = true", "tenants.acme.messages_per_day"),
        ("[tenants.default]\nmessages_per_day = 1", "tenants.default"),
        ("tenants = 1", "tenants"),
    ],
)
def test_limits_that_cannot_be_used_stop_the_start(tmp_path: Path, table: str, field: str) -> None:
    """With the field and the remedy."""
    (tmp_path / "tidings.toml").write_text(table)
    with pytest.raises(Misconfigured) as told:
        load(folder=tmp_path, environ={})
    assert told.value.field == field and told.value.remedy


def test_limits_and_proxies_are_read_from_the_settings(tmp_path: Path) -> None:
    """From the file, and lists from the environment as well."""
    (tmp_path / "tidings.toml").write_text('[tenants.acme]\nchannels = ["phone"]\nmessages_per_day = 5')
    settings = load(folder=tmp_path, environ={"TIDINGS_TRUSTED_PROXIES": "10.0.0.1, 10.1.0.0/16"})
    assert settings.tenants == {"acme": TenantLimits(frozenset({"phone"}), 5)}
    assert settings.describe()["tenants"] == {"acme": {"channels": ["phone"], "messages_per_day": 5}}
    assert settings.trusted_proxies == ("10.0.0.1/32", "10.1.0.0/16")
