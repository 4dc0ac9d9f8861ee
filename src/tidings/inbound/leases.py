"""Leases: one reader of a source at a time.

    free            nobody holds it and its rest is over: taken
    held            a heartbeat within one lease, a run of under 30 minutes: yield
    lapsed          no heartbeat for one lease: taken over
    overrun         a run of 30 minutes: fenced off and taken over, an admin is told

Each taking raises the token, and every write of a reader names its token in the same transaction: whoever was
taken over can write nothing more, however late it wakes. Times are the database's.
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
    """How the lock of a source stands."""

    FREE = "free"
    RESTING = "resting"
    HELD = "held"
    LAPSED = "lapsed"
    OVERRUN = "overrun"


def lease_state(row: Row, *, lease: timedelta = LEASE, longest: timedelta = LONGEST_RUN) -> SourceLeaseState:
    """Judge a row of `sources` by the database's time in it. Pure."""
    now: int = row["now"]
    if row["holder"] is None:
        # A rest that reaches far ahead was set before a clock went back.
        return (
            SourceLeaseState.RESTING
            if now < row["due_at"] <= now + micros(longest)
            else SourceLeaseState.FREE
        )
    if now - row["began_at"] >= micros(longest):
        return SourceLeaseState.OVERRUN
    return SourceLeaseState.HELD if now < row["until"] <= now + micros(lease) else SourceLeaseState.LAPSED


class SourceLease(NamedTuple):
    """The right to read one source. `token` is the fence."""

    source: str
    token: int
    cursor: str | None
    known_at: int
    failures: int
    taken_over: SourceLeaseState | None = None  # LAPSED or OVERRUN
    from_whom: str | None = None

    @property
    def since(self) -> int:
        """From when on messages count; platforms tell times in whole seconds."""
        return self.known_at // SECOND * SECOND

    def move(self, cursor: str | None) -> Step:
        """The new cursor, with what it is behind; if the lease has gone, nothing of it is written."""
        where = {"name": self.source, "token": self.token, "lease": micros(LEASE)}
        return Step("source_move", {**where, "cursor": cursor}, needed=True)

    def failed(self, problem: str) -> Step:
        """One more failure."""
        where = {"name": self.source, "token": self.token}
        return Step("source_failed", {**where, "problem": problem}, needed=True)


class SourceLeases:
    """Take, beat, free; each is one conditional update."""

    def __init__(self, store: Store, *, me: str) -> None:
        self._store = store
        self._me = me

    async def take(self, source: str) -> SourceLease | int:
        """The lease, or the microseconds after which to look again."""
        row = (await self._store.read("source_find", source=source))[0]
        stands = lease_state(row)
        if stands is SourceLeaseState.RESTING:
            return int(row["due_at"] - row["now"])
        if stands is SourceLeaseState.HELD:
            return min(int(row["until"] - row["now"]), micros(LEASE))
        seen = {"name": source, "token": row["token"], "due_at": row["due_at"], "until": row["until"]}
        mine = {"holder": self._me, "lease": micros(LEASE)}
        taken = (await self._store.write([Step("source_take", {**seen, **mine})]))[0]
        if not taken:
            return micros(LEASE)  # somebody else was faster
        over = stands if stands in (SourceLeaseState.LAPSED, SourceLeaseState.OVERRUN) else None
        return SourceLease(
            source, taken[0]["token"], row["cursor"], row["known_at"], row["failures"], over, row["holder"]
        )

    async def beat(self, lease: SourceLease) -> bool:
        """A heartbeat; False: somebody else has taken over."""
        beat = {"name": lease.source, "token": lease.token, "lease": micros(LEASE)}
        return bool((await self._store.write([Step("source_renew_lease", beat)]))[0])

    async def free(self, lease: SourceLease, rest: timedelta) -> None:
        """Let go; only what is still ours."""
        free = {"name": lease.source, "token": lease.token, "rest": micros(rest)}
        await self._store.write([Step("source_free", free)])
