"""Sources: nothing said is lost or taken twice, whoever reads, whatever dies (D1, D4, D15)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any

import aiogram.types
import httpx
import pytest

from tidings.inbound.domain import IncomingKind
from tidings.inbound.ingestion import InboxIngestion
from tidings.inbound.leases import LEASE, SourceLeaseState, lease_state
from tidings.inbound.poller import Poller
from tidings.inbound.source_notices import CHANGED
from tidings.inbound.sources import telegram, waha, webhook, whatsapp_cloud
from tidings.inbound.sources.groupme import GroupMeSource
from tidings.inbound.sources.port import SourceUnavailable, UnverifiedWebhook, WebhookRequest
from tidings.inbound.sources.settings import SourceSettings, read_source
from tidings.inbound.sources.telegram import TelegramSource
from tidings.inbound.sources.webhook import WebhookSource
from tidings.inbound.webhooks import InboundWebhooks
from tidings.inbound.workflow.service import source_notice_steps
from tidings.kernel.clock import ManualClock
from tidings.model.errors import Invalid, Misconfigured
from tidings.model.time import MINUTE, SECOND, micros
from tidings.observability.events import SourceError, SourceTakenOver
from tidings.store.port import Step, Store
from tidings.store.postgres import PostgresStore
from tidings.store.sqlite import SqliteStore
from tidings.wire.webhook_signatures import parse_secret, signature_headers

from .channels.conftest import serving
from .inbox_node import ADA, CREW, Chat, InboxNode, said
from .shift_harness import Squad

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


@pytest.fixture
async def world(store: Store, clock: ManualClock) -> InboxNode:
    """A node that hears the crew."""
    return await InboxNode(store, clock).open()


# -- the poller


async def test_250_messages_between_two_polls_are_all_read(world: InboxNode) -> None:
    """Paged by 20 until caught up, in order, with the cursor behind the last (D1)."""
    chat = Chat()
    chat.messages = [said(1, world.second())]
    poller = world.poller(chat)
    await poller.step()
    chat.messages += [said(n, world.second()) for n in range(2, 252)]
    world.clock.advance(10)

    await poller.step()

    assert [row["platform_id"] for row in await world.all()] == [str(n) for n in range(1, 252)]
    assert (await world.source())["cursor"] == "251"


async def test_a_crash_between_two_pages_loses_and_duplicates_nothing(world: InboxNode) -> None:
    """The cursor is behind what was written, and only that (D1)."""
    chat = Chat()
    chat.messages = [said(n, world.second()) for n in range(1, 51)]

    def die(page: int) -> None:
        if page == 2:
            raise asyncio.CancelledError

    chat.before_read = die
    with pytest.raises(asyncio.CancelledError):
        await world.poller(chat).step()
    assert len(await world.all()) == 20
    assert (await world.source())["cursor"] == "20"
    chat.before_read = lambda _page: None
    world.clock.advance(10)

    await world.poller(chat, me="another").step()

    assert [row["platform_id"] for row in await world.all()] == [str(n) for n in range(1, 51)]


async def test_two_pollers_read_one_source_one_at_a_time(world: InboxNode) -> None:
    """The second one yields while the first holds the lease, and rests as long as it does (D4)."""
    chat, reached, go = Chat(), asyncio.Event(), asyncio.Event()
    chat.messages = [said(n, world.second()) for n in range(1, 31)]

    async def hold() -> None:
        reached.set()
        await go.wait()

    chat.before_read = lambda page: hold() if page == 1 else None
    running = asyncio.create_task(world.poller(chat).step())
    await reached.wait()
    second = world.poller(chat, me="second")

    assert await second.step() > 0
    assert chat.pages == 1, "the second one has not asked"
    go.set()
    await running

    assert len(await world.all()) == 30
    assert (await world.source())["holder"] is None, "always released"
    assert await world.poller(chat, me="third").step() > 0
    assert chat.pages == 2, "and nobody asks again before the rest is over"


async def test_a_poller_without_heartbeat_is_taken_over_and_fenced_off(world: InboxNode) -> None:
    """No heartbeat for one lease; the old one wakes up and can write nothing (D4)."""
    chat, reached, go = Chat(), asyncio.Event(), asyncio.Event()
    chat.messages = [said(n, world.second()) for n in range(1, 6)]

    async def hold() -> None:
        reached.set()
        await go.wait()

    chat.before_read = lambda page: hold() if page == 1 else None
    running = asyncio.create_task(world.poller(chat, me="old").step())
    await reached.wait()
    world.clock.advance(LEASE.total_seconds())
    other = Chat()
    other.messages = chat.messages[:3]

    await world.poller(other, me="new").step()
    token = (await world.source())["token"]
    go.set()
    await running

    assert [row["platform_id"] for row in await world.all()] == ["1", "2", "3"]
    assert (await world.source())["cursor"] == "3", "the late page was fenced off"
    assert (await world.source())["token"] == token
    assert any(isinstance(event, SourceTakenOver) for event in world.events)
    assert world.notices == [], "a take-over after a silence is no news for an admin"


async def test_a_poll_over_thirty_minutes_is_taken_over_and_notifies_an_admin(world: InboxNode) -> None:
    """Also while it still beats (D4, D12)."""
    chat = Chat(size=1)
    chat.messages = [said(n, world.second()) for n in range(1, 200)]
    taken: list[str] = []

    async def meanwhile(page: int) -> None:
        world.clock.advance(30)
        if page == 60:
            other = Chat()
            other.messages = chat.messages[:70]
            await world.poller(other, me="new").step()
            taken.append((await world.source())["cursor"])

    chat.before_read = meanwhile
    await world.poller(chat, me="old").step()

    assert taken == ["70"]
    assert len(await world.all()) == 70, "the old one stopped at its next page"
    assert [notice.type for notice in world.notices] == ["source.overrun"]
    rows = await world.store.read("outbox_page", limit=10)
    assert [row["type"] for row in rows] == ["source.overrun"], "durable, for whoever listens"


def test_the_lease_state_depends_on_the_times_of_its_row() -> None:
    """Free, resting, held, lapsed, overrun; a time too far ahead is of a clock that was set back."""
    now = 10_000 * MINUTE
    row = {"now": now, "holder": None, "due_at": 0, "began_at": None, "until": None}
    held = {**row, "holder": "x", "began_at": now - MINUTE, "until": now + 1}

    assert lease_state(row) is SourceLeaseState.FREE
    assert lease_state({**row, "due_at": now + SECOND}) is SourceLeaseState.RESTING
    assert lease_state({**row, "due_at": now + 40 * MINUTE}) is SourceLeaseState.FREE
    assert lease_state(held) is SourceLeaseState.HELD
    assert lease_state({**held, "until": now}) is SourceLeaseState.LAPSED
    assert lease_state({**held, "until": now + micros(LEASE) + 1}) is SourceLeaseState.LAPSED
    assert lease_state({**held, "began_at": now - 30 * MINUTE}) is SourceLeaseState.OVERRUN


async def test_a_failed_insert_holds_the_cursor_and_notifies_after_three(world: InboxNode) -> None:
    """What is before it is in, nothing passes it, another source goes on, and it heals by itself (D15)."""
    chat, other = Chat(), Chat()
    chat.messages = [said(n, world.second(), "poison" if n == 3 else "") for n in range(1, 6)]
    other.messages = [said(1, world.second())._replace(source="other")]
    await refuse_poison(world.store)
    poller = world.poller(chat)
    for n in range(1, 5):
        await poller.step()
        row = await world.source()
        assert (row["cursor"], row["failures"], row["holder"]) == ("2", n, None)
        assert "'3' could not be written" in row["problem"]
        assert len(world.notices) == (n >= 3), "told once, with the third"
        world.clock.advance(10)
    settings = SourceSettings("other", "groupme", group="9", token="t" * 16)
    await world.store.write([Step("source_join", {"name": "other", "kind": "groupme"})])
    await world.poller(other, settings).step()

    await allow_poison(world.store)
    await poller.step()

    assert [row["platform_id"] for row in await world.all(source="crew")] == ["1", "2", "3", "4", "5"]
    assert len(await world.all(source="other")) == 1
    assert world.notices[0].type == "source.failing"
    assert (await world.source())["failures"] == 0
    assert sum(isinstance(event, SourceError) for event in world.events) == 4


async def test_admins_get_a_direct_message_about_a_failed_insert_and_an_overrun_poll(
    store: Store, clock: ManualClock
) -> None:
    """Once each, with the source, the problem and a remedy, on the channel of the admins (D12)."""
    squad = await Squad(store, clock).open()
    tell = source_notice_steps(squad.settings, clock)
    intake = InboxIngestion(store, clock, squad.roster, tell=tell)
    failing, slow = Chat(), Chat(size=1)
    failing.messages = [said(1, clock.now() // SECOND * SECOND, "poison")]
    slow.messages = [said(n, clock.now() // SECOND * SECOND)._replace(source="slow") for n in range(1, 70)]
    await store.write([Step("source_join", {"name": name, "kind": "groupme"}) for name in ("crew", "slow")])
    await refuse_poison(store)

    def poller(chat: Chat, name: str, me: str) -> Poller:
        return Poller(store, clock, chat, replace(CREW, name=name), intake, tell=tell, me=me)

    async def overrun(page: int) -> None:
        clock.advance(31)
        if page == 60:
            await poller(Chat(), "slow", "new").step()

    for _ in range(4):
        await poller(failing, "crew", "one").step()
        clock.advance(10)
    slow.before_read = overrun
    await poller(slow, "slow", "old").step()
    await allow_poison(store)
    await squad.settle(seconds=1)

    assert len(squad.pages) == 2
    assert "source crew" in squad.pages[0] and "'1' could not be written" in squad.pages[0]
    assert "source slow" in squad.pages[1] and "30 min" in squad.pages[1]


async def test_an_unavailable_platform_is_reported_and_polled_again(world: InboxNode) -> None:
    """Its own wish for a wait is kept to (D15)."""
    chat = Chat()

    def down(_page: int) -> None:
        raise SourceUnavailable("HTTP 429: slow down", wait=timedelta(seconds=90))

    chat.before_read = down
    assert await world.poller(chat).step() == 90
    assert (await world.source())["problem"] == "HTTP 429: slow down"
    chat.before_read = lambda _page: None
    world.clock.advance(89)
    assert await world.poller(chat, me="another").step() == 1
    world.clock.advance(1)
    await world.poller(chat, me="another").step()
    assert (await world.source())["problem"] is None


async def test_a_missed_message_is_found_later_and_reported_as_a_gap(world: InboxNode) -> None:
    """A hole behind the cursor is filled (D1)."""
    chat = Chat()
    chat.messages = [said(1, world.second()), said(3, world.second())]
    poller = world.poller(chat)
    await poller.step()
    chat.messages.insert(1, said(2, world.second()))
    world.clock.advance(60)

    await poller.step()

    assert [row["platform_id"] for row in await world.all()] == ["1", "3", "2"]
    assert [(n.type, "message 2" in n.problem) for n in world.notices] == [("source.gap", True)]
    assert (await world.source())["cursor"] == "3"


# -- GroupMe and Telegram over real HTTP


async def test_groupme_is_read_gaplessly_over_http(world: InboxNode) -> None:
    """The first look goes back to when the source was known; then after_id, edits and deletes (D1)."""
    async with serving() as sandbox:
        settings = SourceSettings("live", "groupme", group="9", token="t" * 16, base_url=f"{sandbox.url}/v3")
        await known_now(world, sandbox.world.environment.wall())
        say = {"channel": "groupme", "chat": "9", "sender": ADA, "name": "Ada"}
        for n in range(45):
            sandbox.world.say({**say, "text": f"line {n}"})
        source = GroupMeSource(settings, now=world.clock.now)
        poller = world.poller(source, settings)

        await poller.step()
        rows = await world.all()
        assert [row["text"] for row in rows] == [f"line {n}" for n in range(45)]

        for n in range(45, 110):
            sandbox.world.say({**say, "text": f"line {n}"})
        sandbox.world.say({**say, "text": "Ben joined", "system": True})
        sandbox.world.say({**say, "text": "beep", "bot": True})
        sandbox.world.say({**say, "deletes": 1, "sender": ADA})
        world.clock.advance(10)
        await poller.step()
        rows = await world.all()
        assert [row["text"] for row in rows][:110] == [f"line {n}" for n in range(110)]
        assert [(row["kind"], row["state"]) for row in rows[110:]] == [
            ("system", "skipped"),
            ("message", "skipped"),
            ("delete", "received"),
        ]
        assert rows[0]["deleted_at"] is not None

        sandbox.world.say({**say, "text": "line 109, mended", "edits": 110})
        edited = sandbox.world.chats.find("groupme", 110)
        assert edited is not None
        edited.edited_at = edited.at + 2 * SECOND
        world.clock.advance(60)
        await poller.step()
        await source.close()
    rows = await world.all()
    assert [row["edited_text"] for row in rows if row["edited_text"]] == ["line 109, mended"]
    assert (rows[-1]["kind"], rows[-1]["state"]) == ("edit", "received")
    assert [notice for notice in world.notices if notice.type != CHANGED] == []


async def known_now(world: InboxNode, wall: int) -> None:
    """Time is the platform's, and the source `live` is known from now on."""
    world.clock.jump((wall - world.clock.now()) / SECOND)
    await world.store.write([Step("source_join", {"name": "live", "kind": "any"})])


async def test_groupme_errors_are_reported(clock: ManualClock) -> None:
    """A refused token, without showing it."""
    async with serving() as sandbox:
        settings = SourceSettings(
            "crew", "groupme", group="9", token="wrong-token-of-ours", base_url=f"{sandbox.url}/v3"
        )
        source = GroupMeSource(settings, now=clock.now)
        with pytest.raises(SourceUnavailable, match="HTTP 401") as error:
            await source.read("1", since=0)
        assert "wrong-token" not in str(error.value)
        await source.close()


async def test_telegram_is_read_with_an_offset_over_http(world: InboxNode) -> None:
    """Each update once; the offset is stored with the messages (D1)."""
    async with serving() as sandbox:
        settings = SourceSettings("live", "telegram", token="1:abcdefghij", base_url=sandbox.url, page_size=2)
        await known_now(world, sandbox.world.environment.wall())
        say = {"channel": "telegram", "chat": "-100", "sender": ADA, "name": "Ada"}
        for n in range(5):
            line = sandbox.world.say({**say, "text": f"line {n}"})
        source = TelegramSource(settings, now=world.clock.now)
        poller = world.poller(source, settings)
        await poller.step()
        sandbox.world.say({**say, "text": "line 4, mended", "edits": line.n})
        world.clock.advance(10)
        await poller.step()
        await source.close()

    rows = await world.all()
    assert [row["text"] for row in rows[:5]] == [f"line {n}" for n in range(5)]
    assert (rows[4]["edited_text"], rows[5]["kind"]) == ("line 4, mended", "edit")
    assert (await world.store.read("source_find", source="live"))[0]["cursor"].startswith("7@")
    await world.drain()
    assert world.hears.items[-1].text == "line 4, mended"
    assert world.hears.items[-1].is_edited


async def test_aiogram_accepts_the_updates_of_the_sandbox() -> None:
    """Judge: the typed updates of aiogram, which are told apart by content as ours are."""
    async with serving() as sandbox, httpx.AsyncClient(base_url=sandbox.url, verify=False) as client:
        say = {"channel": "telegram", "chat": "-100", "name": "Ada", "text": "hello"}
        said = sandbox.world.say({**say, "sender": ADA})
        sandbox.world.say({**say, "sender": ADA, "text": "hello all", "edits": said.n})
        sandbox.world.say({**say, "sender": "-100", "text": "from an anonymous admin"})
        sandbox.world.say({**say, "sender": ADA, "text": "New title", "system": True})
        found = (await client.get("/bot1:abcdefghij/getUpdates")).json()["result"]

    judged = [aiogram.types.Update.model_validate(one) for one in found]
    messages = [one.message or one.edited_message for one in judged]
    assert [one and one.content_type for one in messages] == ["text", "text", "text", "new_chat_title"]
    assert not any(one is None or one.model_extra for one in [*judged, *messages])
    settings = SourceSettings("live", "telegram")
    heard = [one for update in found for one in telegram.incoming(settings, update)]
    assert [(one.kind, one.sender, one.own) for one in heard] == [
        (IncomingKind.MESSAGE, ADA, False),
        (IncomingKind.EDIT, ADA, False),
        (IncomingKind.MESSAGE, "-100", False),
        (IncomingKind.SYSTEM, ADA, False),
    ]


CELL = {"align": "left", "valign": "top"}


@pytest.mark.parametrize(
    ("content", "kind", "text"),
    [
        ({"rich_message": {"blocks": [
            {"type": "heading", "size": 1, "text": "Rota"},
            {"type": "paragraph", "text": ["no crew ", {"type": "bold", "text": "for 42"}, " tonight"]},
            {"type": "list", "items": [{"label": "1", "blocks": [{"type": "paragraph", "text": "from 1800"}]}]},
            {"type": "table", "cells": [[{**CELL, "text": "to"}, {**CELL, "text": " 0600"}]]},
        ]}}, "message", "Rota\nno crew for 42 tonight\nfrom 1800\nto 0600"),
        ({"dice": {"emoji": "🎲", "value": 4}}, "message", ""),
        ({"video_note": {"file_id": "a", "file_unique_id": "b", "length": 1, "duration": 1}}, "message", ""),
        ({"forum_topic_created": {"name": "Rota", "icon_color": 1}}, "system", ""),
        ({"video_chat_started": {}}, "system", ""),
        ({"message_auto_delete_timer_changed": {"message_auto_delete_time": 60}}, "system", ""),
    ],
)  # fmt: skip
def test_rich_and_service_messages_of_telegram_are_distinguished(content: dict[str, Any], kind: str, text: str) -> None:
    """The samples are valid by aiogram's types; a rich message counts as its plain text."""
    message = {"message_id": 1, "date": 1_790_000_000, "chat": {"id": 5, "type": "private"}, **content}
    update = {"update_id": 1, "message": {**message, "from": {"id": 7, "is_bot": False, "first_name": "Ada"}}}
    judged = aiogram.types.Update.model_validate(update)
    assert judged.message is not None and judged.message.content_type == next(iter(content))

    (heard,) = telegram.incoming(SourceSettings("live", "telegram"), update)

    assert (heard.kind, heard.text) == (kind, text)


def test_ephemeral_telegram_messages_are_not_taken_for_one_another() -> None:
    """They all have the number 0; their own numbers are reused."""
    message = {"message_id": 0, "ephemeral_message_id": 3, "chat": {"id": 5}, "from": {"id": 7}, "text": "hello"}
    ids = [
        telegram.incoming(SourceSettings("live", "telegram"), {"message": {**message, "date": at}})[0].id
        for at in (1_790_000_000, 1_790_000_001)
    ]
    assert len(set(ids)) == 2


def test_missing_telegram_update_numbers_are_a_gap() -> None:
    """But not after a quiet week, when Telegram begins anew."""
    week = 7 * 24 * 3600
    assert telegram.missing_updates("5@100", [(5, 101), (6, 101)]) == []
    assert telegram.missing_updates(None, [(7, 100)]) == []
    assert telegram.missing_updates("5@100", [(900, 100 + week), (901, 100 + week)]) == []
    assert telegram.missing_updates("5@100", [(900, 100 + week - 7200)]) == ["Telegram no longer has updates 5 to 899"]
    assert telegram.missing_updates("5", [(8, 100), (10, 100)]) == [
        "Telegram no longer has updates 5 to 7",
        "Telegram no longer has update 9",
    ]
    assert telegram.missing_updates("5@100", [(90_000_000, 100)]) == []


# -- call-backs


def test_a_webhook_without_the_secret_is_refused(clock: ManualClock) -> None:
    """GroupMe by the key in its address, Telegram by its header; nothing is read before."""
    groupme = GroupMeSource(SourceSettings("a", "groupme", group="9", secrets=("k" * 16,)), now=clock.now)
    bot = TelegramSource(SourceSettings("b", "telegram", secrets=("s" * 16,)), now=clock.now)
    for query in ({}, {"key": "wrong"}):
        with pytest.raises(UnverifiedWebhook):
            groupme.called(WebhookRequest({}, query, b"not even JSON"))
    with pytest.raises(UnverifiedWebhook):
        bot.called(WebhookRequest({telegram.SECRET: "wrong"}, {}, b"{}"))
    body = b'{"id":"7","group_id":"9","sender_id":"1001","sender_type":"user","text":"hi","created_at":1}'
    assert groupme.called(WebhookRequest({}, {"key": "k" * 16}, body))[0].text == "hi"
    with pytest.raises(Invalid, match="not a JSON object"):
        bot.called(WebhookRequest({telegram.SECRET: "s" * 16}, {}, b"[]"))


def test_the_generic_webhook_accepts_signed_and_valid_messages(clock: ManualClock) -> None:
    """One message or many; a bad one refuses all, with the field and the remedy."""
    source = WebhookSource(SourceSettings("own", "webhook", secrets=(SECRET,)), now=clock.now)

    def call(body: bytes, id_: str = "m1") -> list[Any]:
        signed = signature_headers([parse_secret(SECRET)], id_, clock.now() // SECOND, body)
        return source.called(WebhookRequest(signed, {}, body))

    one = b'{"id":"1","conversation":"crew","sender":"u7","text":"hello","at":"2026-01-03T21:08:00Z"}'
    assert call(one)[0].at == 1_767_474_480 * SECOND
    assert [m.kind for m in call(b'{"messages":[%b,%b]}' % (one, one.replace(b'"1"', b'"2"')))] == [
        IncomingKind.MESSAGE,
        IncomingKind.MESSAGE,
    ]
    for body, problem in (
        (b"nonsense", "not JSON"),
        (b'{"id":"1","sender":"u"}', "conversation is missing"),
        (one.replace(b"2026-01-03T21:08:00Z", b"yesterday"), "invalid time"),
        (b'{"messages":[]}', "not a list"),
        (one[:-1] + b',"kind":"delete"}', "delete requires original"),
        (one[:-1] + b',"tetx":"x"}', "did you mean 'text'"),
    ):
        with pytest.raises(Invalid, match=problem):
            call(body)
    signed = signature_headers([parse_secret(SECRET)], "m1", clock.now() // SECOND, one)
    with pytest.raises(UnverifiedWebhook, match="no signature matches"):
        source.called(WebhookRequest(signed, {}, one + b" "))
    with pytest.raises(UnverifiedWebhook):
        webhook.WebhookSource(SourceSettings("own", "webhook", secrets=(SECRET,)), now=clock.now).called(
            WebhookRequest({}, {}, one)
        )


def test_whatsapp_cloud_callbacks_are_parsed() -> None:
    """Texts, captions, buttons and quotes; statuses are none of ours."""
    settings = SourceSettings("wa", "whatsapp_cloud", channel="wa")
    messages = [
        {"from": "155", "id": "wamid.1", "timestamp": "1760000000", "type": "text", "text": {"body": "hi"}},
        {"from": "155", "id": "wamid.2", "timestamp": "1760000001", "type": "image",
         "image": {"caption": "look"}, "context": {"id": "wamid.1"}},
        {"from": "155", "id": "wamid.3", "timestamp": "1760000002", "type": "reaction"},
    ]  # fmt: skip
    value = {"contacts": [{"profile": {"name": "Ann"}, "wa_id": "155"}], "messages": messages}
    status = {"value": {"statuses": [{"id": "wamid.X", "status": "read"}]}}
    payload = {"entry": [{"changes": [{"value": value}, status]}]}

    one, two, three = whatsapp_cloud.incoming(settings, payload)

    assert (one.id, one.sender, one.name, one.text, one.at) == (
        "wamid.1", "+155", "Ann", "hi", 1_760_000_000 * SECOND,
    )  # fmt: skip
    assert (two.text, two.reply_to, two.attachments) == ("look", "wamid.1", 1)
    assert three.kind is IncomingKind.SYSTEM
    junks: list[dict[str, Any]] = [{}, {"entry": "x"}, {"entry": [{"changes": [{"value": {"messages": [None, {}]}}]}]}]
    for junk in junks:
        assert whatsapp_cloud.incoming(settings, junk) == []


def test_waha_callbacks_are_parsed() -> None:
    """In a group the participant speaks; edits and deletes find their message by its key."""
    settings = SourceSettings("wa", "waha", channel="wa")

    def event(name: str, **payload: Any) -> Any:
        return waha.incoming(settings, {"event": name, "session": "default", "payload": payload})

    group = {"from": "7@g.us", "participant": "155@c.us", "timestamp": 1_760_000_000, "fromMe": False}
    (one,) = event("message", id="false_7@g.us_AAA_155@c.us", body="hi", **group)
    (edit,) = event("message.edited", id="false_7@g.us_BBB_155@c.us", editedMessageId="AAA", body="hi all", **group)
    (gone,) = event("message.revoked", revokedMessageId="AAA", after={"id": "false_7@g.us_CCC", **group})
    (ours,) = event("message.any", id="true_7@g.us_DDD", to="7@g.us", body="ok", fromMe=True)

    assert (one.id, one.conversation, one.sender, one.text) == ("AAA", "7@g.us", "155@c.us", "hi")
    assert (edit.kind, edit.original, edit.text) == (IncomingKind.EDIT, "AAA", "hi all")
    assert (gone.kind, gone.original) == (IncomingKind.DELETE, "AAA")
    assert ours.own
    assert event("session.status", status="WORKING") == []
    assert event("message") == []


async def test_a_channels_callback_goes_to_the_source_with_that_channel(world: InboxNode) -> None:
    """The call-backs of a channel were verified already; twice the same is one row (D1)."""
    source = SourceSettings("wa", "whatsapp_cloud", channel="main")
    listening = InboundWebhooks(world.clock, world.intake, {"wa": source, "crew": CREW})
    message = {"from": ADA, "id": "wamid.1", "timestamp": str(world.second() // SECOND), "type": "text",
               "text": {"body": "hi"}}  # fmt: skip
    payload = {"entry": [{"changes": [{"value": {"messages": [message]}}]}]}

    for channel in ("main", "main", "another"):
        await listening.heard(channel, {}, payload)

    assert [(row["source"], row["text"]) for row in await world.all()] == [("wa", "hi")]


# -- settings


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"kind": "icq"}, "kind 'icq'"),
        ({"kind": "groupme", "token": "t"}, "is missing group"),
        ({"kind": "groupme", "group": "9"}, "is missing token or secrets"),
        ({"kind": "groupme", "group": "9", "token": "t", "page_size": 500}, "from 1 to 100"),
        ({"kind": "groupme", "group": "9", "tokn": "t"}, "did you mean 'token'"),
        ({"kind": "groupme", "group": "9", "token": "t", "base_url": "http://example.com"}, "https URL"),
        ({"kind": "webhook", "secrets": ["short"]}, "start with whsec_"),
        ({"kind": "telegram", "secrets": ["short"]}, "less than 16"),
        ({"kind": "waha"}, "is missing channel"),
        ({"kind": "groupme", "group": "9", "token": "t", "allow_speaking_for": True}, "in production"),
    ],
)
def test_an_invalid_source_stops_the_start(options: dict[str, Any], problem: str) -> None:
    """With the option and what to write instead."""
    with pytest.raises(Misconfigured) as error:
        read_source("crew", options, production=True)
    assert problem.lower() in str(error.value).lower()


# -- databases that refuse one message


async def refuse_poison(store: Store) -> None:
    """From now on the database itself refuses a message whose text is 'poison'."""
    if isinstance(store, SqliteStore):
        assert store._connection is not None
        store._connection.execute(
            "create trigger poison before insert on inbox when new.text = 'poison' "
            "begin select raise(abort, 'no poison'); end"
        )
        return
    assert isinstance(store, PostgresStore)
    async with store._connection() as connection:
        await connection.execute("alter table inbox add constraint poison check (text <> 'poison')")


async def allow_poison(store: Store) -> None:
    """The cause is mended."""
    if isinstance(store, SqliteStore):
        assert store._connection is not None
        store._connection.execute("drop trigger poison")
        return
    assert isinstance(store, PostgresStore)
    async with store._connection() as connection:
        await connection.execute("alter table inbox drop constraint poison")


async def test_a_poll_without_new_messages_is_recorded(world: InboxNode) -> None:
    """Whoever looks sees that it is read, also where nothing is said; not while it fails (D1, D15)."""
    chat = Chat()
    poller = world.poller(chat)
    await poller.step()
    first = (await world.source())["read_at"]
    world.clock.advance(10)
    await poller.step()
    second = (await world.source())["read_at"]

    def fail(_page: int) -> None:
        raise SourceUnavailable("HTTP 500")

    chat.before_read = fail
    world.clock.advance(10)
    await poller.step()

    assert first is not None and second - first >= 10 * SECOND
    assert (await world.source())["read_at"] == second
