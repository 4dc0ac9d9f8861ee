"""Opt-outs that come from people and providers: suppressions with their evidence, on both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, InboundSettings, Settings
from tidings.inbound.sources.settings import SourceSettings, read_source
from tidings.kernel.clock import ManualClock
from tidings.model.message import Draft
from tidings.sandbox.group_chats import ChatMessage
from tidings.sandbox.whatsapp_webhooks import contact, message, user_id_of, webhook
from tidings.store.port import Row, Store

from .channels.conftest import Sandbox, serving
from .test_receipts import failed, status, town

ACCOUNT = "AC" + "0123456789abcdef" * 2
ANN, NUMBER = "+15551234567", "106540352242922"
KINDS: dict[str, tuple[str, dict[str, Any], str, str]] = {  # kind, options, recipient, code of the opt-out
    "texts": ("twilio", {"account_sid": ACCOUNT, "auth_token": "token", "sender": "SHOP"}, ANN, "21610"),
    "wa": ("whatsapp_cloud", {"phone_number_id": NUMBER, "access_token": "EAA"}, ANN, "131050"),
    "bot": ("telegram", {"token": "123456:abc-token"}, "42", "blocked"),
}
SOURCES: dict[str, dict[str, Any]] = {
    "business": {"kind": "whatsapp_cloud", "channel": "wa"},
    "own": {"kind": "whatsapp_cloud", "channel": "wa", "stop_words": ["basta"], "start_words": [], "help_words": []},
    "silent": {"kind": "webhook", "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]},
}


class Office:
    """An engine with two-way channels and the simulated providers."""

    def __init__(self, app: App, sandbox: Sandbox) -> None:
        self.app, self.sandbox = app, sandbox

    async def send(self, channel: str, to: str) -> Row:
        """Accept one message, work until nothing is due, and show it."""
        id_ = (await self.app.messages.accept(Draft(channel, to, "sale!"))).id
        await self.work()
        return await self.app.messages.show(id_)

    async def work(self) -> None:
        """Send what is due."""
        await self.app.worker.node.beat()
        while (await self.app.worker.runner.step()).claimed:
            pass

    async def say(
        self, text: str, n: int, sender: str = ANN, source: str = "business", group: str | None = None
    ) -> None:
        """A person writes to the business number."""
        said = message(ChatMessage(n, self.app.clock.now(), "whatsapp_cloud", group or sender, sender, "", text))
        sources = {source: self.app.inbound.sources[source]}
        ears = type(self.app.inbound.webhooks)(self.app.clock, self.app.inbound.ingestion, sources)
        await ears.heard("wa", {NUMBER: "wa"}, webhook(NUMBER, [contact(sender)], messages=[said]))

    async def inbox(self) -> list[tuple[str, str | None]]:
        """State and reason of each message, oldest first."""
        return [(row["state"], row["reason"]) for row in (await self.app.inbound.inbox.page()).items[::-1]]

    async def suppressed(self) -> list[Row]:
        """The suppression list."""
        return list((await self.app.outbound.suppressions.page()).items)


@asynccontextmanager
async def office(store: Store, clock: ManualClock, **options: Any) -> AsyncIterator[Office]:
    """One node; `options` are those of every channel."""
    async with serving() as sandbox:
        kinds = {
            name: ChannelSettings(kind, {**own, **options, "base_url": sandbox.url})
            for name, (kind, own, _, _) in KINDS.items()
        }
        sources: dict[str, SourceSettings] = {
            name: read_source(name, table, production=True) for name, table in SOURCES.items()
        }
        app = build(Settings(channels=kinds, inbound=InboundSettings(sources=sources)), clock=clock, store=store)
        assert store.may_work()
        for lane in app.lanes.values():
            await store.write(lane.join())
        await app.worker.node.join()
        yield Office(app, sandbox)
        for channel in app.channels.values():
            await channel.close()


async def test_an_opt_out_that_a_provider_reports_suppresses_the_recipient(store: Store, clock: ManualClock) -> None:
    """Twilio, WhatsApp and Telegram; with the provider's answer, and the next message is not attempted (S19)."""
    async with office(store, clock) as here:
        for channel, (_, _, to, code) in KINDS.items():
            here.sandbox.break_("error", code=code, times=1)
            first, second = await here.send(channel, to), await here.send(channel, to)
            assert (first["state"], second["state"]) == ("failed", "skipped")
            out = next(row for row in await here.suppressed() if row["channel"] == channel)
            assert (out["address"], out["reason"]) == (to, "opted out with the provider")
            assert f"message {first['id']}: HTTP" in out["evidence"]
        assert len(here.sandbox.ledger) == len(KINDS)


async def test_reported_opt_outs_are_only_failures_if_the_channel_says_so(store: Store, clock: ManualClock) -> None:
    """`suppress_opt_outs = false`."""
    async with office(store, clock, suppress_opt_outs=False) as here:
        for channel, (_, _, to, code) in KINDS.items():
            here.sandbox.break_("error", code=code, times=1)
            assert (await here.send(channel, to))["state"] == "failed"
        assert await here.suppressed() == []


async def test_an_opt_out_in_a_later_status_suppresses_the_recipient(store: Store, clock: ManualClock) -> None:
    """With the receipt that tells it, once."""
    async with town(store, clock) as here:
        id_, _other = await here.send(), await here.send(to="+15557654321")
        for _ in range(2):
            await here.tell(failed("wamid.1", 131050), status("wamid.2", "delivered"))

        (out,) = (await here.app.outbound.suppressions.page()).items
        assert (out["address"], out["channel"]) == ("+15551234567", "wa")
        assert out["evidence"].startswith(f"message {id_}: code 131050")


async def test_stop_start_and_help_work_for_anybody_and_once(store: Store, clock: ManualClock) -> None:
    """In the transaction of the inbox row; a repeated webhook answers HELP once. An operator's entry stays (S19)."""
    async with office(store, clock) as here:
        for _ in range(2):
            await here.say("Help!", 1)
            await here.say("STOP", 2)
        await here.work()
        assert [entry.text for entry in here.sandbox.ledger] == [], "HELP was asked before, but STOP counts now"
        row = (await here.app.inbound.inbox.page()).items[0]
        assert await here.inbox() == [("done", "HELP: answered on wa"), ("done", "STOP: opted out of wa")]
        outs = await here.suppressed()
        assert {(out["address"], out["evidence"]) for out in outs} == {
            (ANN, f"inbox {row['id']}"), (user_id_of(ANN), f"inbox {row['id']}"),
        }  # fmt: skip
        await here.app.outbound.suppressions.create({"address": ANN, "reason": "asked by phone"})
        await here.say("/start", 3)
        assert [(out["channel"], out["reason"]) for out in await here.suppressed()] == [(None, "asked by phone")]
        await here.app.outbound.suppressions.remove(ANN)
        await here.say("info", 4)
        await here.work()
        assert [entry.text for entry in here.sandbox.ledger] == [
            "Reply STOP to receive no more messages, START to receive them again."
        ]


async def test_keywords_are_ordinary_words_in_groups_in_sentences_and_where_they_are_off(
    store: Store, clock: ManualClock
) -> None:
    """The words are settings; a source without a channel to answer on has none."""
    async with office(store, clock) as here:
        await here.say("stop", 1, group="Y2FwaV9ncm91cDox")
        await here.say("please stop the car", 2)
        await here.say("stop", 3, source="own")
        await here.say("help", 4, source="own")
        assert await here.suppressed() == []
        assert {state for state, _ in await here.inbox()} == {"skipped"}
        await here.say("Basta", 5, source="own")
        assert {out["address"] for out in await here.suppressed()} == {ANN, user_id_of(ANN)}


@pytest.mark.parametrize("words", [["stop"], "stop,halt", []])
def test_keywords_can_be_given_as_a_list_as_text_or_not_at_all(words: Any) -> None:
    """Environment variables are texts."""
    read = read_source("wa", {"kind": "whatsapp_cloud", "channel": "wa", "stop_words": words}, production=True)
    assert read.stop_words == (tuple(words.split(",")) if isinstance(words, str) else tuple(words))
