"""Leases: one poller per source, with heartbeat, takeover and fencing token.

    free            no holder, and the poll interval has passed: acquire
    resting         no holder, the next poll is not due: wait
    held            a heartbeat within one lease, a run of under 30 minutes: wait
    lapsed          no heartbeat for one lease: take over
    overrun         a run of 30 minutes: fence it off, take over and notify an admin

Each acquisition increments the fencing token, and every write of a poller checks its token in the same
transaction, so a poller that lost its lease can never write again. Times are the database's.
"""

from __future__ import annotations

from datetime import timedelta
from enum import StrEnum
from typing import NamedTuple

from ..model.time import SECOND, micros
from ..store.port import Row, Step, Store

LEASE = timedelta(seconds=60)
LONGEST_RUN = timedelta(minutes=30)


class SourceLeaseState(StrEnum):
    """The state of a source's lease."""

    FREE = "free"
    RESTING = "resting"
    HELD = "held"
    LAPSED = "lapsed"
    OVERRUN = "overrun"


def lease_state(row: Row, *, lease: timedelta = LEASE, longest: timedelta = LONGEST_RUN) -> SourceLeaseState:
    """Return the lease state of a row of `sources`, by the database time in the row. Pure."""
    now: int = row["now"]
    if row["holder"] is None:
        # A due time in the far future was set before the clock was turned back.
        is_resting = now < row["due_at"] <= now + micros(longest)
        return SourceLeaseState.RESTING if is_resting else SourceLeaseState.FREE
    if now - row["began_at"] >= micros(longest):
        return SourceLeaseState.OVERRUN
    return SourceLeaseState.HELD if now < row["until"] <= now + micros(lease) else SourceLeaseState.LAPSED


class SourceLease(NamedTuple):
    """The right to poll one source. `token` is the fencing token."""

    source: str
    token: int
    cursor: str | None
    known_at: int
    failures: int
    taken_over: SourceLeaseState | None = None  # LAPSED or OVERRUN
    from_whom: str | None = None

    @property
    def since(self) -> int:
        """The time from which messages are handled; platform times have whole seconds."""
        return self.known_at // SECOND * SECOND

    def move(self, cursor: str | None) -> Step:
        """Return the step that stores a cursor; it fails the transaction if the lease is lost."""
        where = {"name": self.source, "token": self.token, "lease": micros(LEASE)}
        return Step("source_move", {**where, "cursor": cursor}, needed=True)

    def failed(self, problem: str) -> Step:
        """Return the step that counts a failure; it fails the transaction if the lease is lost."""
        where = {"name": self.source, "token": self.token}
        return Step("source_failed", {**where, "problem": problem}, needed=True)


class SourceLeases:
    """Acquires, renews and releases leases; each is one conditional update."""

    def __init__(self, store: Store, *, me: str) -> None:
        self._store = store
        self._me = me

    async def take(self, source: str) -> SourceLease | int:
        """Acquire the lease, or return the microseconds to wait before the next attempt."""
        row = (await self._store.read("source_find", source=source))[0]
        state = lease_state(row)
        if state is SourceLeaseState.RESTING:
            return int(row["due_at"] - row["now"])
        if state is SourceLeaseState.HELD:
            return min(int(row["until"] - row["now"]), micros(LEASE))
        seen = {"name": source, "token": row["token"], "due_at": row["due_at"], "until": row["until"]}
        mine = {"holder": self._me, "lease": micros(LEASE)}
        taken = (await self._store.write([Step("source_take", {**seen, **mine})]))[0]
        if not taken:
            return micros(LEASE)  # another process was faster
        over = state if state in (SourceLeaseState.LAPSED, SourceLeaseState.OVERRUN) else None
        return SourceLease(
            source, taken[0]["token"], row["cursor"], row["known_at"], row["failures"], over, row["holder"]
        )

    async def beat(self, lease: SourceLease) -> bool:
        """Renew the lease; False if another process has taken over."""
        beat = {"name": lease.source, "token": lease.token, "lease": micros(LEASE)}
        return bool((await self._store.write([Step("source_renew_lease", beat)]))[0])

    async def free(self, lease: SourceLease, rest: timedelta) -> None:
        """Release the lease, if it is still ours, until `rest` has passed."""
        free = {"name": lease.source, "token": lease.token, "rest": micros(rest)}
        await self._store.write([Step("source_free", free)])
