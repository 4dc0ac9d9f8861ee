"""Messages per recipient and channel, as the phone shows them, in bounded memory.

Rejected requests are kept too, so the page shows every attempt.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from .ledger import SandboxEntry

PER_CONVERSATION = 500
MAX_CONVERSATIONS = 1_000
MAX_ENTRIES = 20_000  # over all conversations, to bound memory


@dataclass(slots=True)
class SandboxConversation:
    """One recipient on one channel; `entries` is never empty."""

    channel: str
    to: str
    entries: deque[SandboxEntry] = field(default_factory=deque)
    delivered: int = 0
    duplicates: int = 0

    @property
    def last(self) -> SandboxEntry:
        """The newest entry."""
        return self.entries[-1]

    def summary(self) -> dict[str, object]:
        """The conversation without its messages."""
        return {
            "channel": self.channel,
            "to": self.to,
            "delivered": self.delivered,
            "duplicates": self.duplicates,
            "last": self.last.record(),
        }


class SandboxConversations:
    """All conversations; the least recently active one is dropped first."""

    def __init__(
        self,
        per_conversation: int = PER_CONVERSATION,
        max_conversations: int = MAX_CONVERSATIONS,
        max_entries: int = MAX_ENTRIES,
    ) -> None:
        self._per_conversation, self._max_conversations = per_conversation, max_conversations
        self._max_entries = max_entries
        self._size = 0
        self._by_key: OrderedDict[tuple[str, str], SandboxConversation] = OrderedDict()  # by last entry

    def __len__(self) -> int:
        return len(self._by_key)

    def add(self, entry: SandboxEntry) -> None:
        """Add one request; a request without a recipient is ignored."""
        if not entry.to:
            return
        key = (entry.channel, entry.to)
        conversation = self._by_key.pop(key, None) or SandboxConversation(*key)
        self._by_key[key] = conversation
        conversation.entries.append(entry)
        conversation.delivered += entry.delivered
        conversation.duplicates += entry.copy > 1
        self._size += 1
        self._trim(conversation)

    def newest_first(self) -> Iterator[SandboxConversation]:
        """Yield the conversations, most recent first."""
        return reversed(self._by_key.values())

    def find(self, channel: str, to: str) -> SandboxConversation | None:
        """Return one conversation, if it is still in memory."""
        return self._by_key.get((channel, to))

    def _trim(self, latest: SandboxConversation) -> None:
        if len(latest.entries) > self._per_conversation:
            latest.entries.popleft()
            self._size -= 1
        while len(self._by_key) > self._max_conversations or (self._size > self._max_entries and len(self._by_key) > 1):
            _, oldest = self._by_key.popitem(last=False)
            self._size -= len(oldest.entries)
