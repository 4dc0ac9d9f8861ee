"""Quarantine of poison batches: a batch that keeps killing its node is bisected down to the one record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..store.port import Row, Step, Store
from .jobs import BatchState


async def bisect_poison_batch(
    store: Store, row: Row, job: int, new_batch: Callable[[str, str, int], dict[str, Any]]
) -> None:
    """Replace a batch whose task failed by two halves; a single record becomes a dead letter."""
    seen = row["id"] if row["last"] == 0 else None
    where = {"job": job, "type": row["type"], "round": row["round"], "seen": seen}
    found = (await store.read("job_rest_middle", **where, first=row["first"], last=row["last"] or 1 << 62))[0]
    close: dict[str, Any] = {"id": row["id"], "expected": row["state"], "reason": "it crashed its node"}
    if found["n"] <= 1:
        state = BatchState.FAILED_FINAL if found["n"] else BatchState.COMPLETED
        steps = [Step("job_batch_close", {**close, "state": state.value}, needed=True)]
        if found["n"]:
            cause = f"program/{row['type']}//node_down"
            reason = "its node crashed on every attempt"
            steps.append(Step("job_lonely", {"seq": found["first"], "fingerprint": cause, "reason": reason}))
        await store.write(steps)
        return
    middle = (found["first"] + found["last"]) // 2
    steps = [Step("job_batch_close", {**close, "state": BatchState.FAILED.value}, needed=True)]
    for after, upto in ((found["first"] - 1, middle), (middle, found["last"])):
        half = new_batch(row["type"], row["phase"], -(-found["n"] // 2))
        opens = Step("job_reopen_rest", {**where, "batch": half["id"], "after": after, "last": upto})
        steps += [Step("job_batch_add", half), opens]
    await store.write(steps)
