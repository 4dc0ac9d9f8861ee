"""Wiring of a fleet: a process's share of the work, dispatchers, and transports without a database."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..config import Settings
from ..dispatch.dispatcher_runtime import DispatcherRuntime
from ..dispatch.in_flight_tasks import DispatchTimeouts
from ..dispatch.rabbitmq import BrokerConnection
from ..dispatch.roles import ProcessRole, ProcessShare
from ..dispatch.transport import Transport
from ..inbound.poller import Poller
from ..kernel.actor import Actor
from ..kernel.clock import Clock, SystemClock
from ..kernel.handler import Handler
from ..kernel.heartbeats import DISPATCHER_PREFIX
from ..kernel.lanes import Lane
from ..model.errors import Misconfigured
from ..observability.events import Emit, discard_event
from ..outbound.channels.base import Channel
from ..outbound.channels.registry import build as build_channel
from ..outbound.destination_breakers import DestinationBreakers
from ..store.encryption import Cipher
from ..store.port import Store
from .channel_wiring import channel_options


def select_lanes(lanes: Mapping[str, Lane], settings: Settings, share: ProcessShare) -> dict[str, Lane]:
    """Return the lanes of this process's share, run locally or dispatched to transports."""
    share.check(lanes)
    wanted = {
        name: ProcessRole.DISPATCHER if name in settings.dispatched else ProcessRole.WORKER
        for name in lanes
        if share.takes(name)
    }
    return {name: lanes[name] for name, role in wanted.items() if role in share.roles}


def select_actors(actors: Sequence[Actor], dispatcher: DispatcherRuntime | None, share: ProcessShare) -> list[Actor]:
    """Return the actors that this process runs."""
    chosen: list[Actor] = [] if dispatcher is None else [dispatcher.recovery]
    for actor in actors:
        if isinstance(actor, Poller):
            wanted = ProcessRole.POLLER in share.roles and (share.part is None or share.part.has(actor.name))
        elif isinstance(actor, DestinationBreakers):
            wanted = share.works
        else:
            wanted = ProcessRole.SCHEDULER in share.roles
        chosen += [actor] if wanted else []
    return chosen


def build_dispatcher(
    settings: Settings,
    share: ProcessShare,
    store: Store,
    clock: Clock,
    runs: Mapping[str, Lane],
    handlers: Mapping[str, Handler],
    emit: Emit,
    cipher: Cipher,
) -> DispatcherRuntime | None:
    """Build a dispatcher's runtime, if the process has that role."""
    if ProcessRole.DISPATCHER not in share.roles:
        return None
    return DispatcherRuntime(
        _brokers(settings),
        store,
        clock,
        runs,
        frozenset(settings.dispatched & set(runs)),
        handlers,
        slots=settings.concurrency,
        terms=_terms(settings),
        emit=emit,
        name=f"{DISPATCHER_PREFIX}{host()}",
        cipher=cipher,
    )


def _terms(settings: Settings) -> DispatchTimeouts:
    wait = settings.broker_message_ttl.total_seconds()
    return DispatchTimeouts(ttl=wait, within=wait / 2, quarantine_after=settings.quarantine_after)


def _brokers(settings: Settings) -> tuple[str, ...]:
    if not settings.broker:
        raise Misconfigured(
            "dispatchers and transports need RabbitMQ, and no broker is set",
            remedy="Set broker to its URL, such as amqps://user@host/tidings",
            field="broker",
        )
    return settings.broker


def host() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class TransportProcess:
    """A transport with its channels, wired and not started. It has no database."""

    channels: Mapping[str, Channel]
    transport: Transport

    async def close(self, grace: float = 20.0) -> None:
        """Stop sending, then close all resources."""
        await self.transport.stop(grace)
        for channel in self.channels.values():
            await channel.close()


def build_transport(
    settings: Settings, *, share: ProcessShare, clock: Clock | None = None, emit: Emit = discard_event
) -> TransportProcess:
    """Build a transport for its share of the channels: only these need credentials here."""
    clock = clock or SystemClock()
    share.check(settings.channels)
    urls = _brokers(settings)
    names = sorted(name for name in settings.dispatched if share.takes(name))
    channels = {
        name: build_channel(
            name, settings.channels[name].kind, channel_options(name, settings.channels[name], settings), now=clock.now
        )
        for name in names
    }

    def connect(came: Callable[[], None], went: Callable[[], None]) -> BrokerConnection:
        name = f"transport@{host()}"
        return BrokerConnection(
            urls, clock, emit=emit, channels=tuple(names), name=name, declares=False, came=came, went=went
        )

    return TransportProcess(channels, Transport(channels, clock, connect, slots=settings.concurrency, emit=emit))
