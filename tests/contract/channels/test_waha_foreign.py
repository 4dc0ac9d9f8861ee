"""WAHA's own OpenAPI document and a foreign client judge the sandbox; the document judges our requests."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl

import httpx
import orjson
import pytest
from starlette.types import ASGIApp, Receive, Scope, Send
from waha import WahaClient
from waha.exceptions import WahaAPIError, WahaAuthenticationError

from tidings.model.message import Message
from tidings.model.outcome import Done
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.whatsapp_servers.waha import WahaChannel
from tidings.sandbox import create_sandbox
from tidings.sandbox.environment import SandboxEnvironment
from tidings.sandbox.simulator import SandboxSimulator

from ... import servers
from ...openapi import OpenApi
from .conftest import Sandbox

NOW = 1_790_000_060_000_000
CHAT = "15551234567@c.us"
TEXT = {"session": "default", "chatId": CHAT, "text": "hello"}
FILE = {"mimetype": "image/png", "filename": "a.png", "url": "https://example.org/a.png"}


@pytest.fixture(scope="module")
def document() -> OpenApi:
    """WAHA's document."""
    return OpenApi.read("waha.json")


class Below:
    """The routes below a prefix, as if they were at the root: the foreign client drops a prefix."""

    def __init__(self, app: ASGIApp, prefix: str) -> None:
        self._app, self._prefix = app, prefix

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = self._prefix + scope.get("path", "")
        await self._app({**scope, "path": path, "raw_path": path.encode()}, receive, send)


@pytest.fixture
async def root() -> AsyncIterator[tuple[SandboxSimulator, str]]:
    """The simulated WAHA at the root of a server."""
    app = create_sandbox(None, environment=SandboxEnvironment(wall=lambda: NOW))
    async with servers.serving(Below(app, "/waha")) as url:
        yield app.state.world, url
        app.state.world.close()


async def test_every_answer_of_the_simulated_waha_fits_its_document(sandbox: Sandbox, document: OpenApi) -> None:
    """Each documented route that the sandbox has, for a session that works, one that is stopped and new ones."""
    calls: list[tuple[str, str, Any]] = [
        ("GET", "/ping", None),
        ("GET", "/health", None),
        ("GET", "/api/server/version", None),
        ("GET", "/api/server/environment", None),
        ("GET", "/api/sessions?all=true", None),
        ("POST", "/api/sessions", {"name": "gows-1", "config": {"webhooks": []}}),
        ("GET", "/api/sessions/gows-1", None),
        ("GET", "/api/sessions/default", None),
        ("GET", "/api/sessions/default/me", None),
        ("PUT", "/api/sessions/default", {"config": {"webhooks": []}}),
        ("GET", "/api/contacts/check-exists?phone=15551234567&session=default", None),
        ("GET", "/api/contacts/check-exists?phone=15551234404&session=default", None),
        ("GET", "/api/default/lids/10015551234567@lid", None),
        ("GET", "/api/default/lids/77@lid", None),
        ("GET", "/api/default/new-message-id", None),
        ("POST", "/api/sendText", TEXT),
        ("POST", "/api/sendText", {**TEXT, "session": "gows-2"}),
        ("POST", "/api/sendImage", {"session": "default", "chatId": CHAT, "file": FILE, "caption": "look"}),
        ("POST", "/api/sendFile", {"session": "default", "chatId": CHAT, "file": FILE}),
        ("POST", "/api/sessions/default/stop", {}),
        ("POST", "/api/sessions/default/start", {}),
        ("POST", "/api/sessions/default/restart", {}),
        ("POST", "/api/sessions/default/logout", {}),
        ("GET", "/api/sessions/default", None),
        ("DELETE", "/api/sessions/default", None),
    ]
    wrong = {}
    async with httpx.AsyncClient(base_url=f"{sandbox.url}/waha", headers={"x-api-key": "key"}) as client:
        await client.post(f"{sandbox.url}/sandbox/waha/gows-2", json={"status": "WORKING"})
        for method, path, body in calls:
            answer = await client.request(method, path, json=body)
            bare = path.partition("?")[0]
            found = answer.json() if answer.content else None
            if problems := document.answer_problems(method, bare, answer.status_code, found):
                wrong[method, path] = problems
    assert not wrong


@pytest.mark.parametrize("session", ["default", "noweb-1", "gows-1"])
async def test_every_webhook_of_the_simulated_waha_fits_its_document(
    sandbox: Sandbox, document: OpenApi, session: str
) -> None:
    """Messages, edits, deletions, status posts and acks, of each engine."""
    heard: list[Any] = []

    async def listen(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            heard.append(orjson.loads((await receive())["body"]))
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})

    async with servers.serving(listen) as url, httpx.AsyncClient(base_url=sandbox.url) as client:
        await client.post(f"/sandbox/waha/{session}", json={"status": "WORKING"})
        await client.post("/sandbox/callbacks", json={"channel": "waha", "account": session, "url": url})
        say = {"channel": "waha", "account": session, "chat": "7@g.us", "sender": "10015551234567@lid", "name": "Ada"}
        n = (await client.post("/sandbox/said", json={**say, "text": "hi"})).json()["n"]
        for more in ({"edits": n}, {"deletes": n}, {"chat": "status@broadcast"}):
            assert (await client.post("/sandbox/said", json={**say, "text": "new", **more})).status_code == 201
        headers = {"x-api-key": "key"}
        sent = await client.post("/waha/api/sendText", json={**TEXT, "session": session}, headers=headers)
        assert sent.status_code == 201
        await sandbox.world.callbacks.idle()

    kinds = {
        "message": "WAHAWebhookMessage",
        "message.edited": "WAHAWebhookMessageEdited",
        "message.revoked": "WAHAWebhookMessageRevoked",
        "message.ack": "WAHAWebhookMessageAck",
    }
    assert {event["event"] for event in heard} == set(kinds)
    assert [problem for event in heard for problem in document.problems(kinds[event["event"]], event)] == []
    edited = next(event["payload"] for event in heard if event["event"] == "message.edited")
    assert (edited["id"] == heard[0]["payload"]["id"]) is (session == "default"), "WEBJS repeats the id"
    assert ("@lid" in sent.json()["id"]) is session.startswith("gows")


async def test_every_request_of_the_channel_fits_wahas_document(sandbox: Sandbox, document: OpenApi) -> None:
    """Texts, files, look-ups, and all that keeps a session alive: no unknown field, no wrong type."""
    given = {"base_url": f"{sandbox.url}/waha", "api_key": "key", "message_ids": True}
    channel = build("wa", "whatsapp_session", given)
    assert isinstance(channel, WahaChannel)
    file = {"url": "https://example.org/plan.pdf"}
    for to, data in (
        ("+15551234567", {}),
        ("+5511987654321", {"reply_to": "false_1@c.us_AA", "link_preview": False}),
        ("120363041234567890@g.us", {"image": {"data": "aGVsbG8="}}),
        (CHAT, {"file": file, "reply_to": "false_1@c.us_AA"}),
    ):
        assert isinstance(await channel.send(Message("m-1", "default", "wa", to, {"text": "a", "data": data}, 0)), Done)
    for call in (
        channel.status(),
        channel.code(),
        channel.number_of("1@lid"),
        channel.storage(),
        channel.reconnect(),
        channel.reconnect(restart=True),
    ):
        await call
    await channel.close()

    wrong, paths = [], set()
    for request in sandbox.requests:
        path, _, query = request.path.removeprefix("/waha").partition("?")
        paths.add(path)
        body = request.json if request.body else None
        wrong += document.request_problems(request.method, path, dict(parse_qsl(query)), body)
    assert not wrong
    assert len(paths) == 10


async def test_a_client_of_wahas_runs_a_session_and_sends(root: tuple[SandboxSimulator, str]) -> None:
    """waha (PyPI): sessions, numbers, codes, texts and files; a session that does not run is not found."""
    world, url = root

    def work() -> list[Any]:
        client = WahaClient(base_url=url, api_key="key")
        found: list[Any] = [client.sessions.get("default").status, client.sessions.get_me("default").id]
        sent = client.messages.send_text(session="default", chat_id=CHAT, text="hello")
        found.append(sent.id)
        picture = {"mimetype": "image/png", "filename": "a.png", "data": "aGVsbG8="}
        client.messages.send_image(session="default", chat_id=CHAT, file=picture, caption="look")
        found.append(client.contacts.check_exists(phone="15551234567", session="default"))
        found.append(client.sessions.stop("default").status)
        with pytest.raises(WahaAPIError) as stopped:
            client.messages.send_text(session="default", chat_id=CHAT, text="hello")
        found.append(stopped.value.status_code)
        found.append(client.sessions.start("default").status)
        with pytest.raises(WahaAPIError) as starting:
            client.messages.send_text(session="default", chat_id=CHAT, text="hello")
        found.append(starting.value.status_code)
        with pytest.raises(WahaAuthenticationError):
            WahaClient(base_url=url, api_key="wrong").sessions.get("default")
        return found

    working, me, sent, exists, stopped, gone, starting, unfit = await asyncio.to_thread(work)
    assert (working, me, sent) == ("WORKING", "15550000000@c.us", f"true_{CHAT}_waha-1")
    assert exists["numberExists"] if isinstance(exists, dict) else exists.numberExists
    assert (stopped, gone, starting, unfit) == ("STOPPED", 404, "STARTING", 422)
    assert [entry.text for entry in world.recent if entry.delivered] == ["hello", "look"]
