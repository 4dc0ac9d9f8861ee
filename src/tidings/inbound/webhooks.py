"""Receives the webhooks of sources (/inbound/NAME) and the inbound messages in callbacks of channels."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from ..kernel.clock import Clock
from ..model.errors import NotFound
from .domain import IncomingMessage
from .ingestion import InboxIngestion, IngestionResult
from .sources.port import WebhookRequest
from .sources.registry import READERS, called
from .sources.settings import SourceSettings

NumberLookup = Callable[[str, str], Awaitable[str | None]]  # of a linked id, by channel


async def _unknown_number(_channel: str, _id: str) -> str | None:
    return None


class InboundWebhooks:
    """Verifies, parses and ingests webhooks and callbacks."""

    def __init__(self, clock: Clock, intake: InboxIngestion, sources: Mapping[str, SourceSettings]) -> None:
        self._clock = clock
        self._intake = intake
        self._sources = sources
        self._called = {name: called(source, now=clock.wall) for name, source in sources.items()}
        self.number_of: NumberLookup = _unknown_number

    async def heard(self, channel: str, accounts: Mapping[str, str], payload: Mapping[str, Any]) -> None:
        """Ingest a verified callback: each message goes to the sources of the channel whose account received it.

        A message to an account without a source is skipped, with a reason, in the sources of the called channel.
        """
        sources = [source for source in self._sources.values() if source.kind in READERS]
        used = {source.channel for source in sources}
        for source in sources:
            said: list[IncomingMessage] = []
            for parsed in READERS[source.kind](source, payload):
                one = parsed if parsed.at else parsed._replace(at=self._clock.wall())
                owner = channel if one.account is None else accounts.get(one.account)
                if owner == source.channel:
                    said.append(one)
                elif source.channel == channel and owner not in used:
                    said.append(one._replace(is_elsewhere=True))
            if said:
                await self._intake.called(source, [await self._numbered(source.channel, one) for one in said])

    async def _numbered(self, channel: str | None, one: IncomingMessage) -> IncomingMessage:
        """Replace a linked id (lid) of WhatsApp with the phone number behind it; a hidden number keeps its lid."""
        if channel is None or one.own or not one.sender.endswith("@lid"):
            return one
        number = await self.number_of(channel, one.sender)
        if number is None:
            return one
        return one._replace(sender=number, conversation=number if one.conversation == one.sender else one.conversation)

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
