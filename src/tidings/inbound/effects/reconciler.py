"""The aftermath: commands whose task ended otherwise than by their own result are closed and told of.

A task may be given up by the kernel (it took its node down), be cancelled by a person, or be gone. Whatever
was certainly not sent is then refused; the rest is unknown.
"""

from __future__ import annotations

from ...kernel.clock import Clock
from ...model.time import iso
from ...store.port import Row, Step, Store, WriteConflict
from .ledger import followup

LOOK = 5.0  # seconds between two looks
PAGE = 100


class EffectReconciler:
    """An actor; one step closes one page."""

    name = "aftermath"

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def step(self) -> float:
        """Close what was left behind."""
        page = await self._store.read("effect_stray", limit=PAGE)
        for row in page:
            await self._close(row)
        return 0.0 if len(page) == PAGE else LOOK

    async def _close(self, row: Row) -> None:
        now = self._clock.now()
        tasks, rows = followup(row["plan"], row["tenant"], row["conversation"], now=now)
        line = f"{iso(now)} given up: nobody works on it any more\n"
        step = Step("effect_give_up", {"task": row["task"], "line": line}, needed=True)
        try:
            await self._store.enqueue(tasks, rows, also=[step])
        except WriteConflict:  # another node was faster
            return
        if tasks:
            await self._store.hint()
