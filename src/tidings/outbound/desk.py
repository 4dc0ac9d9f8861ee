"""The desk: all that a face may do with outbound messages, in one place, so that every face does the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from ..kernel.clock import Clock
from ..kernel.lanes import Lane
from ..store.encryption import Cipher
from ..store.port import Store
from ..wire.addresses import Rules
from .adoption.rollout import RollOut
from .ahead import Ahead
from .alerts.alerts import Alerts
from .alerts.figures import Figures
from .board import ChannelBoard
from .broadcasting.broadcasts import Broadcasts
from .broadcasting.freezing import Freezer
from .channels.base import Channel
from .dead import DeadLetters
from .events import telling
from .events.subscriptions import Subscriptions
from .health import Health, health
from .messages import Messages
from .overview import Overview
from .people.audience import Audience
from .people.contacts import Contacts
from .people.suppressions import Suppressions
from .receipts.callbacks import Callbacks
from .scheduling.making import MessageMaker
from .scheduling.schedules import Schedules
from .sent import SentLog
from .story import why_of
from .templating.templates import Templates
from .watch import Watch
from .why import Why


@dataclass(frozen=True, slots=True)
class Desk:
    """The parts, each with its own rules."""

    store: Store
    clock: Clock
    lease: timedelta
    messages: Messages
    dead: DeadLetters
    channels: ChannelBoard
    overview: Overview
    sent: SentLog
    subscriptions: Subscriptions
    contacts: Contacts
    audience: Audience
    suppressions: Suppressions
    schedules: Schedules
    rollout: RollOut
    broadcasts: Broadcasts
    freezer: Freezer
    callbacks: Callbacks
    alerts: Alerts

    @property
    def templates(self) -> Templates:
        """Those that messages are made of."""
        return self.messages.templates

    @property
    def ahead(self) -> Ahead:
        """What will go out, and when."""
        return Ahead(self.store, self.clock)

    async def why(self, id_: str, *, tenant: str = "default") -> Why:
        """What one message waits for, or what became of it."""
        return await why_of(self.store, self.messages, id_, tenant=tenant)

    async def health(self) -> Health:
        """Whether work gets done."""
        return await health(self.store, self.clock, lease=self.lease)

    async def ping(self) -> None:
        """Raises when the database does not answer."""
        await self.store.read("now")


def open_desk(
    store: Store,
    cipher: Cipher,
    clock: Clock,
    messages: Messages,
    channels: Mapping[str, Channel],
    lanes: Mapping[str, Lane],
    *,
    grace: timedelta,
    lease: timedelta,
    freezer: Freezer | None = None,
    callbacks: Callbacks | None = None,
    watch: Watch | None = None,
    figures: Figures | None = None,
) -> Desk:
    """Put the parts together."""
    callbacks = callbacks or Callbacks(store, clock, {})
    board = ChannelBoard(store, channels, lanes, callbacks.address)
    dead = DeadLetters(store, grace=grace)
    callable_at: Rules = getattr(channels.get(telling.CHANNEL), "rules", Rules())
    subscriptions = Subscriptions(store, clock, cipher, callable_at)
    reachable = [name for name in channels if name != telling.CHANNEL]
    own = frozenset({telling.CHANNEL, *lanes} - set(reachable))  # queues of the engine itself
    contacts = Contacts(store, clock, reachable)
    audience = Audience(store, clock, contacts)
    freezer = freezer or Freezer(store, clock, channels, messages.templates, audience, webhooks=callable_at)
    return Desk(
        store, clock, lease, messages, dead, board, Overview(store, watch or Watch(store, clock)),
        SentLog(store), subscriptions, contacts, audience, Suppressions(store, clock, reachable),
        schedules=Schedules(store, clock, {"message": MessageMaker(messages), "broadcast": freezer}),
        rollout=RollOut(store, clock, own=own), broadcasts=Broadcasts(store, clock), freezer=freezer,
        callbacks=callbacks, alerts=Alerts(store, clock, figures or Figures(store)),
    )  # fmt: skip
