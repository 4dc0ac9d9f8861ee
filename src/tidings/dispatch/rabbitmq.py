"""The link to RabbitMQ: one connection that comes back by itself, its topology, publishing and reading.

Of several URLs, the nodes of one cluster, it uses one: a random one first, and the next after a loss.

The only module that knows the client library. Everything is durable: quorum queues, persistent messages,
confirms, `mandatory`, and a dead-letter exchange under each queue of parcels; a queue that is there without
one is refused, because its broker would drop what it cannot deliver. One virtual host for each engine.

    exchange           key       queue                     read by
    tidings.parcels    channel   tidings.parcels.CHANNEL   transports of that channel
    tidings.dead       (any)     tidings.dead              dispatchers: parcels that came back
    tidings.outcomes   node id   tidings.outcomes.NODE     that dispatcher or its heir, one at a time
    tidings.late       (any)     tidings.late              dispatchers: reports to a queue that is gone
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

BATCH_EXCHANGE = "tidings.parcels"
OUTCOME_EXCHANGE = "tidings.outcomes"
DEAD_LETTER_EXCHANGE = "tidings.dead"
LATE_EXCHANGE = "tidings.late"

QUEUE_SETTLE_TIME = (
    2.0  # seconds that a new queue needs: RabbitMQ has forgotten younger ones when it was killed
)
_HEARTBEAT = 10  # seconds; a peer that has been silent for two of them is gone
_PATIENCE = 10.0  # seconds for an answer to anything but a publish
_FORGOTTEN = 24 * 3600 * 1000  # milliseconds after which an outcome queue that nobody reads is dropped

_LOOK_AGAIN = 1.0  # seconds until a queue that was not there is looked for again
_NEVER = "not connected yet"

MessageCallback = Callable[[list[BrokerMessage]], Awaitable[None]]


class BrokerDown(Exception):
    """There is no broker to talk to; nothing was published."""


class PublishRefused(Exception):
    """The broker said no; nothing was published."""


class PublishUnconfirmed(Exception):
    """The connection went away before the broker had confirmed: it counts as published."""


@dataclass(slots=True)
class _Subscription:
    queue: str
    take: MessageCallback
    prefetch: int
    own: bool  # an outcome queue of a node: declared here
    declared: float | None = None  # monotonic; when it was made
    line: asyncio.Queue[BrokerMessage | None] | None = None  # what has arrived on the present connection
    halt: Callable[[], Awaitable[None]] | None = None  # nothing new; what was read can be acknowledged
    stop: Callable[[], Awaitable[None]] | None = None


class BrokerConnection:
    """`start` and `stop`; in between it reconnects by itself, and what was being read is read on."""

    def __init__(
        self,
        urls: Sequence[str],
        clock: Clock,
        *,
        emit: Emit,
        channels: tuple[str, ...],
        name: str,
        declares: bool = True,  # a transport needs no right to
        came: Callable[[], None] = lambda: None,
        went: Callable[[], None] = lambda: None,
    ) -> None:
        self._urls = urls
        self._turn = int(clock.chance() * len(urls))  # of the URL in use
        self._clock = clock
        self._emit = emit
        self._channels = channels
        self._name = name
        self._declares = declares
        self._came = came
        self._went = went
        self._readings: dict[str, _Subscription] = {}
        self._connection: AbstractConnection | None = None
        self._publishing: AbstractChannel | None = None
        self._exchanges: dict[str, AbstractExchange] = {}
        self._closed = asyncio.Event()
        self._life: asyncio.Task[None] | None = None
        self._missing: list[_Subscription] = []
        self._was_up = False
        self.problem: str | None = _NEVER
        self.up_since = clock.monotonic()

    # -- life

    async def start(self) -> None:
        """Connect once, so that what can never work is refused at the start; then stay connected."""
        found = await self._connect()
        if found is not None:
            if found.remedy is not None:
                raise Misconfigured(found.problem, remedy=found.remedy, field="broker")
            self._lost(found)
        self._life = asyncio.create_task(self._live())

    async def stop(self) -> None:
        """Close the connection; what was not acknowledged comes again, to somebody else."""
        if self._life is not None:
            self._life.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._life
        connection, self._connection, self._publishing = self._connection, None, None
        if connection is not None:
            with contextlib.suppress(Exception):
                async with asyncio.timeout(_PATIENCE):
                    await connection.close()

    @property
    def is_up(self) -> bool:
        """Whether something can be published now."""
        return self._publishing is not None and not self._publishing.is_closed

    @property
    def place(self) -> str | None:
        """The host and port of the broker in use."""
        return broker_address(self._url) if self.is_up else None

    @property
    def _url(self) -> str:
        return self._urls[self._turn % len(self._urls)]

    async def _live(self) -> None:
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
                await asyncio.wait_for(self._closed.wait(), _LOOK_AGAIN)
                return
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._begin_all(self._missing)
            except Exception:  # the library raises many things; the next connection begins them all
                return
        await self._closed.wait()

    def _closed_on_us(self) -> BrokerProblem:
        return describe_error(
            ConnectionError(f"{broker_address(self._url)} closed the connection"), self._url
        )

    def _lost(self, found: BrokerProblem) -> None:
        self._publishing = None
        was, was_up, self._was_up = self.problem, self._was_up, False
        self.problem = found.problem
        if was_up or was == _NEVER or (found.remedy is not None and was != found.problem):
            self._emit(BrokerLost(found.problem))
        if was_up:
            self._went()

    async def _connect(self) -> BrokerProblem | None:
        """Use the first broker that works, each is tried once; gives what is wrong where none does."""
        found: dict[str, BrokerProblem] = {}
        for _ in self._urls:
            self._turn += 1
            try:
                await self._connect_to(self._url)
            except Exception as error:  # the library raises many things; the next one must be tried
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
        async with asyncio.timeout(_PATIENCE):
            connection = await aio_pika.connect(url, heartbeat=_HEARTBEAT, name=self._name)
            connection.close_callbacks.add(lambda *_: closed.set())
            channel = await connection.channel(publisher_confirms=True, on_return_raises=True)
            channel.close_callbacks.add(lambda *_: closed.set())
            self._connection = connection
            await self._declare(channel)
            self._publishing = channel
            self._was_up = True
            self.problem = _NEVER
            await self._begin_all(list(self._readings.values()))
        self.up_since = self._clock.monotonic()
        self._came()

    async def _begin_all(self, readings: Sequence[_Subscription]) -> None:
        """Read these; a queue that is not there yet keeps nobody from the others, and is looked for again."""
        missing: list[_Subscription] = []
        was, problem = self.problem, None
        for reading in readings:
            try:
                await self._begin(reading)
            except load_aio_pika().exceptions.ChannelNotFoundEntity as error:
                missing.append(reading)
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
        late = await self._exchange(channel, LATE_EXCHANGE, kinds.FANOUT)
        dead = await self._exchange(channel, DEAD_LETTER_EXCHANGE, kinds.FANOUT)
        outcomes = await self._exchange(
            channel, OUTCOME_EXCHANGE, kinds.DIRECT, {"alternate-exchange": LATE_EXCHANGE}
        )
        parcels = await self._exchange(channel, BATCH_EXCHANGE, kinds.DIRECT)
        self._exchanges = {
            LATE_EXCHANGE: late,
            DEAD_LETTER_EXCHANGE: dead,
            OUTCOME_EXCHANGE: outcomes,
            BATCH_EXCHANGE: parcels,
        }
        for name, exchange in ((LATE_EXCHANGE, late), (DEAD_LETTER_EXCHANGE, dead)):
            await (await self._queue(channel, name, {})).bind(exchange)
        for name in self._channels:
            queue = await self._queue(channel, batch_queue(name), _PARCEL_QUEUE)
            await queue.bind(parcels, name)

    async def _exchange(
        self, channel: AbstractChannel, name: str, kind: Any, arguments: Mapping[str, Any] | None = None
    ) -> AbstractExchange:
        return await channel.declare_exchange(
            name, kind, durable=True, arguments=None if arguments is None else dict(arguments)
        )

    async def _queue(self, channel: AbstractChannel, name: str, arguments: Mapping[str, Any]) -> Any:
        aio_pika = load_aio_pika()
        try:
            return await channel.declare_queue(
                name, durable=True, arguments={"x-queue-type": "quorum", **arguments}
            )
        except aio_pika.exceptions.ChannelPreconditionFailed as error:
            raise Misconfigured(
                f"the queue {name!r} of the broker was made by somebody else ({error})",
                remedy="delete that queue, or give Tidings a virtual host of its own",
                field="broker",
            ) from None

    # -- reading

    async def read(self, queue: str, take: MessageCallback, *, prefetch: int, own: bool = False) -> None:
        """Read a queue from now on, over reconnects, until `leave`; messages come in their order."""
        reading = self._readings[queue] = _Subscription(queue, take, prefetch, own)
        if self.is_up:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await self._begin(reading)
            except Exception as error:  # the reconnect begins it
                self._closed.set()
                raise BrokerDown(str(error)) from None

    def is_settled(self, queue: str) -> bool:
        """Whether a queue of our own is old enough to be sure of."""
        reading = self._readings.get(queue)
        made = None if reading is None else reading.declared
        return made is not None and self._clock.monotonic() - made >= QUEUE_SETTLE_TIME

    async def halt(self, queue: str) -> None:
        """Take nothing new; what was read may still be acknowledged."""
        reading = self._readings.get(queue)
        if reading is not None and reading.halt is not None:
            with contextlib.suppress(Exception):  # if the connection is gone, so is the reading
                async with asyncio.timeout(_PATIENCE):
                    await reading.halt()

    async def leave(self, queue: str, *, drop: bool = False) -> None:
        """Stop reading; with `drop` the queue is not needed any more."""
        reading = self._readings.pop(queue, None)
        with contextlib.suppress(Exception):  # if the connection is gone, so is the reading
            async with asyncio.timeout(_PATIENCE):
                if reading is not None and reading.stop is not None:
                    await reading.stop()
                if drop and self._connection is not None:
                    channel = await self._connection.channel()
                    await channel.queue_delete(queue, if_unused=False, if_empty=False)
                    await channel.close()

    async def _begin(self, reading: _Subscription) -> None:
        assert self._connection is not None
        channel = await self._connection.channel()
        await channel.set_qos(prefetch_count=reading.prefetch)
        if reading.own:
            if reading.declared is not None and not self.is_settled(reading.queue):
                await channel.queue_delete(reading.queue, if_unused=False, if_empty=False)
                reading.declared = None  # nothing points to it as yet, and it may be only half there
            queue = await self._queue(channel, reading.queue, _OUTCOME_QUEUE)
            reading.declared = reading.declared or self._clock.monotonic()
            await queue.bind(
                self._exchanges[OUTCOME_EXCHANGE], reading.queue.removeprefix(f"{OUTCOME_EXCHANGE}.")
            )
        else:
            queue = await channel.get_queue(reading.queue, ensure=False)
        before, reading.line = reading.line, (line := asyncio.Queue[BrokerMessage | None]())
        if before is not None:
            before.put_nowait(None)  # what is left in it comes again

        async def arrived(message: AbstractIncomingMessage) -> None:
            line.put_nowait(BrokerMessage(message, channel))

        tag = await queue.consume(arrived)
        worker = asyncio.create_task(_take_in_turn(reading, line))
        channel.close_callbacks.add(lambda *_, closed=self._closed: closed.set() if reading.stop else None)

        async def halt() -> None:
            reading.halt = None
            await queue.cancel(tag)

        async def stop() -> None:
            reading.stop = None
            if reading.halt is not None:
                await reading.halt()
            line.put_nowait(None)
            await worker
            await channel.close()

        reading.halt, reading.stop = halt, stop

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
        """Publish and wait for the confirm. Raises Down or Refused (not published) or Doubtful (perhaps)."""
        if not self.is_up:
            raise BrokerDown(self.problem or "RabbitMQ does not answer")
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
            raise PublishRefused(f"RabbitMQ did not take it ({type(error).__name__})") from None
        except asyncio.CancelledError:
            raise
        except Exception as error:  # the library raises many things for a connection that broke
            raise PublishUnconfirmed(f"{type(error).__name__}: {error}") from None


async def _take_in_turn(reading: _Subscription, line: asyncio.Queue[BrokerMessage | None]) -> None:
    """All that is there, in its order; what a connection brought that is gone now is left."""
    while (message := await line.get()) is not None and reading.line is line:
        batch = [message]
        while not line.empty():
            if (more := line.get_nowait()) is None:
                return
            batch.append(more)
        try:
            await reading.take(batch)
        except Exception:  # whoever reads must not stop reading; unacknowledged, it comes again
            logging.getLogger("tidings").exception("a message of %s could not be taken in", reading.queue)


# Delivered at most once, so that its cause of death tells whether a parcel was ever with a transport: one
# that was has met the limit, one that nobody took has expired. No header would tell the two apart.
_PARCEL_QUEUE = {
    "x-delivery-limit": 0,
    "x-dead-letter-exchange": DEAD_LETTER_EXCHANGE,
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
}
_OUTCOME_QUEUE = {"x-single-active-consumer": True, "x-expires": _FORGOTTEN}


def batch_queue(channel: str) -> str:
    """The queue of a channel's parcels."""
    return f"{BATCH_EXCHANGE}.{channel}"


def outcome_queue(node: int) -> str:
    """The queue of a dispatcher's outcomes."""
    return f"{OUTCOME_EXCHANGE}.{node}"


def load_aio_pika() -> Any:
    """The client library, which is an extra."""
    try:
        import aio_pika
    except ImportError as error:
        raise Misconfigured(
            "RabbitMQ needs a library that is not installed", remedy="pip install 'tidings[rabbitmq]'"
        ) from error
    for name in ("aio_pika", "aiormq"):
        logging.getLogger(name).setLevel(logging.CRITICAL)  # what it says here, our events say better
    return aio_pika
