"""The composition root: the only module that names concrete classes and wires them together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .config import ChannelSettings, Settings
from .kernel.actor import Actor
from .kernel.breaker import BreakerRule
from .kernel.clock import Clock, SystemClock
from .kernel.lanes import Lane
from .kernel.loop import Worker
from .kernel.pruner import Retention
from .kernel.runner import Tunables
from .model.errors import Misconfigured
from .model.time import micros
from .observability.events import Emit, silence
from .outbound import messages
from .outbound.adoption.rollout import ShadowPruner
from .outbound.broadcasting.forgetting import FrozenPruner
from .outbound.broadcasting.freezing import Freezer
from .outbound.broadcasting.pump import Pump
from .outbound.channels.base import Channel
from .outbound.channels.events import EventsChannel, EventsSettings
from .outbound.channels.registry import build as build_channel
from .outbound.delivery import Delivery
from .outbound.desk import Desk, open_desk
from .outbound.events import telling
from .outbound.events.listeners import Listeners
from .outbound.events.messenger import Messenger
from .outbound.messages import Messages
from .outbound.people.audience import Audience
from .outbound.people.contacts import Contacts
from .outbound.scheduling.making import Maker, MessageMaker
from .outbound.scheduling.scheduler import Scheduler
from .outbound.templating.templates import Templates
from .store.port import Store
from .store.sqlite import SqliteStore
from .wire.addresses import Rules


@dataclass(frozen=True, slots=True)
class App:
    """Everything wired, nothing started."""

    settings: Settings
    clock: Clock
    store: Store
    channels: Mapping[str, Channel]
    lanes: Mapping[str, Lane]
    messages: Messages
    worker: Worker
    actors: Sequence[Actor]
    desk: Desk

    async def open(self, *, upgrade: bool = False) -> None:
        """Open the store and make the channels known to it."""
        await self.store.open(upgrade=upgrade)
        known = {row["name"] for row in await self.store.read("queue_list")}
        for lane in self.lanes.values():
            if lane.queue not in known:
                await self.store.write(lane.join())

    async def close(self) -> None:
        """Stop working, then let go of everything."""
        await self.worker.stop()
        for channel in self.channels.values():
            await channel.close()
        await self.store.close()


def build(
    settings: Settings, *, clock: Clock | None = None, store: Store | None = None, emit: Emit = silence
) -> App:
    """Wire an engine from its settings; a test may bring its own clock and store."""
    clock = clock or SystemClock()
    store = store or open_store(settings, clock)
    channels = {
        name: build_channel(name, channel.kind, _options(channel, settings), now=clock.now)
        for name, channel in settings.channels.items()
    }
    listeners = Listeners(store)
    channels[telling.CHANNEL] = _events(settings, listeners, clock)
    lanes = {name: _lane(name, channel, settings) for name, channel in channels.items()}
    lanes[telling.CHANNEL] = _events_lane(lanes[telling.CHANNEL], settings)
    rules = messages.Rules(grace=settings.grace, max_body=settings.max_body)
    templates = Templates(store, clock, zone=settings.zone, max_body=settings.max_body)
    accepting = Messages(store, clock, channels, rules, templates)
    freezer = _freezer(store, clock, channels, templates, rules, settings)
    makers: Mapping[str, Maker] = {"message": MessageMaker(accepting), "broadcast": freezer}
    actors: list[Actor] = [
        Messenger(store, clock, listeners),
        ShadowPruner(store, clock, settings.keep_history),
        Scheduler(store, clock, makers, listeners=listeners, keep=settings.keep_history),
        Pump(store, clock, freezer, grace=micros(settings.grace), emit=emit),
        FrozenPruner(store, clock, settings.keep_done),
    ]
    worker = Worker(
        store,
        clock,
        lanes,
        {messages.KIND: Delivery(store, channels, now=clock.now, listeners=listeners)},
        emit=emit,
        tunables=Tunables(slots=settings.slots, poll=settings.poll),
        lease=settings.lease,
        beat=settings.beat,
        poison_after=settings.poison_after,
        retention=Retention(history=settings.keep_history, ended=settings.keep_done),
        contents=("prune_message",),
        actors=actors,
    )
    desk = open_desk(
        store,
        clock,
        accepting,
        channels,
        lanes,
        grace=settings.grace,
        lease=settings.lease,
        freezer=freezer,
    )
    return App(settings, clock, store, channels, lanes, accepting, worker, actors, desk)


def open_store(settings: Settings, clock: Clock) -> Store:
    """The store that the database URL names."""
    path = settings.database_path
    if path is not None:
        return SqliteStore(path, now=clock.wall)
    try:
        from .store.postgres import PostgresStore
    except ImportError as error:
        raise Misconfigured(
            "PostgreSQL needs a driver that is not installed", remedy="pip install 'tidings[postgres]'"
        ) from error
    return PostgresStore(settings.database)


def _options(channel: ChannelSettings, settings: Settings) -> Mapping[str, Any]:
    """A sandbox channel without a URL means our own pretend phone, on whatever port that is."""
    if channel.kind != "sandbox" or not settings.sandbox_port:
        return channel.options
    return {"url": f"http://127.0.0.1:{settings.sandbox_port}", **channel.options}


def _freezer(
    store: Store,
    clock: Clock,
    channels: Mapping[str, Channel],
    templates: Templates,
    rules: messages.Rules,
    settings: Settings,
) -> Freezer:
    """Who makes broadcasts; webhooks of theirs may lead where events may go."""
    contacts = Contacts(store, clock, [name for name in channels if name != telling.CHANNEL])
    webhooks = getattr(channels[telling.CHANNEL], "rules", Rules())
    return Freezer(
        store,
        clock,
        channels,
        templates,
        Audience(store, clock, contacts),
        rules=rules,
        zone=settings.zone,
        webhooks=webhooks,
    )


def _events(settings: Settings, listeners: Listeners, clock: Clock) -> Channel:
    """The built-in channel of events out."""
    if telling.CHANNEL in settings.channels:
        raise Misconfigured(
            f"the channel name {telling.CHANNEL!r} is the engine's own",
            remedy="give your channel another name",
        )
    chosen = EventsSettings(private=settings.events_private, secrets=settings.events_secrets)
    return EventsChannel(chosen, listeners, now=clock.now)


def _events_lane(lane: Lane, settings: Settings) -> Lane:
    """Receivers have breakers of their own, and slow ones must leave slots to messages."""
    return replace(lane, breaker=BreakerRule(threshold=1 << 30), cap=max(1, settings.slots // 4))


def _lane(name: str, channel: Channel, settings: Settings) -> Lane:
    traits = channel.traits
    policy = settings.all_policies.get(traits.policy)
    if policy is None:
        known = ", ".join(sorted(settings.all_policies))
        raise Misconfigured(
            f"channel {name!r} names the retry policy {traits.policy!r}, which does not exist",
            remedy=f"use one of: {known}, or write [policies.{traits.policy}]",
        )
    return Lane(
        name,
        policy=policy,
        on_unknown=traits.on_unknown,
        deadline=traits.deadline,
        cap=settings.slots_per_channel if settings.slots_per_channel < settings.slots else None,
        per_second=traits.per_second,
    )
