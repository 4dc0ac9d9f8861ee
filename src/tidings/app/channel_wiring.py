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
from ..outbound import message_validation
from ..outbound.broadcasts.recipient_snapshot import BroadcastCreator
from ..outbound.channels.base import Channel
from ..outbound.channels.event_webhooks import EventsChannel, EventsSettings
from ..outbound.channels.registry import settings_of
from ..outbound.channels.session import HasSession
from ..outbound.contacts.contact_lists import ContactListService
from ..outbound.contacts.service import ContactService
from ..outbound.destination_breakers import HasDestinations
from ..outbound.events import event_types
from ..outbound.events.subscription_cache import SubscriptionCache
from ..outbound.receipts import registry as receipt_readers
from ..outbound.receipts.base import CallbackReader
from ..outbound.receipts.callbacks import CallbackService
from ..outbound.receipts.registry import callback_url
from ..outbound.templates.service import TemplateService
from ..store.port import Store
from ..wire.ssrf_guard import SsrfRules

NEVER_OPEN = BreakerRule(threshold=1 << 30)  # of channels whose receivers have breakers of their own


def channel_options(name: str, channel: ChannelSettings, settings: Settings) -> Mapping[str, Any]:
    """What follows from the other settings: the port of our own pretend phone, our own public address."""
    if channel.kind == "sandbox" and settings.sandbox_port:
        return {"url": f"http://127.0.0.1:{settings.sandbox_port}", **channel.options}
    if channel.kind == "twilio" and settings.public_url and "auth_token" in channel.options:
        status_callback = f"{callback_url(settings.public_url, name)}?message={{id}}"
        return {"status_callback": status_callback, **channel.options}
    return channel.options


def build_callback_readers(settings: Settings) -> dict[str, CallbackReader]:
    """Who reads the call-backs of which channel."""
    found: dict[str, CallbackReader] = {}
    for name, channel in settings.channels.items():
        if channel.kind in receipt_readers.CALLBACK_KINDS:
            _, its = settings_of(name, channel.kind, channel_options(name, channel, settings))
            reader = receipt_readers.reader_of(channel.kind, its, settings.public_url)
            if reader is not None:
                found[name] = reader
    return found


def build_callbacks(
    store: Store, clock: Clock, readers: Mapping[str, CallbackReader], settings: Settings, emit: Emit
) -> CallbackService:
    """The side that providers call."""
    base = settings.public_url or f"http://{settings.host}:{settings.port}"
    return CallbackService(store, clock, readers, emit=emit, base=base)


def build_recipient_snapshot(
    store: Store,
    clock: Clock,
    channels: Mapping[str, Channel],
    templates: TemplateService,
    rules: message_validation.MessageLimits,
    settings: Settings,
) -> BroadcastCreator:
    """Who makes broadcasts; webhooks of theirs may lead where events may go."""
    contacts = ContactService(store, clock, [name for name in channels if name != event_types.EVENTS_CHANNEL])
    webhooks = getattr(channels[event_types.EVENTS_CHANNEL], "rules", SsrfRules())
    return BroadcastCreator(
        store,
        clock,
        channels,
        templates,
        ContactListService(store, clock, contacts),
        rules=rules,
        timezone=settings.timezone,
        webhooks=webhooks,
    )


def events_channel(settings: Settings, listeners: SubscriptionCache, clock: Clock) -> Channel:
    """The built-in channel of events out."""
    if event_types.EVENTS_CHANNEL in settings.channels:
        raise Misconfigured(
            f"the channel name {event_types.EVENTS_CHANNEL!r} is the engine's own",
            remedy="give your channel another name",
        )
    chosen = EventsSettings(private=settings.events_private, secrets=settings.events_secrets)
    return EventsChannel(chosen, listeners, now=clock.now)


def events_lane(lane: Lane, settings: Settings) -> Lane:
    """Receivers have breakers of their own, and slow ones must leave slots to messages."""
    return replace(lane, breaker=NEVER_OPEN, cap=max(1, settings.concurrency // 4))


def build_breaker_rule(settings: Settings) -> BreakerRule:
    """When a channel, or a destination of one, is left alone."""
    return BreakerRule(settings.breaker_threshold, settings.breaker_timeout)


def build_lane(name: str, channel: Channel, settings: Settings) -> Lane:
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
        cap=settings.channel_concurrency if settings.channel_concurrency < settings.concurrency else None,
        per_second=traits.per_second,
        keyed=traits.per_recipient is not None,
        breaker=NEVER_OPEN if isinstance(channel, HasDestinations) else build_breaker_rule(settings),
        has_session=isinstance(channel, HasSession),
    )
