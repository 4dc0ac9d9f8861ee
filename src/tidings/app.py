"""The composition root: the only module that names concrete classes and wires them together."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from .access.audit import Forgetter
from .access.desk import AccessDesk, open_access
from .config import ChannelSettings, Settings
from .dispatch.dispatcher import Terms
from .dispatch.link import Link
from .dispatch.office import Office
from .dispatch.roles import Role, Share
from .dispatch.transport import Transport
from .inbound import hearing, intake
from .inbound.calendar.base import ShiftCalendar
from .inbound.calendar.builtin import BuiltinCalendar
from .inbound.calendar.desk import ShiftDesk
from .inbound.calendar.http import HttpCalendar
from .inbound.calendar.settings import CalendarSettings
from .inbound.desk import InboundDesk, open_inbound
from .inbound.effects import handler as effects
from .inbound.effects import ledger
from .inbound.effects.aftermath import Aftermath
from .inbound.language.shift_words import DEFAULTS as SHIFTS
from .inbound.models.forgetting import CallPruner
from .inbound.poller import Poller
from .inbound.workflow import building as workflows
from .inbound.workflow.settings import WorkflowSettings
from .kernel.actor import Actor
from .kernel.breaker import BreakerRule
from .kernel.clock import Clock, SystemClock
from .kernel.handler import Handler
from .kernel.lanes import Lane
from .kernel.loop import Worker
from .kernel.nodes import DISPATCHER
from .kernel.pruner import Retention
from .kernel.runner import Tunables
from .migration import batches
from .migration.connections import Connections
from .migration.desk import Migrations
from .migration.extract import Extractor
from .migration.foreman import Foreman
from .migration.forgetting import JobPruner
from .model.errors import Misconfigured
from .model.message import Draft
from .model.task import NewTask
from .model.time import micros
from .observability.events import Emit, silence
from .observability.log import fan_out
from .outbound import messages
from .outbound.adoption.rollout import ShadowPruner
from .outbound.alerts.figures import Figures
from .outbound.alerts.guard import Guard, Told
from .outbound.broadcasting.forgetting import FrozenPruner
from .outbound.broadcasting.freezing import Freezer
from .outbound.broadcasting.pump import Pump
from .outbound.channels.base import Channel, SpeaksInChats
from .outbound.channels.connection import HasSession
from .outbound.channels.events import EventsChannel, EventsSettings
from .outbound.channels.registry import build as build_channel
from .outbound.channels.registry import settings_of
from .outbound.connections.keeper import Keeper
from .outbound.delivery import Delivery
from .outbound.desk import Desk, open_desk
from .outbound.events import telling
from .outbound.events.listeners import Listeners
from .outbound.events.messenger import Messenger
from .outbound.messages import Messages
from .outbound.people.audience import Audience
from .outbound.people.contacts import Contacts
from .outbound.receipts import readers as receipt_readers
from .outbound.receipts.callbacks import Callbacks
from .outbound.receipts.keeper import ReceiptKeeper
from .outbound.receipts.readers import address
from .outbound.receipts.receipt import Reader
from .outbound.scheduling.making import Maker, MessageMaker
from .outbound.scheduling.scheduler import Scheduler
from .outbound.templating.templates import Templates
from .outbound.watch import Watch
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
    reading = _reading(settings, store, emit)
    channels = {
        name: build_channel(name, channel.kind, _options(name, channel, settings), now=clock.now)
        for name, channel in settings.channels.items()
    }
    readers = _readers(settings)
    listeners = Listeners(store)
    channels[telling.CHANNEL] = _events(settings, listeners, clock)
    lanes = {name: _lane(name, channel, settings) for name, channel in channels.items()}
    lanes[telling.CHANNEL] = _events_lane(lanes[telling.CHANNEL], settings)
    inbound = _inbound(store, clock, lanes, settings, emit)
    shift_settings = _shift_settings(settings)
    calendar = _calendar(shift_settings, store, clock)
    lanes[ledger.QUEUE] = effects.lane(
        settings.all_policies["personal"], calls_within=shift_settings.deadline
    )
    rules = messages.Rules(grace=settings.grace, max_body=settings.max_body)
    templates = Templates(store, clock, zone=settings.zone, max_body=settings.max_body)
    accepting = Messages(reading, clock, channels, rules, templates)
    working = _workflows(store, clock, calendar, accepting, channels, settings)
    freezer = _freezer(store, clock, channels, templates, rules, settings)
    connections = _connections(store, clock, lanes)
    makers: Mapping[str, Maker] = {"message": MessageMaker(accepting), "broadcast": freezer}
    watch = Watch(store, clock)
    actors: list[Actor] = [
        Messenger(store, clock, listeners),
        Scheduler(store, clock, makers, listeners=listeners, keep=settings.keep_history),
        Pump(store, clock, freezer, grace=micros(settings.grace), emit=emit),
        Keeper(store, clock, channels, listeners=listeners, emit=emit),
        watch,
        Aftermath(store, clock),
        Extractor(store, clock, connections),
        Foreman(store, clock),
        *([ReceiptKeeper(store, clock)] if readers else []),
        *inbound.pollers,
        *working.actors,
    ]
    pruners: list[Actor] = [
        ShadowPruner(store, clock, settings.keep_history),
        FrozenPruner(store, clock, settings.keep_done),
        Forgetter(store, clock, settings.keep_audit),
        JobPruner(store, clock, settings.keep_migrations),
        *([CallPruner(store, clock, settings.keep_done)] if settings.inbound.model else []),
    ]
    path = settings.database_path
    figures = Figures(store, place=None if path is None else path.parent, limits=settings.alerts)
    guard = Guard(
        store,
        clock,
        accepting,
        figures,
        told=Told(settings.alert_channel, settings.alert_to),
        keep=settings.keep_history,
        emit=emit,
    )
    handlers: dict[str, Handler] = {
        messages.KIND: Delivery(store, channels, now=clock.now, listeners=listeners, readers=readers),
        ledger.KIND: effects.EffectHandler(store, clock, {calendar.name: calendar}),
        batches.KIND: batches.BatchHandler(store, clock, connections),
        **working.handlers,
    }
    runs = _runs(lanes, settings, share)
    office = _office(settings, share, store, clock, runs, handlers, emit)
    worker = Worker(
        store,
        clock,
        lanes,
        handlers,
        emit=emit if office is None else fan_out(emit, office.heard),
        runs=runs if office is None else office.lanes,
        hands=None if office is None else office.hands,
        also_load=dict if office is None else office.standing,
        name=None if office is None else f"{DISPATCHER}{_host()}",
        tunables=Tunables(slots=settings.slots, poll=settings.poll),
        lease=settings.lease,
        beat=settings.beat,
        poison_after=settings.poison_after,
        retention=Retention(history=settings.keep_history, ended=settings.keep_done),
        contents=("prune_message", "prune_receipts", "prune_followup", "prune_rehearing", "prune_turn"),
        actors=_actors(actors, office, share),
        pruners=_actors(pruners, None, share),
        onlookers=[guard],
        memory_limit=settings.memory_limit,
    )
    desk = open_desk(
        reading,
        clock,
        accepting,
        channels,
        lanes,
        grace=settings.grace,
        lease=settings.lease,
        freezer=freezer,
        callbacks=_callbacks(store, clock, readers, settings, emit),
        watch=watch,
        figures=figures,
    )
    shifts = ShiftDesk(store, clock, calendar, squads=shift_settings.squads, zone=settings.zone)
    desk.callbacks.listener = inbound.listening
    return App(
        settings,
        clock,
        store,
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
        access=open_access(store, clock, settings.api_keys, is_local=settings.is_local),
        connections=connections,
        migrations=Migrations(store, clock, connections),
        office=office,
    )


def _runs(lanes: Mapping[str, Lane], settings: Settings, share: Share) -> dict[str, Lane]:
    """The lanes that this process works on: its own share, sent by itself or given to transports."""
    share.check(lanes)
    wanted = {
        name: Role.DISPATCHER if name in settings.dispatched else Role.WORKER
        for name in lanes
        if share.takes(name)
    }
    return {name: lanes[name] for name, role in wanted.items() if role in share.roles}


def _actors(actors: Sequence[Actor], office: Office | None, share: Share) -> list[Actor]:
    """What this process does beside its tasks."""
    chosen: list[Actor] = [] if office is None else [office.heir]
    for actor in actors:
        if isinstance(actor, Poller):
            wanted = Role.POLLER in share.roles and (share.part is None or share.part.has(actor.name))
        else:
            wanted = Role.SCHEDULER in share.roles
        chosen += [actor] if wanted else []
    return chosen


def _office(
    settings: Settings,
    share: Share,
    store: Store,
    clock: Clock,
    runs: Mapping[str, Lane],
    handlers: Mapping[str, Handler],
    emit: Emit,
) -> Office | None:
    """What a dispatcher needs besides."""
    if Role.DISPATCHER not in share.roles:
        return None
    return Office(
        _broker(settings),
        store,
        clock,
        runs,
        frozenset(settings.dispatched & set(runs)),
        handlers,
        slots=settings.slots,
        terms=_terms(settings),
        emit=emit,
        name=f"{DISPATCHER}{_host()}",
    )


def _terms(settings: Settings) -> Terms:
    wait = settings.broker_wait.total_seconds()
    return Terms(ttl=wait, within=wait / 2, poison_after=settings.poison_after)


def _broker(settings: Settings) -> str:
    if settings.broker is None:
        raise Misconfigured(
            "dispatchers and transports need a RabbitMQ, and none is set",
            remedy="Set broker to its URL, such as amqp://user@host/tidings",
            field="broker",
        )
    return settings.broker


def _host() -> str:
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
    url = _broker(settings)
    names = sorted(name for name in settings.dispatched if share.takes(name))
    channels = {
        name: build_channel(
            name,
            settings.channels[name].kind,
            _options(name, settings.channels[name], settings),
            now=clock.now,
        )
        for name in names
    }

    def connect(came: Callable[[], None], went: Callable[[], None]) -> Link:
        name = f"transport@{_host()}"
        return Link(
            url, clock, emit=emit, channels=tuple(names), name=name, declares=False, came=came, went=went
        )

    return Carrier(channels, Transport(channels, clock, connect, slots=settings.slots, emit=emit))


def _reading(settings: Settings, store: Store, emit: Emit) -> Store:
    """What lists, pages and exports read from."""
    if settings.replica is None:
        return store
    from .store.postgres import PostgresStore
    from .store.replica import WithReplica

    return cast(Store, WithReplica(store, PostgresStore(settings.replica, connections=4), emit=emit))


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


def _options(name: str, channel: ChannelSettings, settings: Settings) -> Mapping[str, Any]:
    """What follows from the other settings: the port of our own pretend phone, our own public address."""
    if channel.kind == "sandbox" and settings.sandbox_port:
        return {"url": f"http://127.0.0.1:{settings.sandbox_port}", **channel.options}
    if channel.kind == "twilio" and settings.public_url and "auth_token" in channel.options:
        status_callback = f"{address(settings.public_url, name)}?message={{id}}"
        return {"status_callback": status_callback, **channel.options}
    return channel.options


def _connections(store: Store, clock: Clock, lanes: dict[str, Lane]) -> Connections:
    """The systems of migrations, and the lane of their batches."""
    if batches.QUEUE in lanes:
        raise Misconfigured(
            f"the channel name {batches.QUEUE!r} is the engine's own", remedy="give your channel another name"
        )
    lanes[batches.QUEUE] = batches.lane()
    return Connections(store, clock, environ=os.environ, folder=Path())


def _readers(settings: Settings) -> dict[str, Reader]:
    """Who reads the call-backs of which channel."""
    found: dict[str, Reader] = {}
    for name, channel in settings.channels.items():
        if channel.kind in receipt_readers.KINDS:
            _, its = settings_of(name, channel.kind, _options(name, channel, settings))
            reader = receipt_readers.reader_of(channel.kind, its, settings.public_url)
            if reader is not None:
                found[name] = reader
    return found


def _callbacks(
    store: Store, clock: Clock, readers: Mapping[str, Reader], settings: Settings, emit: Emit
) -> Callbacks:
    """The side that providers call."""
    base = settings.public_url or f"http://{settings.host}:{settings.port}"
    return Callbacks(store, clock, readers, emit=emit, base=base)


def _inbound(
    store: Store, clock: Clock, lanes: dict[str, Lane], settings: Settings, emit: Emit
) -> InboundDesk:
    """What comes in; its lane is there where a source is."""
    chosen = settings.inbound
    if chosen.sources and intake.QUEUE in lanes:
        raise Misconfigured(
            f"the channel name {intake.QUEUE!r} is the engine's own", remedy="give your channel another name"
        )
    if chosen.sources:
        lanes[intake.QUEUE] = hearing.lane()
    tell = workflows.tell(_workflow_settings(settings), clock)
    return open_inbound(store, clock, chosen.sources, production=chosen.production, tell=tell, emit=emit)


class _Voice:
    """Replies and notices of inbound are messages of outbound."""

    table: str = "messages"
    columns: tuple[str, ...] = messages.COLUMNS

    def __init__(self, accepting: Messages, channels: Mapping[str, Channel]) -> None:
        self._messages = accepting
        self._channels = channels

    async def prepare(
        self,
        channel: str,
        to: str,
        text: str,
        *,
        tenant: str,
        order_key: str,
        now: int,
        in_chat: bool = False,
    ) -> tuple[NewTask, tuple[Any, ...]]:
        """One message, ready for a transaction of inbound's."""
        way_out = self._channels.get(channel)
        if in_chat and isinstance(way_out, SpeaksInChats):
            to = way_out.chat(to)
        draft = Draft(channel, to, text, tenant=tenant, order_key=order_key)
        return await self._messages.prepare(draft, now)


def _workflow_settings(settings: Settings) -> WorkflowSettings:
    """With what the other settings say where nothing was set."""
    chosen, shifts = settings.inbound.workflow or WorkflowSettings(), _shift_settings(settings)
    return replace(
        chosen,
        zone=chosen.zone or settings.zone.key,
        squads=chosen.squads or shifts.squads,
        calendar=shifts.name,
        grid=shifts.grid,
    )


def _workflows(
    store: Store,
    clock: Clock,
    calendar: ShiftCalendar,
    accepting: Messages,
    channels: Mapping[str, Channel],
    settings: Settings,
) -> workflows.Workflows:
    """Workflows over what comes in, with the mind that is configured."""
    chosen, model = _workflow_settings(settings), settings.inbound.model
    for option, named in (
        ("admins", {admin.partition(":")[0] for admin in chosen.admins}),
        ("replies", {chosen.replies.get(source, source) for source in settings.inbound.sources}),
    ):
        if chosen.enabled and (unknown := sorted(named - set(settings.channels))):
            raise Misconfigured(
                f"inbound.{option} needs the channel {unknown[0]!r}, which is not configured",
                remedy=f"write [channels.{unknown[0]}], or name another one under inbound.{option}",
                field=f"inbound.{option}",
            )

    def minds() -> workflows.Minds:
        from .inbound.language.rules import RulesMind
        from .inbound.models.build import build as build_mind
        from .inbound.models.prompt import load
        from .inbound.models.recorded import RecordedMind

        rules = RulesMind(chosen.shifts or None)
        if model is None:
            return workflows.Minds(rules, rules, rules)
        shifts = {**SHIFTS, **chosen.shifts}
        recorded = RecordedMind.from_journal(model, load(model.prompts), store, clock, shifts=shifts)
        return workflows.Minds(rules, build_mind(model, rules, store, clock, shifts=shifts), recorded)

    return workflows.build(chosen, store, clock, calendar, _Voice(accepting, channels), minds)


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


def _shift_settings(settings: Settings) -> CalendarSettings:
    """Those that are configured, or the built-in calendar's."""
    if ledger.QUEUE in settings.channels:
        raise Misconfigured(
            f"the channel name {ledger.QUEUE!r} is the engine's own",
            remedy="give your channel another name",
        )
    return settings.inbound.calendar or CalendarSettings()


def _calendar(chosen: CalendarSettings, store: Store, clock: Clock) -> ShiftCalendar:
    """The shift calendar that commands go to."""
    if chosen.kind == "http":
        return HttpCalendar(chosen, now=clock.now)
    return BuiltinCalendar(store, chosen.name)


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
        keyed=traits.per_recipient is not None,
        breaker=BreakerRule(settings.breaker_failures, settings.breaker_pause),
        has_session=isinstance(channel, HasSession),
    )
