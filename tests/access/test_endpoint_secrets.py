"""Signing secrets of endpoints: who may see which (S7)."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from tidings.config import ChannelSettings

from ..acceptance.harness import KEY, AppHarness, house
from ..acceptance.program import run

ROOT = "whsec_" + b64encode(b"canary: a root of the tests").decode()
HOOKS = "https://example.com/hooks"
CHANNELS = {
    "orders": ChannelSettings("webhook", {"url": HOOKS, "secrets": [ROOT]}),
    "plain": ChannelSettings("webhook"),
    "out": ChannelSettings("noop"),
}


@pytest.fixture
async def home(sqlite_url: str) -> AsyncIterator[AppHarness]:
    """An engine behind a key, with a webhook channel."""
    async with house(sqlite_url, api_keys=(KEY,), channels=CHANNELS) as made:
        made.http.headers["x-api-key"] = KEY
        yield made


async def secret(home: AppHarness, to: str, *, key: str = KEY, channel: str = "orders") -> tuple[int, Any]:
    """What the API says."""
    answer = await home.http.post(f"/v1/channels/{channel}/secret", json={"to": to}, headers={"x-api-key": key})
    return answer.status_code, answer.json()


async def test_an_admin_sees_the_secrets_of_its_own_tenants_endpoints_only(home: AppHarness) -> None:
    """Two tenants have two secrets for one URL, and the channel's own URL is the operator's."""
    made = await home.http.post("/v1/keys", json={"name": "b", "role": "admin", "tenant": "bakery"})
    operator = await home.http.post("/v1/keys", json={"name": "o", "role": "operator"})

    status, ours = await secret(home, HOOKS)
    _, theirs = await secret(home, HOOKS, key=made.json()["key"])
    assert status == 200 and ours["tenant"] == "default" and theirs["tenant"] == "bakery"
    assert not set(ours["secrets"]) & {*theirs["secrets"], ROOT}
    assert (await secret(home, "default"))[1]["secrets"] == ours["secrets"]
    assert (await secret(home, "default", key=made.json()["key"]))[0] == 422
    assert (await secret(home, HOOKS, key=operator.json()["key"]))[0] == 403


@pytest.mark.parametrize(
    ("channel", "to", "status", "field"),
    [("nowhere", HOOKS, 404, "name"), ("out", HOOKS, 409, "name"), ("plain", HOOKS, 409, "name"),
     ("orders", "ftp://example.com", 422, "to"), ("orders", "", 422, "to")],
)  # fmt: skip
async def test_what_has_no_secret_says_so(home: AppHarness, channel: str, to: str, status: int, field: str) -> None:
    """With the field and the remedy."""
    found, body = await secret(home, to, channel=channel)

    assert (found, body["error"]["field"], bool(body["error"]["remedy"])) == (status, field, True)


async def test_the_command_shows_the_same_secret_as_the_api(home: AppHarness, tmp_path: Path) -> None:
    """Without a database; another tenant's is another."""
    (tmp_path / "tidings.toml").write_text(f'[channels.orders]\nkind = "webhook"\nsecrets = ["{ROOT}"]\n')
    (tmp_path / "tidings.toml").chmod(0o600)

    shown = run("channels", "secret", "orders", HOOKS, folder=tmp_path)
    other = run("channels", "secret", "orders", HOOKS, "--tenant", "bakery", "--json", folder=tmp_path)

    assert shown.stdout.split() == (await secret(home, HOOKS))[1]["secrets"]
    assert json.loads(other.stdout)["secrets"] != shown.stdout.split()
