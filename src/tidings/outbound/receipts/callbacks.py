"""Verify provider callbacks, record their receipts and pass on the rest; the reader of each channel kind."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any

from ...kernel.clock import Clock
from ...model.errors import NotFound
from ...observability.events import Emit, ReceiptsReceived, discard_event
from ...store.port import Store
from .base import Callback, CallbackContent, CallbackListener, CallbackReader
from .receipt_recorder import ChannelReceipt, RecordedReceipts, record_receipts

CALLBACK_KINDS = ("telegram", "twilio", "whatsapp_cloud", "whatsapp_session")  # one file each
CALLBACK_PATH = "/callbacks/"


def reader_of(kind: str, settings: Any, base: str | None) -> CallbackReader | None:
    """The callback reader for a channel's settings; None without callbacks."""
    if kind not in CALLBACK_KINDS:
        return None
    made: CallbackReader | None = import_module(f".{kind}", __package__).reader(settings, base)
    return made


def callback_url(base: str, channel: str) -> str:
    """The URL that a channel's provider calls."""
    return f"{base}{CALLBACK_PATH}{channel}"


class CallbackService:
    """Handles the callbacks of all channels."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        readers: Mapping[str, CallbackReader],
        *,
        emit: Emit = discard_event,
        base: str = "",
        ignore_opt_outs: Collection[str] = (),
    ) -> None:
        self._ignore_opt_outs = ignore_opt_outs  # channels that do not suppress reported opt-outs
        self._store = store
        self._clock = clock
        self._readers = readers
        self._emit = emit
        self._base = base
        self.listener: CallbackListener | None = None

    def address(self, channel: str) -> str | None:
        """The callback URL of a channel; None if it has no callbacks."""
        return callback_url(self._base, channel) if channel in self._readers else None

    def challenge(self, channel: str, query: Mapping[str, str]) -> str:
        """Answer a provider's verification challenge; raises BadSignature."""
        return self._reader(channel).challenge(query)

    async def take(self, channel: str, call: Callback) -> None:
        """Verify a callback, record its receipts and pass on other content; raises BadSignature."""
        reader = self._reader(channel)
        reader.verify(call)
        news = reader.read(call, now=self._clock.now())
        if news.receipts:
            await self._record(channel, reader, news)
        if news.heard is not None and self.listener is not None:
            await self.listener.heard(channel, self._accounts(channel, reader), news.heard)

    async def _record(self, channel: str, reader: CallbackReader, news: CallbackContent) -> None:
        receipts = list(self._ours(channel, reader, news))
        folded = await record_receipts(self._store, receipts) if receipts else RecordedReceipts()
        strange = folded.strange + len(news.receipts) - len(receipts)
        self._emit(ReceiptsReceived(channel, folded.new, folded.again, strange))

    def _ours(self, channel: str, reader: CallbackReader, news: CallbackContent) -> Iterator[ChannelReceipt]:
        """Each receipt with its channel."""
        accounts = self._accounts(channel, reader)
        for receipt in news.receipts:
            if (name := accounts.get(receipt.account)) is not None:
                opted_out = receipt.opted_out and name not in self._ignore_opt_outs
                yield name, receipt._replace(opted_out=opted_out)

    def _accounts(self, channel: str, reader: CallbackReader) -> Mapping[str, str]:
        """The channels of accounts with the same signing key, which may share one URL."""
        trusted = {other.account: name for name, other in self._readers.items() if reader.trusts(other)}
        return {**trusted, reader.account: channel}

    def _reader(self, channel: str) -> CallbackReader:
        reader = self._readers.get(channel)
        if reader is None:
            problem = f"the channel {channel[:63]!r} has no callbacks configured"
            raise NotFound(problem, remedy="configure them, see: tidings docs receipts")
        return reader
