"""Wiring of the ways out: channels, their lanes, who reads their call-backs, who makes broadcasts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..config import ChannelSettings, Settings
from ..kernel.breaker import BreakerRule
from ..kernel.clock import Clock
from ..kernel.lanes import Lane
from ..model.errors import Misconfigured
from ..observability.events import Emit
from ..outbound import judging
from ..outbound.broadcasting.freezing import Freezer
from ..outbound.channels.base import Channel
from ..outbound.channels.connection import HasSession
from ..outbound.channels.events import EventsChannel, EventsSettings
from ..outbound.channels.registry import settings_of
from ..outbound.destinations import HasDestinations
from ..outbound.events import telling
from ..outbound.events.listeners import Listeners
from ..outbound.people.audience import Audience
from ..outbound.people.contacts import Contacts
from ..outbound.receipts import readers as receipt_readers
from ..outbound.receipts.callbacks import Callbacks
from ..outbound.receipts.readers import address
from ..outbound.receipts.receipt import Reader
from ..outbound.templating.templates import Templates
from ..store.port import Store
from ..wire.addresses import Rules

NEVER = BreakerRule(threshold=1 << 30)  # of channels whose receivers have breakers of their own


def options_of(name: str, channel: ChannelSettings, settings: Settings) -> Mapping[str, Any]:
    """What follows from the other settings: the port of our own pretend phone, our own public address."""
    if channel.kind == "sandbox" and settings.sandbox_port:
        return {"url": f"http://127.0.0.1:{settings.sandbox_port}", **channel.options}
    if channel.kind == "twilio" and settings.public_url and "auth_token" in channel.options:
        status_callback = f"{address(settings.public_url, name)}?message={{id}}"
        return {"status_callback": status_callback, **channel.options}
    return channel.options


def readers_of(settings: Settings) -> dict[str, Reader]:
    """Who reads the call-backs of which channel."""
    found: dict[str, Reader] = {}
    for name, channel in settings.channels.items():
        if channel.kind in receipt_readers.KINDS:
            _, its = settings_of(name, channel.kind, options_of(name, channel, settings))
            reader = receipt_readers.reader_of(channel.kind, its, settings.public_url)
            if reader is not None:
                found[name] = reader
    return found


def callbacks_of(
    store: Store, clock: Clock, readers: Mapping[str, Reader], settings: Settings, emit: Emit
) -> Callbacks:
    """The side that providers call."""
    base = settings.public_url or f"http://{settings.host}:{settings.port}"
    return Callbacks(store, clock, readers, emit=emit, base=base)


def freezer_of(
    store: Store,
    clock: Clock,
    channels: Mapping[str, Channel],
    templates: Templates,
    rules: judging.Rules,
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


def events_channel(settings: Settings, listeners: Listeners, clock: Clock) -> Channel:
    """The built-in channel of events out."""
    if telling.CHANNEL in settings.channels:
        raise Misconfigured(
            f"the channel name {telling.CHANNEL!r} is the engine's own",
            remedy="give your channel another name",
        )
    chosen = EventsSettings(private=settings.events_private, secrets=settings.events_secrets)
    return EventsChannel(chosen, listeners, now=clock.now)


def events_lane(lane: Lane, settings: Settings) -> Lane:
    """Receivers have breakers of their own, and slow ones must leave slots to messages."""
    return replace(lane, breaker=NEVER, cap=max(1, settings.slots // 4))


def breaker_of(settings: Settings) -> BreakerRule:
    """When a channel, or a destination of one, is left alone."""
    return BreakerRule(settings.breaker_failures, settings.breaker_pause)


def lane_of(name: str, channel: Channel, settings: Settings) -> Lane:
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
        keyed=traits.per_recipient is not None,
        breaker=NEVER if isinstance(channel, HasDestinations) else breaker_of(settings),
        has_session=isinstance(channel, HasSession),
    )
