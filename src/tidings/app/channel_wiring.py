"""Wiring of channels: their lanes, callbacks, broadcasts and outgoing events."""

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
from ..outbound.receipts.base import CallbackReader
from ..outbound.receipts.callbacks import CALLBACK_KINDS, CallbackService, callback_url, reader_of
from ..outbound.templates.service import TemplateService
from ..store.port import Store
from ..wire.ssrf_guard import SsrfRules

NEVER_OPEN = BreakerRule(threshold=1 << 30)  # for channels whose receivers have their own breakers


def channel_options(name: str, channel: ChannelSettings, settings: Settings) -> Mapping[str, Any]:
    """Return options that follow from other settings: the sandbox's port, our public address."""
    if channel.kind == "sandbox" and settings.sandbox_port:
        return {"url": f"http://127.0.0.1:{settings.sandbox_port}", **channel.options}
    if channel.kind == "twilio" and settings.public_url and {"auth_token", "shared_key"} & set(channel.options):
        status_callback = f"{callback_url(settings.public_url, name)}?message={{id}}"
        return {"status_callback": status_callback, **channel.options}
    return channel.options


def build_callback_readers(settings: Settings) -> dict[str, CallbackReader]:
    """Return the callback reader of each channel."""
    found: dict[str, CallbackReader] = {}
    for name, channel in settings.channels.items():
        if channel.kind in CALLBACK_KINDS and channel.missing_secret is None:
            _, its = settings_of(name, channel.kind, channel_options(name, channel, settings))
            reader = reader_of(channel.kind, its, settings.public_url)
            if reader is not None:
                found[name] = reader
    return found


def build_callbacks(
    store: Store,
    clock: Clock,
    readers: Mapping[str, CallbackReader],
    channels: Mapping[str, Channel],
    settings: Settings,
    emit: Emit,
) -> CallbackService:
    """Build the service for providers' callbacks."""
    base = settings.public_url or f"http://{settings.host}:{settings.port}"
    ignore = [name for name, channel in channels.items() if not channel.traits.suppress_opt_outs]
    return CallbackService(store, clock, readers, emit=emit, base=base, ignore_opt_outs=ignore)


def build_recipient_snapshot(
    store: Store,
    clock: Clock,
    channels: Mapping[str, Channel],
    templates: TemplateService,
    rules: message_validation.MessageLimits,
    settings: Settings,
) -> BroadcastCreator:
    """Build the recipient snapshot of broadcasts; their webhooks follow the rules of events."""
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
    """Build the built-in channel of outgoing events."""
    if event_types.EVENTS_CHANNEL in settings.channels:
        raise Misconfigured(
            f"the channel name {event_types.EVENTS_CHANNEL!r} is reserved", remedy="rename your channel"
        )
    chosen = EventsSettings(private=settings.events_private, secrets=settings.events_secrets)
    return EventsChannel(chosen, listeners, now=clock.now)


def events_lane(lane: Lane, settings: Settings) -> Lane:
    """Adapt the lane: receivers have their own breakers, and slow ones must leave concurrency to messages."""
    return replace(lane, breaker=NEVER_OPEN, concurrency=max(1, settings.concurrency // 4))


def build_breaker_rule(settings: Settings) -> BreakerRule:
    """Return when a channel's or a destination's breaker opens."""
    return BreakerRule(settings.breaker_threshold, settings.breaker_timeout)


def build_lane(name: str, channel: Channel, settings: Settings) -> Lane:
    traits = channel.traits
    policy = settings.all_policies.get(traits.policy)
    if policy is None:
        known = ", ".join(sorted(settings.all_policies))
        raise Misconfigured(
            f"channel {name!r} uses the unknown retry policy {traits.policy!r}",
            remedy=f"use one of: {known}, or define [policies.{traits.policy}]",
        )
    return Lane(
        name,
        policy=policy,
        on_unknown=traits.on_unknown,
        deadline=traits.deadline,
        concurrency=settings.channel_concurrency if settings.channel_concurrency < settings.concurrency else None,
        per_second=traits.per_second,
        keyed=traits.per_recipient is not None,
        breaker=NEVER_OPEN if isinstance(channel, HasDestinations) else build_breaker_rule(settings),
        has_session=isinstance(channel, HasSession),
    )
