"""The reconciler: closes and reports commands whose task ended without a result.

A task may be quarantined by the kernel, cancelled by a person, or pruned. A command that was not sent is then
refused; otherwise its outcome is unknown.
"""

from __future__ import annotations

from ...kernel.clock import Clock
from ...model.time import iso
from ...store.port import Row, Step, Store, WriteConflict
from .ledger import followup

LOOK = 5.0  # seconds between two steps
PAGE = 100


class EffectReconciler:
    """An actor; one step closes one page of commands."""

    name = "effect_reconciler"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def step(self) -> float:
        """Close commands without a running task; returns the wait in seconds."""
        page = await self._store.read("effect_stray", limit=PAGE)
        for row in page:
            await self._close(row)
        return 0.0 if len(page) == PAGE else LOOK

    async def _close(self, row: Row) -> None:
        now = self._clock.now()
        tasks, rows = followup(row["plan"], row["tenant"], row["conversation"], now=now)
        line = f"{iso(now)} given up: its task ended without a result\n"
        step = Step("effect_give_up", {"task": row["task"], "line": line}, needed=True)
        try:
            await self._store.enqueue(tasks, rows, also=[step])
        except WriteConflict:  # another process was faster
            return
        if tasks:
            await self._store.hint()
