"""The connector pool: opened connectors of jobs, shared by the batches of a node."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path

from ..kernel.clock import Clock
from ..model import durations
from ..model.errors import Conflict, NotFound
from ..store.port import Store
from .connectors import registry
from .connectors.port import (
    Attribute,
    ConnectorError,
    RecordSource,
    RecordTarget,
    SupportsDownload,
    SupportsUpload,
    SystemLimits,
)
from .crosswalk import Crosswalk
from .job_file import MigrationJob
from .job_permissions import JobPermissions
from .jobs import job_of, job_view, system_identity
from .mapping.lint import LintFinding, lint, missing_files, observed_attributes
from .mapping.mapper import Mapper
from .rate_limits import SystemRateLimiter

MOST_IDLE = 4  # idle jobs whose connections are kept
CALL_WITHIN = timedelta(seconds=30)  # for connectors without a `deadline`


@dataclass(slots=True)
class OpenedJob:
    """A job with its open connectors and rate limiters."""

    n: int
    tenant: str
    job: MigrationJob
    mapper: Mapper
    source: RecordSource
    target: RecordTarget
    crosswalk: Crosswalk
    limits: SystemLimits  # the target's, reduced by the job's own
    writes: SystemRateLimiter
    lookups: SystemRateLimiter  # reads of the target
    reads: SystemRateLimiter  # of the source
    uploads: SystemRateLimiter  # of files to the target
    call_within: timedelta
    schemas: dict[str, Mapping[str, Attribute] | None]
    findings: list[LintFinding] | None = None

    async def schema(self, type_: str) -> Mapping[str, Attribute] | None:
        """Return the target's attributes by name, read once; None: the target does not list them."""
        target = self.job.type(type_).target
        if target not in self.schemas:
            found = await self.target.attributes(target)
            self.schemas[target] = None if found is None else {one.name: one for one in found}
        return self.schemas[target]

    async def lint(self) -> list[LintFinding]:
        """Check the map against both systems; cached, since reading attributes costs calls."""
        if self.findings is None:
            there: dict[str, Sequence[Attribute] | None] = {}
            here: dict[str, Sequence[Attribute] | None] = {}
            try:
                for one in self.job.types:
                    there[one.name] = await self._source_attributes(one.source)
                    here[one.name] = await self.target.attributes(one.target)
            except ConnectorError as error:
                problem = f"a system cannot be queried: {error.reason}"
                raise Conflict(problem, remedy="fix that, then try again") from None
            files = [one for one in self.job.types if self.file_limit(one.name) is not None]
            without = [one.name for one in files if not self._has_file(one.source)]
            self.findings = [*missing_files(without), *lint(self.job.types, there, here)]
        return self.findings

    def file_limit(self, type_: str) -> int | None:
        """Return the largest file that the target accepts; None: records of this type are not files there."""
        target = self.target
        return target.file_limit(self.job.type(type_).target) if isinstance(target, SupportsUpload) else None

    def _has_file(self, source: str) -> bool:
        return isinstance(self.source, SupportsDownload) and self.source.has_file(source)

    async def _source_attributes(self, source: str) -> Sequence[Attribute] | None:
        """Return the source's attributes, or those that its first records show."""
        named = await self.source.attributes(source)
        if named is not None:
            return named
        page = await self.source.page(source, None)
        return observed_attributes(page.records) if page.records else None

    async def close(self) -> None:
        await self.source.close()
        await self.target.close()


@dataclass(slots=True)
class _PooledJob:
    opened: OpenedJob
    version: int
    text: str  # the definition it was opened with
    users: int = 0


class ConnectorPool:
    """The opened jobs of one process. Secrets are resolved only here."""

    def __init__(
        self, store: Store, clock: Clock, *, environ: Mapping[str, str], folder: Path, allowed: JobPermissions
    ) -> None:
        self._store, self._clock, self._environ, self._folder = store, clock, environ, folder
        self.allowed = allowed
        self._pooled: dict[int, _PooledJob] = {}

    @asynccontextmanager
    async def use(self, n: int, version: int) -> AsyncIterator[OpenedJob]:
        """Borrow a job's connectors; raises Misconfigured if they cannot be opened."""
        kept = await self._get(n, version)
        kept.users += 1
        try:
            yield kept.opened
        finally:
            kept.users -= 1
            if not kept.users and self._pooled.get(n) is not kept:  # replaced meanwhile by a repaired map
                await kept.opened.close()
            await self._close_idle()

    async def close(self) -> None:
        for kept in self._pooled.values():
            await kept.opened.close()
        self._pooled.clear()

    async def _get(self, n: int, version: int) -> _PooledJob:
        kept = self._pooled.get(n)
        if kept is not None and kept.version == version:
            return kept
        rows = await self._store.read("job_row", n=n)
        if not rows:
            raise NotFound(f"unknown migration {n}", remedy="list them: tidings migrate list")
        kept = self._pooled.get(n)  # another task may have opened it meanwhile
        if kept is not None and kept.text == rows[0]["definition"]:
            kept.version = rows[0]["version"]
            return kept
        view = job_view(rows[0])
        made = _PooledJob(
            self._open(n, view.tenant, rows[0]["pair"], job_of(view)), rows[0]["version"], rows[0]["definition"]
        )
        self._pooled[n] = made
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
        deadline, limits = job.target.options.get("deadline"), job.caps.within(target.limits)
        limiter = partial(SystemRateLimiter, self._store, self._clock)
        return OpenedJob(
            n,
            tenant,
            job,
            Mapper(job.types),
            source,
            target,
            Crosswalk(self._store, pair),
            limits,
            limiter(f"{here}/write", limits.writes_per_second),
            limiter(f"{here}/read", target.limits.reads_per_second),
            limiter(f"{there}/read", job.caps.within(source.limits).reads_per_second),
            limiter(f"{here}/upload", target.uploads_per_second if isinstance(target, SupportsUpload) else None),
            CALL_WITHIN if deadline is None else durations.parse(str(deadline)),
            {},
        )

    async def _join(self, opened: OpenedJob) -> None:
        await opened.writes.join(opened.limits)
        await opened.lookups.join(opened.target.limits)
        await opened.reads.join(opened.source.limits)
        await opened.uploads.join(opened.target.limits)

    async def _close_idle(self) -> None:
        """Close idle connections, the oldest first."""
        idle = [n for n, kept in self._pooled.items() if not kept.users]
        for n in idle[: max(0, len(idle) - MOST_IDLE)]:
            await self._pooled.pop(n).opened.close()
