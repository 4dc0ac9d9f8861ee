"""The poller: reads one source page by page until it has caught up, holding the source's lease.

Any number may run; each run is taken, beaten and freed in the database. A source that fails stops nobody but
itself: the cursor stays, the next run reads the same again, and after three failures an admin is told.
"""

from __future__ import annotations

from datetime import timedelta

from ..kernel.clock import Clock
from ..model.errors import TemporaryError, error_text
from ..model.time import SECOND
from ..observability.events import Emit, SourceTakenOver, SourceTrouble, discard_event
from ..store.port import Store, WriteConflict
from .ingestion import NOTIFY_AFTER, InboxIngestion, IngestionFailed, source_failing_notice
from .leases import SourceLease, SourceLeases, SourceLeaseState
from .source_notices import GAP, OVERRUN, NoticeSteps, SourceNotice, notice_event_steps
from .sources.port import PolledSource, SourceEntry, SourcePage, SourceUnavailable
from .sources.settings import SourceSettings

LOOK_BACK = 60.0  # seconds between two looks at what was read before


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
        """Read what is new, if nobody else does; gives the seconds until the next look."""
        wait = self._next - self._clock.monotonic()
        if wait > 0:
            return wait  # a hint is about our own work, not about theirs
        lease = await self._leases.take(self._settings.name)
        if not isinstance(lease, SourceLease):
            return self._rest(min(lease / SECOND, self._poll))
        return self._rest(await self._run(lease))

    @property
    def _poll(self) -> float:
        return self._settings.poll_interval.total_seconds()

    def _rest(self, seconds: float) -> float:
        self._next = self._clock.monotonic() + seconds
        return seconds

    async def _run(self, lease: SourceLease) -> float:
        """One run, freed at its end whatever happens."""
        rest = self._settings.poll_interval
        try:
            await self._tell_of_take_over(lease)
            await self._catch_up(lease)
            await self._look_back(lease)
        except WriteConflict:
            self._emit(SourceTakenOver(self._settings.name, "somebody else goes on with it"))
        except (SourceUnavailable, IngestionFailed) as error:
            await self._failed(lease, str(error))
            rest = max(rest, getattr(error, "wait", None) or timedelta())
        except TemporaryError:
            raise  # our own database: the worker tells it, and the lease lapses or is freed below
        except Exception as error:  # an actor's step: whatever a platform sends, the others go on
            await self._failed(lease, error_text(error))
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
            behind = read.cursor or (read.heard[-1].cursor if read.heard else None)
            more = read.more and behind is not None and behind != cursor
            cursor = behind or cursor

    async def _take(self, lease: SourceLease, read: SourcePage) -> None:
        """A page with its cursor; the cursor alone where nothing was said, or all of it was known."""
        await self._intake.take(self._settings, read.heard, lease=lease)
        behind = read.cursor or (read.heard[-1].cursor if read.heard else None)
        steps = [] if behind is None else [lease.move(behind)]
        if behind is None and lease.failures:
            steps = [lease.move(lease.cursor)]  # it answers again
        for hole in read.holes:
            steps += self._tell(self._hole(hole))
        if steps:
            await self._store.write(steps)

    async def _look_back(self, lease: SourceLease) -> None:
        """Now and then the newest once more: edits are marked, and what was missed is taken and told."""
        if self._clock.monotonic() - self._looked_back < LOOK_BACK:
            return
        self._looked_back = self._clock.monotonic()
        row = (await self._store.read("source_find", source=self._settings.name))[0]
        cursor = row["cursor"]
        if cursor is None:
            return
        heard = [
            one
            for one in await self.source.look_back()
            if one.original is not None or self.source.is_behind(one.id, cursor)
        ]
        known = await self._intake.known(self._settings, [one.id for one in heard])
        missed = [one.id for one in heard if one.id not in known and one.original is None]
        if not missed and all(one.id in known for one in heard):
            return
        entries = [SourceEntry(one, cursor) for one in heard]
        await self._intake.take(self._settings, entries, lease=lease)
        for id_ in missed:
            await self._store.write(list(self._tell(self._hole(f"message {id_} was read late"))))

    async def _failed(self, lease: SourceLease, problem: str) -> None:
        """The cursor stays; told in the transaction of the third failure in a row."""
        self._emit(SourceTrouble(self._settings.name, lease.failures + 1, problem))
        steps = [lease.failed(problem[:500])]
        if lease.failures + 1 == NOTIFY_AFTER:
            steps += self._tell(source_failing_notice(self._settings, problem))
        try:
            await self._store.write(steps)
        except WriteConflict:
            self._emit(SourceTakenOver(self._settings.name, "somebody else goes on with it"))

    async def _tell_of_take_over(self, lease: SourceLease) -> None:
        if lease.taken_over is None:
            return
        overrun = lease.taken_over is SourceLeaseState.OVERRUN
        why = "its run was over 30 minutes" if overrun else "no heartbeat for one lease"
        self._emit(SourceTakenOver(self._settings.name, f"taken over from {lease.from_whom}: {why}"))
        if overrun:
            await self._store.write(list(self._tell(self._overrun(lease))))

    def _overrun(self, lease: SourceLease) -> SourceNotice:
        return SourceNotice(
            OVERRUN,
            self._settings.tenant,
            self._settings.name,
            f"a run of the source {self._settings.name} was over 30 minutes and was fenced off",
            f"another process goes on with it; look at what {lease.from_whom} is doing",
        )

    def _hole(self, what: str) -> SourceNotice:
        return SourceNotice(
            GAP,
            self._settings.tenant,
            self._settings.name,
            f"the source {self._settings.name} has a hole: {what}",
            "look into the chat itself; ask people to repeat what was lost",
        )
