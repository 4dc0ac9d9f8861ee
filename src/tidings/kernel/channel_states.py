"""Standing: how the channels are doing, as last read, and what results mean for their breakers.

The rows are the truth and shared by all nodes; what is kept here only saves asking when nothing is wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from ..model.outcome import Outcome
from ..model.time import micros
from ..observability.events import ChannelResumed, ChannelStopped, Emit, Event
from ..store.port import Row, Step, Store
from .breaker import fold_outcomes
from .clock import Clock
from .lanes import Lane


class ChannelStates:
    """The channels of one node."""

    def __init__(self, store: Store, clock: Clock, lanes: Mapping[str, Lane], *, emit: Emit) -> None:
        self._store = store
        self._clock = clock
        self._lanes = lanes
        self._emit = emit
        self._rows: dict[str, Row] = {}
        self._probing: set[str] = set()

    @property
    def is_troubled(self) -> bool:
        """Whether some breaker is not closed, so that it is worth looking often."""
        return any(row["opened_at"] is not None for row in self._rows.values())

    async def refresh(self) -> None:
        """Read the rows anew, and tell what has changed."""
        before = self._rows
        self._rows = {row["name"]: row for row in await self._store.read("queue_list")}
        for name, row in self._rows.items():
            for event in channel_events(before.get(name), row):
                self._emit(event)

    async def ask_for_probes(self, queues: Collection[str]) -> set[str]:
        """The half-open channels among these that this node may try with one message."""
        now = self._clock.now()
        granted: set[str] = set()
        for queue in queues:
            row = self._rows.get(queue)
            if row is None or row["opened_at"] is None or (row["blocked_until"] or 0) > now:
                continue
            if (await self._store.write([Step("breaker_probe", {"name": queue})]))[0]:
                granted.add(queue)
        self._probing |= granted
        return granted

    async def return_probes(self, unused: Iterable[str]) -> None:
        """There was nothing to try them with."""
        for queue in unused:
            self._probing.discard(queue)
            await self._store.write([Step("breaker_return", {"name": queue})])

    def steps(self, results: Mapping[tuple[str, int], Collection[Outcome]]) -> list[Step]:
        """What these results, by channel and time of claim, mean for the breakers; mostly nothing."""
        steps: list[Step] = []
        for (queue, claimed_at), outcomes in results.items():
            trail = fold_outcomes(outcomes)
            row = self._rows.get(queue)
            rule = self._lanes[queue].breaker
            if trail.failures:
                failed = {
                    "name": queue,
                    "reset": trail.reset,
                    "count": trail.failures,
                    "threshold": rule.threshold,
                    "cooldown": micros(rule.cooldown),
                    "claimed_at": claimed_at,
                }
                steps.append(Step("breaker_failed", failed))
            elif trail.reset and (row is None or row["failures"] or row["opened_at"] is not None):
                steps.append(Step("breaker_closed", {"name": queue, "claimed_at": claimed_at}))
            elif queue in self._probing and not trail.reset:
                steps.append(Step("breaker_return", {"name": queue}))
            self._probing.discard(queue)
        return steps


def channel_events(before: Row | None, now: Row) -> list[Event]:
    """What has changed about a channel since it was last looked at."""
    stood, stands = None if before is None else _stopped(before), _stopped(now)
    if stands is not None and (stood is None or stood[0] != stands[0]):
        return [ChannelStopped(now["name"], *stands, now["blocked_until"])]
    return [ChannelResumed(now["name"])] if stood is not None and stands is None else []


def _stopped(row: Row) -> tuple[str, str] | None:
    """How and why a channel stands still; None when it does not."""
    if row["paused"]:
        return "paused", row["pause_reason"] or "by hand"
    if row["session_state"] not in (None, "connected"):
        return str(row["session_state"]).replace("_", " "), row["session_reason"]
    if row["opened_at"] is not None:
        return "breaker open", f"{row['failures']} failures in a row"
    return None
