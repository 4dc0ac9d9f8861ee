"""Receipts in: what providers tell later is folded into the message once, and told. Both databases."""

from __future__ import annotations

import asyncio
import hmac
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import orjson
import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel.clock import ManualClock
from tidings.model.errors import NotFound, StoreUnavailable
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome, Reject, Unknown
from tidings.model.task import Category, OnUnknown
from tidings.model.time import DAY, SECOND, iso
from tidings.observability.events import Event, ReceiptsReceived
from tidings.outbound.channels.base import ChannelTraits
from tidings.outbound.receipts.base import Callback
from tidings.outbound.receipts.callbacks import CallbackService
from tidings.outbound.receipts.receipt_reconciler import ReceiptReconciler
from tidings.store.port import Row, Step, Store
from tidings.store.postgres import PostgresStore
from tidings.store.statements import load_statements
from tidings.wire.webhook_signatures import BadSignature

from ..encryption import KEY
from .kernel_harness import ScriptedChannel

NUMBER = "1234567890"
CLOUD = {"phone_number_id": NUMBER, "access_token": "token", "app_secret": "app-secret"}


class Town:
    """An engine in virtual time with one WhatsApp number that does as it is told."""

    def __init__(self, app: App, clock: ManualClock, events: list[Event]) -> None:
        self.app, self.clock, self.store, self.events = app, clock, app.store, events
        self.channel = cast(ScriptedChannel, app.channels["wa"])
        self.callbacks: CallbackService = app.outbound.callbacks

    async def send(self, **more: Any) -> str:
        """Accept one message and send it."""
        id_ = (await self.app.messages.accept(Draft("wa", "+15551234567", "hello")._replace(**more))).id
        await self.work()
        return id_

    async def work(self) -> None:
        """Send what is due."""
        await self.app.worker.node.beat()
        while (await self.app.worker.runner.step()).claimed:
            pass

    async def tell(self, *statuses: Mapping[str, Any], number: str = NUMBER) -> None:
        """The provider calls back."""
        value = {"metadata": {"phone_number_id": number}, "statuses": list(statuses)}
        await self.post({"entry": [{"changes": [{"field": "messages", "value": value}]}]})

    async def post(self, body: object) -> None:
        """A signed call."""
        raw = orjson.dumps(body)
        signed = "sha256=" + hmac.digest(b"app-secret", raw, "sha256").hex()
        await self.callbacks.take("wa", Callback("/callbacks/wa", {"x-hub-signature-256": signed}, raw))

    async def show(self, id_: str) -> Row:
        """The message as people see it."""
        return await self.app.messages.show(id_)

    async def told(self) -> list[tuple[str, str]]:
        """What others are to be told of it: type and subject, oldest first."""
        return [(row["type"], row["subject"]) for row in await self.store.read("outbox_page", limit=100)]

    @property
    def taken(self) -> list[tuple[int, int, int]]:
        """What the log says of each callback: new, again, strange."""
        return [(e.new, e.duplicate, e.unmatched) for e in self.events if isinstance(e, ReceiptsReceived)]


@asynccontextmanager
async def town(store: Store, clock: ManualClock, script: Any = None, **settings: Any) -> AsyncIterator[Town]:
    """One node whose only provider calls back; somebody listens to everything about messages."""
    names = iter(range(1, 1000))
    events: list[Event] = []
    kinds = {"wa": ChannelSettings("whatsapp_cloud", CLOUD), "plain": ChannelSettings("noop", {})}
    app = build(
        Settings(channels=kinds, encryption_keys=(KEY,), **settings), clock=clock, store=store, emit=events.append
    )
    traits = ChannelTraits(OnUnknown.HOLD, "as the test says", timedelta(seconds=10))
    scripted = ScriptedChannel(traits, script or (lambda _message: Done(f"wamid.{next(names)}")))
    cast(Any, app.channels)["wa"] = scripted
    assert store.may_work()
    for lane in app.lanes.values():
        await store.write(lane.join())
    await app.worker.node.join()
    here = Town(app, clock, events)
    await app.outbound.subscriptions.add({"url": "https://example.com/hooks", "events": ["message.*"]})
    await app.actors[0].step()  # the messenger learns who listens
    yield here
    await app.channels["events"].close()


def status(name: str, what: str, at: int | None = None, **more: Any) -> dict[str, Any]:
    """A status of WhatsApp's; `at` in microseconds."""
    stamp = {} if at is None else {"timestamp": str(at // SECOND)}
    return {"id": name, "status": what, **stamp, **more}


def failed(name: str, code: int = 131026) -> dict[str, Any]:
    """The provider took it, and could not deliver it."""
    return status(name, "failed", errors=[{"code": code, "title": "Message undeliverable"}])


async def test_delivered_and_read_are_folded_into_the_message(store: Store, clock: ManualClock) -> None:
    """Shown with their times, in `why`, and told; the message stays sent (A6)."""
    async with town(store, clock) as here:
        id_ = await here.send()
        sent = await here.show(id_)
        assert (sent["state"], sent["delivery"], sent["receipts"]) == ("sent", None, [])
        clock.advance(60)
        at = clock.now() // SECOND * SECOND
        await here.tell(status("wamid.1", "delivered", at - 10 * SECOND), status("wamid.1", "read", at))

        shown = await here.show(id_)
        assert (shown["state"], shown["delivery"]) == ("sent", "read")
        assert [(fact["what"], fact["at"]) for fact in shown["receipts"]] == [
            ("delivered", iso(at - 10 * SECOND)),
            ("read", iso(at)),
        ]
        assert f"; read at {iso(at)}" in (await here.app.outbound.why(id_)).answer
        assert await here.told() == [("message.sent", id_), ("message.delivered", id_), ("message.read", id_)]
        assert here.taken == [(1, 0, 0)]


async def test_the_same_receipt_twice_changes_nothing(store: Store, clock: ManualClock) -> None:
    """F54: neither at once nor a day later; the log says that it came again."""
    async with town(store, clock) as here:
        id_ = await here.send()
        await here.tell(status("wamid.1", "delivered"))
        before, told = await here.show(id_), await here.told()
        clock.advance(86_400)
        await here.tell(status("wamid.1", "delivered"))
        await here.tell(status("wamid.1", "delivered"), status("wamid.1", "delivered"))

        assert await here.show(id_) == before
        assert await here.told() == told
        assert here.taken == [(1, 0, 0), (0, 1, 0), (0, 1, 0)]


async def test_read_before_delivered_ends_right(store: Store, clock: ManualClock) -> None:
    """Read implies delivered: both are told once, and the true time of delivery is taken when it comes."""
    async with town(store, clock) as here:
        id_ = await here.send()
        clock.advance(60)
        at = clock.now() // SECOND * SECOND
        await here.tell(status("wamid.1", "read", at))
        await here.tell(status("wamid.1", "delivered", at - 30 * SECOND))
        await here.tell(status("wamid.1", "sent", at - 40 * SECOND))

        shown = await here.show(id_)
        assert shown["delivery"] == "read"
        assert [(fact["what"], fact["at"]) for fact in shown["receipts"]] == [
            ("delivered", iso(at - 30 * SECOND)),
            ("read", iso(at)),
        ]
        assert [type_ for type_, _ in await here.told()] == ["message.sent", "message.delivered", "message.read"]


async def test_a_later_delivery_failure_is_shown_and_published_and_not_resent(store: Store, clock: ManualClock) -> None:
    """With the provider's reason and its category; nothing is due because of it."""
    async with town(store, clock) as here:
        id_ = await here.send()
        await here.tell(failed("wamid.1"))
        clock.advance(3600)
        await here.work()

        shown, why = await here.show(id_), await here.app.outbound.why(id_)
        (fact,) = shown["receipts"]
        assert (shown["state"], shown["delivery"]) == ("sent", "undelivered")
        assert (fact["what"], fact["category"]) == ("undelivered", "permanent")
        assert "131026: Message undeliverable" in fact["reason"]
        assert "could not deliver it" in why.answer and "permanent error: code 131026" in why.answer
        assert why.remedy is not None and "not resent" in why.remedy
        assert len(here.channel.sent) == 1
        row = (await store.read("outbox_page", limit=10))[-1]
        assert row["type"] == "message.undelivered"
        assert orjson.loads(row["body"])["category"] == "permanent"


async def test_delivered_after_all_outweighs_the_failure(store: Store, clock: ManualClock) -> None:
    """And a failure that comes after the delivery is no news for others."""
    async with town(store, clock) as here:
        first, second = await here.send(), await here.send()
        await here.tell(failed("wamid.1"))
        await here.tell(status("wamid.1", "delivered"))
        await here.tell(status("wamid.2", "delivered"))
        await here.tell(failed("wamid.2"))

        assert [(await here.show(id_))["delivery"] for id_ in (first, second)] == ["delivered", "delivered"]
        assert [type_ for type_, id_ in await here.told() if type_ != "message.sent"] == [
            "message.undelivered",
            "message.delivered",
            "message.delivered",
        ]


async def test_a_receipt_before_the_settle_of_its_send_is_not_lost(store: Store, clock: ManualClock) -> None:
    """It waits under its name; the settle finds it and tells it, after the sending."""
    async with town(store, clock) as here:
        id_ = (await here.app.messages.accept(Draft("wa", "+15551234567", "hello"))).id
        await here.tell(status("wamid.1", "delivered"))
        assert here.taken == [(0, 0, 1)]
        assert await here.told() == []
        await here.work()

        assert (await here.show(id_))["delivery"] == "delivered"
        assert await here.told() == [("message.sent", id_), ("message.delivered", id_)]
        await here.tell(status("wamid.1", "delivered"))
        assert here.taken[1:] == [(0, 1, 0)]


async def test_a_receipt_settles_an_uncertain_message_as_sent(store: Store, clock: ManualClock) -> None:
    """A6: failed(unknown) becomes sent, with its line of history; a certain failure stays one."""
    outcomes: list[Outcome] = [Unknown("no answer"), Reject(Category.PERMANENT, "no such number")]
    async with town(store, clock, lambda _m: outcomes.pop(0)) as here:
        held, refused = await here.send(), await here.send()
        assert (await here.show(held))["state"] == "failed"
        clock.advance(5)
        await here.tell(
            status("wamid.7", "sent", biz_opaque_callback_data=held),
            status("wamid.8", "sent", biz_opaque_callback_data=refused),
            status("wamid.9", "sent", biz_opaque_callback_data="nobody"),
        )
        await here.tell(status("wamid.7", "delivered", biz_opaque_callback_data=held))

        shown = await here.show(held)
        assert (shown["state"], shown["delivery"]) == ("sent", "delivered")
        assert shown["history"][-1]["detail"] == "a receipt proves that it was sent"
        assert (await here.show(refused))["state"] == "failed"
        assert [told for told in await here.told() if told[1] == held] == [
            ("message.unknown", held),
            ("message.sent", held),
            ("message.delivered", held),
        ]


async def test_a_proof_that_came_too_early_is_not_forgotten(store: Store, clock: ManualClock) -> None:
    """The receipt comes while it is at work, on a node that dies: held at first, then sent after all."""
    async with town(store, clock) as here:
        seen: list[str] = []

        def send(message: Message) -> Outcome:
            seen.append(message.id)
            return Unknown("the line broke")

        here.channel.script = send
        accepted = (await here.app.messages.accept(Draft("wa", "+15551234567", "hello"))).id
        await here.app.worker.node.beat()
        keeper = next(actor for actor in here.app.actors if isinstance(actor, ReceiptReconciler))

        async def early(message: Message) -> Outcome:
            await here.tell(status("wamid.5", "sent", biz_opaque_callback_data=message.id))
            await keeper.step()  # still at work: nothing can be said yet
            return send(message)

        cast(Any, here.channel).send = early
        await here.work()
        assert (await here.show(accepted))["state"] == "failed"
        await keeper.step()

        assert (await here.show(accepted))["state"] == "sent"
        assert seen == [accepted]
        assert await store.read("receipt_open", limit=10) == []


async def test_a_receipt_releases_the_next_message_of_an_ordering_key(store: Store, clock: ManualClock) -> None:
    """What was proved makes way for the next of its key, in the same transaction."""
    outcomes: list[Outcome] = [Unknown("no answer"), Done("wamid.2")]
    async with town(store, clock, lambda _m: outcomes.pop(0)) as here:
        first = await here.send(ordering_key="ada")
        await here.tell(status("wamid.1", "delivered", biz_opaque_callback_data=first))
        second = await here.send(ordering_key="ada")

        assert [(await here.show(id_))["state"] for id_ in (first, second)] == ["sent", "sent"]


async def test_of_a_text_in_parts_the_last_one_decides(store: Store, clock: ManualClock) -> None:
    """Delivered once, however many parts; one that failed counts for the whole."""
    async with town(store, clock, lambda _m: Done("wamid.a wamid.b wamid.c")) as here:
        id_ = await here.send()
        for name in ("wamid.a", "wamid.b"):
            await here.tell(status(name, "delivered"))
        assert (await here.show(id_))["delivery"] is None
        await here.tell(status("wamid.c", "delivered"))
        assert (await here.show(id_))["delivery"] == "delivered"
        assert [type_ for type_, _ in await here.told()] == ["message.sent", "message.delivered"]


async def test_receipts_of_unknown_messages_are_counted_and_pruned(store: Store, clock: ManualClock) -> None:
    """Another system may send from the same number: logged once a call, kept for a day, answered well."""
    async with town(store, clock) as here:
        await here.send()
        await here.tell(*(status(f"wamid.other-{n}", "delivered") for n in range(30)))
        await here.tell(status("wamid.1", "delivered"), number="999")
        assert here.taken == [(0, 0, 30), (0, 0, 1)]
        keeper = next(actor for actor in here.app.actors if isinstance(actor, ReceiptReconciler))
        await keeper.step()
        assert len(await _receipts(store)) == 31
        clock.advance(DAY // SECOND + 1)
        await keeper.step()

        assert [row["name"] for row in await _receipts(store)] == ["wamid.1"]


async def test_a_thousand_receipts_come_in_one_call(store: Store, clock: ManualClock) -> None:
    """Each of them is written, a page a transaction."""
    async with town(store, clock) as here:
        await here.tell(*(status(f"wamid.x{n}", "delivered") for n in range(1100)))

        assert here.taken == [(0, 0, 1100)]
        assert len(await _receipts(store)) == 1100


async def test_a_callback_is_written_completely_or_not_at_all(store: Store, clock: ManualClock) -> None:
    """When the write fails nothing is known of it, and the provider's next try does it all."""
    async with town(store, clock, lambda _m: Unknown("no answer")) as here:
        id_ = await here.send()
        before = await here.show(id_)
        change = store.change

        async def broken(steps: Sequence[Step], **more: Any) -> Any:
            wrong = Step("record", {**dict.fromkeys(("origin", "state", "category", "detail")), "task": None})
            return await change(
                [*steps, wrong._replace(params={**wrong.params, "attempt": None, "node": None, "at": 1})], **more
            )

        store.change = broken  # type: ignore[method-assign]
        with pytest.raises(Exception):  # noqa: B017 - each database has its own
            await here.tell(status("wamid.1", "delivered", biz_opaque_callback_data=id_))
        store.change = change  # type: ignore[method-assign]
        assert await here.show(id_) == before
        assert await _receipts(store) == []

        await here.tell(status("wamid.1", "delivered", biz_opaque_callback_data=id_))
        shown = await here.show(id_)
        assert (shown["state"], shown["delivery"]) == ("sent", "delivered")


async def test_receipts_and_settles_at_the_same_moment_lose_nothing(store: Store, clock: ManualClock) -> None:
    """Forty messages whose receipts come while they are being settled: each is delivered and told once."""
    async with town(store, clock, concurrency=40) as here:
        ids = [(await here.app.messages.accept(Draft("wa", f"+1555000{n:04}", "hi"))).id for n in range(40)]

        async def tell(n: int) -> None:
            await here.tell(status(f"wamid.{n}", "delivered"))

        await asyncio.gather(here.work(), *(tell(n) for n in range(1, 41)))

        assert [(await here.show(id_))["delivery"] for id_ in ids] == ["delivered"] * 40
        told = [id_ for type_, id_ in await here.told() if type_ == "message.delivered"]
        assert sorted(told) == sorted(ids)


async def test_channels_that_are_not_called_back_write_nothing(store: Store, clock: ManualClock) -> None:
    """Nor do they pay for it; and an address that nobody expects calls at is not there."""
    async with town(store, clock) as here:
        await here.app.messages.accept(Draft("plain", "ada", "hello"))
        await here.work()
        assert await _receipts(store) == []
        with pytest.raises(NotFound, match="the channel 'plain' has no callbacks"):
            await here.callbacks.take("plain", Callback("/", {}, b"{}"))
        with pytest.raises(BadSignature):
            await here.callbacks.take("wa", Callback("/", {}, b"{}"))
    quiet = build(Settings(channels={"plain": ChannelSettings("noop", {})}), clock=clock, store=store)
    assert not quiet.worker.runner._handlers["message"].listens  # the hot path writes no more than before


async def test_pruned_messages_take_their_receipts_along(store: Store, clock: ManualClock) -> None:
    """When a message is pruned, nothing of it stays."""
    async with town(store, clock) as here:
        await here.send()
        await here.tell(status("wamid.1", "delivered"))
        clock.advance(100 * DAY // SECOND)
        await here.app.worker.pruner.step()

        assert await _receipts(store) == []


async def test_inbound_content_of_a_callback_reaches_the_listener(store: Store, clock: ManualClock) -> None:
    """In the provider's own words; what they cannot take now makes the provider come again."""
    heard: list[tuple[str, Any, Any]] = []

    class Ear:
        async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
            heard.append((channel, accounts, payload))
            if len(heard) == 1:
                raise StoreUnavailable("not now", remedy="later")

    async with town(store, clock) as here:
        here.callbacks.listener = Ear()
        value = {"metadata": {"phone_number_id": NUMBER}, "messages": [{"id": "wamid.in", "type": "text"}]}
        body = {"entry": [{"changes": [{"field": "messages", "value": value}]}]}
        with pytest.raises(StoreUnavailable):
            await here.post(body)
        await here.post(body)

        assert heard == [("wa", {NUMBER: "wa"}, body)] * 2


async def test_its_statements_use_their_index(postgres_url: str) -> None:
    """A table that grows is never walked."""
    store = PostgresStore(postgres_url)
    await store.open()
    names = ("receipt_expect", "receipt_fold", "receipt_proved", "receipt_of", "receipt_open", "receipt_prune")
    async with store._connection() as connection:
        for name in names:
            statement = load_statements("postgres")[name]
            await connection.execute(f"prepare p as {statement.sql}")
            nulls = ", ".join("null" for _ in statement.names)
            plan = "\n".join(row[0] for row in await connection.fetch(f"explain execute p({nulls})"))
            await connection.execute("deallocate p")
            assert "Seq Scan" not in plan, f"{name}:\n{plan}"
    await store.close()


async def _receipts(store: Store) -> list[Row]:
    """All rows, whosever they are."""
    if store.dialect == "sqlite":
        reader = cast(Any, store)._reader
        return [{"name": row[0]} for row in reader.execute("select name from receipts order by name")]
    async with cast(Any, store)._connection() as connection:
        return [dict(row) for row in await connection.fetch("select name from receipts order by name")]
