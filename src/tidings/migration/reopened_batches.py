"""Opening again: batches of exactly those records that a person, or a parent that came, opens again.

A batch is made without a task; the foreman gives it one when there is room.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, NamedTuple

from ..kernel.clock import Clock
from ..store.port import Step, Store
from .crosswalk import json_parameter

PORTION = 2000  # records that one transaction opens again


class ReopenedBatch(NamedTuple):
    """A batch of records that are opened again: how many, and the steps that do it."""

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
    """A new batch: all between two places, or those records that will name it."""
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
    """Those of a type that were set aside or wait, by cause and then in the order in which they were read.

    `state` None: in whichever of these states; `fingerprint`: of one cause; `tag`: mended by one hand.
    """
    which = {"job": job, "type": type, "round": round, "state": state, "tag": tag}

    def portion() -> ReopenedBatch:
        batch = new_batch(clock.new_id(), job, type, round, system, len(seqs))
        opens = {"batch": batch["id"], "seqs": json_parameter(seqs)}
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


async def failure_causes(store: Store, job: int, fingerprint: str | None) -> AsyncIterator[str]:
    """The one cause that is asked for, or all of a job; so no page has to step over another cause's."""
    if fingerprint is not None:
        yield fingerprint
        return
    cause = ""
    while (cause := (await store.read("job_cause_next", job=job, after=cause))[0]["cause"]) is not None:
        yield cause
