"""Lines: where a message that waits for its recipient is put, so that not all of them look at once.

Only a hint of this process: whoever comes too early all the same is put back again, whoever finds its
recipient free goes first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable

MAX_SLOTS = 16  # places of a line; then it begins again, for those in front may have gone meanwhile
_REMEMBERED = 10_000


class RecipientSlots:
    """The last place given in each line: one per channel, recipient and priority."""

    def __init__(self) -> None:
        self._last: OrderedDict[Hashable, int] = OrderedDict()

    def place(self, line: Hashable, free_at: int, gap: int, now: int) -> int:
        """When the next of this line may try; whoever is only a little early waits for just that."""
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
