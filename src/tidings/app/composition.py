"""Builds the application from its settings; nothing is started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ..access import audit
from ..access.service import AccessService, open_access
from ..config import Settings
from ..dispatch.dispatcher_runtime import DispatcherRuntime
from ..dispatch.roles import ProcessShare
from ..inbound.calendar.port import ShiftCalendar
from ..inbound.calendar.service import CalendarService
from ..inbound.effects import handler as effects
from ..inbound.effects import ledger
from ..inbound.effects.reconciler import EffectReconciler
from ..inbound.service import InboundService
from ..inbound.workflow.service import WorkflowService
from ..kernel.actor import Actor
from ..kernel.clock import Clock, SystemClock
from ..kernel.handler import Handler
from ..kernel.heartbeats import DISPATCHER_PREFIX
from ..kernel.lanes import Lane
from ..kernel.pruner import RetentionPolicy
from ..kernel.retention import RetentionPruner
from ..kernel.runner import RunnerOptions
from ..kernel.worker import Worker
from ..migration import batch_handler
from ..migration.batch_scheduler import BatchScheduler
from ..migration.connector_pool import ConnectorPool
from ..migration.extractor import Extractor
from ..migration.job_permissions import JobPermissions
from ..migration.retention import JobPruner
from ..migration.service import MigrationService
from ..model.errors import Misconfigured
from ..model.time import micros
from ..observability.events import Emit, discard_event
from ..observability.log import fan_out
from ..outbound import message_validation
from ..outbound.alerts.evaluator import AlertEvaluator, AlertRecipients
from ..outbound.alerts.measurements import AlertMeasurements
from ..outbound.broadcasts.feeder import BroadcastFeeder
from ..outbound.channels.base import Channel, UnavailableChannel
from ..outbound.channels.registry import build as build_channel
from ..outbound.dead_letters import DeadLetterExpirer
from ..outbound.delivery import Delivery
from ..outbound.destination_breakers import DestinationBreakers
from ..outbound.events import event_types
from ..outbound.events.outbox_relay import OutboxRelay
from ..outbound.events.subscription_cache import SubscriptionCache
from ..outbound.health import HealthLimits
from ..outbound.imports.write_back import WriteBackRelay
from ..outbound.messages import MessageService
from ..outbound.receipts.receipt_reconciler import ReceiptReconciler
from ..outbound.schedules.occurrence_builder import MessageOccurrenceBuilder, OccurrenceBuilder
from ..outbound.schedules.scheduler import Scheduler
from ..outbound.service import OutboundService, build_outbound_service
from ..outbound.sessions.session_monitor import SessionMonitor
from ..outbound.templates.service import TemplateService
from ..outbound.tenant_quotas import TenantQuotas
from ..outbound.trend_sampler import TrendSampler
from ..store.encryption import Cipher
from ..store.port import Store
from .channel_wiring import (
    build_breaker_rule,
    build_callback_readers,
    build_callbacks,
    build_lane,
    build_recipient_snapshot,
    channel_options,
    events_channel,
    events_lane,
)
from .fleet_wiring import build_dispatcher, host, select_actors, select_lanes
from .source_wiring import (
    build_calendar,
    build_inbound,
    build_number_lookup,
    build_replies,
    build_workflows,
    shift_settings,
)
from .store_wiring import build_cipher, build_read_store, open_store


@dataclass(frozen=True, slots=True)
class App:
    """All parts of an engine, wired and not started."""

    settings: Settings
    clock: Clock
    store: Store
    cipher: Cipher
    channels: Mapping[str, Channel]
    lanes: Mapping[str, Lane]
    messages: MessageService
    worker: Worker
    actors: Sequence[Actor]
    outbound: OutboundService
    calendar: ShiftCalendar
    shifts: CalendarService
    inbound: InboundService
    workflows: WorkflowService
    access: AccessService
    connections: ConnectorPool
    migrations: MigrationService
    dispatcher: DispatcherRuntime | None = None  # only in dispatcher processes

    async def open(self, *, upgrade: bool = False) -> None:
        """Open the store and register the channels."""
        await self.store.open(upgrade=upgrade)
        known = {row["name"] for row in await self.store.read("queue_list")}
        for lane in self.lanes.values():
            if lane.queue not in known and not isinstance(self.channels.get(lane.queue), UnavailableChannel):
                await self.store.write(lane.join())
        await self.inbound.open()

    def narrow_to_migrations(self) -> None:
        """Before the start: let this process run migrations only."""
        queues = batch_handler.queue_names(self.settings.migration_queues)
        self.worker.narrow(queues, {Extractor.name, BatchScheduler.name})

    async def close(self) -> None:
        """Stop working, then close all resources."""
        await self.worker.stop()
        if self.dispatcher is not None:
            await self.dispatcher.stop()
        await self.access.audit.close()
        for channel in self.channels.values():
            await channel.close()
        await self.calendar.close()
        await self.inbound.close()
        await self.workflows.close()
        await self.connections.close()
        if self.outbound.store is not self.store:
            await self.outbound.store.close()
        await self.store.close()


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    store: Store | None = None,
    emit: Emit = discard_event,
    share: ProcessShare = ProcessShare(),
) -> App:
    """Build an engine from its settings; a test may pass its own clock and store."""
    clock = clock or SystemClock()
    store = store or open_store(settings, clock)
    reading = build_read_store(settings, store, emit)
    channels: dict[str, Channel] = {
        name: build_channel(name, channel.kind, channel_options(name, channel, settings), now=clock.now)
        if (missing := channel.missing_secret) is None
        else UnavailableChannel(missing)
        for name, channel in settings.channels.items()
    }
    readers = build_callback_readers(settings)
    cipher = build_cipher(settings, store)
    listeners = SubscriptionCache(store, cipher)
    channels[event_types.EVENTS_CHANNEL] = events_channel(settings, listeners, clock)
    lanes = {name: build_lane(name, channel, settings) for name, channel in channels.items()}
    lanes[event_types.EVENTS_CHANNEL] = events_lane(lanes[event_types.EVENTS_CHANNEL], settings)
    chosen = shift_settings(settings)
    calendar = build_calendar(chosen, store, clock)
    lanes[ledger.QUEUE] = effects.lane(settings.all_policies["quick"], calls_within=chosen.deadline)
    rules = message_validation.MessageLimits(
        grace=settings.expire_after,
        max_body=settings.max_body,
        tenants=TenantQuotas(settings.tenants),
        keep_keys=settings.idempotency_retention,
    )
    templates = TemplateService(store, clock, timezone=settings.timezone, max_body=settings.max_body, channels=channels)
    accepting = MessageService(reading, clock, channels, rules, templates)
    replies = build_replies(accepting, channels, settings)
    inbound = build_inbound(store, clock, lanes, replies, settings, emit)
    working = build_workflows(store, clock, calendar, replies, settings)
    broadcast_creator = build_recipient_snapshot(store, clock, channels, templates, rules, settings)
    connections = _connections(settings, store, clock, lanes)
    makers: Mapping[str, OccurrenceBuilder] = {
        "message": MessageOccurrenceBuilder(accepting),
        "broadcast": broadcast_creator,
    }
    watch = TrendSampler(store, clock)
    destinations = DestinationBreakers(store, channels, rule=build_breaker_rule(settings), now=clock.now)
    actors: list[Actor] = [
        OutboxRelay(store, clock, listeners),
        Scheduler(store, clock, makers, listeners=listeners, keep=settings.history_retention),
        BroadcastFeeder(
            store,
            clock,
            broadcast_creator,
            grace=micros(settings.expire_after),
            emit=emit,
            bulk=settings.broadcast_batch_size,
            window=settings.broadcast_batch_size * settings.broadcast_batches,
        ),
        SessionMonitor(store, clock, channels, listeners=listeners, emit=emit),
        watch,
        *([destinations] if destinations.has_any else []),
        EffectReconciler(store, clock),
        Extractor(store, clock, connections),
        BatchScheduler(store, clock, settings.migration_queues),
        *([ReceiptReconciler(store, clock)] if readers else []),
        *([WriteBackRelay(store, clock, settings.imports)] if settings.imports else []),
        *inbound.pollers,
        *working.actors,
    ]
    path = settings.database_path
    figures = AlertMeasurements(store, place=None if path is None else path.parent, limits=settings.alerts)
    handlers: dict[str, Handler] = {
        message_validation.MESSAGE_KIND: Delivery(
            store, channels, now=clock.now, listeners=listeners, readers=readers, destinations=destinations
        ),
        ledger.KIND: effects.EffectHandler(store, clock, {calendar.name: calendar}),
        batch_handler.KIND: batch_handler.BatchHandler(store, clock, connections, emit=emit),
        **working.handlers,
    }
    guard = _guard(settings, store, clock, accepting, figures, emit)
    dispatcher, worker = _worker(settings, share, store, cipher, clock, lanes, handlers, actors, guard, emit)
    outbound = build_outbound_service(
        reading,
        cipher,
        clock,
        accepting,
        channels,
        lanes,
        grace=settings.expire_after,
        node_timeout=settings.node_timeout,
        broadcast_creator=broadcast_creator,
        callbacks=build_callbacks(store, clock, readers, channels, settings, emit),
        watch=watch,
        figures=figures,
        limits=HealthLimits(
            settings.health_min_success_rate,
            settings.health_max_error_rate,
            settings.health_max_queue_depth,
            settings.health_max_poll_age,
        ),
    )
    shifts = CalendarService(store, clock, calendar, squads=chosen.squads, timezone=settings.timezone)
    outbound.callbacks.listener = inbound.webhooks
    inbound.webhooks.number_of = build_number_lookup(channels)
    return App(
        settings,
        clock,
        store,
        cipher,
        channels,
        lanes,
        accepting,
        worker,
        actors,
        outbound,
        calendar,
        shifts,
        inbound,
        working,
        access=open_access(store, clock, settings.api_keys, is_local=settings.is_local, emit=emit),
        connections=connections,
        migrations=MigrationService(store, clock, connections),
        dispatcher=dispatcher,
    )


def _worker(
    settings: Settings,
    share: ProcessShare,
    store: Store,
    cipher: Cipher,
    clock: Clock,
    lanes: Mapping[str, Lane],
    handlers: Mapping[str, Handler],
    actors: Sequence[Actor],
    guard: AlertEvaluator,
    emit: Emit,
) -> tuple[DispatcherRuntime | None, Worker]:
    """Build the worker, with a dispatcher if the process has that role."""
    runs = select_lanes(lanes, settings, share)
    dispatcher = build_dispatcher(settings, share, store, clock, runs, handlers, emit, cipher)
    worker = Worker(
        store,
        clock,
        lanes,
        handlers,
        emit=emit if dispatcher is None else fan_out(emit, dispatcher.on_event),
        runs=runs if dispatcher is None else dispatcher.lanes,
        executor=None if dispatcher is None else dispatcher.executor,
        also_load=dict if dispatcher is None else dispatcher.status,
        name=None if dispatcher is None else f"{DISPATCHER_PREFIX}{host()}",
        options=RunnerOptions(concurrency=settings.concurrency, poll_interval=settings.poll_interval),
        node_timeout=settings.node_timeout,
        heartbeat_interval=settings.heartbeat_interval,
        quarantine_after=settings.quarantine_after,
        retention=RetentionPolicy(history=settings.history_retention, ended=settings.message_retention),
        contents=("prune_message", "prune_receipts", "prune_followup", "prune_message_rerun", "prune_job_batch_task"),
        actors=select_actors(actors, dispatcher, share),
        pruners=select_actors(_pruners(settings, store, clock), None, share),
        observers=[guard],
        memory_limit=settings.memory_limit,
    )
    return dispatcher, worker


def _pruners(settings: Settings, store: Store, clock: Clock) -> list[Actor]:
    """Return the pruners of the domains."""
    return [
        RetentionPruner("shadows", store, clock, {"shadow_prune": settings.history_retention}),
        RetentionPruner("frozen recipients", store, clock, {"frozen_prune": settings.message_retention}),
        RetentionPruner(
            "audit",
            store,
            clock,
            {**dict.fromkeys(audit.PRUNE, settings.audit_retention), "session_prune": timedelta()},
        ),
        RetentionPruner("quotas", store, clock, {"quota_prune": settings.history_retention}),
        RetentionPruner("model calls", store, clock, {"prune_model_calls": settings.message_retention}),
        JobPruner(store, clock, settings.migration_retention),
        *([] if (age := settings.dead_letter_retention) is None else [DeadLetterExpirer(store, clock, age)]),
    ]


def _guard(
    settings: Settings, store: Store, clock: Clock, accepting: MessageService, figures: AlertMeasurements, emit: Emit
) -> AlertEvaluator:
    """Build the alert evaluator."""
    return AlertEvaluator(
        store,
        clock,
        accepting,
        figures,
        recipients=AlertRecipients(settings.alert_channel, settings.alert_to),
        keep=settings.history_retention,
        emit=emit,
    )


def _connections(settings: Settings, store: Store, clock: Clock, lanes: dict[str, Lane]) -> ConnectorPool:
    """Build the connector pool of migrations, and the lanes of their batches."""
    if batch_handler.QUEUE in lanes:
        raise Misconfigured(f"the channel name {batch_handler.QUEUE!r} is reserved", remedy="rename your channel")
    lanes |= {name: batch_handler.lane(name) for name in batch_handler.queue_names(settings.migration_queues)}
    files, private = settings.migration_api_files, settings.migration_api_private
    allowed = JobPermissions(settings.migration_folder, files, settings.credentials, private)
    return ConnectorPool(store, clock, environ=os.environ, folder=Path(), allowed=allowed)
