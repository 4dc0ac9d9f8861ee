"""Live updates for open pages: each has a bounded buffer that is read in batches.

Publishing never blocks and is free without listeners. A page that falls behind is told that entries were
missed, and reloads everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from .ledger import SandboxEntry

MAX_BUFFERED_ENTRIES = 50


@dataclass(slots=True)
class FeedBatch:
    """Updates since the last batch."""

    entries: list[SandboxEntry] = field(default_factory=list)
    faults_changed: bool = False
    missed: bool = False


class FeedListener:
    """One open page."""

    def __init__(self, feed: LiveFeed) -> None:
        self._feed = feed
        self._batch = FeedBatch()
        self._wake = asyncio.Event()

    def tell(self, entry: SandboxEntry | None) -> None:
        """Buffer one entry; None means that the faults have changed."""
        if entry is None:
            self._batch.faults_changed = True
        elif len(self._batch.entries) < MAX_BUFFERED_ENTRIES:
            self._batch.entries.append(entry)
        else:
            self._batch.missed = True
        self._wake.set()

    async def next(self, patience: float) -> FeedBatch | None:
        """Return the buffered updates, waiting up to `patience` seconds; None when the feed is closed."""
        if not self._feed.closed:
            try:
                await asyncio.wait_for(self._wake.wait(), patience)
            except TimeoutError:
                return FeedBatch()
        if self._feed.closed:
            return None
        self._wake.clear()
        batch, self._batch = self._batch, FeedBatch()
        return batch


class LiveFeed:
    """All open pages."""

    def __init__(self) -> None:
        self.listeners: set[FeedListener] = set()
        self.closed = False

    def tell(self, entry: SandboxEntry | None) -> None:
        """Notify every open page."""
        for listener in self.listeners:
            listener.tell(entry)

    @contextmanager
    def listen(self) -> Iterator[FeedListener]:
        """Listen as a new page within the `with` block."""
        listener = FeedListener(self)
        self.listeners.add(listener)
        try:
            yield listener
        finally:
            self.listeners.discard(listener)

    def close(self) -> None:
        """End every stream, so that a server with open pages can stop immediately."""
        self.closed = True
        self.tell(None)
