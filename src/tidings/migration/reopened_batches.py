"""Batches for reopened records: those that a person replays, or whose parent has been written.

They are created without a task; the batch scheduler creates it when there is room.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from ..kernel.clock import Clock
from ..store.port import Step, Store
from .crosswalk import to_json
from .dead_letters import failure_causes

PORTION = 2000  # records reopened per transaction


class ReopenedBatch(NamedTuple):
    """A batch of reopened records: its size, and the steps that create it."""

    size: int
    steps: list[Step]


def new_batch(
    id_: str,
    job: int,
    type_: str,
    round_: int,
    system: str,
    size: int,
    *,
    phase: str = "run",
    first: int = 0,
    last: int = 0,
) -> dict[str, Any]:
    """Return a new batch: the range `first` to `last`, or records that will carry its id."""
    return {
        "id": id_, "job": job, "type": type_, "round": round_, "phase": phase, "system": system,
        "first": first, "last": last, "size": size,
    }  # fmt: skip


async def reopen_records(
    store: Store,
    clock: Clock,
    *,
    job: int,
    type: str,
    round: int,
    system: str,
    state: str | None = None,
    fingerprint: str | None = None,
    tag: str | None = None,
) -> AsyncIterator[ReopenedBatch]:
    """Yield batches of dead letters or waiting records of a type, by cause and in the order they were read.

    `state` None: all of these states; `fingerprint`: of one cause; `tag`: of one set of repairs.
    """
    which = {"job": job, "type": type, "round": round, "state": state, "tag": tag}

    def portion() -> ReopenedBatch:
        batch = new_batch(clock.new_id(), job, type, round, system, len(seqs))
        opens = {"batch": batch["id"], "seqs": to_json(seqs)}
        return ReopenedBatch(len(seqs), [Step("job_batch_add", batch), Step("job_reopen", opens)])

    seqs: list[int] = []
    async for cause in failure_causes(store, job, fingerprint):
        after = 0
        while rows := await store.read(
            "job_reopen_page", **which, fingerprint=cause, after=after, limit=PORTION - len(seqs)
        ):
            seqs += [row["seq"] for row in rows]
            after = seqs[-1]
            if len(seqs) == PORTION:
                yield portion()
                seqs = []
    if seqs:
        yield portion()
