"""Receives the webhooks of sources (/inbound/NAME) and the inbound messages in callbacks of channels."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..kernel.clock import Clock
from ..model.errors import NotFound
from .ingestion import InboxIngestion, IngestionResult
from .sources.port import WebhookRequest
from .sources.registry import READERS, called
from .sources.settings import SourceSettings


class InboundWebhooks:
    """Verifies, parses and ingests webhooks and callbacks."""

    def __init__(self, clock: Clock, intake: InboxIngestion, sources: Mapping[str, SourceSettings]) -> None:
        self._intake = intake
        self._sources = sources
        self._called = {name: called(source, now=clock.wall) for name, source in sources.items()}

    async def heard(self, channel: str, kind: str, payload: Mapping[str, Any]) -> None:
        """Ingest a verified callback of a channel; ignored if no source uses the channel."""
        for source in self._sources.values():
            if source.channel == channel and source.kind in READERS:
                said = READERS[source.kind](source, payload)
                if said:
                    await self._intake.called(source, said)

    async def call(self, name: str, call: WebhookRequest) -> IngestionResult:
        """Ingest a request to /inbound/NAME; raises UnverifiedWebhook before it parses anything."""
        own = self._called.get(name)
        if own is None:
            raise NotFound(
                f"source {name[:60]!r} has no webhook",
                field="source",
                remedy="set its secrets in [inbound.sources]; sources with a channel use /callbacks/CHANNEL",
            )
        said = own.called(call)
        return await self._intake.called(self._sources[name], said)
