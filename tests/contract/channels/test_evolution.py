"""WhatsApp through Evolution API: what leaves, what each answer means, and a foreign client against the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx
import orjson
import pytest
from evolutionapi.client import EvolutionClient
from evolutionapi.exceptions import EvolutionAuthenticationError, EvolutionNotFoundError
from evolutionapi.models.message import TextMessage

from tidings.model.message import Message
from tidings.model.outcome import Done, Offline, Outcome, Reject, Retry, Unknown
from tidings.outbound.channels.registry import build
from tidings.outbound.channels.session import SessionCheck, SessionStatus
from tidings.outbound.channels.whatsapp_servers.evolution import EvolutionChannel
from tidings.sandbox.environment import SandboxEnvironment

from ..receiver import answer, receiving
from .conftest import Sandbox, serving

NOW = 1_790_000_060_000_000
ADA, KEY = "+15551234567", "canary-key"


def channel(url: str, **options: Any) -> EvolutionChannel:
    """A channel aimed at a URL."""
    made = build("wa", "whatsapp_session", {"server": "evolution", "base_url": url, "api_key": KEY, **options})
    assert isinstance(made, EvolutionChannel)
    return made


async def send(url: str, to: str = ADA, **content: Any) -> Outcome:
    """What came of one attempt."""
    made = channel(url)
    try:
        return await made.send(Message("0190-a1", "default", "wa", to, {"text": "hello", **content}, 0))
    finally:
        await made.close()


@pytest.fixture
async def sandbox() -> AsyncIterator[Sandbox]:
    """A sandbox whose clock stands still."""
    async with serving(environment=SandboxEnvironment(wall=lambda: NOW)) as ready:
        yield ready


async def test_texts_and_media_are_sent(sandbox: Sandbox) -> None:
    """POST sendText and sendMedia of the instance, with the key in its header; the receipt is the key's id."""
    url = f"{sandbox.url}/evolution"
    data = {"file": {"url": "https://example.org/plan.pdf", "filename": "plan.pdf"}}
    outcomes = [
        await send(url),
        await send(url, "120363041234567890@g.us", data={"link_preview": False}),
        await send(url, data=data),
    ]
    text, group, media = sandbox.requests

    assert outcomes == [Done(f"3EB0{n:016X}") for n in (1, 2, 3)]
    assert (text.path, text.headers["apikey"]) == ("/evolution/message/sendText/default", KEY)
    assert text.json == {"number": "15551234567", "text": "hello", "linkPreview": True}
    assert group.json == {"number": "120363041234567890@g.us", "text": "hello", "linkPreview": False}
    assert media.path == "/evolution/message/sendMedia/default"
    assert media.json == {
        "number": "15551234567",
        "mediatype": "document",
        "mimetype": "application/pdf",
        "media": "https://example.org/plan.pdf",
        "caption": "hello",
        "fileName": "plan.pdf",
    }
    assert next(entry.to for entry in sandbox.ledger if entry.delivered) == "15551234567"


@pytest.mark.parametrize(
    ("status", "said", "kind"),
    [
        (400, [{"exists": False, "jid": "1@s.whatsapp.net", "number": "1"}], Reject),
        (400, ["Error: Connection Closed"], Offline),
        (500, "Connection Closed", Offline),
        (404, ['The "default" instance does not exist'], Offline),
        (401, "Unauthorized", Reject),
        (400, ["text is required"], Reject),
        (429, [], Retry),
        (500, ["Error: Timed Out"], Unknown),
    ],
)
async def test_each_answer_has_its_outcome(status: int, said: Any, kind: type) -> None:
    """A closed connection or a missing instance waits; a bad key pauses; an error of the engine is unknown."""
    async with receiving() as receiver:
        receiver.script(answer(status, orjson.dumps({"status": status, "error": "x", "response": {"message": said}})))
        outcome = await send(receiver.url)
    assert type(outcome) is kind
    if isinstance(outcome, Reject):
        assert outcome.whole_channel is (status == 401)


async def test_an_instance_is_checked_connected_and_linked(sandbox: Sandbox) -> None:
    """open, connecting, close; a code means that a phone must be linked. A closed one is connected."""
    made = channel(f"{sandbox.url}/evolution")

    async def put(state: str, **more: Any) -> None:
        async with httpx.AsyncClient(base_url=sandbox.url) as client:
            assert (await client.post("/sandbox/evolution/default", json={"state": state, **more})).status_code == 200

    assert await made.status() == SessionCheck(SessionStatus.CONNECTED, "open")
    await put("connecting")
    assert await made.status() == SessionCheck(SessionStatus.RECONNECTING, "connecting")
    assert isinstance(await made.send(Message("m", "default", "wa", ADA, {"text": "a"}, 0)), Offline)
    await put("qr")
    assert (await made.status()).link is SessionStatus.LOGGED_OUT
    assert str(await made.code()).startswith("2@")
    await put("close")
    assert await made.status() == SessionCheck(SessionStatus.RECONNECTING, "close", is_down=True)
    await made.reconnect()
    assert (await made.status()).why == "connecting"
    await put("open")
    await made.reconnect(restart=True)
    assert (await made.status()).why == "connecting"
    await made.close()
    assert ("POST", "/evolution/instance/restart/default") in [(one.method, one.path) for one in sandbox.requests]

    missing = channel(f"{sandbox.url}/evolution", session="x")
    wrong = channel(f"{sandbox.url}/evolution", api_key="wrong")
    assert (await missing.status()).why == "the session does not exist"
    assert (await wrong.status()).rejected
    await missing.close()
    await wrong.close()


async def test_a_client_of_evolutions_sends_and_understands_errors(sandbox: Sandbox) -> None:
    """evolutionapi (PyPI): the state, a text, a restart, and the errors."""
    client = EvolutionClient(f"{sandbox.url}/evolution", "key")

    def work() -> list[Any]:
        operations = client.instance_operations
        found = [operations.get_connection_state("default", "key")["instance"]["state"]]
        found.append(client.messages.send_text("default", TextMessage("15551234567", "hello"), "key")["key"]["fromMe"])
        unknown = client.messages.send_text("default", TextMessage("15551234404", "hello"), "key")
        found.append(unknown["response"]["message"][0]["exists"])
        with pytest.raises(EvolutionNotFoundError):
            operations.get_connection_state("other", "key")
        with pytest.raises(EvolutionAuthenticationError):
            operations.get_connection_state("default", "wrong")
        found.append(operations.restart("default", "key")["instance"]["state"])
        return found

    assert await asyncio.to_thread(work) == ["open", True, False, "connecting"]
    assert [entry.text for entry in sandbox.ledger if entry.delivered] == ["hello"]
