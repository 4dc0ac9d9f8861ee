"""Nodes: who is alive, told without comparing wall clocks.

A node beats a number. Another one gives it up only after it has itself seen the same number for a full lease
on its own monotonic clock, without a failed read in between; so after an outage of the database everyone
reports first. A node that could not beat for most of a lease stops starting things before others take over.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NamedTuple

from ..model.task import NodeId
from ..store.port import Row, Step, Store
from .clock import Clock

TRUST = 0.7  # share of the lease for which a node believes in itself after its last beat


DISPATCHER = "dispatcher@"  # how the names of nodes begin that give their tasks to transports


def is_dispatcher(row: Row) -> bool:
    """Whether what this node holds is with transports, who may go on when it is dead."""
    return str(row["name"]).startswith(DISPATCHER)


class Sighting(NamedTuple):
    """The number that was last seen of a node, and since when by our own clock."""

    beat: int
    since: float


def silent(
    seen: Mapping[int, Sighting], rows: Iterable[Row], *, now: float, lease: timedelta
) -> tuple[dict[int, Sighting], list[Row]]:
    """What has been seen by now, and the nodes whose number has stood still for a lease. Pure."""
    fresh: dict[int, Sighting] = {}
    dead: list[Row] = []
    for row in rows:
        before = seen.get(row["id"])
        if before is None or before.beat != row["beat"]:
            fresh[row["id"]] = Sighting(row["beat"], now)
            continue
        fresh[row["id"]] = before
        if now - before.since >= lease.total_seconds():
            dead.append(row)
    return fresh, dead


class Node:
    """This process, as the others see it."""

    def __init__(self, store: Store, clock: Clock, *, lease: timedelta, name: str | None = None) -> None:
        self._store = store
        self._clock = clock
        self.lease = lease.total_seconds()
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.id = NodeId(0)
        self._beaten_at = float("-inf")

    @property
    def is_trusted(self) -> bool:
        """Whether this node may still start something: its last beat is recent enough."""
        return self._store.sole_worker or self._clock.monotonic() - self._beaten_at < self.lease * TRUST

    async def join(self) -> None:
        """A new incarnation, which knows the database's time; claims of an earlier one are no longer ours."""
        asked = self._clock.monotonic()
        rows = await self._store.write([Step("node_join", {"name": self.name, "info": "{}"})])
        self._clock.learn(rows[0][0]["seen_at"], asked, self._clock.monotonic())
        self.id = NodeId(rows[0][0]["id"])
        self._beaten_at = asked

    async def beat(self, info: str = "{}") -> bool:
        """Say 'alive'; False means that the others have given this incarnation up."""
        asked = self._clock.monotonic()
        rows = (await self._store.write([Step("node_beat", {"id": self.id, "info": info})]))[0]
        if not rows:
            return False
        self._clock.learn(rows[0]["seen_at"], asked, self._clock.monotonic())
        self._beaten_at = asked  # the moment before the question: never later than what the others saw
        return True

    async def leave(self) -> None:
        """Gone for good, if it holds nothing any more."""
        if self.id:
            await self._store.write([Step("node_gone", {"id": self.id})])
