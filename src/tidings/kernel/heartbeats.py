"""Nodes: who is alive, told without comparing wall clocks.

A node beats a number. Another one gives it up only after it has itself seen the same number for a full lease
on its own monotonic clock, without a failed read in between; so after an outage of the database everyone
reports first. A node that could not beat for most of a lease stops starting things before others take over.

The same number shows whether the database has gone back (a failover to a standby that lagged, a restored
backup): it only ever grows. On another server, or a restarted one, nothing is started before the next beat,
which also looks for the newest work that this node has seen committed.
"""

from __future__ import annotations

import os
import socket
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from ..model.task import NodeId, Task
from ..store.port import Row, Step, Store
from .clock import Clock

TRUST_FRACTION = 0.7  # share of the lease for which a node believes in itself after its last beat
_BEATS = 1000  # whose times a node remembers
DISPATCHER_PREFIX = "dispatcher@"  # how the names of nodes begin that give their tasks to transports


def is_dispatcher(row: Row) -> bool:
    """Whether what this node holds is with transports, who may go on when it is dead."""
    return str(row["name"]).startswith(DISPATCHER_PREFIX)


class HeartbeatSighting(NamedTuple):
    """The number that was last seen of a node, and since when by our own clock."""

    beat: int
    since: float


def find_silent_nodes(
    seen: Mapping[int, HeartbeatSighting], rows: Iterable[Row], *, now: float, lease: timedelta
) -> tuple[dict[int, HeartbeatSighting], list[Row]]:
    """What has been seen by now, and the nodes whose number has stood still for a lease. Pure."""
    fresh: dict[int, HeartbeatSighting] = {}
    dead: list[Row] = []
    for row in rows:
        before = seen.get(row["id"])
        if before is None or before.beat != row["heartbeat"]:
            fresh[row["id"]] = HeartbeatSighting(row["heartbeat"], now)
            continue
        fresh[row["id"]] = before
        if now - before.since >= lease.total_seconds():
            dead.append(row)
    return fresh, dead


@dataclass
class RewindDetected(Exception):
    """The database has gone back."""

    survived_at: int  # when it was last known to be as it is now
    again: bool  # on a server that this node had already worked on


class Node:
    """This process, as the others see it."""

    def __init__(self, store: Store, clock: Clock, *, lease: timedelta, name: str | None = None) -> None:
        self._store = store
        self._clock = clock
        self.lease = lease.total_seconds()
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.id = NodeId(0)
        self.beats = 0
        self._seen: tuple[int, int, bool] | None = None  # task, claim, whether its result was kept
        self._started_at = 0
        self._beaten_at = float("-inf")
        self._beats: deque[tuple[int, int]] = deque(maxlen=_BEATS)  # number, the database's time
        self._server = store.server
        self._newest = 0  # the newest task that this process had created at the last beat
        self._rewound: RewindDetected | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether this node may still start something: its last beat is recent, and was to this server."""
        is_recent = self._clock.monotonic() - self._beaten_at < self.lease * TRUST_FRACTION
        return self._store.sole_worker or (is_recent and self.knows_server)

    @property
    def knows_server(self) -> bool:
        """Whether the last beat was to the server that answers now; another may have lost what we know."""
        return self._server == self._store.server

    async def join(self) -> None:
        """A new incarnation, which knows the database's time; claims of an earlier one are no longer ours."""
        asked = self._clock.monotonic()
        rows = await self._store.write([Step("node_join", {"name": self.name, "info": "{}"})])
        self._clock.learn(rows[0][0]["seen_at"], asked, self._clock.monotonic())
        self.id = NodeId(rows[0][0]["id"])
        self._started_at = rows[0][0]["started_at"]
        self._server = self._store.server
        self._newest = self._store.newest.get(self._server, 0)
        self._beaten_at = asked

    def see(self, task: Task, *, settled: bool) -> None:
        """Remember the newest claim or result that is committed on the server of the last beat."""
        if self.knows_server:
            self._seen = (task.id, task.claim_no, settled)

    async def beat(self, info: str = "{}") -> bool:
        """Say 'alive'; False means that the others have given this incarnation up.

        Raises Rewound, from then on every time, where the database has forgotten what this node knows of it.
        """
        me = {"id": self.id, "started_at": self._started_at, "info": info}
        asked, newest = self._clock.monotonic(), dict(self._store.newest)
        rows = (await self._store.write([Step("node_heartbeat", me)]))[0]
        beat = rows[0]["heartbeat"] if rows else self.beats + 1
        server = rows[0]["server"] if rows else self._store.server
        is_elsewhere = server != self._server
        if self._rewound is None and (beat <= self.beats or (is_elsewhere and await self._is_missed())):
            survived_at = dict(self._beats).get(beat - 1, self._started_at)
            self._rewound = RewindDetected(survived_at, again=not is_elsewhere)
        if self._rewound is not None:
            self.beats, self._beaten_at = beat, float("-inf")
            raise self._rewound
        if not rows:
            return False
        self._clock.learn(rows[0]["seen_at"], asked, self._clock.monotonic())
        self._beaten_at = asked  # the moment before the question: never later than what the others saw
        self.beats, self._server, self._newest = beat, server, newest.get(server, 0)
        self._beats.append((beat, rows[0]["seen_at"]))
        self._seen = None
        return True

    async def _is_missed(self) -> bool:
        """Whether this server lacks what this node has seen committed since its last beat on another."""
        newest = self._store.newest.get(self._server, 0)
        task, claim_no, settled = self._seen or (0, 0, False)
        known = {
            "node": self.id, "started_at": self._started_at, "server": self._store.server, "task": task,
            "newest": newest if newest != self._newest else 0, "claim_no": claim_no, "settled": settled,
        }  # fmt: skip
        return bool((await self._store.read("rewind_look", **known))[0]["lost"])

    async def leave(self) -> None:
        """Gone for good, if it holds nothing any more."""
        if self.id:
            await self._store.write([Step("node_gone", {"id": self.id})])
