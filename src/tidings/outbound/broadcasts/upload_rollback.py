"""Withdrawing: nothing stays of a broadcast that is refused while its recipients come in.

One that has some is given up first, so that nobody goes on with it; then they go a page at a time. A death
in between leaves a cancelled broadcast that says why. Its key is free again at once.
"""

from __future__ import annotations

from ...model.broadcast import BroadcastState
from ...store.port import IdempotencyRecord, Step, Store

PAGE = 1000
LONGEST_REASON = 500


async def withdraw(store: Store, group_id: int, reason: str, kept: IdempotencyRecord | None) -> None:
    """Take it back, unless somebody has moved it meanwhile."""
    found = await store.read("broadcast_row", group_id=group_id)
    if not found or found[0]["state"] != BroadcastState.LOADING:
        return
    state, lines = BroadcastState.LOADING, found[0]["lines"]
    frees = (
        []
        if kept is None
        else [Step("idempotency_key_drop", {"scope": kept.scope, "key": kept.key}, only_if=0)]
    )
    if lines:
        cancel = {"group_id": group_id, "expected": state.value, "reason": reason[:LONGEST_REASON]}
        if not (await store.write([Step("broadcast_cancel", cancel), *frees]))[0]:
            return
        state, frees = BroadcastState.CANCELLED, []
        page = [Step("group_withdraw", {"group_id": group_id, "limit": PAGE})]
        while len((await store.write(page))[0]) == PAGE:
            pass
    remove = {"group_id": group_id, "expected": state.value, "lines": lines}
    await store.write(
        [
            Step("broadcast_remove", remove),
            Step("broadcast_parts_remove", {"group_id": group_id}, only_if=0),
            Step("group_remove", {"group_id": group_id}, only_if=0),
            *frees,
        ]
    )
