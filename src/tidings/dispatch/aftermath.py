"""What becomes of errands that nobody can answer for any more, and of answers that come too late."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..kernel.decide import Decision, died
from ..kernel.handler import Handler, Remote, effects
from ..kernel.queue import evidence, late_result, look
from ..model.outcome import Done, Outcome
from ..model.task import NodeId, State, Task, TaskId
from ..observability.events import ClaimLost, Emit
from ..store.port import Store, Tally, order_keys
from .errands import Errand
from .wire import Told, say


async def settle_doubtful(
    store: Store,
    node: NodeId,
    errands: Sequence[Errand],
    handlers: Mapping[str, Handler],
    *,
    now: int,
    poison_after: int,
) -> list[Decision]:
    """Whoever had these is gone: as with the tasks of a dead node, they are in doubt."""
    decisions = [
        died(e.task, e.lane, started=True, alone=e.alone, now=now, poison_after=poison_after) for e in errands
    ]
    moves = [decision.move for decision in decisions]
    tasks = [errand.task for errand in errands]
    sums: dict[tuple[str, str], int] = {}
    for task, decision in zip(tasks, decisions, strict=True):
        sums[task.queue, decision.what] = sums.get((task.queue, decision.what), 0) + 1
    tally = [Tally(queue, what, n, 0) for (queue, what), n in sums.items()]
    await store.settle(node, moves, keys=order_keys(tasks), tally=tally, also=effects(handlers, tasks, moves))
    return decisions


def judged(handlers: Mapping[str, Handler], errand: Errand, outcome: Outcome) -> Outcome:
    """What came of it, in the eyes of whoever knows its content."""
    handler = handlers.get(errand.task.kind)
    return handler.incoming(errand.task, errand.content, outcome) if isinstance(handler, Remote) else outcome


async def late_news(store: Store, node: NodeId, channel: str, late: Sequence[Told], *, emit: Emit) -> None:
    """Results of claims that have gone: kept in the history, and proof where they say 'sent'.

    Their tokens hold, so each of these claims was dispatched on this channel.
    """
    for told in late:
        row = await look(store, told.key[0])
        if row is None or row["queue"] != channel:
            continue  # a transport speaks for its own channel only
        if row["state"] == State.DONE and row["claim_no"] == told.key[1]:
            continue  # the same news a second time
        if isinstance(told.outcome, Done):
            await evidence(store, told.key[0], node=node, detail="a late report says that it was sent")
        else:
            await late_result(store, node, _bare(told.key[0], channel), told.outcome)
        emit(ClaimLost(node, told.key[0], channel, say(told.outcome)["outcome"]))


def _bare(id_: int, queue: str) -> Task:
    return Task(TaskId(id_), "", queue, "", 0, 0, 0, 0, 0, 0, False, None, None, None)
