"""The outbound service: the operations shared by the API, CLI and dashboard."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from ..kernel.clock import Clock
from ..kernel.lanes import Lane
from ..store.encryption import Cipher
from ..store.port import Store
from ..wire.ssrf_guard import SsrfRules
from .alerts.measurements import AlertMeasurements
from .alerts.service import AlertService
from .broadcasts.recipient_snapshot import BroadcastCreator
from .broadcasts.service import BroadcastService
from .channel_control import ChannelControl
from .channels.base import Channel
from .contacts.contact_lists import ContactListService
from .contacts.service import ContactService
from .contacts.suppressions import SuppressionService
from .dead_letters import DeadLetters
from .events import event_types
from .events.subscriptions import SubscriptionService
from .explanation import Explanation
from .health import HealthLimits, HealthReport, check_health
from .message_actions import explain_message
from .messages import MessageService
from .overview import Overview
from .receipts.callbacks import CallbackService
from .rollout.service import RolloutService
from .scheduler_health import SchedulerHealth, check_scheduler_health
from .schedules.bulk_actions import ScheduleBulk
from .schedules.occurrence_builder import MessageOccurrenceBuilder
from .schedules.service import ScheduleService
from .sent_log import SentLog
from .sla import DailyDelivery, sla_report
from .templates.service import TemplateService
from .trend_sampler import TrendSampler
from .upcoming import Upcoming


@dataclass(frozen=True, slots=True)
class OutboundService:
    """Groups the outbound services."""

    store: Store
    clock: Clock
    node_timeout: timedelta
    messages: MessageService
    dead: DeadLetters
    channels: ChannelControl
    overview: Overview
    sent: SentLog
    subscriptions: SubscriptionService
    contacts: ContactService
    audience: ContactListService
    suppressions: SuppressionService
    schedules: ScheduleService
    schedule_bulk: ScheduleBulk
    rollout: RolloutService
    broadcasts: BroadcastService
    broadcast_creator: BroadcastCreator
    callbacks: CallbackService
    alerts: AlertService
    health_limits: HealthLimits

    @property
    def templates(self) -> TemplateService:
        """The template service."""
        return self.messages.templates

    @property
    def ahead(self) -> Upcoming:
        """Messages, schedule occurrences and broadcasts that are due in a period."""
        return Upcoming(self.store, self.clock)

    async def why(self, id_: str, *, tenant: str = "default") -> Explanation:
        """Explain why a message waits, or its outcome."""
        return await explain_message(self.store, self.messages, id_, tenant=tenant)

    async def health(self) -> HealthReport:
        """The health report of the last fifteen minutes."""
        return await check_health(self.store, self.clock, node_timeout=self.node_timeout, limits=self.health_limits)

    async def scheduler_health(self) -> SchedulerHealth:
        """Whether due messages are polled, the queue keeps up and the clock is right."""
        return await check_scheduler_health(self.store, self.clock, self.health_limits)

    async def sla(self, *, days: int = 30, channel: str | None = None) -> list[DailyDelivery]:
        """The share of messages sent on time, by day and channel; internal queues are left out."""
        return await sla_report(self.store, days=days, channel=channel, without=self.rollout.own)

    async def ping(self) -> None:
        """Raise if the database does not answer."""
        await self.store.read("now")


def build_outbound_service(
    store: Store,
    cipher: Cipher,
    clock: Clock,
    messages: MessageService,
    channels: Mapping[str, Channel],
    lanes: Mapping[str, Lane],
    *,
    grace: timedelta,
    node_timeout: timedelta,
    broadcast_creator: BroadcastCreator | None = None,
    callbacks: CallbackService | None = None,
    watch: TrendSampler | None = None,
    figures: AlertMeasurements | None = None,
    limits: HealthLimits = HealthLimits(),
) -> OutboundService:
    """Build the outbound service from its dependencies."""
    callbacks = callbacks or CallbackService(store, clock, {})
    channel_control = ChannelControl(store, channels, lanes, callbacks.address)
    dead = DeadLetters(store, grace=grace)
    callable_at: SsrfRules = getattr(channels.get(event_types.EVENTS_CHANNEL), "rules", SsrfRules())
    subscriptions = SubscriptionService(store, clock, cipher, callable_at)
    reachable = [name for name in channels if name != event_types.EVENTS_CHANNEL]
    own = frozenset({event_types.EVENTS_CHANNEL, *lanes} - set(reachable))  # internal queues
    contacts = ContactService(store, clock, reachable)
    audience = ContactListService(store, clock, contacts)
    broadcast_creator = broadcast_creator or BroadcastCreator(
        store, clock, channels, messages.templates, audience, webhooks=callable_at
    )
    schedules = ScheduleService(
        store, clock, {"message": MessageOccurrenceBuilder(messages), "broadcast": broadcast_creator}, messages.rules
    )
    return OutboundService(
        store, clock, node_timeout, messages, dead, channel_control,
        Overview(store, watch or TrendSampler(store, clock)), SentLog(store),
        subscriptions, contacts, audience, SuppressionService(store, clock, reachable),
        schedules=schedules, schedule_bulk=ScheduleBulk(schedules, store),
        rollout=RolloutService(store, own=own), broadcasts=BroadcastService(store, clock),
        broadcast_creator=broadcast_creator,
        callbacks=callbacks, alerts=AlertService(store, clock, figures or AlertMeasurements(store)),
        health_limits=limits,
    )  # fmt: skip
