"""The pruner of jobs: deletes records, batches and logs of jobs that ended long ago, in small portions.

The job, its counts by state, its audit trail and the crosswalk stay, so a new run still writes nothing twice.
The counts are stored before the records are deleted; after a crash the next step continues.
"""

from __future__ import annotations

from datetime import timedelta

from ..kernel.clock import Clock
from ..model.time import micros
from ..store.port import Row, Step, Store, WriteConflict
from .crosswalk import to_json
from .job_events import audit_step
from .jobs import job_view
from .progress import status_of

PAGE = 1000
_EVERY = 3600.0  # seconds between two checks
_BREATH = 0.02  # seconds between two portions


class JobPruner:
    """An actor; one step deletes one portion. Concurrent pruners share the work."""

    name = "migration_retention"

    def __init__(self, store: Store, clock: Clock, keep: timedelta) -> None:
        self._store, self._clock, self._keep = store, clock, keep

    async def step(self) -> float:
        """Delete one portion; return the seconds until the next step."""
        old = await self._store.read("job_old", before=self._clock.now() - micros(self._keep))
        if not old:
            return _EVERY
        row = (await self._store.read("job_row", n=old[0]["n"]))[0]
        try:
            if not row["pruning"]:
                await self._begin(row)
            await self._portion(row["n"])
        except WriteConflict:
            pass  # the job was started again, or another pruner works on it
        return _BREATH

    async def _begin(self, row: Row) -> None:
        status = await status_of(self._store, job_view(row), self._clock.now())
        keeps = []
        for one in status.types:
            counts = to_json({state.value: n for state, n in one.counts.items()})
            keeps.append(Step("job_type_keep", {"job": row["n"], "type": one.type, "counts": counts}))
        begins = Step("job_prune", {"n": row["n"], "version": row["version"]}, needed=True)
        await self._store.write([begins, *keeps])

    async def _portion(self, n: int) -> None:
        """Delete the next records with their logs, then batches; then mark the job as pruned."""
        found = await self._store.read("job_prune_seqs", job=n, limit=PAGE)
        if found:
            gone = {"job": n, "seqs": to_json([row["seq"] for row in found])}
            await self._store.write([Step("job_prune_logs", gone), Step("job_prune_records", gone)])
            return
        if (await self._store.write([Step("job_prune_batches", {"job": n, "limit": PAGE})]))[0]:
            return
        await self._store.write(
            [
                Step("job_pruned", {"n": n}, needed=True),
                audit_step(n, "engine", "forgotten", "records and logs; counts and audit trail are kept"),
            ]
        )
