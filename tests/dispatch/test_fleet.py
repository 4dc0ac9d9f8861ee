"""Dispatchers and transports over a real RabbitMQ (B15, design 7, F40–F47)."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import aio_pika
import pytest

from tidings.app import App
from tidings.config import ChannelSettings, Settings
from tidings.dispatch.rabbitmq import BATCH_EXCHANGE, OUTCOME_EXCHANGE, batch_queue
from tidings.dispatch.remote_executor import RemoteExecutor
from tidings.dispatch.roles import ProcessRole, ProcessShare
from tidings.dispatch.wire_format import (
    BATCH_TYPE,
    REPORT_TYPE,
    DispatchBatch,
    DispatchItem,
    ReportedOutcome,
    ReturnReason,
    TransportReport,
    encode_batch,
    encode_report,
)
from tidings.model.errors import Misconfigured
from tidings.model.message import Message
from tidings.model.outcome import Done, Outcome, Reject, Retry
from tidings.model.task import Category
from tidings.model.time import HOUR
from tidings.observability.events import BrokerLost, NoTransport, ReportRefused, TasksRecovered, TransportLost
from tidings.outbound.health import HealthStatus

from .conftest import CHANNEL, Fleet, accept, runtime_of, states, token_of

pytestmark = pytest.mark.xdist_group("rabbitmq")


def executor_of(app: App) -> RemoteExecutor:
    """Return the remote executor of a dispatcher that has been started."""
    found = runtime_of(app)._executor
    assert found is not None
    return found


@pytest.mark.parametrize("on_unknown", ["resend", "hold"])
async def test_messages_go_out_by_transports_that_have_no_database(fleet: Fleet, on_unknown: str) -> None:
    """Packed, sent once each by one of two transports, and settled with receipt and history (B15)."""
    app = await fleet.dispatcher(channel={"on_unknown": on_unknown})
    senders = [fleet.sender(), fleet.sender()]
    for sender in senders:
        await fleet.transport(sender)

    ids = await accept(app, *(f"r{i}" for i in range(60)))
    await fleet.all_are(app, ids)

    assert sorted(senders[0].sent + senders[1].sent) == sorted(f"r{i}" for i in range(60))
    shown = await app.messages.show(ids[0])
    assert shown["history"][-1]["detail"] == "r" and shown["attempts"] == 1


async def test_outcomes_survive_encoding_and_decoding(fleet: Fleet) -> None:
    """A retry is tried again by its policy, a rejection is a dead letter with its reason (B6, B7)."""

    def answer(message: Message) -> Outcome:
        if message.recipient == "bad":
            return Reject(Category.VALIDATION, "no such number")
        return Done() if message.attempt > 1 else Retry(Category.TEMPORARY, "busy", timedelta(milliseconds=10))

    app = await fleet.dispatcher()
    sender = fleet.sender(answer)
    await fleet.transport(sender)
    good, bad = await accept(app, "good", "bad")

    await fleet.all_are(app, [good])
    await fleet.all_are(app, [bad], "failed")

    assert sender.sent.count("good") == 2
    assert "no such number" in (await app.messages.show(bad))["history"][-1]["detail"]


async def test_without_a_transport_messages_come_back_and_wait(fleet: Fleet) -> None:
    """The broker says that nobody took them; no try is spent, and the first transport sends them once."""
    app = await fleet.dispatcher(broker_message_ttl=timedelta(milliseconds=300))
    ids = await accept(app, "a", "b")

    async def came_back() -> bool:
        lines = (await app.messages.show(ids[0]))["history"]
        return any("no transport accepted it in time" in (line["detail"] or "") for line in lines)

    await fleet.until(came_back)
    nobody = f"no transport accepts messages of {CHANNEL}"
    assert runtime_of(app).status().items() >= {"broker": nobody, "stuck": [CHANNEL]}.items()
    await app.worker._heartbeat_once()
    assert (await app.outbound.why(ids[0])).answer == f"due, but blocked: {nobody}"
    sender = fleet.sender()
    await fleet.transport(sender)
    await fleet.all_are(app, ids)

    assert sorted(sender.sent) == ["a", "b"]
    assert runtime_of(app).status()["broker"] == "connected"
    assert (await app.messages.show(ids[0]))["attempts"] == 1


async def test_batches_that_expire_while_the_broker_is_down_do_not_suspend_the_channel(fleet: Fleet) -> None:
    """It comes back and is given away again at once: there is no reason to rest, nor to raise an alarm."""
    app = await fleet.dispatcher(broker_message_ttl=timedelta(milliseconds=300))
    runtime_of(app)._broker.up_since = float("inf")  # as if it were back only now
    ids = await accept(app, "a")

    async def came_back() -> bool:
        lines = (await app.messages.show(ids[0]))["history"]
        return any("no transport accepted it in time" in (line["detail"] or "") for line in lines)

    await fleet.until(came_back)

    assert runtime_of(app).status()["broker"] == "connected"
    assert not [event for event in fleet.events if isinstance(event, NoTransport)]


async def test_tasks_started_by_a_dead_transport_are_held_and_the_rest_is_sent(fleet: Fleet) -> None:
    """Started is told before it is sent: two were, so two are in doubt, and none is sent twice (F44)."""
    app = await fleet.dispatcher(channel={"on_unknown": "hold", "deadline": "500ms"})
    doomed, heir = fleet.sender(), fleet.sender()
    doomed.gate.clear()
    first = await fleet.transport(doomed, slots=2)
    ids = await accept(app, *"abcdefgh")
    await fleet.until(lambda: len(doomed.sent) == 2)

    await fleet.die(first)
    await fleet.transport(heir)

    async def over() -> bool:
        return {"sent", "failed"} >= set(await states(app, ids))

    await fleet.until(over)
    held = [id_ for id_, state in zip(ids, await states(app, ids), strict=True) if state == "failed"]
    assert len(held) == 2 and not set(doomed.sent) & set(heir.sent)
    assert sorted("abcdefgh") == sorted(doomed.sent + heir.sent)


async def test_a_transport_that_reconnects_settles_unknown_outcomes(fleet: Fleet) -> None:
    """It had begun, its connection broke, the message was held: what it tells then is evidence (rule 4)."""
    app = await fleet.dispatcher(channel={"on_unknown": "hold", "deadline": "300ms"})
    sender, may_connect = fleet.sender(), asyncio.Event()
    transport = await fleet.transport(sender)
    sender.gate.clear()
    ids = await accept(app, "a")
    await fleet.until(lambda: sender.sent == ["a"])
    connect = transport._broker._connect

    async def connect_later() -> None:
        await may_connect.wait()
        await connect()

    transport._broker._connect = connect_later  # type: ignore[method-assign]
    await transport._broker._connection.close()  # type: ignore[union-attr]
    await fleet.all_are(app, ids, "failed")
    sender.gate.set()
    may_connect.set()
    await fleet.all_are(app, ids, "sent")

    assert sender.sent == ["a"]


async def test_on_a_channel_that_resends_a_dead_transports_messages_are_sent_again(fleet: Fleet) -> None:
    """Nobody told of starts, so all of its batch is in doubt, flagged, and sent again after the deadline."""
    app = await fleet.dispatcher(channel={"deadline": "300ms"})
    doomed, heir = fleet.sender(), fleet.sender()
    doomed.gate.clear()
    first = await fleet.transport(doomed, slots=2)
    ids = await accept(app, *"abcd")
    await fleet.until(lambda: len(doomed.sent) == 2)

    await fleet.die(first)
    await fleet.transport(heir)
    await fleet.all_are(app, ids)

    assert set(doomed.sent) < set(heir.sent)
    assert all([(await app.messages.show(id_))["history"] for id_ in ids])


async def test_a_delivered_batch_is_never_treated_as_undelivered(fleet: Fleet) -> None:
    """Its transport is gone, no other comes in time, and it may have been sent: that is said (rule 7)."""
    app = await fleet.dispatcher(channel={"deadline": "300ms"}, broker_message_ttl=timedelta(milliseconds=300))
    doomed, heir = fleet.sender(), fleet.sender()
    doomed.gate.clear()
    only = await fleet.transport(doomed)
    ids = await accept(app, "a")
    await fleet.until(lambda: len(doomed.sent) == 1)

    await fleet.die(only)
    await fleet.until(lambda: any(isinstance(event, TransportLost) for event in fleet.events))
    await fleet.transport(heir)
    await fleet.all_are(app, ids)

    assert heir.sent == ["a"]
    assert (await app.store.read("message_find", id=ids[0], tenant="default"))[0]["unknown"]


async def test_a_stopping_transport_returns_tasks_that_it_has_not_started(fleet: Fleet) -> None:
    """In order: what it had begun is told, the rest goes to another at once, nothing is in doubt (E8, F7)."""
    app = await fleet.dispatcher(channel={"on_unknown": "hold"})
    leaving, staying = fleet.sender(), fleet.sender()
    leaving.gate.clear()
    first = await fleet.transport(leaving, slots=1)
    ids = await accept(app, *"abc")
    await fleet.until(lambda: len(leaving.sent) == 1)
    await fleet.transport(staying)

    leaving.gate.set()
    fleet.transports.remove(first)
    await first.stop(5)
    await fleet.all_are(app, ids)

    assert sorted("abc") == sorted(leaving.sent + staying.sent)


async def test_a_dead_dispatchers_messages_are_settled_by_another_dispatcher(fleet: Fleet) -> None:
    """Dispatched tasks belong to the dispatch: what was sent meanwhile is done, and sent once (design 7)."""
    dying = await fleet.dispatcher(channel={"on_unknown": "hold"})
    sender = fleet.sender()
    sender.gate.clear()
    await fleet.transport(sender)
    ids = await accept(dying, *"abc")
    await fleet.until(lambda: len(sender.sent) == 3)

    await fleet.vanish(dying)
    sender.gate.set()
    heir = await fleet.dispatcher(channel={"on_unknown": "hold"})
    await fleet.all_are(heir, ids)
    await fleet.until(lambda: any(isinstance(event, TasksRecovered) for event in fleet.events))

    assert sorted("abc") == sorted(sender.sent)


async def test_tasks_that_a_dead_dispatcher_had_not_published_are_released(fleet: Fleet) -> None:
    """Only when every bound has passed and a marker is back: then nobody can have it (design 7)."""
    options = {
        "channel": {"on_unknown": "hold", "deadline": "100ms"},
        "broker_message_ttl": timedelta(milliseconds=200),
    }
    dying = await fleet.dispatcher(**options)

    async def nothing(channel: str, pairs: object) -> None:
        """The process dies before this line."""
        fleet.pulse.set()

    executor_of(dying)._publisher._publish = nothing  # type: ignore[method-assign]
    ids = await accept(dying, "a")
    await fleet.until(lambda: bool(executor_of(dying)._in_flight.held))
    await fleet.vanish(dying)

    sender = fleet.sender()
    heir = await fleet.dispatcher(**options)
    await fleet.transport(sender)
    await fleet.all_are(heir, ids)

    assert sender.sent == ["a"]
    assert (await heir.messages.show(ids[0]))["attempts"] == 1


async def test_a_report_of_a_claim_that_is_gone_is_evidence(fleet: Fleet) -> None:
    """A transport cut off for long says 'sent' at last: what was held is done after all (rule 4, F9)."""
    app = await fleet.dispatcher(channel={"on_unknown": "hold", "deadline": "100ms"})
    doomed = fleet.sender()
    doomed.gate.clear()
    first = await fleet.transport(doomed)
    [held] = await accept(app, "a")
    await fleet.until(lambda: len(doomed.sent) == 1)
    await fleet.die(first)
    await fleet.transport(fleet.sender())
    await fleet.all_are(app, [held], "failed")

    row = (await app.store.read("message_find", id=held, tenant="default"))[0]
    news = encode_report(
        TransportReport(CHANNEL, "late", outcomes=[ReportedOutcome(token_of(app, row["task"]), Done(), 5.0)])
    )
    await runtime_of(app)._broker.publish(OUTCOME_EXCHANGE, "999", news, kind=REPORT_TYPE)

    async def proved() -> bool:
        return await states(app, [held]) == ["sent"]

    await fleet.until(proved)


async def test_a_forged_report_changes_nothing(fleet: Fleet) -> None:
    """Who only has the broker's password cannot report on what it was not given, in hand or not (S23)."""
    app = await fleet.dispatcher(channel={"on_unknown": "hold", "deadline": "10s"})
    sender = fleet.sender()
    sender.gate.clear()
    await fleet.transport(sender)
    [in_hand] = await accept(app, "a")
    [never_given] = await accept(app, "b", at=app.clock.now() + HOUR)
    await fleet.until(lambda: sender.sent == ["a"])
    tasks = {
        id_: (await app.store.read("message_find", id=id_, tenant="default"))[0]["task"]
        for id_ in (in_hand, never_given)
    }
    good = token_of(app, tasks[in_hand])[2]
    forged = [
        report
        for task in tasks.values()
        for channel, claim, token in ((CHANNEL, 1, "0" * 32), (CHANNEL, 2, good), ("other", 1, good))
        for report in (
            TransportReport(channel, "thief", outcomes=[ReportedOutcome((task, claim, token), Done(), 5.0)]),
            TransportReport(channel, "thief", returned=[((task, claim, token), ReturnReason.LATE)]),
        )
    ]
    for to in (str(app.worker.runner.node.id), "999"):
        for report in forged:
            body = encode_report(report)
            await runtime_of(app)._broker.publish(OUTCOME_EXCHANGE, to, body, kind=REPORT_TYPE)

    def refused() -> list[ReportRefused]:
        return [event for event in fleet.events if isinstance(event, ReportRefused)]

    await fleet.until(lambda: len(refused()) == 2 * len(forged))
    assert await states(app, [in_hand, never_given]) == ["processing", "pending"]
    assert sender.sent == ["a"]

    sender.gate.set()
    await fleet.all_are(app, [in_hand])
    assert (await app.messages.show(in_hand))["attempts"] == 1


async def test_unknown_outcomes_are_looked_up_by_a_transport(fleet: Fleet) -> None:
    """On `ask` channels the credentials are with the transport, so it asks before it sends again (rule 7)."""
    app = await fleet.dispatcher()
    sender = fleet.sender()
    message = Message("id", "default", CHANNEL, "a", {"text": "hello"}, 0, 2)
    batch = encode_batch(DispatchBatch(CHANNEL, True, 1000, 1000, [DispatchItem(1, 2, "token", message, ask=True)]))

    await fleet.transport(sender)
    await runtime_of(app)._broker.publish(BATCH_EXCHANGE, CHANNEL, batch, kind=BATCH_TYPE, reply_to="1")
    await fleet.until(lambda: bool(sender.looked_up))

    assert sender.looked_up == ["a"] and not sender.sent


async def test_without_a_broker_everything_waits_and_health_says_so(tmp_path: object, fleet: Fleet) -> None:
    """Nothing is claimed, nothing is lost, and the log, the node's row and health name the reason (F40)."""
    app = await fleet.dispatcher(broker=("amqp://guest:guest@127.0.0.1:1/",))
    ids = await accept(app, "a")

    async def told() -> bool:
        await app.worker._heartbeat_once()
        return any("RabbitMQ" in reason for reason in (await app.outbound.health()).reasons)

    await fleet.until(lambda: app.worker.is_working)
    await fleet.until(told)

    assert await states(app, ids) == ["pending"]
    assert HealthStatus.DEGRADED is (await app.outbound.health()).status
    assert any(isinstance(event, BrokerLost) for event in fleet.events)


async def test_a_queue_without_dead_letters_is_refused_at_the_start(fleet: Fleet, broker: str) -> None:
    """The broker would drop what it cannot deliver; so it must have been made by us (F45)."""
    connection = await aio_pika.connect(broker)
    channel = await connection.channel()
    await channel.declare_queue(batch_queue(CHANNEL), durable=True, arguments={"x-queue-type": "quorum"})
    await connection.close()

    with pytest.raises(Misconfigured, match="exists with other arguments"):
        await fleet.dispatcher()


async def test_a_rate_holds_over_transports(fleet: Fleet) -> None:
    """Send instants are reserved in the database; a transport gets each message at its instant (rule 15)."""
    app = await fleet.dispatcher(channel={"per_second": 40})
    sender = fleet.sender()
    await fleet.transport(sender)

    ids = await accept(app, *(f"r{i}" for i in range(20)))
    await fleet.all_are(app, ids)

    first, last = [(await app.messages.show(id_))["history"][-1]["at"] for id_ in (ids[0], ids[-1])]
    assert first != last and len(sender.sent) == 20


def test_a_dispatcher_without_a_broker_is_refused() -> None:
    """One sentence that names the setting."""
    from tidings import app as engine

    settings = Settings(channels={CHANNEL: ChannelSettings("noop", {})}, sandbox=False)
    for role, build in ((ProcessRole.DISPATCHER, engine.build), (ProcessRole.TRANSPORT, engine.build_transport)):
        with pytest.raises(Misconfigured, match="need RabbitMQ"):
            build(settings, share=ProcessShare(frozenset({role})))
