"""Released claims: tasks that go back unused cost no attempt."""

from __future__ import annotations

from datetime import timedelta

from tidings.kernel.claim_release import ClaimReleaser
from tidings.kernel.clock import ManualClock
from tidings.kernel.heartbeats import Node
from tidings.store.port import Step, Store

from .test_store import new, queues, wish


async def test_one_that_was_cancelled_meanwhile_passes_its_turn_on(store: Store, clock: ManualClock) -> None:
    """Design rule 14: it does not come back, so the next in its line is free. Nobody else would free it."""
    await queues(store, "q")
    me = Node(store, clock, node_timeout=timedelta(seconds=10))
    await me.join()
    await store.enqueue([new(clock, late=2, ordering_key="a"), new(clock, late=1, ordering_key="a")])
    [first] = (await store.claim(me.id, wish())).tasks
    await store.write([Step("request_cancel", {"id": first.id})])

    await ClaimReleaser(store, me, {}).release_claims([first], "the answer was lost", lambda _: first.due_at)

    [second] = (await store.claim(me.id, wish())).tasks
    assert second.id > first.id
