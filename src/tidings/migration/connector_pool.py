"""Connections: the connectors of jobs, opened where they are used, shared by the batches of a node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from ..kernel.clock import Clock
from ..model import durations
from ..model.errors import NotFound
from ..store.port import Store
from .connectors import registry
from .connectors.port import Attribute, RecordSource, RecordTarget, SystemLimits
from .crosswalk import Crosswalk
from .job_file import MigrationJob
from .job_permissions import JobPermissions
from .jobs import job_of, job_view, system_identity
from .mapping.lint import LintFinding
from .mapping.mapper import Mapper
from .rate_limits import SystemRateLimiter

MOST_IDLE = 4  # jobs whose connections are kept although nobody uses them
CALL_WITHIN = timedelta(seconds=30)  # of a connector that does not say


@dataclass(slots=True)
class OpenedJob:
    """A job, ready to be worked at."""

    n: int
    tenant: str
    job: MigrationJob
    mapper: Mapper
    source: RecordSource
    target: RecordTarget
    crosswalk: Crosswalk
    limits: SystemLimits  # of the target, within what the job allows
    writes: SystemRateLimiter
    looks: SystemRateLimiter  # reads of the target
    reads: SystemRateLimiter  # of the source
    call_within: timedelta
    schemas: dict[str, Mapping[str, Attribute] | None]
    findings: list[LintFinding] | None = None  # of lint; asking both systems costs calls

    async def schema(self, type_: str) -> Mapping[str, Attribute] | None:
        """What the target takes, asked for once; None: it does not say."""
        target = self.job.type(type_).target
        if target not in self.schemas:
            found = await self.target.attributes(target)
            self.schemas[target] = None if found is None else {one.name: one for one in found}
        return self.schemas[target]

    async def close(self) -> None:
        """Let go of both."""
        await self.source.close()
        await self.target.close()


@dataclass(slots=True)
class _PooledJob:
    opened: OpenedJob
    version: int
    text: str  # the definition that it was opened from
    users: int = 0


class ConnectorPool:
    """Of one process. Credentials are resolved here and nowhere else."""

    def __init__(
        self, store: Store, clock: Clock, *, environ: Mapping[str, str], folder: Path, allowed: JobPermissions
    ) -> None:
        self._store = store
        self._clock = clock
        self._environ = environ
        self._folder = folder
        self.allowed = allowed
        self._kept: dict[int, _PooledJob] = {}

    @asynccontextmanager
    async def use(self, n: int, version: int) -> AsyncIterator[OpenedJob]:
        """A job's connectors; Misconfigured if they cannot be opened as the job says."""
        kept = await self._keep(n, version)
        kept.users += 1
        try:
            yield kept.opened
        finally:
            kept.users -= 1
            if not kept.users and self._kept.get(n) is not kept:  # its map was repaired meanwhile
                await kept.opened.close()
            await self._tidy()

    async def close(self) -> None:
        """Let go of everything."""
        for kept in self._kept.values():
            await kept.opened.close()
        self._kept.clear()

    async def _keep(self, n: int, version: int) -> _PooledJob:
        kept = self._kept.get(n)
        if kept is not None and kept.version == version:
            return kept
        rows = await self._store.read("job_row", n=n)
        if not rows:
            raise NotFound(f"there is no migration {n}", remedy="tidings migrate list shows them")
        kept = self._kept.get(n)  # somebody may have opened it while we read
        if kept is not None and kept.text == rows[0]["definition"]:
            kept.version = rows[0]["version"]
            return kept
        view = job_view(rows[0])
        made = _PooledJob(
            self._open(n, view.tenant, rows[0]["pair"], job_of(view)),
            rows[0]["version"],
            rows[0]["definition"],
        )
        self._kept[n] = made
        await self._join(made.opened)
        return made

    def _open(self, n: int, tenant: str, pair: int, job: MigrationJob) -> OpenedJob:
        sides = {
            side: self.allowed.options(job, side, environ=self._environ, folder=self._folder)
            for side in ("source", "target")
        }
        within, now = self.allowed.confinement(job), self._clock.now
        source = registry.source(job.source.kind, sides["source"], now=now, within=within)
        target = registry.target(job.target.kind, sides["target"], now=now, within=within)
        there, here = f"{tenant}/{system_identity(job.source)}", f"{tenant}/{system_identity(job.target)}"
        deadline = job.target.options.get("deadline")
        return OpenedJob(
            n,
            tenant,
            job,
            Mapper(job.types),
            source,
            target,
            Crosswalk(self._store, pair),
            job.caps.within(target.limits),
            SystemRateLimiter(self._store, self._clock, f"{here}/write"),
            SystemRateLimiter(self._store, self._clock, f"{here}/read"),
            SystemRateLimiter(self._store, self._clock, f"{there}/read"),
            CALL_WITHIN if deadline is None else durations.parse(str(deadline)),
            {},
        )

    async def _join(self, opened: OpenedJob) -> None:
        caps, source = opened.job.caps, opened.source.limits
        await opened.writes.join(opened.limits.writes_per_second, opened.limits)
        await opened.looks.join(opened.target.limits.reads_per_second, opened.target.limits)
        await opened.reads.join(caps.within(source).reads_per_second, source)

    async def _tidy(self) -> None:
        """Close what nobody uses, the oldest first."""
        idle = [n for n, kept in self._kept.items() if not kept.users]
        for n in idle[: max(0, len(idle) - MOST_IDLE)]:
            await self._kept.pop(n).opened.close()
