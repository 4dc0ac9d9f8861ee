"""Everything wired together, and nothing started."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ..access import audit
from ..access.desk import AccessDesk, open_access
from ..config import Settings
from ..dispatch.office import Office
from ..dispatch.roles import Share
from ..inbound.calendar.base import ShiftCalendar
from ..inbound.calendar.desk import ShiftDesk
from ..inbound.desk import InboundDesk
from ..inbound.effects import handler as effects
from ..inbound.effects import ledger
from ..inbound.effects.aftermath import Aftermath
from ..inbound.workflow import building as workflows
from ..kernel.actor import Actor
from ..kernel.clock import Clock, SystemClock
from ..kernel.forgetting import Forgetting
from ..kernel.handler import Handler
from ..kernel.lanes import Lane
from ..kernel.loop import Worker
from ..kernel.nodes import DISPATCHER
from ..kernel.pruner import Retention
from ..kernel.runner import Tunables
from ..migration import batches
from ..migration.connections import Connections
from ..migration.desk import Migrations
from ..migration.extract import Extractor
from ..migration.foreman import Foreman
from ..migration.forgetting import JobPruner
from ..migration.reach import Allowed
from ..model.errors import Misconfigured
from ..model.time import micros
from ..observability.events import Emit, silence
from ..observability.log import fan_out
from ..outbound import judging
from ..outbound.alerts.figures import Figures
from ..outbound.alerts.guard import Guard, Told
from ..outbound.broadcasting.pump import Pump
from ..outbound.channels.base import Channel
from ..outbound.channels.registry import build as build_channel
from ..outbound.connections.keeper import Keeper
from ..outbound.delivery import Delivery
from ..outbound.desk import Desk, open_desk
from ..outbound.destinations import Destinations
from ..outbound.events import telling
from ..outbound.events.listeners import Listeners
from ..outbound.events.messenger import Messenger
from ..outbound.messages import Messages
from ..outbound.receipts.keeper import ReceiptKeeper
from ..outbound.scheduling.making import Maker, MessageMaker
from ..outbound.scheduling.scheduler import Scheduler
from ..outbound.templating.templates import Templates
from ..outbound.tenants import Tenants
from ..outbound.watch import Watch
from ..store.encryption import Cipher
from ..store.port import Store
from .fleet import actors_of, host, office_of, runs_of
from .storing import cipher_of, open_store, read_from
from .ways_in import calendar_of, inbound_of, shift_settings, workflows_of
from .ways_out import (
    breaker_of,
    callbacks_of,
    events_channel,
    events_lane,
    freezer_of,
    lane_of,
    options_of,
    readers_of,
)


@dataclass(frozen=True, slots=True)
class App:
    """Everything wired, nothing started."""

    settings: Settings
    clock: Clock
    store: Store
    cipher: Cipher
    channels: Mapping[str, Channel]
    lanes: Mapping[str, Lane]
    messages: Messages
    worker: Worker
    actors: Sequence[Actor]
    desk: Desk
    calendar: ShiftCalendar
    shifts: ShiftDesk
    inbound: InboundDesk
    workflows: workflows.Workflows
    access: AccessDesk
    connections: Connections
    migrations: Migrations
    office: Office | None = None  # of a dispatcher

    async def open(self, *, upgrade: bool = False) -> None:
        """Open the store and make the channels known to it."""
        await self.store.open(upgrade=upgrade)
        known = {row["name"] for row in await self.store.read("queue_list")}
        for lane in self.lanes.values():
            if lane.queue not in known:
                await self.store.write(lane.join())
        await self.inbound.open()

    def narrow_to_migrations(self) -> None:
        """Before the start: this process moves records and does nothing else."""
        self.worker.narrow({batches.QUEUE}, {Extractor.name, Foreman.name})

    async def close(self) -> None:
        """Stop working, then let go of everything."""
        await self.worker.stop()
        if self.office is not None:
            await self.office.stop()
        await self.access.audit.close()
        for channel in self.channels.values():
            await channel.close()
        await self.calendar.close()
        await self.inbound.close()
        await self.workflows.close()
        await self.connections.close()
        if self.desk.store is not self.store:
            await self.desk.store.close()
        await self.store.close()


def build(
    settings: Settings,
    *,
    clock: Clock | None = None,
    store: Store | None = None,
    emit: Emit = silence,
    share: Share = Share(),
) -> App:
    """Wire an engine from its settings; a test may bring its own clock and store."""
    clock = clock or SystemClock()
    store = store or open_store(settings, clock)
    reading = read_from(settings, store, emit)
    channels = {
        name: build_channel(name, channel.kind, options_of(name, channel, settings), now=clock.now)
        for name, channel in settings.channels.items()
    }
    readers = readers_of(settings)
    cipher = cipher_of(settings, store)
    listeners = Listeners(store, cipher)
    channels[telling.CHANNEL] = events_channel(settings, listeners, clock)
    lanes = {name: lane_of(name, channel, settings) for name, channel in channels.items()}
    lanes[telling.CHANNEL] = events_lane(lanes[telling.CHANNEL], settings)
    inbound = inbound_of(store, clock, lanes, settings, emit)
    chosen = shift_settings(settings)
    calendar = calendar_of(chosen, store, clock)
    lanes[ledger.QUEUE] = effects.lane(settings.all_policies["personal"], calls_within=chosen.deadline)
    rules = judging.Rules(grace=settings.grace, max_body=settings.max_body, tenants=Tenants(settings.tenants))
    templates = Templates(store, clock, zone=settings.zone, max_body=settings.max_body, channels=channels)
    accepting = Messages(reading, clock, channels, rules, templates)
    working = workflows_of(store, clock, calendar, accepting, channels, settings)
    freezer = freezer_of(store, clock, channels, templates, rules, settings)
    connections = _connections(settings, store, clock, lanes)
    makers: Mapping[str, Maker] = {"message": MessageMaker(accepting), "broadcast": freezer}
    watch = Watch(store, clock)
    destinations = Destinations(store, channels, rule=breaker_of(settings), now=clock.now)
    actors: list[Actor] = [
        Messenger(store, clock, listeners),
        Scheduler(store, clock, makers, listeners=listeners, keep=settings.keep_history),
        Pump(store, clock, freezer, grace=micros(settings.grace), emit=emit),
        Keeper(store, clock, channels, listeners=listeners, emit=emit),
        watch,
        *([destinations] if destinations.are_there else []),
        Aftermath(store, clock),
        Extractor(store, clock, connections),
        Foreman(store, clock),
        *([ReceiptKeeper(store, clock)] if readers else []),
        *inbound.pollers,
        *working.actors,
    ]
    path = settings.database_path
    figures = Figures(store, place=None if path is None else path.parent, limits=settings.alerts)
    handlers: dict[str, Handler] = {
        judging.KIND: Delivery(
            store, channels, now=clock.now, listeners=listeners, readers=readers, destinations=destinations
        ),
        ledger.KIND: effects.EffectHandler(store, clock, {calendar.name: calendar}),
        batches.KIND: batches.BatchHandler(store, clock, connections),
        **working.handlers,
    }
    guard = _guard(settings, store, clock, accepting, figures, emit)
    office, worker = _worker(settings, share, store, cipher, clock, lanes, handlers, actors, guard, emit)
    desk = open_desk(
        reading,
        cipher,
        clock,
        accepting,
        channels,
        lanes,
        grace=settings.grace,
        lease=settings.lease,
        freezer=freezer,
        callbacks=callbacks_of(store, clock, readers, settings, emit),
        watch=watch,
        figures=figures,
    )
    shifts = ShiftDesk(store, clock, calendar, squads=chosen.squads, zone=settings.zone)
    desk.callbacks.listener = inbound.listening
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
        desk,
        calendar,
        shifts,
        inbound,
        working,
        access=open_access(store, clock, settings.api_keys, is_local=settings.is_local, emit=emit),
        connections=connections,
        migrations=Migrations(store, clock, connections),
        office=office,
    )


def _worker(
    settings: Settings,
    share: Share,
    store: Store,
    cipher: Cipher,
    clock: Clock,
    lanes: Mapping[str, Lane],
    handlers: Mapping[str, Handler],
    actors: Sequence[Actor],
    guard: Guard,
    emit: Emit,
) -> tuple[Office | None, Worker]:
    """What works on tasks here, by itself or through a dispatcher's office."""
    runs = runs_of(lanes, settings, share)
    office = office_of(settings, share, store, clock, runs, handlers, emit, cipher)
    worker = Worker(
        store,
        clock,
        lanes,
        handlers,
        emit=emit if office is None else fan_out(emit, office.heard),
        runs=runs if office is None else office.lanes,
        hands=None if office is None else office.hands,
        also_load=dict if office is None else office.standing,
        name=None if office is None else f"{DISPATCHER}{host()}",
        tunables=Tunables(slots=settings.slots, poll=settings.poll),
        lease=settings.lease,
        beat=settings.beat,
        poison_after=settings.poison_after,
        retention=Retention(history=settings.keep_history, ended=settings.keep_done),
        contents=("prune_message", "prune_receipts", "prune_followup", "prune_rehearing", "prune_turn"),
        actors=actors_of(actors, office, share),
        pruners=actors_of(_pruners(settings, store, clock), None, share),
        onlookers=[guard],
        memory_limit=settings.memory_limit,
    )
    return office, worker


def _pruners(settings: Settings, store: Store, clock: Clock) -> list[Actor]:
    """Who forgets what is old, each in its own domain."""
    return [
        Forgetting("shadows", store, clock, {"shadow_prune": settings.keep_history}),
        Forgetting("frozen recipients", store, clock, {"frozen_prune": settings.keep_done}),
        Forgetting(
            "audit",
            store,
            clock,
            {**dict.fromkeys(audit.PRUNE, settings.keep_audit), "session_prune": timedelta()},
        ),
        Forgetting("quotas", store, clock, {"quota_prune": settings.keep_history}),
        Forgetting("model calls", store, clock, {"prune_model_calls": settings.keep_done}),
        JobPruner(store, clock, settings.keep_migrations),
    ]


def _guard(
    settings: Settings, store: Store, clock: Clock, accepting: Messages, figures: Figures, emit: Emit
) -> Guard:
    """Who raises alerts."""
    return Guard(
        store,
        clock,
        accepting,
        figures,
        told=Told(settings.alert_channel, settings.alert_to),
        keep=settings.keep_history,
        emit=emit,
    )


def _connections(settings: Settings, store: Store, clock: Clock, lanes: dict[str, Lane]) -> Connections:
    """The systems of migrations, and the lane of their batches."""
    if batches.QUEUE in lanes:
        raise Misconfigured(
            f"the channel name {batches.QUEUE!r} is the engine's own", remedy="give your channel another name"
        )
    lanes[batches.QUEUE] = batches.lane()
    files, private = settings.migration_api_files, settings.migration_api_private
    allowed = Allowed(settings.migration_folder, files, settings.credentials, private)
    return Connections(store, clock, environ=os.environ, folder=Path(), allowed=allowed)
