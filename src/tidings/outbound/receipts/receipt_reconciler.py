"""Settle receipts that arrived early and prune those without a message."""

from __future__ import annotations

from datetime import timedelta

from ...kernel.clock import Clock
from ...model.time import micros
from ...store.port import Row, Step, Store
from .receipt_recorder import is_uncertain, settle_steps

PAGE = 500
UNMATCHED_RETENTION = timedelta(days=1)  # the settle of a send usually follows within milliseconds
POLL_INTERVAL = 5.0  # seconds


class ReceiptReconciler:
    """An actor that settles messages whose receipt came while they were being sent on a node that died."""

    name = "receipts"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def step(self) -> float:
        """Settle one page of receipts and prune one page."""
        page = await self._store.read("receipt_open", limit=PAGE)
        settled = [row for row in page if row["state"] != "processing"]
        if settled:
            await self._settle(settled)
        old = {"before": self._clock.now() - micros(UNMATCHED_RETENTION), "limit": PAGE}
        gone = (await self._store.write([Step("receipt_prune", old)]))[0]
        return 0.0 if len(gone) == PAGE or len(settled) == PAGE else POLL_INTERVAL

    async def _settle(self, rows: list[Row]) -> None:
        """Settle waiting and uncertain messages as done; close the receipts."""
        uncertain = {row["id"]: row for row in rows if row["id"] is not None and is_uncertain(row)}
        steps, keys = settle_steps(list(uncertain.values()))
        moved = len(steps)
        steps += [Step("receipt_close", {"channel": row["channel"], "name": row["name"]}) for row in rows]
        done = await self._store.change(steps, keys=keys)
        if any(done[:moved]):
            await self._store.hint()
