"""Listening: what is called in, at an address of its own or through a channel's call-backs."""

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
    """Takes in what platforms call with."""

    def __init__(self, clock: Clock, intake: InboxIngestion, sources: Mapping[str, SourceSettings]) -> None:
        self._intake = intake
        self._sources = sources
        self._called = {name: called(source, now=clock.wall) for name, source in sources.items()}

    async def heard(self, channel: str, kind: str, payload: Mapping[str, Any]) -> None:
        """A call-back of a channel that was verified already; one that no source listens to says nothing."""
        for source in self._sources.values():
            if source.channel == channel and source.kind in READERS:
                said = READERS[source.kind](source, payload)
                if said:
                    await self._intake.called(source, said)

    async def call(self, name: str, call: WebhookRequest) -> IngestionResult:
        """A request to /inbound/NAME; raises NotGenuine before anything is looked at."""
        own = self._called.get(name)
        if own is None:
            raise NotFound(
                f"no source called {name[:60]!r} is called here",
                field="source",
                remedy="give it secrets under [inbound.sources]; one with a channel uses /callbacks/CHANNEL",
            )
        said = own.called(call)
        return await self._intake.called(self._sources[name], said)
