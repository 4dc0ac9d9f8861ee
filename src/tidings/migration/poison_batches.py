"""Quarantine of poison batches: a batch that keeps killing its node is bisected down to the one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..store.port import Row, Step, Store
from .jobs import BatchState


async def bisect_poison_batch(
    store: Store, row: Row, job: int, new_batch: Callable[[str, str, int], dict[str, Any]]
) -> None:
    """Move half of the records of a batch whose task failed to a new batch; a single record becomes a dead letter."""
    seen = row["id"] if row["last"] == 0 else None
    where = {"job": job, "type": row["type"], "round": row["round"], "seen": seen}
    found = (await store.read("job_rest_middle", **where, first=row["first"], last=row["last"] or 1 << 62))[0]
    state = BatchState.FAILED if found["n"] > 1 else BatchState.FAILED_FINAL if found["n"] else BatchState.COMPLETED
    close = {"id": row["id"], "expected": row["state"], "state": state.value, "reason": "it crashed its node"}
    steps = [Step("job_batch_close", {**close, "size": max(1, -(-found["n"] // 2))}, needed=True)]
    if state is BatchState.FAILED_FINAL:
        cause, reason = f"program/{row['type']}//node_down", "its node crashed on every attempt"
        steps.append(Step("job_poisoned", {"seq": found["first"], "fingerprint": cause, "reason": reason}))
    elif state is BatchState.FAILED:
        half = new_batch(row["type"], row["phase"], found["n"] // 2)
        middle = (found["first"] + found["last"]) // 2
        opens = Step("job_reopen_rest", {**where, "batch": half["id"], "after": middle, "last": found["last"]})
        steps += [Step("job_batch_add", half), opens]
    await store.write(steps)
