"""Per-recipient rate limit: wait slots that spread the retries of messages to one recipient.

The slots are a hint within one process. `delivery` reserves the start in the database (`store.rate_limits`)
and defers a message that comes too early.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MAX_SLOTS = 16  # slots before numbering starts again, because earlier messages may have left
_REMEMBERED = 10_000


class RecipientSlots:
    """The last wait slot given per channel, recipient and priority."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()

    def place(self, line: Hashable, free_at: int, gap: int, now: int) -> int:
        """When the next message may try. One that is early by half a gap or less waits until `free_at`."""
        if free_at - now <= gap // 2:
            return free_at
        at = max(free_at, self._last.get(line, 0) + gap)
        if at >= free_at + MAX_SLOTS * gap:
            at = free_at
        self._last[line] = at
        self._last.move_to_end(line)
        if len(self._last) > _REMEMBERED:
            self._last.popitem(last=False)
        return at
