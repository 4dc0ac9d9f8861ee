"""Events out: what happened is told to whoever subscribed, as durably as everything else. Both databases."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, cast

import orjson
import pytest

from tidings.app import App, build
from tidings.config import ChannelSettings, Settings
from tidings.kernel import task_actions as people
from tidings.kernel.clock import ManualClock
from tidings.kernel.retry import POLICIES
from tidings.kernel.worker import Worker
from tidings.model.errors import Conflict, Invalid, Misconfigured, NotFound, StoreUnavailable
from tidings.model.message import Draft, Message
from tidings.model.outcome import Done, Outcome, Reject, Retry, Skip, Unknown
from tidings.model.task import Category, NewTask, OnUnknown, TaskState, Transition
from tidings.model.time import DAY, HOUR, MINUTE, SECOND
from tidings.observability.events import discard_event
from tidings.outbound.channels.base import ChannelTraits
from tidings.outbound.events import event_types
from tidings.outbound.events.outbox_relay import OutboxRelay
from tidings.outbound.events.subscription_cache import DISABLE_AFTER
from tidings.outbound.message_validation import MESSAGE_COLUMNS
from tidings.outbound.service import OutboundService
from tidings.store.port import ClaimRequest, Step, Store, TableRows
from tidings.store.statements import SqlStatement, load_statements
from tidings.wire.webhook_signatures import parse_secret, verify

from ..encryption import KEY
from .kernel_harness import ScriptedChannel
from .receiver import Received, Receiver, answer, black_hole, receiving


class Town:
    """An engine in virtual time, with a channel told what to say and a real receiver of events."""

    def __init__(self, app: App, clock: ManualClock, receiver: Receiver) -> None:
        self.app, self.clock, self.receiver = app, clock, receiver
        self.store = app.store
        self.outbound: OutboundService = app.outbound
        self.messenger = next(actor for actor in app.actors if isinstance(actor, OutboxRelay))
        self.channel = cast(ScriptedChannel, app.channels["main"])

    async def subscribe(self, *events: str, url: str | None = None, tenant: str = "default") -> dict[str, Any]:
        """A subscription, known to the node at once."""
        body = {"url": url or f"{self.receiver.url}/hooks", "events": list(events) or ["*"]}
        made = await self.outbound.subscriptions.add(body, tenant=tenant)
        await self.messenger.step()
        return cast("dict[str, Any]", made.answer)

    async def send(self, to: str = "ada", channel: str = "main", **more: Any) -> str:
        """Accept one message."""
        return (await self.app.messages.accept(Draft(channel, to, "hello")._replace(**more))).id

    async def work(self) -> None:
        """Everything that can be done at this moment: send, tell, send what was told."""
        await self.app.worker.node.beat()
        for _ in range(50):
            await self.messenger.step()
            stepped = await self.app.worker.runner.step()
            if not stepped.claimed and not stepped.expired and not await self.waiting():
                return

    async def waiting(self) -> int:
        """How many events are still to be told."""
        return len(await self.store.read("outbox_page", limit=1000))

    @property
    def told(self) -> list[tuple[str, str]]:
        """Type and subject of every event that arrived, in order."""
        return [(got.json["type"], got.json["data"].get("id")) for got in self.receiver.requests]

    def only(self, type_: str) -> Received:
        """The one event of a type that arrived."""
        (found,) = [got for got in self.receiver.requests if got.json["type"] == type_]
        return found


def scripted(script: Callable[[Message], Outcome], on_unknown: OnUnknown) -> ScriptedChannel:
    return ScriptedChannel(ChannelTraits(on_unknown, "as the test says", timedelta(seconds=10)), script)


@asynccontextmanager
async def town(
    store: Store, clock: ManualClock, script: Callable[[Message], Outcome] = lambda _m: Done("r-1"),
    *, on_unknown: OnUnknown = OnUnknown.RESEND, **settings: Any,
) -> AsyncIterator[Town]:  # fmt: skip
    """One node and one receiver."""
    kinds = {"main": ChannelSettings("noop", {"on_unknown": on_unknown.value})}
    given: dict[str, Any] = {"channels": kinds, "events_private": True, "encryption_keys": (KEY,)}
    app = build(Settings(**given | settings), clock=clock, store=store)
    cast(Any, app.channels)["main"] = scripted(script, on_unknown)
    assert store.may_work()
    for lane in app.lanes.values():
        await store.write(lane.join())
    await app.worker.node.join()
    async with receiving() as receiver:
        yield Town(app, clock, receiver)
        await app.channels["events"].close()


async def test_message_sent_is_published_with_a_signature(store: Store, clock: ManualClock) -> None:
    """Issue 3, part 6: type, time and data, signed with the subscription's own secret."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        id_ = await here.send()
        await here.work()

        got = here.only("message.sent")
        assert verify([parse_secret(made["secret"])], got.headers, got.body, now=clock.now() // SECOND)
        assert got.path == "/hooks"
        assert got.json["data"] == {
            "id": id_, "state": "sent", "unknown": False, "channel": "main", "to": "ada", "broadcast": None,
            "schedule": None, "xref": None, "attempts": 1, "reason": None, "receipt": "r-1",
        }  # fmt: skip
        assert got.json["timestamp"].endswith("Z")
        assert await here.waiting() == 0


async def test_without_subscriptions_nothing_is_written_down(store: Store, clock: ManualClock) -> None:
    """The hot path pays nothing for events that nobody wants."""
    async with town(store, clock) as here:
        handler = here.app.worker._handlers["message"]
        assert not handler.listens
        await here.send()
        cancelled = await here.send(at=clock.now() + HOUR)
        await here.work()
        await here.app.messages.cancel(cancelled)

        assert await here.waiting() == 0


@pytest.mark.parametrize(
    ("outcome", "type_", "state", "reason"),
    [
        (Reject(Category.PERMANENT, "no such person"), "message.failed", "failed", "no such person"),
        (Skip("opted out"), "message.skipped", "skipped", "opted out"),
        (Done(), "message.sent", "sent", None),
    ],
)
async def test_every_final_outcome_publishes_an_event(
    store: Store, clock: ManualClock, outcome: Outcome, type_: str, state: str, reason: str | None
) -> None:
    """With the reason that its history has."""
    async with town(store, clock, lambda _m: outcome) as here:
        await here.subscribe("message.*")
        id_ = await here.send()
        await here.work()

        data = here.only(type_).json["data"]
        assert (data["id"], data["state"], data["reason"]) == (id_, state, reason)
        assert len(here.told) == 1


async def test_a_retry_is_no_event_and_loses_no_attempt(store: Store, clock: ManualClock) -> None:
    """A retry publishes nothing, and a subscriber to everything does not keep it from being stored."""
    script: list[Outcome] = [Retry(Category.TEMPORARY, "busy"), Done("r-1")]
    async with town(store, clock, lambda _m: script.pop(0)) as here:
        await here.subscribe("*")
        id_ = await here.send()
        await here.work()
        waiting = await here.app.messages.show(id_)
        clock.advance(HOUR // SECOND)
        await here.work()

        assert (waiting["state"], waiting["unknown"]) == ("pending", False)
        assert here.told == [("message.sent", id_)]
        assert here.only("message.sent").json["data"]["attempts"] == 2


async def test_a_held_message_with_an_unknown_outcome_publishes_an_event(store: Store, clock: ManualClock) -> None:
    """So is one whose node died while it sent it: the reaper's moves are told like all others."""
    async with town(store, clock, lambda _m: Unknown("no answer"), on_unknown=OnUnknown.HOLD) as here:
        await here.subscribe("message.unknown")
        first = await here.send()
        await here.work()
        second = await here.send()
        other = build_node(here)
        await other.node.join()
        claimed = await store.claim(other.node.id, wish_for_one())
        await store.start(other.node.id, claimed.tasks)
        await store.write([Step("node_dead", {"id": other.node.id, "heartbeat": 0})])
        clock.advance(60)
        await here.app.worker.node.beat()
        await here.app.worker.reaper.step()
        await here.work()

        assert here.told == [("message.unknown", first), ("message.unknown", second)]
        assert (
            here.receiver.requests[0].json["data"] | {"unknown": True, "state": "failed"}
            == (here.receiver.requests[0].json["data"])
        )


def build_node(here: Town) -> Worker:
    """Another node of the same fleet."""
    return Worker(here.store, here.clock, here.app.lanes, here.app.worker._handlers, emit=discard_event)


def wish_for_one() -> ClaimRequest:
    """A claim of one message."""
    return ClaimRequest({"main": 1}, 1)


async def test_actions_of_people_and_rules_publish_events(store: Store, clock: ManualClock) -> None:
    """Cancelled, discarded, retried, and proof that it was sent after all."""
    script: list[Outcome] = [Reject(Category.PERMANENT, "gone"), Reject(Category.PERMANENT, "gone again")]
    async with town(store, clock, lambda _m: script.pop(0)) as here:
        await here.subscribe("message.*")
        waiting = await here.send(at=clock.now() + HOUR)
        await here.app.messages.cancel(waiting, reason="ordered twice")
        dead = await here.send()
        await here.work()
        await here.app.messages.retry(dead)
        await here.work()
        await here.app.messages.discard(dead)
        proven = await here.send(at=clock.now() + HOUR)
        task = (await here.app.messages.find(proven))["task"]
        assert await people.record_sent_evidence(store, task, node=None, detail="a receipt came")
        await here.work()

        assert Counter(here.told) == Counter(
            [
                ("message.cancelled", waiting),
                ("message.failed", dead),
                ("message.retried", dead),
                ("message.failed", dead),
                ("message.cancelled", dead),
                ("message.sent", proven),
            ]
        )
        by_type = {got.json["type"]: got.json["data"] for got in here.receiver.requests[:1]}
        assert by_type["message.cancelled"]["reason"] == "ordered twice"


async def test_a_message_cancelled_during_its_attempt_publishes_message_cancelled(
    store: Store, clock: ManualClock
) -> None:
    """Asked in time, it ends as cancelled instead of being tried again (A6)."""

    async with town(store, clock) as here:
        await here.subscribe("message.*")
        id_ = await here.send()
        task = (await here.app.messages.find(id_))["task"]

        class Asking(ScriptedChannel):
            async def send(self, message: Message) -> Outcome:
                await people.cancel(store, task, reason="changed our mind")
                return Retry(Category.TEMPORARY, "busy")

        cast(Any, here.app.channels)["main"] = Asking(here.channel.traits, lambda _m: Done())
        await here.work()

        assert here.told == [("message.cancelled", id_)]


async def test_a_transition_that_was_rolled_back_publishes_no_event(store: Store, clock: ManualClock) -> None:
    """A settle whose claim had gone, and one that is repeated because its answer was lost."""
    async with town(store, clock) as here:
        await here.subscribe("message.*")
        await here.send()
        node = here.app.worker.node.id
        (task,) = (await store.claim(node, wish_for_one())).tasks
        handler = here.app.worker._handlers["message"]
        lost = Transition(task.id, task.claim_no - 1, TaskState.DONE, 1)
        await store.settle(node, [lost], also=handler.effects([(task, lost)]))
        assert await here.waiting() == 0

        done = Transition(task.id, task.claim_no, TaskState.DONE, 1)
        await store.settle(node, [done], also=handler.effects([(task, done)]))
        assert await here.waiting() == 1
        if store.dialect == "postgres":  # on one file the answer of a commit cannot be lost
            await store.settle(node, [done], also=handler.effects([(task, done)]))
            assert await here.waiting() == 1


async def test_an_event_that_cannot_be_written_undoes_its_change(store: Store, clock: ManualClock) -> None:
    """One transaction: a settle that fails half way leaves neither the move nor the event."""
    async with town(store, clock) as here:
        await here.subscribe("message.*")
        await here.send()
        node = here.app.worker.node.id
        (task,) = (await store.claim(node, wish_for_one())).tasks
        handler = here.app.worker._handlers["message"]
        done = Transition(task.id, task.claim_no, TaskState.DONE, 1)
        broken = Step(
            "outbox_add", {"at": None, "tenant": None, "type": "x", "subject": "x", "body": "{}", "target": None}
        )
        with pytest.raises(Exception):  # noqa: B017  (each database has its own words for it)
            await store.settle(node, [done], also=[*handler.effects([(task, done)]), broken])

        assert await here.waiting() == 0
        assert (await store.read("task_look", id=task.id))[0]["state"] == "processing"


async def test_deliveries_of_events_publish_no_events(store: Store, clock: ManualClock) -> None:
    """A receiver that fails must not make ever more events."""
    async with town(store, clock) as here:
        await here.subscribe("*")
        here.receiver.script(answer(410))
        await here.send()
        await here.work()
        clock.advance(86_400)
        await here.work()

        assert len(here.receiver.requests) == 1
        assert await here.waiting() == 0


@pytest.mark.parametrize(
    ("patterns", "told"),
    [
        (["*"], {"message.sent", "message.failed"}),
        (["message.*"], {"message.sent", "message.failed"}),
        (["message.failed"], {"message.failed"}),
        (["broadcast.*", "schedule.ended"], set()),
    ],
)
async def test_a_subscription_receives_only_its_event_types(
    store: Store, clock: ManualClock, patterns: list[str], told: set[str]
) -> None:
    """By type, by family, or everything; and by tenant."""

    def script(message: Message) -> Outcome:
        return Done() if message.recipient == "ada" else Reject(Category.PERMANENT, "no")

    async with town(store, clock, script) as here:
        await here.subscribe(*patterns)
        await here.send("ada")
        await here.send("bob")
        await here.send("eve", tenant="others")
        await here.work()

        assert {type_ for type_, _ in here.told} == told
        assert "eve" not in {got.json["data"]["to"] for got in here.receiver.requests}


async def test_each_subscription_gets_its_own_with_its_own_secret(store: Store, clock: ManualClock) -> None:
    """One event, two receivers, two messages with ids of their own."""
    async with town(store, clock) as here:
        one = await here.subscribe("*", url=f"{here.receiver.url}/one")
        two = await here.subscribe("message.sent", url=f"{here.receiver.url}/two")
        await here.send()
        await here.work()

        by_path = {got.path: got for got in here.receiver.requests}
        for made, path in ((one, "/one"), (two, "/two")):
            got = by_path[path]
            verify([parse_secret(made["secret"])], got.headers, got.body, now=clock.now() // SECOND)
        assert by_path["/one"].headers["webhook-id"] != by_path["/two"].headers["webhook-id"]
        assert one["secret"] != two["secret"]


async def test_four_messengers_at_once_tell_everything_once(store: Store, clock: ManualClock) -> None:
    """Whoever comes second finds its page undone, not doubled (B5)."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        for number in range(700):
            await store.write([event("message.sent", f"m{number}")])
        others = [OutboxRelay(store, clock, here.messenger._listeners) for _ in range(4)]
        while await here.waiting():
            await asyncio.gather(*(other.step() for other in others))

        rows = (await here.app.messages.page(channel="events", limit=1000)).items
        assert Counter(row["data"]["data"]["id"] for row in rows) == Counter(f"m{n}" for n in range(700))
        assert {row["to"] for row in rows} == {made["id"]}


def event(type_: str, subject: str, target: str | None = None, **body: Any) -> Step:
    """A row of the outbox, as other parts write it."""
    row = {"at": None, "tenant": "default", "type": type_, "subject": subject, "target": target}
    return Step("outbox_add", {**row, "body": orjson.dumps(body).decode()})


async def test_an_event_survives_a_crash_of_the_outbox_relay(store: Store, clock: ManualClock) -> None:
    """Before the commit everything is as it was; after it, the event is a message."""
    async with town(store, clock) as here:
        await here.subscribe("*")
        await store.write([event("broadcast.completed", "b1", name="Flood", total=3)])

        class Dying:
            def __getattr__(self, name: str) -> Any:
                return getattr(store, name)

            async def enqueue(self, *_: Any, **__: Any) -> Any:
                raise StoreUnavailable("the power went")

        with pytest.raises(StoreUnavailable):
            await OutboxRelay(cast(Any, Dying()), clock, here.messenger._listeners).step()
        assert await here.waiting() == 1
        await here.work()

        assert here.only("broadcast.completed").json["data"] == {"name": "Flood", "total": 3}


async def test_an_event_may_name_a_url_of_its_own(store: Store, clock: ManualClock) -> None:
    """A broadcast's webhook: told there and to whoever subscribed, signed with a secret of its own."""
    secret = "whsec_" + "A" * 40
    async with town(store, clock, events_secrets=(secret,)) as here:
        await here.subscribe("broadcast.*", url=f"{here.receiver.url}/subscribed")
        await store.write([event("broadcast.completed", "b1", f"{here.receiver.url}/own", id="b1")])
        await here.work()

        by_path = {got.path: got for got in here.receiver.requests}
        assert set(by_path) == {"/own", "/subscribed"}
        found = await here.app.outbound.channels.endpoint_secrets("events", f"{here.receiver.url}/own")
        [own] = found["secrets"]
        assert own != secret
        verify([parse_secret(own)], by_path["/own"].headers, by_path["/own"].body, now=clock.now() // SECOND)


async def test_a_private_address_is_not_called_unless_it_is_allowed(store: Store, clock: ManualClock) -> None:
    """S6: whoever may name a URL must not reach what only this machine can reach."""
    async with town(store, clock, events_private=False) as here:
        with pytest.raises(Invalid, match="the URL is not allowed"):
            await here.subscribe("*")
        await store.write([event("broadcast.completed", "b1", f"{here.receiver.url}/own")])
        await here.work()

        assert here.receiver.requests == []
        (row,) = (await here.app.messages.page(channel="events")).items
        assert "not called" in str((await here.app.messages.show(row["id"]))["error"])


async def test_a_failed_event_climbs_the_ladder_and_keeps_its_id(store: Store, clock: ManualClock) -> None:
    """5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h: the same id and the same bytes each time."""
    ladder = POLICIES["events"].rule.table
    assert [wait.total_seconds() for wait in ladder] == [5, 300, 1800, 7200, 18_000, 36_000, 36_000]
    async with town(store, clock) as here:
        await here.subscribe("message.*")
        here.receiver.script(answer(500), answer(404), answer(503))
        await here.send()
        await here.work()
        for wait in ladder[:3]:
            clock.advance(wait.total_seconds() * 0.9 - 1)
            before = len(here.receiver.requests)
            await here.work()
            assert len(here.receiver.requests) == before
            clock.advance(wait.total_seconds() * 0.2 + 2)
            await here.work()

        assert len(here.receiver.requests) == 4
        assert len({got.headers["webhook-id"] for got in here.receiver.requests}) == 1
        assert len({got.body for got in here.receiver.requests}) == 1
        assert len({got.headers["webhook-timestamp"] for got in here.receiver.requests}) == 4


async def test_one_bad_receiver_does_not_hold_up_the_others(store: Store, clock: ManualClock) -> None:
    """Its failures in a row park only itself, cost its events no try, and the channel goes on."""
    async with town(store, clock) as here, receiving() as bad:
        bad.script(*[answer(500)] * 100)
        await here.subscribe("message.*", url=bad.url)
        await here.subscribe("message.*")
        for _ in range(20):
            await here.send()
        await here.work()
        assert len(here.receiver.requests) == 20
        for _ in range(20):
            await here.send()
        before = len(bad.requests)
        await here.work()

        assert len(here.receiver.requests) == 40
        assert len(bad.requests) - before <= 1
        queue = next(row for row in await store.read("queue_list") if row["name"] == "events")
        assert queue["opened_at"] is None


async def test_a_receiver_that_never_answers_is_given_up_after_days(store: Store, clock: ManualClock) -> None:
    """The subscription is switched off and says why; switched on again it starts afresh."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        here.receiver.script(*[answer(500, b"broken")] * 50)
        await here.send()
        await here.work()
        shown = await here.outbound.subscriptions.show(made["id"])
        assert shown["active"] and shown["failing_since"] and "HTTP 500" in shown["problem"]

        clock.advance(DISABLE_AFTER.total_seconds() + 60)
        await here.send()
        await here.work()
        shown = await here.outbound.subscriptions.show(made["id"])
        assert (shown["active"], "HTTP 500" in shown["problem"]) == (False, True)
        count = len(here.receiver.requests)
        await here.send()
        await here.work()
        assert len(here.receiver.requests) == count

        here.receiver._script.clear()
        shown = await here.outbound.subscriptions.edit(made["id"], {"active": True})
        assert (shown["active"], shown["problem"], shown["failing_since"]) == (True, None, None)
        clock.advance(61)
        await here.messenger.step()
        await here.send()
        await here.work()
        assert len(here.receiver.requests) > count


async def test_a_success_ends_the_trouble(store: Store, clock: ManualClock) -> None:
    """A receiver that was mended is not given up days later."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        here.receiver.script(answer(500))
        await here.send()
        await here.work()
        clock.advance(10)
        await here.work()

        shown = await here.outbound.subscriptions.show(made["id"])
        assert (shown["active"], shown["failing_since"], shown["problem"]) == (True, None, None)


async def test_a_receiver_that_says_gone_is_not_called_again(store: Store, clock: ManualClock) -> None:
    """410: the subscription is switched off at once."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        here.receiver.script(answer(410))
        await here.send()
        await here.work()
        await here.send()
        await here.work()

        assert len(here.receiver.requests) == 1
        assert not (await here.outbound.subscriptions.show(made["id"]))["active"]


async def test_a_removed_or_paused_subscription_receives_no_events(store: Store, clock: ManualClock) -> None:
    """What was on its way to it is skipped, and says why."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        here.receiver.script(answer(500))
        await here.send()
        await here.work()
        await here.outbound.subscriptions.remove(made["id"])
        clock.advance(10)
        await here.messenger.step()
        await here.work()

        assert len(here.receiver.requests) == 1
        (row,) = (await here.app.messages.page(channel="events")).items
        assert row["state"] == "skipped"
        with pytest.raises(NotFound):
            await here.outbound.subscriptions.show(made["id"])


async def test_a_rotated_secret_overlaps_for_a_day(store: Store, clock: ManualClock) -> None:
    """Both sign at first; a day later only the new one."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        rotated = await here.outbound.subscriptions.rotate(made["id"])
        old, new = parse_secret(made["secret"]), parse_secret(rotated["secret"])
        await here.send()
        await here.work()
        got = here.receiver.requests[0]
        for key in (old, new):
            verify([key], got.headers, got.body, now=clock.now() // SECOND)
        assert len(got.headers["webhook-signature"].split()) == 2

        clock.advance(86_401)
        await here.send()
        await here.work()
        got = here.receiver.requests[1]
        verify([new], got.headers, got.body, now=clock.now() // SECOND)
        assert len(got.headers["webhook-signature"].split()) == 1


async def test_a_test_goes_to_one_subscription_only(store: Store, clock: ManualClock) -> None:
    """Whatever it asked for; one that is switched off refuses."""
    async with town(store, clock) as here:
        asked = await here.subscribe("broadcast.*", url=f"{here.receiver.url}/asked")
        await here.subscribe("*", url=f"{here.receiver.url}/other")
        await here.outbound.subscriptions.test(asked["id"])
        await here.work()

        assert [(got.path, got.json["type"]) for got in here.receiver.requests] == [("/asked", event_types.TEST_EVENT)]
        await here.outbound.subscriptions.edit(asked["id"], {"active": False})
        with pytest.raises(Conflict, match="is inactive"):
            await here.outbound.subscriptions.test(asked["id"])


async def test_a_secret_is_nowhere_but_in_its_row(store: Store, clock: ManualClock) -> None:
    """Not in contents, history, lists, errors or what is printed of our own values."""
    async with town(store, clock) as here:
        made = await here.subscribe("message.*")
        secret = made["secret"]
        here.receiver.script(answer(400, secret.encode()))
        await here.send()
        await here.work()
        clock.advance(10)
        await here.work()

        seen = [
            *(await here.app.messages.page(limit=100)).items,
            *[await here.app.messages.show(row["id"]) for row in (await here.app.messages.page()).items],
            *(await here.outbound.subscriptions.page()).items,
            repr(here.messenger._listeners.known(made["id"])),
        ]
        assert secret not in str(seen)
        assert "[hidden]" in str(seen)


async def test_the_name_of_the_built_in_channel_is_taken(store: Store, clock: ManualClock) -> None:
    """Neither a configured channel nor a caller can use it."""
    with pytest.raises(Misconfigured, match="is reserved"):
        build(Settings(channels={"events": ChannelSettings("noop")}), clock=clock, store=store)
    async with town(store, clock) as here:
        with pytest.raises(Invalid, match="reserved for the engine"):
            await here.send(channel="events", to="https://example.com")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"url": "https://example.com"}, "events"),
        ({"events": ["*"]}, "url"),
        ({"url": "https://example.com", "events": []}, "events"),
        ({"url": "https://example.com", "events": ["message.snet"]}, "events"),
        ({"url": "https://example.com", "events": [1]}, "events"),
        ({"url": "https://example.com", "events": "message.*"}, "events"),
        ({"url": "ftp://example.com", "events": ["*"]}, "url"),
        ({"url": "https://user:pass@example.com", "events": ["*"]}, "url"),
        ({"url": "https://example.com", "events": ["*"], "secret": "mine"}, "secret"),
    ],
)
async def test_a_bad_subscription_is_refused(
    store: Store, clock: ManualClock, body: dict[str, Any], field: str
) -> None:
    """One sentence naming the field, and nothing is written."""
    async with town(store, clock) as here:
        with pytest.raises(Invalid) as refused:
            await here.outbound.subscriptions.add(body)

        assert (refused.value.field, bool(refused.value.remedy)) == (field, True)
        assert (await here.outbound.subscriptions.page()).items == []


async def test_a_subscription_is_added_once_however_often_it_is_asked_for(store: Store, clock: ManualClock) -> None:
    """B4: the same key and body give the first answer again, the secret too; another body is refused."""
    async with town(store, clock) as here:
        body = {"url": "https://example.com/a", "events": ["*"]}
        first = await here.outbound.subscriptions.add(body, key="k")
        again = await here.outbound.subscriptions.add(body, key="k")

        assert (first.replayed, again.replayed) == (False, True)
        assert first.answer == again.answer
        with pytest.raises(Invalid, match="another body"):
            await here.outbound.subscriptions.add({**body, "events": ["message.*"]}, key="k")
        assert len((await here.outbound.subscriptions.page()).items) == 1
        kept = await store.read("idempotency_key_find", scope="default/subscriptions", key="k")
        assert first.answer["secret"] not in kept[0]["answer"]


class TestMissedAndExpired:
    """B8, E1, E2: what came due while nothing ran."""

    async def test_what_came_due_while_nothing_ran_goes_out_at_the_next_start(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Within its grace it is sent; older it expires, and a webhook tells."""
        async with town(store, clock) as here:
            await here.subscribe("message.expired")
            late = await here.send(at=clock.now() + HOUR)
            too_late = await here.send(at=clock.now() + MINUTE, expires_at=clock.now() + 2 * HOUR)
            clock.advance(5 * 3600)  # the machine was off
            await here.app.worker.reaper.step()
            await here.work()

            assert here.channel.ids == [late]
            assert here.told == [("message.expired", too_late)]
            data = here.only("message.expired").json["data"]
            assert (data["state"], data["reason"]) == ("expired", "expired before it could start")

    async def test_which_expiry_applies(self, store: Store, clock: ManualClock) -> None:
        """The message's own first; without one 24 h from the later of due and accepted (B8)."""
        async with town(store, clock) as here:
            await here.subscribe("message.expired")
            own = await here.send("own", at=clock.now() + HOUR, expires_at=clock.now() + 50 * HOUR)
            usual = await here.send("usual", at=clock.now() + HOUR)
            past = await here.send("past", at=clock.now() - 10 * DAY)  # on purpose: it still goes out (B2)
            await here.app.messages.cancel(await here.send("x", at=clock.now() + HOUR))
            await here.work()
            assert here.channel.ids == [past]

            clock.advance(25 * 3600 + 1)
            await here.work()
            assert here.channel.ids == [past, own]
            assert here.told == [("message.expired", usual)]

    async def test_behind_a_paused_channel_everything_expires_within_one_sweep(
        self, store: Store, clock: ManualClock
    ) -> None:
        """Back to normal within 15 min, however many share one due time; every one is told."""
        async with town(store, clock) as here:
            await here.subscribe("message.expired")
            await here.outbound.channels.pause("main")
            at, until = clock.now() + MINUTE, clock.now() + HOUR
            tasks = [NewTask("main", "message", at, expires_at=until) for _ in range(1800)]
            rows = [(at, at, f"m{n}", "default", "main", "ada", '{"text":"x"}', True) for n in range(1800)]
            await store.enqueue(tasks, TableRows("messages", MESSAGE_COLUMNS, rows))
            kept = await here.send(at=at, expires_at=clock.now() + 2 * HOUR)
            clock.advance(3601)
            await here.app.worker.node.beat()

            assert await here.app.worker.expirer.step() == 1800
            assert (await here.app.messages.show(kept))["state"] == "pending"
            told = await store.read("outbox_page", limit=5000)
            assert {row["type"] for row in told} == {"message.expired"}
            assert len({row["subject"] for row in told}) == 1800

    async def test_a_whole_line_behind_one_order_key_expires_within_one_sweep(
        self, store: Store, clock: ManualClock
    ) -> None:
        """The turn is passed on, and the next in line is looked at again."""
        async with town(store, clock) as here:
            await here.subscribe("message.expired")
            await here.outbound.channels.pause("main")
            ids = [await here.send(ordering_key="k", expires_at=clock.now() + HOUR) for _ in range(12)]
            clock.advance(3601)
            await here.app.worker.node.beat()

            assert await here.app.worker.expirer.step() == 12
            await here.work()
            assert Counter(here.told) == Counter(("message.expired", id_) for id_ in ids)


async def test_a_receiver_that_hangs_leaves_slots_to_messages(store: Store, clock: ManualClock) -> None:
    """Events take a quarter of the slots at the most."""
    async with town(store, clock, concurrency=8) as here:
        assert here.app.lanes["events"].concurrency == 2
        await here.subscribe("message.*")
        here.receiver.script(*[black_hole] * 10)
        for _ in range(5):
            await here.send()
        await here.app.worker.node.beat()
        await here.app.worker.runner.step()
        await here.messenger.step()
        claimed = await store.claim(here.app.worker.node.id, wish_of(here))
        assert Counter(task.queue for task in claimed.tasks)["events"] <= 2


def wish_of(here: Town) -> ClaimRequest:
    """What a node of eight free slots would claim."""
    runner = here.app.worker.runner
    return ClaimRequest({queue: runner._capacity.of(queue, 8) for queue in here.app.lanes}, 8)


READS = (
    *("outbox_page", "outbox_take", "outbox_moves", "subscription_active", "subscription_page"),
    *("shadow_page", "shadow_prune", "rollout_past", "import_page", "import_known", "import_check"),
)


async def test_what_is_read_again_and_again_is_found_by_an_index(store: Store) -> None:
    """Rule 17: none of these walks through a table that grows."""
    grown = r"(outbox|tasks|t|messages|m|history|h|occurrences|shadows|import_rows|r|rollouts)"
    for name in READS:
        statement = load_statements(store.dialect)[name]
        plan = await explained(store, statement)
        scan = rf"SCAN {grown}\b(?! USING)" if store.dialect == "sqlite" else rf"Seq Scan on {grown}\b"
        assert not re.search(scan, plan), f"{name}:\n{plan}"


async def explained(store: Any, statement: SqlStatement) -> str:
    """How the database would run it."""
    if store.dialect == "sqlite":
        rows = store._connection.execute(f"explain query plan {statement.sql}", (None,) * len(statement.names))
        # The oldest of the outbox are found by walking its key from the start.
        return "\n".join(row[3] for row in rows).replace("SCAN outbox", "SCAN outbox USING its key")
    nulls = ", ".join("null" for _ in statement.names)
    async with store._connection() as connection:
        await connection.execute(f"prepare p as {statement.sql}")
        found = await connection.fetch(f"explain execute p({nulls})" if nulls else "explain execute p")
        await connection.execute("deallocate p")
    return "\n".join(row[0] for row in found)
