"""The providers' well-known Python clients, pointed at the sandbox: they work unchanged.

python-telegram-bot, pywa and aiosmtplib have their tests beside the channels that they belong to.
"""

from __future__ import annotations

import asyncio
from typing import Any

import discord_webhook as discord
import groupy
import pytest
import slack_sdk
from groupy.api import base as groupy_base
from groupy.api import bots, messages
from slack_sdk.errors import SlackApiError
from slack_sdk.webhook import WebhookClient
from twilio.base.exceptions import TwilioRestException
from twilio.http.http_client import TwilioHttpClient
from twilio.rest import Client as TwilioClient

from .conftest import Sandbox

ACCOUNT = "AC" + "0123456789abcdef" * 2


def delivered(sandbox: Sandbox) -> list[tuple[str, str, str]]:
    """Who got what on which channel."""
    return [(entry.channel, entry.to, entry.text) for entry in sandbox.ledger if entry.delivered]


async def test_twilios_own_client_sends_and_understands_errors(sandbox: Sandbox) -> None:
    """twilio: only the host is another; paths, form, answers and error bodies are Twilio's."""

    class Elsewhere(TwilioHttpClient):  # type: ignore[misc]  # the library has no types
        def request(self, method: str, url: str, *given: Any, **more: Any) -> Any:
            return super().request(method, url.replace("https://api.twilio.com", sandbox.url), *given, **more)

    client = TwilioClient(ACCOUNT, "secret", http_client=Elsewhere())

    def work() -> tuple[Any, Any, Any]:
        made = client.messages.create(to="+15551234567", from_="+15550001111", body="hello")
        with pytest.raises(TwilioRestException) as refused:
            client.messages.create(to="+15005550004", from_="+15550001111", body="hello")
        return made, refused.value, client.api.accounts(ACCOUNT).fetch()

    made, refused, account = await asyncio.to_thread(work)
    assert (made.sid[:2], made.status, made.num_segments) == ("SM", "queued", "1")
    assert made.date_created is not None
    assert (refused.code, refused.status) == (21610, 400)
    assert account.friendly_name == "Sandbox"
    assert delivered(sandbox) == [("twilio", "+15551234567", "hello")]


async def test_slacks_own_client_sends_and_understands_errors(sandbox: Sandbox) -> None:
    """slack_sdk: the web client by its base URL, the webhook client by its URL."""
    client = slack_sdk.WebClient("xoxb-secret", base_url=f"{sandbox.url}/api/")

    def work() -> tuple[Any, Any, Any, Any]:
        made = client.chat_postMessage(channel="C0123", text="hello", blocks=[{"type": "divider"}])
        with pytest.raises(SlackApiError) as refused:
            client.chat_postMessage(channel="#error-is_archived", text="hello")
        hook = WebhookClient(f"{sandbox.url}/services/T1/B1/secret").send(text="hook")
        return made, refused.value, hook, client.auth_test()

    made, refused, hook, who = await asyncio.to_thread(work)
    assert made["ok"] and made["ts"]
    assert refused.response["error"] == "is_archived"
    assert (hook.status_code, hook.body) == (200, "ok")
    assert who["team"] == "Sandbox"
    assert delivered(sandbox) == [("slack", "C0123", "hello"), ("slack", "T1/B1", "hook")]


async def test_a_webhook_client_of_discords_sends_and_waits_its_turn(sandbox: Sandbox) -> None:
    """discord-webhook: by the webhook's URL, here and there with a limit in between."""
    url = f"{sandbox.url}/api/webhooks/223704706495545344/secret"
    sandbox.break_("429", seconds=0.05, times=1)

    def work() -> tuple[Any, Any]:
        made = discord.DiscordWebhook(url=url, content="hello", rate_limit_retry=True).execute()
        refused = discord.DiscordWebhook(url=url.replace("secret", "wrong"), content="hello").execute()
        return made, refused

    made, refused = await asyncio.to_thread(work)
    assert made.status_code == 200
    assert made.json()["content"] == "hello"
    assert (refused.status_code, refused.json()["code"]) == (401, 50027)
    assert delivered(sandbox) == [("discord", "223704706495545344", "hello")]


async def test_a_client_of_groupmes_sends_and_lists(sandbox: Sandbox) -> None:
    """GroupyAPI: direct messages with their guid, a group's messages, a bot's post."""

    def work() -> tuple[Any, Any, list[Any]]:
        session = groupy.session.Session("secret")
        direct = messages.DirectMessages(session, "12345678")
        group = messages.Messages(session, "87654321")
        posted = bots.Bots(session).post("bot-id", "from the bot")
        made = direct.create(text="hello", source_guid="g-1")
        group.create(text="to all", source_guid="g-2")
        return posted, made, list(direct.list())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(groupy_base.Manager, "base_url", f"{sandbox.url}/v3/")
        posted, made, listed = await asyncio.to_thread(work)
    assert posted is True
    assert made.source_guid == "g-1"
    assert [message.text for message in listed] == ["hello"]
    assert [to for _, to, _ in delivered(sandbox)] == ["bot", "12345678", "group:87654321"]
