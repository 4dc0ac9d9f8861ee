"""The sandbox is as closed as the API: hosts, other sites, a key, and whom it calls (S6, S20)."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from tidings.sandbox import create_sandbox
from tidings.sandbox.access import read_access

from ..acceptance.program import run
from ..contract.channels.conftest import serving

KEY = "0123456789abcdef0123456789abcdef"
SENT = {"id": "m-1", "to": "ada", "text": "hello", "attempt": 1}


@pytest.fixture
async def phone() -> AsyncIterator[httpx.AsyncClient]:
    """The sandbox on a port of this machine."""
    async with serving() as sandbox, httpx.AsyncClient(base_url=sandbox.url) as http:
        yield http


@pytest.mark.parametrize(
    "path", ["/", "/sandbox/ledger", "/sandbox/conversations", "/sandbox/callbacks", "/sandbox/stream"]
)
async def test_dns_rebinding_cannot_read_the_ledger(phone: httpx.AsyncClient, path: str) -> None:
    """Medium 4: DNS rebinding: the browser thinks it talks to evil.example, and gets nothing."""
    answer = await phone.get(path, headers={"host": "evil.example"})

    assert answer.status_code == 403 and "evil.example" in answer.text


@pytest.mark.parametrize(
    "headers",
    [{"origin": "https://evil.example"}, {"origin": "null"}, {"sec-fetch-site": "cross-site"},
     {"sec-fetch-site": "same-site"}],
)  # fmt: skip
async def test_another_site_cannot_set_a_fault_or_send_anything(
    phone: httpx.AsyncClient, headers: dict[str, str]
) -> None:
    """Medium 4: a page elsewhere can make a browser post; nothing comes of it. Programs and the page can."""
    for method, path, body in (
        ("POST", "/sandbox/faults", {"kind": "500"}),
        ("POST", "/sandbox/callbacks", {"auto": []}),
        ("POST", "/sandbox/messages", SENT),
        ("DELETE", "/sandbox/faults", None),
    ):
        answer = await phone.request(method, path, json=body, headers=headers)
        assert answer.status_code == 403, (method, path)
    assert (await phone.get("/sandbox/faults")).json()["faults"] == []
    assert (await phone.get("/sandbox/ledger")).json()["entries"] == []
    own = {"origin": str(phone.base_url).rstrip("/")}
    assert (await phone.post("/sandbox/faults", json={"kind": "500"}, headers=own)).status_code == 201


@pytest.mark.parametrize(
    "url",
    ["http://169.254.169.254/latest", "http://10.0.0.1/", "https://example.org/", "http://127.0.0.1@evil.example/",
     "file:///etc/passwd", "http://[::ffff:10.0.0.1]/"],
)  # fmt: skip
async def test_the_sandbox_calls_only_this_machine_back(phone: httpx.AsyncClient, url: str) -> None:
    """Medium 4: neither the control route nor a provider's own makes it fetch another address."""
    body = {"channel": "whatsapp_cloud", "account": "1", "url": url, "verify_token": "x"}
    pointed = await phone.post("/sandbox/callbacks", json=body)
    assert pointed.status_code == 422 and pointed.json()["error"]["field"] == "url"
    hook = await phone.post("/bot123:abc/setWebhook", json={"url": url})
    assert hook.status_code in (400, 404)
    form = {"To": "+15550100", "From": "+15550101", "Body": "x", "StatusCallback": url}
    await phone.post("/2010-04-01/Accounts/AC1/Messages.json", data=form, auth=("AC1", "token"))
    shown = (await phone.get("/sandbox/callbacks")).json()
    assert shown["targets"] == [] and all(isinstance(call["answer"], str) for call in shown["made"])


def test_the_sandbox_does_not_start_where_others_can_reach_it_without_a_key(tmp_path: Path) -> None:
    """Medium 4: as a user starts it; the error names the remedy, and a short key is no key."""
    started = run("sandbox", "--host", "0.0.0.0", "--port", "0", folder=tmp_path)
    assert started.returncode == 78 and "--key-file" in started.stderr and "Traceback" not in started.stderr
    (tmp_path / "key").write_text("short\n")
    for name, says in (("key", "fewer than 16 characters"), ("none", "cannot be read")):
        tried = run("sandbox", "--host", "0.0.0.0", "--key-file", name, folder=tmp_path)
        assert tried.returncode == 78 and says in tried.stderr


async def test_with_a_key_the_control_routes_ask_for_it(tmp_path: Path) -> None:
    """Medium 4: by header, by bearer token, or as the password that a browser asks for."""
    (tmp_path / "key").write_text(f"{KEY}\n")
    access = read_access("0.0.0.0", tmp_path / "key")
    basic = b64encode(f"anybody:{KEY}".encode()).decode()
    transport = httpx.ASGITransport(create_sandbox(None, access=access))
    async with httpx.AsyncClient(transport=transport, base_url="http://sandbox.internal") as http:
        for path in ("/", "/sandbox/ledger", "/sandbox/faults"):
            refused = await http.get(path)
            assert refused.status_code == 401 and "www-authenticate" in refused.headers
            for wrong in ({"x-api-key": KEY[:-1]}, {"authorization": "Basic !"}, {"authorization": "Bearer"}):
                assert (await http.get(path, headers=wrong)).status_code == 401
        for right in ({"x-api-key": KEY}, {"authorization": f"Bearer {KEY}"},
                      {"authorization": f"Basic {basic}"}):  # fmt: skip
            assert (await http.get("/sandbox/ledger", headers=right)).status_code == 200
        assert (await http.post("/sandbox/messages", json=SENT)).status_code == 200
