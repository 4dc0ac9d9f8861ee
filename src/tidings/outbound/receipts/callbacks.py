"""Call-backs: from a provider's request to receipts that are written down. The signature is the key."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ...kernel.clock import Clock
from ...model.errors import NotFound
from ...observability.events import Emit, ReceiptsTaken, silence
from ...store.port import Store
from .folding import Folded, Told, fold
from .listener import Listener, Nobody
from .readers import address
from .receipt import Callback, News, Reader


class Callbacks:
    """All channels whose providers call back."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        readers: Mapping[str, Reader],
        *,
        emit: Emit = silence,
        base: str = "",
        listener: Listener | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._readers = readers
        self._emit = emit
        self._base = base
        self.listener = listener or Nobody()

    def address(self, channel: str) -> str | None:
        """Where that channel's provider is to call; None where no call-backs are configured."""
        return address(self._base, channel) if channel in self._readers else None

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

    async def _fold(self, channel: str, reader: Reader, news: News) -> None:
        told = list(self._ours(channel, reader, news))
        folded = await fold(self._store, told) if told else Folded()
        strange = folded.strange + len(news.receipts) - len(told)
        self._emit(ReceiptsTaken(channel, folded.new, folded.again, strange))

    def _ours(self, channel: str, reader: Reader, news: News) -> Iterator[Told]:
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

    def _reader(self, channel: str) -> Reader:
        reader = self._readers.get(channel)
        if reader is None:
            problem = f"no call-backs are expected for {channel[:63]!r}"
            raise NotFound(problem, remedy="configure them for that channel, see docs/how-to/receipts.md")
        return reader
