"""Roll back a broadcast whose upload was refused.

A broadcast with recipients is cancelled first, so that no other call continues it; then the rows are deleted
a page at a time. A crash in between leaves a cancelled broadcast with its reason. The idempotency key is
released at once.
"""

from __future__ import annotations

from ...model.broadcast import BroadcastState
from ...store.port import IdempotencyRecord, Step, Store

PAGE = 1000
LONGEST_REASON = 500


async def withdraw(store: Store, group_id: int, reason: str, kept: IdempotencyRecord | None) -> None:
    """Delete the broadcast, its recipients and its key, unless it has been frozen or changed meanwhile."""
    found = await store.read("broadcast_row", group_id=group_id)
    if not found or found[0]["state"] != BroadcastState.LOADING:
        return
    state, lines = BroadcastState.LOADING, found[0]["lines"]
    frees = [] if kept is None else [Step("idempotency_key_drop", {"scope": kept.scope, "key": kept.key}, only_if=0)]
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
