"""A session on every face: the page with its code, the API, and the pretend server that holds it (E7)."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest

from tidings.config import ChannelSettings
from tidings.doctor import check_session_storage, run_checks
from tidings.model.time import SECOND
from tidings.outbound.channels.session import SessionStorage
from tidings.outbound.sessions import qr_codes
from tidings.sandbox import create_sandbox
from tidings.sandbox.environment import SandboxEnvironment

from ..contract.channels.conftest import Sandbox, serving
from .harness import AppHarness, house
from .test_dashboard import forms, read, text

KEY = "canary-waha-key"


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """All pretend providers behind one address."""
    async with serving() as ready:
        yield ready


@pytest.fixture
async def home(sqlite_url: str, sandbox: Sandbox) -> AsyncIterator[AppHarness]:
    """An engine with a session on each kind of server, and a channel without one."""
    waha = {"base_url": f"{sandbox.url}/waha", "api_key": KEY}
    gate = {"server": "gateway", "base_url": f"{sandbox.url}/gateway"}
    evolution = {"server": "evolution", "base_url": f"{sandbox.url}/evolution", "api_key": KEY}
    channels = {
        "wa": ChannelSettings("whatsapp_session", waha),
        "gate": ChannelSettings("whatsapp_session", gate),
        "evo": ChannelSettings("whatsapp_session", evolution),
        "out": ChannelSettings("noop"),
    }
    async with house(sqlite_url, channels=channels) as built:
        await built.act()
        yield built


async def put(sandbox: Sandbox, path: str, **body: object) -> None:
    """As a phone, a network or a person would."""
    async with httpx.AsyncClient(base_url=sandbox.url) as client:
        assert (await client.post(path, json=body)).status_code == 200


@pytest.mark.parametrize(
    ("name", "path", "out", "scanned"),
    [
        ("wa", "/sandbox/waha/default", {"status": "SCAN_QR_CODE"}, {"status": "WORKING"}),
        ("gate", "/sandbox/gateway", {"connectionState": "UNPAIRED"}, {"connectionState": "CONNECTED"}),
        ("evo", "/sandbox/evolution/default", {"state": "qr"}, {"state": "open"}),
    ],
)
async def test_a_logged_out_session_shows_a_qr_code_until_it_is_scanned(
    home: AppHarness, sandbox: Sandbox, name: str, path: str, out: dict[str, str], scanned: dict[str, str]
) -> None:
    """E7: state, alert and code on a page; scanning it sends what waited, without another command."""
    assert "Sending." in text(await read(home, f"/channels/{name}"))
    assert (await home.http.get(f"/channels/{name}/code.svg")).status_code == 204

    await put(sandbox, path, **out)
    home.clock.advance(16)
    id_ = await home.accept(channel=name, to="+15551234567")
    await home.work()

    page = await read(home, f"/channels/{name}")
    assert "logged out" in text(page) and "Scan this code" in text(page)
    assert f"/channels/{name}/code.svg?" in page and "style=" not in page
    assert forms(page) >= {f"/channels/{name}/resume"}
    assert "logged out" in text(await read(home, "/channels"))
    assert "Scan the code" in text(await read(home, "/"))
    picture = await home.http.get(f"/channels/{name}/code.svg")
    assert picture.headers["content-type"] == "image/svg+xml"
    assert picture.headers["cache-control"] == "no-store"
    assert ElementTree.fromstring(picture.text).tag.endswith("svg") and "style" not in picture.text
    said = (await home.http.get(f"/v1/channels/{name}/code")).json()
    assert (said["session_state"], said["code"].startswith("2@sandbox-")) == ("logged_out", True)
    assert (await home.show(id_))["state"] == "pending"

    await put(sandbox, path, **scanned)
    home.clock.advance(6)
    await home.work()

    assert (await home.show(id_))["state"] == "sent"
    assert (await home.http.get(f"/v1/channels/{name}/code")).json()["code"] is None
    shown = (await home.http.get(f"/v1/channels/{name}")).json()
    assert (shown["state"], shown["session_state"]) == ("open", "connected")


async def test_a_message_waits_while_the_session_reconnects(home: AppHarness, sandbox: Sandbox) -> None:
    """E7: no message fails for it, however short the loss; the state is on the first page."""
    await put(sandbox, "/sandbox/waha/default", status="STARTING")
    id_ = await home.accept(channel="wa", to="+15551234567")
    await home.work()
    assert ((shown := await home.show(id_))["state"], shown["attempts"]) == ("pending", 0)
    assert "reconnecting" in text(await read(home, "/channels/wa"))

    await put(sandbox, "/sandbox/waha/default", status="WORKING")
    for _ in range(2):  # the pause after the loss is planned, then over
        await home.act()
        home.clock.advance(5)
    await home.work()
    assert (await home.show(id_))["state"] == "sent"
    assert [entry.delivered for entry in sandbox.ledger] == [False, True]


async def test_a_qr_code_needs_an_existing_channel_with_a_session(home: AppHarness) -> None:
    """One sentence with a remedy."""
    none = await home.http.get("/v1/channels/out/code")
    missing = await home.http.get("/v1/channels/nobody/code")
    assert (none.status_code, missing.status_code) == (409, 404)
    assert "has no session" in none.text
    assert (await home.http.get("/channels/nobody")).status_code == 404


def test_a_terminal_qr_code_is_dark_on_light() -> None:
    """In a pipe without colours."""
    coloured, plain = (qr_codes.render_terminal("2@code", colours=colours) for colours in (True, False))
    assert all(line.startswith("\x1b[97;40m") for line in coloured.splitlines())
    assert set(plain) <= set("█▀▄ \n")


async def test_the_doctor_checks_what_a_gateway_persists(home: AppHarness, tmp_path: Path) -> None:
    """E7: by what WAHA says of itself, and by the folder that the settings name; the check sends nothing."""
    found = {finding.message: finding for finding in await run_checks(home.app.settings) if finding.check == "sessions"}
    assert {what: finding.status for what, finding in found.items()} == {
        "wa: the server keeps its session in the folder /app/.sessions": "warning",
        "gate: the server does not say where it keeps its session": "warning",
        "evo: the server does not say where it keeps its session": "warning",
    }
    assert all("session_dir" in finding.remedy for finding in found.values())

    now = round(time.time() * SECOND)
    folder = tmp_path / "sessions"
    database = SessionStorage("WHATSAPP_SESSIONS_POSTGRESQL_URL", True)
    assert check_session_storage("wa", None, database, now=now).status == "ok"
    assert check_session_storage("wa", folder, None, now=now).status == "error"
    folder.mkdir()
    assert check_session_storage("wa", folder, None, now=now).status == "error"
    (folder / "default").mkdir()
    assert check_session_storage("wa", folder, None, now=now).status == "ok"


async def test_sandbox_sessions_survive_a_restart(tmp_path: Path) -> None:
    """Issue 4: a state stays, one for a while ends by the clock; a torn file is no harm."""
    now = [1_800_000_000_000_000]
    environment = SandboxEnvironment(wall=lambda: now[0])
    ledger = tmp_path / "ledger.jsonl"

    def open_() -> httpx.AsyncClient:
        transport = httpx.ASGITransport(create_sandbox(ledger, environment=environment))
        return httpx.AsyncClient(transport=transport, base_url="http://localhost", headers={"x-api-key": KEY})

    async def state(client: httpx.AsyncClient) -> tuple[str, str]:
        waha = (await client.get("/waha/api/sessions/default")).json()["status"]
        return waha, (await client.get("/gateway/status")).json()["connectionState"]

    async with open_() as first:
        assert await state(first) == ("WORKING", "CONNECTED")
        out = await first.post("/sandbox/waha/default", json={"status": "SCAN_QR_CODE"})
        away = await first.post("/sandbox/gateway", json={"connectionState": "OPENING", "for_seconds": 20})
        assert (out.status_code, away.status_code) == (200, 200)
        wrong = await first.post("/sandbox/gateway", json={"connectionState": "OPENING", "for_seconds": 0})
        assert wrong.status_code == 422 and "for_seconds" in wrong.text
    async with open_() as second:
        assert await state(second) == ("SCAN_QR_CODE", "OPENING")
        assert "Scan QR code" in (await second.get("/sandbox")).text
        now[0] += 20_000_000
        assert await state(second) == ("SCAN_QR_CODE", "CONNECTED")
        await second.post("/sandbox/waha/default", json={"status": "STARTING"})
        await second.post("/waha/api/sessions/default/start", json={})
        assert (await state(second))[0] == "STARTING", "starting what starts changes nothing"
    (tmp_path / "ledger.jsonl.sessions").write_bytes(b"[[tor")
    async with open_() as third:
        assert await state(third) == ("WORKING", "CONNECTED")
