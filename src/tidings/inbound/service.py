"""The inbound service used by the API, CLI and dashboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..kernel.clock import Clock
from ..observability.events import Emit, discard_event
from ..store.port import Step, Store
from .inbox import Inbox
from .ingestion import InboxIngestion
from .opt_out_keywords import TwoWayChannels
from .poller import Poller
from .roster import Roster
from .source_notices import NoticeSteps, notice_event_steps
from .sources.registry import polled
from .sources.settings import SourceSettings
from .webhooks import InboundWebhooks


@dataclass(frozen=True, slots=True)
class InboundService:
    """Inbox, roster, ingestion, webhooks and pollers."""

    sources: Mapping[str, SourceSettings]
    inbox: Inbox
    roster: Roster
    ingestion: InboxIngestion
    webhooks: InboundWebhooks
    pollers: Sequence[Poller]
    store: Store

    async def open(self) -> None:
        """Register new sources; messages sent from now on are handled."""
        if not self.sources:
            return
        known = {row["name"] for row in await self.store.read("source_list", limit=1000)}
        new = [source for name, source in self.sources.items() if name not in known]
        if new:
            await self.store.write([Step("source_join", {"name": source.name, "kind": source.kind}) for source in new])

    async def close(self) -> None:
        """Close all connections."""
        for poller in self.pollers:
            await poller.source.close()


def open_inbound(
    store: Store,
    clock: Clock,
    sources: Mapping[str, SourceSettings],
    *,
    production: bool = True,
    tell: NoticeSteps = notice_event_steps,
    emit: Emit = discard_event,
    channels: TwoWayChannels | None = None,
) -> InboundService:
    """Build the service; its pollers are actors that a worker runs."""
    roster = Roster(store, tuple(sources))
    ingestion = InboxIngestion(store, clock, roster, production=production, tell=tell, emit=emit, channels=channels)
    pollers = [
        Poller(store, clock, source, settings, ingestion, tell=tell, emit=emit)
        for settings in sources.values()
        if (source := polled(settings, now=clock.wall)) is not None
    ]
    return InboundService(
        sources,
        Inbox(store, clock, sources),
        roster,
        ingestion,
        InboundWebhooks(clock, ingestion, sources),
        pollers,
        store,
    )
