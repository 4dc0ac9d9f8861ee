"""A store whose heavy reads go to a PostgreSQL standby (B12). Claims, settles and single things never do.

Lists, pages and exports may be a moment behind. A standby that does not answer is passed over: the primary
answers, and a later read tries the standby again.
"""

from __future__ import annotations

import time
from typing import Any

from ..model.errors import TidingsError, told
from ..observability.events import Emit, StoreTrouble
from .port import Row, Store

HEAVY = frozenset(
    {
        "broadcast_recipients", "counts", "counts_due", "counts_overdue", "dead_groups", "list_members",
        "message_newest", "message_window", "sent_below", "tally_minutes", "tally_sums",
    }
)  # fmt: skip
_AGAIN = 10.0  # seconds until a standby that failed is asked again


def is_heavy(name: str) -> bool:
    """Whether a read statement may be answered a moment late by somebody else."""
    return name in HEAVY or name.endswith("_page")


class WithReplica:
    """A `Store` for faces: everything is the primary's but heavy reads."""

    def __init__(self, primary: Store, standby: Store, *, emit: Emit) -> None:
        self._primary = primary
        self._standby = standby
        self._emit = emit
        self._is_open = False
        self._asleep_until = float("-inf")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._primary, name)

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement, where it belongs."""
        if not is_heavy(name) or time.monotonic() < self._asleep_until:
            return await self._primary.read(name, **params)
        try:
            if not self._is_open:
                await self._standby.open(create=False)
                self._is_open = True
            return await self._standby.read(name, **params)
        except TidingsError as error:
            self._asleep_until = time.monotonic() + _AGAIN
            self._emit(StoreTrouble("replica", told(error)))
            return await self._primary.read(name, **params)

    async def close(self) -> None:
        """Let go of the standby; the primary is closed by whoever opened it."""
        if self._is_open:
            await self._standby.close()
            self._is_open = False
