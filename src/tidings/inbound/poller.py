"""The poller: reads one source page by page from its cursor until it has caught up, under the source's lease.

Any number of pollers may run. A failing source does not affect others: its cursor stays, the next run reads
the same page again, and an admin is notified after three consecutive failures.
"""

from __future__ import annotations

from datetime import timedelta

from ..kernel.clock import Clock
from ..model.errors import TemporaryError, error_text, traceback_text
from ..model.time import SECOND
from ..observability.events import Emit, SourceError, SourceTakenOver, discard_event
from ..store.port import Step, Store, WriteConflict
from .ingestion import NOTIFY_AFTER, InboxIngestion, IngestionFailed, source_failing_notice
from .leases import SourceLease, SourceLeases, SourceLeaseState
from .source_notices import GAP, OVERRUN, NoticeSteps, SourceNotice, notice_event_steps
from .sources.port import PolledSource, SourceEntry, SourcePage, SourceUnavailable
from .sources.settings import SourceSettings

LOOK_BACK = 60.0  # seconds between two re-reads of the newest page


class Poller:
    """An actor; one step is one run."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        source: PolledSource,
        settings: SourceSettings,
        intake: InboxIngestion,
        *,
        tell: NoticeSteps = notice_event_steps,
        emit: Emit = discard_event,
        me: str | None = None,
    ) -> None:
        self.name = f"poller {settings.name}"
        self.source = source
        self._store = store
        self._clock = clock
        self._settings = settings
        self._intake = intake
        self._tell = tell
        self._emit = emit
        self._leases = SourceLeases(store, me=me or clock.new_id())
        self._next = float("-inf")
        self._looked_back = clock.monotonic()

    async def step(self) -> float:
        """Poll the source unless another process does; returns the seconds until the next step."""
        wait = self._next - self._clock.monotonic()
        if wait > 0:
            return wait  # woken by a hint, which does not concern the source
        lease = await self._leases.take(self._settings.name)
        if not isinstance(lease, SourceLease):
            return self._rest(min(lease / SECOND, self._settings.poll_interval.total_seconds()))
        return self._rest(await self._run(lease))

    def _rest(self, seconds: float) -> float:
        self._next = self._clock.monotonic() + seconds
        return seconds

    async def _run(self, lease: SourceLease) -> float:
        """Run once and release the lease in any case."""
        rest = self._settings.poll_interval
        try:
            await self._report_takeover(lease)
            await self._catch_up(lease)
            await self._look_back(lease)
        except WriteConflict:
            self._emit(SourceTakenOver(self._settings.name, "another process has taken over"))
        except (SourceUnavailable, IngestionFailed) as error:
            await self._failed(lease, str(error))
            rest = max(rest, getattr(error, "wait", None) or timedelta())
        except TemporaryError:
            raise  # our own database: the worker reports it, and the lease lapses or is released below
        except Exception as error:  # unexpected input from a platform must not stop other sources
            await self._failed(lease, error_text(error), traceback_text(error))
        finally:
            await self._leases.free(lease, rest)
        return rest.total_seconds()

    async def _catch_up(self, lease: SourceLease) -> None:
        cursor, more = lease.cursor, True
        while more:
            if not await self._leases.beat(lease):
                raise WriteConflict("source_renew_lease")
            read = await self.source.read(cursor, since=lease.since)
            await self._take(lease, read)
            behind = read.cursor or (read.entries[-1].cursor if read.entries else None)
            more = read.more and behind is not None and behind != cursor
            cursor = behind or cursor

    async def _take(self, lease: SourceLease, read: SourcePage) -> None:
        """Ingest a page and store its cursor."""
        await self._intake.take(self._settings, read.entries, lease=lease)
        behind = read.cursor or (read.entries[-1].cursor if read.entries else None)
        steps = [] if behind is None else [lease.move(behind)]
        if behind is None and lease.failures:
            steps = [lease.move(lease.cursor)]  # resets the failure count
        for gap in read.holes:
            steps += self._gap_notice(gap)
        if steps:
            await self._store.write(steps)

    async def _look_back(self, lease: SourceLease) -> None:
        """Periodically read the newest page again to find edits and missed messages."""
        if self._clock.monotonic() - self._looked_back < LOOK_BACK:
            return
        self._looked_back = self._clock.monotonic()
        row = (await self._store.read("source_find", source=self._settings.name))[0]
        cursor = row["cursor"]
        if cursor is None:
            return
        messages = [
            one
            for one in await self.source.look_back()
            if one.original is not None or self.source.is_behind(one.id, cursor)
        ]
        known = await self._intake.known(self._settings, [one.id for one in messages])
        missed = [one.id for one in messages if one.id not in known and one.original is None]
        if not missed and all(one.id in known for one in messages):
            return
        entries = [SourceEntry(one, cursor) for one in messages]
        await self._intake.take(self._settings, entries, lease=lease)
        for id_ in missed:
            await self._store.write(self._gap_notice(f"message {id_} was read late"))

    async def _failed(self, lease: SourceLease, problem: str, exception: str | None = None) -> None:
        """Count the failure, and notify an admin in the transaction of the third consecutive one."""
        self._emit(SourceError(self._settings.name, lease.failures + 1, problem, exception))
        steps = [lease.failed(problem[:500])]
        if lease.failures + 1 == NOTIFY_AFTER:
            steps += self._tell(source_failing_notice(self._settings, problem))
        try:
            await self._store.write(steps)
        except WriteConflict:
            self._emit(SourceTakenOver(self._settings.name, "another process has taken over"))

    async def _report_takeover(self, lease: SourceLease) -> None:
        if lease.taken_over is None:
            return
        overrun = lease.taken_over is SourceLeaseState.OVERRUN
        why = "its run exceeded 30 minutes" if overrun else "no heartbeat for one lease"
        self._emit(SourceTakenOver(self._settings.name, f"taken over from {lease.from_whom}: {why}"))
        if overrun:
            problem = f"a run of source {self._settings.name} exceeded 30 minutes and was fenced off"
            remedy = f"another process has taken over; check process {lease.from_whom}"
            await self._store.write(self._notice(OVERRUN, problem, remedy))

    def _gap_notice(self, what: str) -> list[Step]:
        problem = f"source {self._settings.name} has a gap: {what}"
        return self._notice(GAP, problem, "check the chat and ask people to resend lost messages")

    def _notice(self, type_: str, problem: str, remedy: str) -> list[Step]:
        notice = SourceNotice(type_, self._settings.tenant, self._settings.name, problem, remedy)
        return list(self._tell(notice))
