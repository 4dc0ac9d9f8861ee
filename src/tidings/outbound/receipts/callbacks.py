"""Call-backs: from a provider's request to receipts that are written down. The signature is the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...kernel.clock import Clock
from ...model.errors import NotFound
from ...observability.events import Emit, ReceiptsReceived, discard_event
from ...store.port import Store
from .base import Callback, CallbackContent, CallbackReader
from .callback_listener import CallbackListener, NoCallbackListener
from .receipt_recorder import ChannelReceipt, RecordedReceipts, record_receipts
from .registry import callback_url


class CallbackService:
    """All channels whose providers call back."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        readers: Mapping[str, CallbackReader],
        *,
        emit: Emit = discard_event,
        base: str = "",
        listener: CallbackListener | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._readers = readers
        self._emit = emit
        self._base = base
        self.listener = listener or NoCallbackListener()

    def address(self, channel: str) -> str | None:
        """Where that channel's provider is to call; None where no call-backs are configured."""
        return callback_url(self._base, channel) if channel in self._readers else None

    def challenge(self, channel: str, query: Mapping[str, str]) -> str:
        """Prove to a provider that this address is ours; raises BadSignature for anybody else."""
        return self._reader(channel).challenge(query)

    async def take(self, channel: str, call: Callback) -> None:
        """Verify a call-back, write its receipts down, and pass on what else it says.

        Raises BadSignature and changes nothing unless the provider signed exactly this.
        """
        reader = self._reader(channel)
        reader.verify(call)
        news = reader.read(call, now=self._clock.now())
        if news.receipts:
            await self._fold(channel, reader, news)
        if news.heard is not None:
            await self.listener.heard(channel, reader.kind, news.heard)

    async def _fold(self, channel: str, reader: CallbackReader, news: CallbackContent) -> None:
        told = list(self._ours(channel, reader, news))
        folded = await record_receipts(self._store, told) if told else RecordedReceipts()
        strange = folded.strange + len(news.receipts) - len(told)
        self._emit(ReceiptsReceived(channel, folded.new, folded.again, strange))

    def _ours(self, channel: str, reader: CallbackReader, news: CallbackContent) -> Iterator[ChannelReceipt]:
        """Each receipt with its channel: one address may serve several accounts of whoever signs."""
        accounts = {
            other.account: name
            for name, other in self._readers.items()
            if name == channel or reader.trusts(other)
        }
        accounts[reader.account] = channel
        return (
            (accounts[receipt.account], receipt) for receipt in news.receipts if receipt.account in accounts
        )

    def _reader(self, channel: str) -> CallbackReader:
        reader = self._readers.get(channel)
        if reader is None:
            problem = f"no call-backs are expected for {channel[:63]!r}"
            raise NotFound(problem, remedy="configure them for that channel, see docs/how-to/receipts.md")
        return reader
