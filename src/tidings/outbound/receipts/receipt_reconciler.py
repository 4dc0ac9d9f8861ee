"""The keeper: settles what was proved too early, and forgets receipts of messages that are not ours."""

from __future__ import annotations

from datetime import timedelta

from ...kernel.clock import Clock
from ...model.time import micros
from ...store.port import Row, Step, Store
from .receipt_recorder import is_uncertain, settle_steps

PAGE = 500
UNMATCHED_RETENTION = timedelta(
    days=1
)  # for the settle of a send whose receipt came first; it is mostly milliseconds
POLL_INTERVAL = 5.0  # seconds between two looks


class ReceiptReconciler:
    """An actor. A proof may come while its message is at work, on a node that then dies: whatever becomes of
    the message after that, the proof is not forgotten."""

    name = "receipts"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def step(self) -> float:
        """One page of proofs, one page of strangers."""
        page = await self._store.read("receipt_open", limit=PAGE)
        settled = [row for row in page if row["state"] != "processing"]
        if settled:
            await self._settle(settled)
        old = {"before": self._clock.now() - micros(UNMATCHED_RETENTION), "limit": PAGE}
        gone = (await self._store.write([Step("receipt_prune", old)]))[0]
        return 0.0 if len(gone) == PAGE or len(settled) == PAGE else POLL_INTERVAL

    async def _settle(self, rows: list[Row]) -> None:
        """What has ended meanwhile needs no proof; what waits or is in doubt is done after all."""
        doubtful = {row["id"]: row for row in rows if row["id"] is not None and is_uncertain(row)}
        steps, keys = settle_steps(list(doubtful.values()))
        moved = len(steps)
        steps += [Step("receipt_close", {"channel": row["channel"], "name": row["name"]}) for row in rows]
        done = await self._store.change(steps, keys=keys)
        if any(done[:moved]):
            await self._store.hint()
