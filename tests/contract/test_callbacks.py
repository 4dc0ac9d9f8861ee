"""Callbacks over real HTTP: the simulated providers sign and call, the API verifies, the message knows."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import httpx
import orjson
import pytest
from fastapi import FastAPI

from tidings.api import create_api, errors
from tidings.api.middleware import AccessMiddleware
from tidings.api.routes import callbacks, channels
from tidings.app import App, build
from tidings.config import ChannelSettings, Settings, load
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Misconfigured
from tidings.model.message import Draft
from tidings.outbound.channels.registry import build as build_channel
from tidings.outbound.receipts.base import CallbackContent, Receipt, ReceiptStatus
from tidings.outbound.receipts.receipt_reconciler import ReceiptReconciler
from tidings.store.port import Row
from tidings.store.sqlite import SqliteStore

from .. import servers
from .channels.conftest import Sandbox, serving

ACCOUNT = "AC" + "0123456789abcdef" * 2
OTHER = "AC" + "fedcba9876543210" * 2
TOKEN = "canary-token-0123456789"
SECRETS = ("canary-app-secret", "canary-verify-token", "canary-hmac-key", "canary-webhook-secret", TOKEN)
CHANNELS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "texts": ("twilio", {"account_sid": ACCOUNT, "auth_token": TOKEN, "sender": "SHOP"}),
    "wa": (
        "whatsapp_cloud",
        {
            "phone_number_id": "1234567890",
            "access_token": "token",
            "app_secret": "canary-app-secret",
            "verify_token": "canary-verify-token",
        },
    ),
    "home": ("whatsapp_session", {"api_key": "key", "hmac_key": "canary-hmac-key"}),
    "bot": ("telegram", {"token": "123456:abc-token", "webhook_secret": "canary-webhook-secret"}),
    "quiet": ("telegram", {"token": "654321:abc-token"}),
}
WHOM = {"texts": "+15551234567", "wa": "+15551234567", "home": "+15551234567", "bot": "42", "quiet": "42"}


class Street:
    """An engine and the simulated providers, each behind its own door."""

    def __init__(self, app: App, url: str, sandbox: Sandbox, http: httpx.AsyncClient) -> None:
        self.app, self.url, self.sandbox, self.http = app, url, sandbox, http

    async def send(self, channel: str, **more: Any) -> str:
        """Accept one message, send it, and let the provider call."""
        id_ = (await self.app.messages.accept(Draft(channel, WHOM[channel], "hello")._replace(**more))).id
        await self.work()
        return id_

    async def work(self) -> None:
        """Send what is due; then the provider makes its calls."""
        await self.app.worker.node.beat()
        await next(actor for actor in self.app.actors if actor.name == "session_monitor").step()
        while (await self.app.worker.runner.step()).claimed:
            pass
        await self.sandbox.world.callbacks.idle()

    async def control(self, path: str, **body: Any) -> httpx.Response:
        """A command to the sandbox; then the provider makes its calls."""
        answer = await self.http.post(f"{self.sandbox.url}/sandbox/{path}", content=orjson.dumps(body))
        await self.sandbox.world.callbacks.idle()
        return answer

    async def subscribe(self) -> None:
        """Tell each provider our address, in its own way."""
        waha = {"webhooks": [{"url": f"{self.url}/callbacks/home", "hmac": {"key": "canary-hmac-key"}}]}
        answers = [
            await self.control(
                "callbacks", channel="whatsapp_cloud", account="1234567890", url=f"{self.url}/callbacks/wa",
                secret="canary-app-secret", verify_token="canary-verify-token",
            ),
            await self.http.put(
                f"{self.sandbox.url}/waha/api/sessions/default",
                json={"config": waha}, headers={"x-api-key": "key"},
            ),
            await self.http.post(
                f"{self.sandbox.url}/bot123456:abc-token/setWebhook",
                json={"url": f"{self.url}/callbacks/bot", "secret_token": "canary-webhook-secret"},
            ),
        ]  # fmt: skip
        assert [answer.is_success for answer in answers] == [True] * 3, [a.text for a in answers]

    async def show(self, id_: str) -> Row:
        """The message as people see it."""
        return await self.app.messages.show(id_)

    async def facts(self, id_: str) -> list[str]:
        """What was told of it."""
        return [fact["what"] for fact in (await self.show(id_))["receipts"]]

    @property
    def answers(self) -> list[int | str]:
        """What the providers were answered."""
        return [made.answer for made in self.sandbox.world.callbacks.made]


def small_api(app: App) -> FastAPI:
    """The routes that these tests need, behind the real gate: the whole takes a second to build."""
    api = FastAPI()
    for router in (callbacks.routes(app.outbound), channels.routes(app.outbound)):
        api.routes.extend(router.routes)
    errors.install(api)
    api.add_middleware(
        AccessMiddleware, access=app.access, host="127.0.0.1", new_id=app.clock.new_id,
        largest=10_000, unlimited=frozenset({callbacks.PATH}), body_seconds=10,
    )  # fmt: skip
    return api


@asynccontextmanager
async def street(tmp_path: Path, *, whole: bool = False) -> AsyncIterator[Street]:
    """Both on free ports of this machine."""
    clock = ManualClock()
    store = SqliteStore(tmp_path / "t.db", now=clock.now, inline=True)
    async with serving() as sandbox, httpx.AsyncClient() as http:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            url = f"http://127.0.0.1:{taken.getsockname()[1]}"
            bases = {"home": f"{sandbox.url}/waha"}
            kinds = {
                name: ChannelSettings(kind, {**options, "base_url": bases.get(name, sandbox.url)})
                for name, (kind, options) in CHANNELS.items()
            }
            chosen = Settings(channels=kinds, public_url=url, api_keys=("k" * 16,))
            app = build(chosen, clock=clock, store=store)
            await app.open()
            await app.worker.node.join()
            api = create_api(app) if whole else small_api(app)
            async with servers.serving(api, taken=taken):
                yield Street(app, url, sandbox, http)
            await app.close()


@pytest.mark.parametrize("channel", ["texts", "wa", "home"])
async def test_receipts_arrive_automatically_and_on_command(tmp_path: Path, channel: str) -> None:
    """Issue 4, part 4, over HTTP: sent, delivered, then read, then a failure with its reason."""
    async with street(tmp_path) as here:
        await here.subscribe()
        id_ = await here.send(channel)
        assert (await here.show(id_))["delivery"] == "delivered", await here.show(id_)
        answer = await here.control("receipts", id=id_, what="read")
        assert answer.status_code == 202
        assert (await here.show(id_))["delivery"] == "read"
        assert (await here.show(id_))["state"] == "sent"

        await here.control("callbacks", auto=[])
        lost = await here.send(channel, to="+15557654321")
        assert (await here.show(lost))["delivery"] is None
        await here.control("receipts", id=lost, what="failed")
        shown = await here.show(lost)
        assert (shown["state"], shown["delivery"]) == ("sent", "undelivered")
        assert shown["receipts"][0]["reason"]
        assert set(here.answers) == {200}


@pytest.mark.parametrize("channel", ["texts", "wa"])
async def test_an_answer_that_was_lost_is_proved_by_the_receipt(tmp_path: Path, channel: str) -> None:
    """A6: these providers give our own id back, so what was in doubt ends as sent, without a second send."""
    async with street(tmp_path) as here:
        await here.subscribe()
        here.sandbox.break_("lost", times=1)
        id_ = await here.send(channel)
        keeper = next(actor for actor in here.app.actors if isinstance(actor, ReceiptReconciler))
        await keeper.step()

        assert (await here.show(id_))["state"] == "sent"
        assert [entry.copy for entry in here.sandbox.ledger] == [1]


async def test_a_telegram_callback_carries_inbound_messages_only(tmp_path: Path) -> None:
    """Verified by its secret, answered with 200, and passed on."""
    heard: list[Any] = []

    class Ear:
        async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
            heard.append((channel, accounts, payload))

    async with street(tmp_path) as here:
        await here.subscribe()
        here.app.outbound.callbacks.listener = Ear()
        update = {"update_id": 9001, "message": {"text": "hi"}}
        calling = here.sandbox.world.callbacks
        assert calling.push("telegram", "123456", update)
        assert not calling.push("telegram", "654321", update), "nobody asked for that bot's"
        await calling.idle()

        assert heard == [("bot", {"123456": "bot"}, update)]
        assert here.answers == [200]


async def test_an_unsigned_callback_changes_nothing(tmp_path: Path) -> None:
    """S8: no key is asked for, but a signature is; the answer has no secret in it."""
    async with street(tmp_path, whole=True) as here:
        await here.subscribe()
        await here.control("callbacks", auto=[])
        id_ = await here.send("texts")
        before = await here.show(id_)
        sid = before["receipt"]
        forged = {"MessageSid": sid, "MessageStatus": "delivered", "AccountSid": ACCOUNT}
        for channel in ("texts", "wa", "home", "bot"):
            for headers in ({}, {"x-twilio-signature": "AAAA"}, {"authorization": f"Bearer {'k' * 16}"}):
                answer = await here.http.post(f"{here.url}/callbacks/{channel}", data=forged, headers=headers)
                assert (answer.status_code, answer.json()["error"]["code"]) == (401, "unauthorized")
                assert not any(secret in answer.text for secret in SECRETS)
        for channel in ("quiet", "nobody", "events", "a" * 300):
            answer = await here.http.post(f"{here.url}/callbacks/{channel}", data=forged)
            assert answer.status_code == 404
        huge = await here.http.post(f"{here.url}/callbacks/wa", content=b"x" * (3 * 1024 * 1024 + 1))
        assert huge.status_code == 413
        unread = await here.http.get(f"{here.url}/v1/messages/{id_}")
        assert unread.status_code == 401, "everything else still wants its key"

        assert await here.show(id_) == before


async def test_a_replayed_callback_changes_nothing(tmp_path: Path) -> None:
    """F54: recorded on the wire, sent again byte for byte, and with another message's address."""
    async with street(tmp_path) as here:
        calls: list[Any] = []
        calling = here.sandbox.world.callbacks
        make = calling._call

        async def record(call: Any) -> Any:
            calls.append(call)
            return await make(call)

        calling._call = record  # type: ignore[method-assign]
        id_ = await here.send("texts")
        other = await here.send("texts", to="+15557654321")
        before, first = await here.show(id_), calls[1]
        again = await here.http.post(first.url, headers=dict(first.headers), content=first.body)
        moved = first.url.replace(id_, other)
        turned = await here.http.post(moved, headers=dict(first.headers), content=first.body)

        assert (again.status_code, turned.status_code) == (200, 401)
        assert await here.show(id_) == before


async def test_the_address_is_proved_to_be_ours_before_meta_calls(tmp_path: Path) -> None:
    """The bare challenge as text; 403 for a wrong token, and Meta does not call there."""
    async with street(tmp_path) as here:
        query = {"hub.mode": "subscribe", "hub.verify_token": "canary-verify-token", "hub.challenge": "1158"}
        right = await here.http.get(f"{here.url}/callbacks/wa", params=query)
        wrong = await here.http.get(f"{here.url}/callbacks/wa", params={**query, "hub.verify_token": "x"})
        unasked = await here.http.get(f"{here.url}/callbacks/texts", params=query)
        assert (right.status_code, right.text) == (200, "1158")
        assert right.headers["content-type"].startswith("text/plain")
        assert (wrong.status_code, unasked.status_code) == (403, 403)
        refused = await here.control(
            "callbacks", channel="whatsapp_cloud", account="1", url=f"{here.url}/callbacks/wa", verify_token="x"
        )
        assert refused.status_code == 422
        assert "did not answer the challenge" in refused.text


async def test_the_phone_page_can_tell_what_became_of_a_message(tmp_path: Path) -> None:
    """Buttons under each message that somebody wants to hear of, and only there; bad commands are refused."""
    async with street(tmp_path) as here:
        await here.send("texts")
        page = (await here.http.get(f"{here.sandbox.url}/sandbox")).text
        assert 'data-report="read" data-of="1"' in page
        await here.send("quiet")
        assert 'data-of="2"' not in (await here.http.get(f"{here.sandbox.url}/sandbox")).text
        for body, status in (
            ({"n": 2, "what": "read"}, 404),
            ({"n": 1, "what": "eaten"}, 422),
            ({"id": "nobody", "what": "read"}, 404),
            ({"n": "1", "what": "read"}, 422),
            ({"n": 1, "what": "read", "when": "now"}, 422),
        ):
            assert (await here.control("receipts", **body)).status_code == status, body
        for wrong in ({"auto": ["eaten"]}, {"channel": "slack", "url": "http://x"}, {"channel": "waha", "url": "x"}):
            assert (await here.control("callbacks", **wrong)).status_code == 422, wrong
        shown = (await here.http.get(f"{here.sandbox.url}/sandbox/callbacks")).json()
        assert [made["answer"] for made in shown["made"]] == [200, 200]
        assert TOKEN not in str(shown)


def test_numbers_of_one_app_share_one_address(tmp_path: Path) -> None:
    """Meta has one address for an app: a status finds its number's channel; another app's secret does not."""
    first = CHANNELS["wa"][1]
    second = {**first, "phone_number_id": "222"}
    foreign = {**first, "phone_number_id": "333", "app_secret": "another-app"}
    kinds = {
        name: ChannelSettings("whatsapp_cloud", options)
        for name, options in (("wa", first), ("two", second), ("three", foreign))
    }
    called = build(Settings(channels=kinds, database=f"sqlite:///{tmp_path}/t.db")).outbound.callbacks
    receipts = [Receipt(f"wamid.{n}", ReceiptStatus.READ, 1, n) for n in ("1234567890", "222", "333", "444")]
    found = called._ours("wa", called._readers["wa"], CallbackContent(receipts))

    assert [(channel, receipt.account) for channel, receipt in found] == [("wa", "1234567890"), ("two", "222")]


async def test_a_channel_says_where_its_provider_is_to_call(tmp_path: Path) -> None:
    """In the API as in `channels show`; a channel that nobody calls back has none."""
    async with street(tmp_path) as here:
        headers = {"x-api-key": "k" * 16}
        found = {
            name: (await here.http.get(f"{here.url}/v1/channels/{name}", headers=headers)).json()["callback"]
            for name in CHANNELS
        }

        ours = {name: f"{here.url}/callbacks/{name}" for name in ("texts", "wa", "home", "bot")}
        assert found == {**ours, "quiet": None}


async def test_twilio_is_given_the_address_with_each_message(tmp_path: Path) -> None:
    """With the message's id; somebody's own address is left alone, and then nothing is expected here."""
    async with street(tmp_path) as here:
        id_ = await here.send("texts")
        (form,) = [seen.body.decode() for seen in here.sandbox.requests if "Messages.json" in seen.path]
        assert parse_qs(form)["StatusCallback"] == [f"{here.url}/callbacks/texts?message={id_}"]
    elsewhere = {**CHANNELS["texts"][1], "status_callback": "https://example.com/in"}
    settings = Settings(channels={"texts": ChannelSettings("twilio", elsewhere)}, public_url="https://us.example")
    assert build(settings, store=here.app.store).outbound.callbacks.address("texts") is None


@pytest.mark.parametrize("url", ["tidings.example.com", "ftp://x", "https://", "https://u:p@x", "https://x/?a=1"])
def test_a_public_address_that_nobody_could_call_stops_the_start(tmp_path: Path, url: str) -> None:
    """Named, with what to write instead; a slash at its end is no matter."""
    with pytest.raises(Misconfigured, match="public_url"):
        load(flags={"public_url": url}, environ={}, folder=tmp_path)
    fine = load(flags={"public_url": "https://x.example/"}, environ={}, folder=tmp_path)
    assert fine.public_url == "https://x.example"


def test_a_gateway_that_cannot_call_back_has_no_key() -> None:
    """One sentence with the remedy."""
    with pytest.raises(Misconfigured, match="has no signed callbacks"):
        build_channel("home", "whatsapp_session", {"server": "gateway", "hmac_key": "key"})
    with pytest.raises(Misconfigured, match="16 to 256"):
        build_channel("bot", "telegram", {"token": "123456:abc", "webhook_secret": "no spaces allowed"})
