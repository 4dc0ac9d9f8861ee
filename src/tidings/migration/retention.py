"""Forgetting: records, batches and logs of migrations that ended long ago, in small portions.

What stays: the job, how many of its records stood where, its audit trail, and the crosswalk, so that a
new run still writes nothing twice. First the counts are kept, then the records go; whoever dies in between
leaves a job that goes on forgetting.
"""

from __future__ import annotations

from datetime import timedelta

from ..kernel.clock import Clock
from ..model.time import micros
from ..store.port import Row, Step, Store, WriteConflict
from .crosswalk import json_parameter
from .job_events import audit_step
from .jobs import job_view
from .progress import status_of

PAGE = 1000
_EVERY = 3600.0  # seconds between two looks
_BREATH = 0.02  # seconds between two portions


class JobPruner:
    """An actor; one step forgets one portion. Two at once only share the work."""

    name = "ended migrations"

    def __init__(self, store: Store, clock: Clock, keep: timedelta) -> None:
        self._store = store
        self._clock = clock
        self._keep = keep

    async def step(self) -> float:
        """Forget one portion; gives the seconds until the next one."""
        old = await self._store.read("job_old", before=self._clock.now() - micros(self._keep))
        if not old:
            return _EVERY
        row = (await self._store.read("job_row", n=old[0]["n"]))[0]
        try:
            if not row["pruning"]:
                await self._begin(row)
            await self._portion(row["n"])
        except WriteConflict:
            pass  # somebody began it again, or forgets it, too
        return _BREATH

    async def _begin(self, row: Row) -> None:
        status = await status_of(self._store, job_view(row), self._clock.now())
        keeps = []
        for one in status.types:
            counts = json_parameter({standing.value: n for standing, n in one.counts.items()})
            keeps.append(Step("job_type_keep", {"job": row["n"], "type": one.type, "counts": counts}))
        begins = Step("job_prune", {"n": row["n"], "version": row["version"]}, needed=True)
        await self._store.write([begins, *keeps])

    async def _portion(self, n: int) -> None:
        """The next records with their logs; then batches; then it is over."""
        found = await self._store.read("job_prune_seqs", job=n, limit=PAGE)
        if found:
            gone = {"job": n, "seqs": json_parameter([row["seq"] for row in found])}
            await self._store.write([Step("job_prune_logs", gone), Step("job_prune_records", gone)])
            return
        if (await self._store.write([Step("job_prune_batches", {"job": n, "limit": PAGE})]))[0]:
            return
        await self._store.write(
            [
                Step("job_pruned", {"n": n}, needed=True),
                audit_step(n, "engine", "forgotten", "its records and logs; counts and audit trail stay"),
            ]
        )
