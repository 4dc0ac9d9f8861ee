"""Claims on SQLite: selects the next tasks of a file, by priority, then due time, and a share for the oldest.

PostgreSQL does it in one statement, `claim.sql`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

import apsw

from ..model.task import NodeId, Task, TaskId
from .port import ClaimRequest, ClaimResult, NextDue
from .rate_limits import MAX_AHEAD, RateLimitState, reserve_slots
from .sqlite_steps import SqliteSteps, int_array

_LINKED = (None, "connected")  # no session, or one that can send
_START_ORDER = attrgetter("priority", "due_at", "id")
_AGE = attrgetter("due_at", "id")


def choose_tasks(near: Sequence[Task], rooms: Mapping[str, int], room: int, fair: int) -> list[Task]:
    """Choose at most `room` tasks, and `rooms` per queue; `fair` of them are the oldest due."""
    left, taken = dict(rooms), dict[TaskId, Task]()
    for order, most in ((_AGE, min(fair, room)), (_START_ORDER, room)):
        for task in sorted(near, key=order) if most else ():
            if len(taken) >= most:
                break
            if left[task.queue] > 0 and task.id not in taken:
                left[task.queue] -= 1
                taken[task.id] = task
    return sorted(taken.values(), key=_START_ORDER)


class SqliteClaims:
    """Selects and claims tasks on a given connection."""

    def __init__(self, steps: SqliteSteps, now: Callable[[], int]) -> None:
        self._steps = steps
        self._now = now

    def is_anything_due(self, connection: apsw.Connection, request: ClaimRequest) -> bool:
        now = self._now()
        return any(due_at <= now and queue in request.rooms for queue, _, due_at in self._heads(connection))

    def claim(self, connection: apsw.Connection, *, node: NodeId, request: ClaimRequest) -> ClaimResult:
        """Select the earliest tasks of each queue and priority, then claim them."""
        now = self._now()
        rooms = self._open_rooms(connection, request, now)
        paces = self._rate_limit_states(connection, request, rooms, now)
        near, of_one_kind = self._near(connection, rooms, request.room, now)
        if not of_one_kind:
            near = choose_tasks(near, rooms, request.room, request.fair)
        late = [task for task in near if task.expires_at is not None and task.expires_at <= now]
        gone = {task.id for task in late}
        tasks = [task for task in near if task.id not in gone] if late else near
        ids = [task.id for task in tasks]
        connection.execute(self._steps.sql["claim_some"].sql, (node, now, int_array(ids)))
        connection.execute(self._steps.sql["record_claims"].sql, (int_array(ids),))
        if paces:
            tasks, free_at = reserve_slots(paces, tasks, request.keyed, now)
            for queue, free in free_at.items():
                self._steps.rows(connection, "rate_limit_take", {"queue": queue, "next_at": free})
        return ClaimResult(tasks, [task._replace(attempts=task.attempts - 1, claim_no=-1) for task in late])

    def next_due(self, connection: apsw.Connection, queues: Collection[str]) -> NextDue:
        now = self._now()
        open_from: dict[str, int] = {}
        for row in self._steps.rows(connection, "queue_list", {}):
            parked = row["blocked_until"] or 0
            if row["session_state"] not in _LINKED:
                continue
            if row["name"] in queues and not row["paused"] and (row["opened_at"] is None or parked > now):
                paced = 0 if row["next_at"] is None else row["next_at"] - MAX_AHEAD
                open_from[row["name"]] = max(parked, paced)
        times = [max(due_at, open_from[queue]) for queue, _, due_at in self._heads(connection) if queue in open_from]
        return NextDue(now, min(times, default=None))

    def _open_rooms(self, connection: apsw.Connection, request: ClaimRequest, now: int) -> dict[str, int]:
        rooms: dict[str, int] = {}
        for row in self._steps.rows(connection, "queue_list", {}):
            name = row["name"]
            if name not in request.rooms or row["paused"] or (row["blocked_until"] or 0) > now:
                continue
            if row["session_state"] not in _LINKED:
                continue
            if row["opened_at"] is None or name in request.probes:
                rooms[name] = request.rooms[name]
        return rooms

    def _rate_limit_states(
        self, connection: apsw.Connection, request: ClaimRequest, rooms: dict[str, int], now: int
    ) -> dict[str, RateLimitState]:
        paces: dict[str, RateLimitState] = {}
        for queue in request.limited & rooms.keys():
            for row in self._steps.rows(connection, "rate_limit_lock", {"queue": queue}):
                paces[queue] = RateLimitState(row["interval"], row["next_at"])
                rooms[queue] = min(rooms[queue], paces[queue].allowance(now))
        return paces

    def _heads(self, connection: apsw.Connection) -> list[tuple[str, int, int]]:
        """Return queue, priority and due time of the earliest task of each."""
        heads: Any = connection.execute(self._steps.sql["heads"].sql).fetchall()
        return cast("list[tuple[str, int, int]]", heads)

    def _near(
        self, connection: apsw.Connection, rooms: Mapping[str, int], room: int, now: int
    ) -> tuple[list[Task], bool]:
        """Return the earliest tasks as they will be once claimed; True: they have one queue and priority."""
        near = self._steps.sql["near"].sql
        found: list[Task] = []
        kinds = 0
        for queue, priority, due_at in self._heads(connection):
            free = min(rooms.get(queue, 0), room)
            if free > 0 and due_at <= now:
                found += map(Task._make, connection.execute(near, (queue, priority, now, free)))
                kinds += 1
        return found, kinds <= 1
