"""Nodes: registration, heartbeats and leases; detects silent nodes and database rewinds.

A heartbeat increments a counter. Another node declares this one dead only after it has seen the same value
for a full lease on its own monotonic clock, without a failed read in between; so after a database outage all
nodes can report first. A node without a heartbeat for most of a lease stops starting tasks before others take
over.

The counter also detects a rewind of the database (failover to a standby that lagged, a restored backup),
because it only grows. On another or a restarted server nothing starts before the next heartbeat, which also
checks that the newest work this node has seen committed is present.
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

TRUST_FRACTION = 0.7  # fraction of the lease during which a node trusts its last heartbeat
_BEATS = 1000  # remembered with their times
DISPATCHER_PREFIX = "dispatcher@"  # name prefix of nodes that publish their tasks to transports


def is_dispatcher(row: Row) -> bool:
    """Whether this node's tasks are with transports, which may continue after its death."""
    return str(row["name"]).startswith(DISPATCHER_PREFIX)


class HeartbeatSighting(NamedTuple):
    """The last heartbeat seen of a node, and since when (monotonic)."""

    beat: int
    since: float


def find_silent_nodes(
    seen: Mapping[int, HeartbeatSighting], rows: Iterable[Row], *, now: float, node_timeout: timedelta
) -> tuple[dict[int, HeartbeatSighting], list[Row]]:
    """Return the updated sightings, and the nodes whose counter has not changed for a lease. Pure."""
    fresh: dict[int, HeartbeatSighting] = {}
    dead: list[Row] = []
    for row in rows:
        before = seen.get(row["id"])
        if before is None or before.beat != row["heartbeat"]:
            fresh[row["id"]] = HeartbeatSighting(row["heartbeat"], now)
            continue
        fresh[row["id"]] = before
        if now - before.since >= node_timeout.total_seconds():
            dead.append(row)
    return fresh, dead


@dataclass
class RewindDetected(Exception):
    """The database lost committed data."""

    survived_at: int  # the last time at which it is known to have been complete
    again: bool  # on a server on which this node had already worked


class Node:
    """This process as a member of the fleet."""

    def __init__(self, store: Store, clock: Clock, *, node_timeout: timedelta, name: str | None = None) -> None:
        self._store = store
        self._clock = clock
        self.timeout = node_timeout.total_seconds()
        self.name = name or f"{socket.gethostname()}:{os.getpid()}"
        self.id = NodeId(0)
        self.beats = 0
        self._seen: tuple[int, int, bool] | None = None  # task, claim number, whether its result was written
        self._started_at = 0
        self._beaten_at = float("-inf")
        self._beats: deque[tuple[int, int]] = deque(maxlen=_BEATS)  # counter, database time
        self._server = store.server
        self._newest = 0  # the newest task that this process had created at the last heartbeat
        self._rewound: RewindDetected | None = None

    @property
    def is_trusted(self) -> bool:
        """Whether this node may start tasks: its last heartbeat is recent and went to the current server."""
        is_recent = self._clock.monotonic() - self._beaten_at < self.timeout * TRUST_FRACTION
        return self._store.sole_worker or (is_recent and self.knows_server)

    @property
    def knows_server(self) -> bool:
        """Whether the last heartbeat went to the current server; another server may lack committed data."""
        return self._server == self._store.server

    async def join(self) -> None:
        """Register a new incarnation, which fences claims of earlier ones, and learn the database's time."""
        asked = self._clock.monotonic()
        rows = await self._store.write([Step("node_join", {"name": self.name, "info": "{}"})])
        self._clock.learn(rows[0][0]["seen_at"], asked, self._clock.monotonic())
        self.id = NodeId(rows[0][0]["id"])
        self._started_at = rows[0][0]["started_at"]
        self._server = self._store.server
        self._newest = self._store.newest.get(self._server, 0)
        self._beaten_at = asked

    def see(self, task: Task, *, settled: bool) -> None:
        """Remember the newest claim or result that is committed on the server of the last heartbeat."""
        if self.knows_server:
            self._seen = (task.id, task.claim_no, settled)

    async def beat(self, info: str = "{}") -> bool:
        """Send a heartbeat. Return False if others have declared this incarnation dead.

        Raises RewindDetected, from then on every time, if the database lacks data that this node has seen.
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
        self._beaten_at = asked  # the time before the request: never later than what others saw
        self.beats, self._server, self._newest = beat, server, newest.get(server, 0)
        self._beats.append((beat, rows[0]["seen_at"]))
        self._seen = None
        return True

    async def _is_missed(self) -> bool:
        """Whether this server lacks data that this node saw committed after its last heartbeat on another."""
        newest = self._store.newest.get(self._server, 0)
        task, claim_no, settled = self._seen or (0, 0, False)
        known = {
            "node": self.id, "started_at": self._started_at, "server": self._store.server, "task": task,
            "newest": newest if newest != self._newest else 0, "claim_no": claim_no, "settled": settled,
        }  # fmt: skip
        return bool((await self._store.read("rewind_look", **known))[0]["lost"])

    async def leave(self) -> None:
        """Unregister, if this node holds no tasks."""
        if self.id:
            await self._store.write([Step("node_gone", {"id": self.id})])
