"""A store whose heavy reads go to a PostgreSQL standby. Claims and settles always use the primary.

Lists and exports may be slightly stale. If the standby does not respond, the primary is used, and the standby
is tried again later.
"""

from __future__ import annotations

import time
from typing import Any

from ..model.errors import TidingsError
from ..observability.events import Emit, StoreError
from .port import Row, Store

# Reads that may be slightly stale; no decision depends on them.
REPLICA_READS = frozenset(
    {
        "upcoming_counts", "upcoming_ordered", "upcoming_ordered_page", "upcoming_page", "alert_page",
        "audit_page",
        "broadcast_page", "broadcast_recipients", "contact_page", "counts", "counts_due", "counts_overdue",
        "dead_groups", "dead_page", "import_page", "list_members", "list_page", "message_newest",
        "message_window", "occurrence_page", "schedule_page", "sent_below",
        "sent_page", "shadow_page", "subscription_page", "suppression_page", "attempt_tally_minutes",
        "attempt_tally_sums",
        "template_page", "template_version_page", "waited_page",
    }
)  # fmt: skip
_AGAIN = 10.0  # seconds until a failed standby is tried again


class ReplicaStore:
    """A `Store` for interfaces: only heavy reads do not go to the primary."""

    def __init__(self, primary: Store, standby: Store, *, emit: Emit) -> None:
        self._primary = primary
        self._standby = standby
        self._emit = emit
        self._is_open = False
        self._asleep_until = float("-inf")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._primary, name)

    async def read(self, name: str, **params: Any) -> list[Row]:
        """Run a read statement, on the standby if it is heavy."""
        if name not in REPLICA_READS or time.monotonic() < self._asleep_until:
            return await self._primary.read(name, **params)
        try:
            if not self._is_open:
                await self._standby.open(create=False)
                self._is_open = True
            return await self._standby.read(name, **params)
        except TidingsError as error:
            self._asleep_until = time.monotonic() + _AGAIN
            self._emit(StoreError.of("replica", error))
            return await self._primary.read(name, **params)

    async def close(self) -> None:
        """Close the standby; the primary is closed by its owner."""
        if self._is_open:
            await self._standby.close()
            self._is_open = False
