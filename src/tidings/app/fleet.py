"""Wiring of a fleet: one share of the work, an office of a dispatcher, a transport without a database."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from ..config import Settings
from ..dispatch.errands import Terms
from ..dispatch.link import Link
from ..dispatch.office import Office
from ..dispatch.roles import Role, Share
from ..dispatch.transport import Transport
from ..inbound.poller import Poller
from ..kernel.actor import Actor
from ..kernel.clock import Clock, SystemClock
from ..kernel.handler import Handler
from ..kernel.lanes import Lane
from ..kernel.nodes import DISPATCHER
from ..model.errors import Misconfigured
from ..observability.events import Emit, silence
from ..outbound.channels.base import Channel
from ..outbound.channels.registry import build as build_channel
from ..outbound.destinations import Destinations
from ..store.encryption import Cipher
from ..store.port import Store
from .ways_out import options_of


def runs_of(lanes: Mapping[str, Lane], settings: Settings, share: Share) -> dict[str, Lane]:
    """The lanes that this process works on: its own share, sent by itself or given to transports."""
    share.check(lanes)
    wanted = {
        name: Role.DISPATCHER if name in settings.dispatched else Role.WORKER
        for name in lanes
        if share.takes(name)
    }
    return {name: lanes[name] for name, role in wanted.items() if role in share.roles}


def actors_of(actors: Sequence[Actor], office: Office | None, share: Share) -> list[Actor]:
    """What this process does beside its tasks."""
    chosen: list[Actor] = [] if office is None else [office.heir]
    for actor in actors:
        if isinstance(actor, Poller):
            wanted = Role.POLLER in share.roles and (share.part is None or share.part.has(actor.name))
        elif isinstance(actor, Destinations):
            wanted = share.works
        else:
            wanted = Role.SCHEDULER in share.roles
        chosen += [actor] if wanted else []
    return chosen


def office_of(
    settings: Settings,
    share: Share,
    store: Store,
    clock: Clock,
    runs: Mapping[str, Lane],
    handlers: Mapping[str, Handler],
    emit: Emit,
    cipher: Cipher,
) -> Office | None:
    """What a dispatcher needs besides."""
    if Role.DISPATCHER not in share.roles:
        return None
    return Office(
        _brokers(settings),
        store,
        clock,
        runs,
        frozenset(settings.dispatched & set(runs)),
        handlers,
        slots=settings.slots,
        terms=_terms(settings),
        emit=emit,
        name=f"{DISPATCHER}{host()}",
        cipher=cipher,
    )


def _terms(settings: Settings) -> Terms:
    wait = settings.broker_wait.total_seconds()
    return Terms(ttl=wait, within=wait / 2, poison_after=settings.poison_after)


def _brokers(settings: Settings) -> tuple[str, ...]:
    if not settings.broker:
        raise Misconfigured(
            "dispatchers and transports need a RabbitMQ, and none is set",
            remedy="Set broker to its URL, such as amqps://user@host/tidings",
            field="broker",
        )
    return settings.broker


def host() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@dataclass(frozen=True, slots=True)
class Carrier:
    """A transport with its channels, wired and not started. It has no database."""

    channels: Mapping[str, Channel]
    transport: Transport

    async def close(self, grace: float = 20.0) -> None:
        """Stop sending, then let go of everything."""
        await self.transport.stop(grace)
        for channel in self.channels.values():
            await channel.close()


def build_carrier(
    settings: Settings, *, share: Share, clock: Clock | None = None, emit: Emit = silence
) -> Carrier:
    """Wire a transport for its share of the channels: only theirs need credentials here."""
    clock = clock or SystemClock()
    share.check(settings.channels)
    urls = _brokers(settings)
    names = sorted(name for name in settings.dispatched if share.takes(name))
    channels = {
        name: build_channel(
            name,
            settings.channels[name].kind,
            options_of(name, settings.channels[name], settings),
            now=clock.now,
        )
        for name in names
    }

    def connect(came: Callable[[], None], went: Callable[[], None]) -> Link:
        name = f"transport@{host()}"
        return Link(
            urls, clock, emit=emit, channels=tuple(names), name=name, declares=False, came=came, went=went
        )

    return Carrier(channels, Transport(channels, clock, connect, slots=settings.slots, emit=emit))
