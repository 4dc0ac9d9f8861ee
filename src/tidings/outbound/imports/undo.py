"""Undo an import: cancel what it created and has not been sent. The rows may then be imported again.

A row whose status was written back gets its old status back, by the write-back.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from ...model.errors import Conflict, NotFound
from ...model.task import TaskState
from ...model.time import iso
from ...store.port import OrderingKey, Row, Step, Store
from ..service import OutboundService

PAGE = 500
_WORDS = ("cancelled", "being_sent", "sent", "failed", "schedules_ended")


class ImportUndo:
    """Undoes the runs of one tenant."""

    def __init__(self, store: Store, outbound: OutboundService, *, tenant: str = "default") -> None:
        self._store = store
        self._outbound = outbound
        self._tenant = tenant

    async def undo(self, run: str, progress: Callable[[int], None] = lambda _count: None) -> Row:
        """Undo one run; counts its rows by what became of them. Safe to repeat."""
        found = await self._store.read("import_find", id=run, tenant=self._tenant)
        if not found:
            raise NotFound(f"there is no run {run[:60]!r}", field="run", remedy="see: tidings import list")
        if found[0]["undone_at"] is not None:
            raise Conflict(f"this run was undone at {iso(found[0]['undone_at'])}", remedy="import it again")
        is_written_back = bool(await self._store.read("write_back_find", source=found[0]["source"]))
        release = "import_restore" if is_written_back else "import_drop"
        counts: Counter[str] = Counter()
        ended: set[str] = set()
        after, seen = "", 0
        while page := await self._store.read("import_page", run=run, after=after, limit=PAGE):
            after = page[-1]["key"]
            for made, kind in {row["made"]: row["kind"] for row in page}.items():
                if kind != "message" and made not in ended:
                    ended.add(made)
                    counts["schedules_ended"] += await self._end(made, kind)
            counts += await self._undo(page, release)
            seen += len(page)
            progress(seen)
        if not counts["being_sent"]:
            await self._store.write([Step("import_undone", {"id": run})])
        return {"run": run, **{word: counts[word] for word in _WORDS}}

    async def _end(self, made: str, kind: str) -> int:
        """End a schedule or cancel a broadcast; returns the number of schedules."""
        try:
            if kind == "schedule":
                await self._outbound.schedules.end(made, tenant=self._tenant)
                return 1
            await self._outbound.broadcasts.cancel(made, reason="its import was undone", tenant=self._tenant)
        except (Conflict, NotFound):  # it has ended, or was removed
            pass
        return 0

    async def _undo(self, page: Sequence[Row], release: str) -> Counter[str]:
        """Undo one page in one transaction; each change names the state that it expects."""
        steps: list[Step] = []
        moves: list[int] = []
        for row in page:
            place = {"source": row["source"], "key": row["key"]}
            if row["kind"] == "message" and row["state"] == TaskState.PENDING:
                moves.append(len(steps))
                steps += _cancelled(row, len(steps), Step(release, place))
            elif row["state"] == TaskState.PROCESSING:
                steps.append(Step("request_cancel", {"id": row["task"]}))
            elif row["state"] not in (TaskState.DONE, TaskState.FAILED):
                steps.append(Step(release, place))
        keys: set[OrderingKey] = {
            (row["queue"], row["ordering_key"]) for row in page if row["ordering_key"] is not None
        }
        done = await self._store.change(steps, keys=keys) if steps else []
        missed = sum(not done[place] for place in moves)  # claimed since the page was read
        states = Counter(row["state"] for row in page)
        recipients = sum(row["kind"] == "broadcast" and row["state"] not in _KEPT for row in page)
        return Counter(
            cancelled=len(moves) - missed + recipients,
            being_sent=states[TaskState.PROCESSING] + missed,
            sent=states[TaskState.DONE],
            failed=states[TaskState.FAILED],
        )


_KEPT = (TaskState.PROCESSING, TaskState.DONE, TaskState.FAILED)


def _cancelled(row: Row, place: int, release: Step) -> list[Step]:
    line = {
        "task": row["task"],
        "origin": TaskState.PENDING.value,
        "state": TaskState.CANCELLED.value,
        "attempt": row["attempts"],
        "node": None,
        "category": None,
        "detail": "its import was undone",
    }
    return [
        Step("cancel", {"id": row["task"], "expected": TaskState.PENDING.value}),
        Step("record_now", line, only_if=place),
        release._replace(only_if=place),
    ]
