"""The connection to RabbitMQ: automatic reconnects, topology, publisher confirms and consumers.

Several URLs are the nodes of one cluster: a random one is used first, and the next after a lost connection.

This is the only module that uses the client library. Everything is durable: quorum queues, persistent
messages, publisher confirms, `mandatory`, and a dead-letter exchange for each batch queue. An existing queue
without one is rejected, because the broker would drop what it cannot deliver. Each engine needs its own
virtual host.

    exchange               key       queue                     consumers
    tidings.batches        channel   tidings.batches.CHANNEL   transports of that channel
    tidings.dead_letters   (any)     tidings.dead_letters      dispatchers: batches that came back
    tidings.outcomes       node id   tidings.outcomes.NODE     that dispatcher or its successor, one at a time
    tidings.late           (any)     tidings.late              dispatchers: reports for a deleted queue
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..kernel.clock import Clock
from ..model.errors import Misconfigured
from ..observability.events import BrokerLost, BrokerReached, Emit
from .broker_errors import BrokerProblem, broker_address, describe_error, worst_problem
from .broker_messages import BrokerMessage

if TYPE_CHECKING:
    from aio_pika.abc import AbstractChannel, AbstractConnection, AbstractExchange, AbstractIncomingMessage

BATCH_EXCHANGE = "tidings.batches"
OUTCOME_EXCHANGE = "tidings.outcomes"
DEAD_LETTER_EXCHANGE = "tidings.dead_letters"
LATE_EXCHANGE = "tidings.late"

QUEUE_SETTLE_TIME = 2.0  # seconds; a killed RabbitMQ has lost queues that were younger
_HEARTBEAT = 10  # seconds; a peer that misses two is gone
_TIMEOUT = 10.0  # seconds for a response to anything but a publish
_QUEUE_EXPIRY_MS = 24 * 3600 * 1000  # milliseconds until an outcome queue without consumer is deleted

_RECHECK = 1.0  # seconds until a missing queue is checked again
_NEVER = "not connected yet"

MessageCallback = Callable[[list[BrokerMessage]], Awaitable[None]]


class PublishError(Exception):
    """A message was not published, or not confirmed."""


class BrokerDown(PublishError):
    """There is no connection; nothing was published."""


class PublishRefused(PublishError):
    """The broker rejected the message; nothing was published."""


class PublishUnconfirmed(PublishError):
    """The connection was lost before the confirm: the message counts as published."""


@dataclass(slots=True)
class _Subscription:
    queue: str
    take: MessageCallback
    prefetch: int
    own: bool  # a node's outcome queue: declared here
    declared: float | None = None  # monotonic
    messages: asyncio.Queue[BrokerMessage | None] | None = None  # received on the current connection
    halt: Callable[[], Awaitable[None]] | None = None  # cancels the consumer, but keeps the channel for acks
    stop: Callable[[], Awaitable[None]] | None = None


class BrokerConnection:
    """Connects at `start` and reconnects until `stop`. Subscriptions survive reconnects."""

    def __init__(
        self,
        urls: Sequence[str],
        clock: Clock,
        *,
        emit: Emit,
        channels: tuple[str, ...],
        name: str,
        declares: bool = True,  # a transport needs no permission to declare
        came: Callable[[], None] = lambda: None,
        went: Callable[[], None] = lambda: None,
    ) -> None:
        self._urls = urls
        self._url_index = int(clock.chance() * len(urls))  # index of the URL in use
        self._clock = clock
        self._emit = emit
        self._channels = channels
        self._name = name
        self._declares = declares
        self._came = came
        self._went = went
        self._subscriptions: dict[str, _Subscription] = {}
        self._connection: AbstractConnection | None = None
        self._publishing: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}
        self._closed = asyncio.Event()
        self._running: asyncio.Task[None] | None = None
        self._missing: list[_Subscription] = []
        self._was_up = False
        self.problem: str | None = _NEVER
        self.up_since = clock.monotonic()

    # -- start and stop

    async def start(self) -> None:
        """Connect once, so that permanent problems prevent the start (Misconfigured); then stay connected."""
        found = await self._connect()
        if found is not None:
            if found.remedy is not None:
                raise Misconfigured(found.problem, remedy=found.remedy, field="broker")
            self._lost(found)
        self._running = asyncio.create_task(self._stay_connected())

    async def stop(self) -> None:
        """Close the connection; unacknowledged messages are redelivered to other consumers."""
        if self._running is not None:
            self._running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._running
        connection, self._connection, self._publishing = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_TIMEOUT):
                    await connection.close()

    @property
    def is_up(self) -> bool:
        """Whether messages can be published now."""
        return self._publishing is not None and not self._publishing.is_closed

    @property
    def address(self) -> str | None:
        """The host and port of the broker in use."""
        return broker_address(self._url) if self.is_up else None

    @property
    def _url(self) -> str:
        return self._urls[self._url_index % len(self._urls)]

    async def _stay_connected(self) -> None:
        pause = 0.1
        while True:
            if not self.is_up:
                if self._was_up:
                    self._lost(self._closed_on_us())
                if found := await self._connect():
                    self._lost(found)
                    await asyncio.sleep(pause * (0.5 + self._clock.chance()))
                    pause = min(pause * 2, 2.0)
                    continue
            pause = 0.1
            await self._until_closed()
            self._lost(self._closed_on_us())

    async def _until_closed(self) -> None:
        while self._missing:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closed.wait(), _RECHECK)
                return
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._subscribe_all(self._missing)
            except Exception:  # the library raises various errors; the next connection subscribes again
                return
        await self._closed.wait()

    def _closed_on_us(self) -> BrokerProblem:
        return describe_error(ConnectionError(f"{broker_address(self._url)} closed the connection"), self._url)

    def _lost(self, found: BrokerProblem) -> None:
        self._publishing = None
        was, was_up, self._was_up = self.problem, self._was_up, False
        self.problem = found.problem
        if was_up or was == _NEVER or (found.remedy is not None and was != found.problem):
            self._emit(BrokerLost(found.problem))
        if was_up:
            self._went()

    async def _connect(self) -> BrokerProblem | None:
        """Connect to the first broker that works. Return the problem if none does."""
        found: dict[str, BrokerProblem] = {}
        for _ in self._urls:
            self._url_index += 1
            try:
                await self._connect_to(self._url)
            except Exception as error:  # the library raises various errors
                found[self._url] = describe_error(error, self._url)
            else:
                return None
        return worst_problem(found)

    async def _connect_to(self, url: str) -> None:
        aio_pika = load_aio_pika()
        if self._connection is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(1):
                    await self._connection.close()
        self._closed = closed = asyncio.Event()
        async with asyncio.timeout(_TIMEOUT):
            connection = await aio_pika.connect(url, heartbeat=_HEARTBEAT, name=self._name)
            connection.close_callbacks.add(lambda *_: closed.set())
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            channel.close_callbacks.add(lambda *_: closed.set())
            self._connection = connection
            await self._declare(channel)
            self._publishing = channel
            self._was_up = True
            self.problem = _NEVER
            await self._subscribe_all(list(self._subscriptions.values()))
        self.up_since = self._clock.monotonic()
        self._came()

    async def _subscribe_all(self, subscriptions: Sequence[_Subscription]) -> None:
        """Subscribe; a missing queue does not prevent the others, and is checked again."""
        missing: list[_Subscription] = []
        was, problem = self.problem, None
        for subscription in subscriptions:
            try:
                await self._subscribe(subscription)
            except load_aio_pika().exceptions.ChannelNotFoundEntity as error:
                missing.append(subscription)
                problem = describe_error(error, self._url).problem
        self._missing, self.problem = missing, problem
        if problem != was:
            self._emit(BrokerReached(broker_address(self._url)) if problem is None else BrokerLost(problem))

    # -- topology

    async def _declare(self, channel: AbstractChannel) -> None:
        if not self._declares:
            self._exchanges = {OUTCOME_EXCHANGE: await channel.get_exchange(OUTCOME_EXCHANGE, ensure=False)}
            return
        kinds = load_aio_pika().ExchangeType
        exchanges: dict[str, tuple[Any, Any]] = {
            LATE_EXCHANGE: (kinds.FANOUT, None),
            DEAD_LETTER_EXCHANGE: (kinds.FANOUT, None),
            OUTCOME_EXCHANGE: (kinds.DIRECT, {"alternate-exchange": LATE_EXCHANGE}),
            BATCH_EXCHANGE: (kinds.DIRECT, None),
        }
        self._exchanges = {
            name: await channel.declare_exchange(name, kind, durable=True, arguments=arguments)
            for name, (kind, arguments) in exchanges.items()
        }
        for name in (LATE_EXCHANGE, DEAD_LETTER_EXCHANGE):
            await (await self._queue(channel, name, {})).bind(self._exchanges[name])
        for name in self._channels:
            queue = await self._queue(channel, batch_queue(name), _BATCH_QUEUE)
            await queue.bind(self._exchanges[BATCH_EXCHANGE], name)

    async def _queue(self, channel: AbstractChannel, name: str, arguments: Mapping[str, Any]) -> Any:
        aio_pika = load_aio_pika()
        try:
            return await channel.declare_queue(name, durable=True, arguments={"x-queue-type": "quorum", **arguments})
        except aio_pika.exceptions.ChannelPreconditionFailed as error:
            raise Misconfigured(
                f"the queue {name!r} of the broker exists with other arguments ({error})",
                remedy="delete that queue, or use a separate virtual host for Tidings",
                field="broker",
            ) from None

    # -- consuming

    async def read(self, queue: str, take: MessageCallback, *, prefetch: int, own: bool = False) -> None:
        """Consume a queue until `leave`, across reconnects; messages arrive in order."""
        subscription = self._subscriptions[queue] = _Subscription(queue, take, prefetch, own)
        if self.is_up:
            try:
                async with asyncio.timeout(_TIMEOUT):
                    await self._subscribe(subscription)
            except Exception as error:  # the reconnect subscribes again
                self._closed.set()
                raise BrokerDown(str(error)) from None

    def is_settled(self, queue: str) -> bool:
        """Whether a queue declared here is old enough to rely on."""
        subscription = self._subscriptions.get(queue)
        made = None if subscription is None else subscription.declared
        return made is not None and self._clock.monotonic() - made >= QUEUE_SETTLE_TIME

    async def halt(self, queue: str) -> None:
        """Stop consuming; received messages can still be acknowledged."""
        subscription = self._subscriptions.get(queue)
        if subscription is not None and subscription.halt is not None:
            with contextlib.suppress(Exception):  # without a connection there is no consumer
                async with asyncio.timeout(_TIMEOUT):
                    await subscription.halt()

    async def leave(self, queue: str, *, drop: bool = False) -> None:
        """Unsubscribe; `drop` also deletes the queue."""
        subscription = self._subscriptions.pop(queue, None)
        with contextlib.suppress(Exception):  # without a connection there is no consumer
            async with asyncio.timeout(_TIMEOUT):
                if subscription is not None and subscription.stop is not None:
                    await subscription.stop()
                if drop and self._connection is not None:
                    channel = await self._connection.channel()
                    await channel.queue_delete(queue, if_unused=False, if_empty=False)
                    await channel.close()

    async def _subscribe(self, subscription: _Subscription) -> None:
        assert self._connection is not None
        channel = await self._connection.channel()
        await channel.set_qos(prefetch_count=subscription.prefetch)
        if subscription.own:
            if subscription.declared is not None and not self.is_settled(subscription.queue):
                await channel.queue_delete(subscription.queue, if_unused=False, if_empty=False)
                subscription.declared = None  # unused so far, and it may be incomplete
            queue = await self._queue(channel, subscription.queue, _OUTCOME_QUEUE)
            subscription.declared = subscription.declared or self._clock.monotonic()
            await queue.bind(self._exchanges[OUTCOME_EXCHANGE], subscription.queue.removeprefix(f"{OUTCOME_EXCHANGE}."))
        else:
            queue = await channel.get_queue(subscription.queue, ensure=False)
        before, subscription.messages = (subscription.messages, (messages := asyncio.Queue[BrokerMessage | None]()))
        if before is not None:
            before.put_nowait(None)  # its messages are redelivered

        async def arrived(message: AbstractIncomingMessage) -> None:
            messages.put_nowait(BrokerMessage(message, channel))

        tag = await queue.consume(arrived)
        worker = asyncio.create_task(_pass_on(subscription, messages))
        channel.close_callbacks.add(lambda *_, closed=self._closed: closed.set() if subscription.stop else None)

        async def halt() -> None:
            subscription.halt = None
            await queue.cancel(tag)

        async def stop() -> None:
            subscription.stop = None
            if subscription.halt is not None:
                await subscription.halt()
            messages.put_nowait(None)
            await worker
            await channel.close()

        subscription.halt, subscription.stop = halt, stop

    # -- publishing

    async def publish(
        self,
        exchange: str,
        key: str,
        body: bytes,
        *,
        kind: str,
        reply_to: str | None = None,
        expires: float | None = None,
    ) -> None:
        """Publish and wait for the confirm. Raises BrokerDown, PublishRefused or PublishUnconfirmed."""
        if not self.is_up:
            raise BrokerDown(self.problem or "RabbitMQ does not respond")
        aio_pika = load_aio_pika()
        message = aio_pika.Message(
            body,
            content_type="application/json",
            delivery_mode=aio_pika.DeliveryMode.PERSISTENT,
            type=kind,
            reply_to=reply_to,
            expiration=expires,
        )
        try:
            await self._exchanges[exchange].publish(message, key, mandatory=True)
        except aio_pika.exceptions.DeliveryError as error:
            raise PublishRefused(f"RabbitMQ did not accept the batch ({type(error).__name__})") from None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the library raises various errors for a lost connection
            raise PublishUnconfirmed(f"{type(error).__name__}: {error}") from None


async def _pass_on(subscription: _Subscription, messages: asyncio.Queue[BrokerMessage | None]) -> None:
    """Pass on received messages in order, until the connection has been replaced."""
    while (message := await messages.get()) is not None and subscription.messages is messages:
        batch = [message]
        while not messages.empty():
            if (more := messages.get_nowait()) is None:
                return
            batch.append(more)
        try:
            await subscription.take(batch)
        except Exception:  # keep consuming; the unacknowledged message is redelivered
            logging.getLogger("tidings").exception("could not process a message of %s", subscription.queue)


# A batch is delivered at most once, so its x-death reason tells whether a transport ever had it: the delivery
# limit was reached, or it expired in the queue. No other header distinguishes the two.
_BATCH_QUEUE = {
    "x-delivery-limit": 0,
    "x-dead-letter-exchange": DEAD_LETTER_EXCHANGE,
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}
_OUTCOME_QUEUE = {"x-single-active-consumer": True, "x-expires": _QUEUE_EXPIRY_MS}


def batch_queue(channel: str) -> str:
    return f"{BATCH_EXCHANGE}.{channel}"


def outcome_queue(node: int) -> str:
    return f"{OUTCOME_EXCHANGE}.{node}"


def load_aio_pika() -> Any:
    """Import the client library; raises Misconfigured if it is not installed."""
    try:
        import aio_pika
    except ImportError as error:
        raise Misconfigured(
            "the RabbitMQ client library is not installed", remedy="pip install 'tidings[rabbitmq]'"
        ) from error
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # our events report the same
    return aio_pika
