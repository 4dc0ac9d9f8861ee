"""Errands: tasks that were given to transports, and what a report means for each. Pure; time is an argument.

A task stays here until its outcome is told, it was certainly not begun, or it is in doubt for good. Doubt has
two causes. Its parcel was redelivered, so whoever had it first is gone: then his deadline is waited for. Or
nothing was heard at all until every bound had passed: then a marker through the outcome queue must have come
back first, because what is told last may still be on its way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..kernel.lanes import Lane
from ..model.outcome import Outcome
from ..model.task import OnUnknown, Task, TaskId
from .claim_tokens import ClaimTokens
from .wire_format import ClaimKey, ReportedOutcome, ReturnReason, TransportReport

_SLACK = 2.0  # seconds for what a parcel does not wait for: confirms, loops, the way
_REMEMBERED = 20_000


class DispatchTimeouts(NamedTuple):
    """How long things may take on the way."""

    ttl: float = 10.0  # seconds a parcel waits for a transport
    within: float = 5.0  # seconds from its arrival there to its start
    quarantine_after: int = 4


@dataclass(slots=True)
class InFlightTask:
    """One task in the hands of others."""

    task: Task
    lane: Lane
    claimed_at: int
    give_up: float  # monotonic: after this nobody can still begin it
    content: Any = None
    started: bool = False
    doubt_at: float | None = None  # monotonic: it was redelivered, and is taken from then on
    alone: bool = False

    @property
    def may_have_begun(self) -> bool:
        """On channels that resend nobody says when he begins."""
        return self.started or self.lane.on_unknown is OnUnknown.RESEND


class ReportEffect(NamedTuple):
    """What a report means."""

    ended: list[tuple[InFlightTask, Outcome, float]]
    started: list[InFlightTask]
    back: list[tuple[InFlightTask, ReturnReason]]  # certainly not begun
    late: list[ReportedOutcome]  # of tasks that are not in hand any more
    refused: int = 0  # entries whose token is wrong


def completion_bound(*, ttl: float, within: float, lane: Lane) -> float:
    """Seconds after which nobody can still be sending something that was published now."""
    return ttl + within + lane.deadline.total_seconds() + _SLACK


@dataclass(slots=True)
class InFlightTasks:
    """Everything that one node has given away."""

    tokens: ClaimTokens
    held: dict[TaskId, InFlightTask] = field(default_factory=dict)
    _told: OrderedDict[ClaimKey, None] = field(
        default_factory=OrderedDict
    )  # lately: the same told again is no news

    def add(self, in_flight_task: InFlightTask) -> None:
        """It is about to be given away."""
        self.held[in_flight_task.task.id] = in_flight_task

    def drop(self, in_flight_task: InFlightTask) -> None:
        """It has ended; what is told of it from now on is news, unless its outcome was told before."""
        self.held.pop(in_flight_task.task.id, None)

    def hear(self, report: TransportReport, now: float) -> ReportEffect:
        """Take a report in; what has ended is no longer held."""
        report, refused = self.tokens.sift(report)
        heard = ReportEffect([], [], [], [], refused)
        for key in report.started:
            if (in_flight_task := self._of(key, report.channel)) is not None and not in_flight_task.started:
                in_flight_task.started = True
                heard.started.append(in_flight_task)
        for told in report.outcomes:
            if (in_flight_task := self._of(told.key, report.channel)) is not None:
                self.drop(in_flight_task)
                self._remember(told.key)
                heard.ended.append((in_flight_task, told.outcome, told.ms / 1000))
            elif told.key not in self._told:
                self._remember(told.key)
                heard.late.append(told)
        for key, why in report.returned:
            if (in_flight_task := self._of(key, report.channel)) is None:
                continue
            if in_flight_task.started or (why is ReturnReason.REDELIVERED and in_flight_task.may_have_begun):
                if in_flight_task.doubt_at is None:
                    in_flight_task.doubt_at = now + in_flight_task.lane.deadline.total_seconds()
            else:
                self.drop(in_flight_task)
                heard.back.append((in_flight_task, why))
        return heard

    def _remember(self, key: ClaimKey) -> None:
        self._told[key] = None
        if len(self._told) > _REMEMBERED:
            self._told.popitem(last=False)

    def doubtful(self, now: float) -> list[InFlightTask]:
        """Redelivered, and whoever had it first has had his time."""
        return [e for e in self.held.values() if e.doubt_at is not None and e.doubt_at <= now]

    def silent(self, now: float) -> list[InFlightTask]:
        """Nothing was heard of these until every bound had passed."""
        return [e for e in self.held.values() if e.give_up <= now]

    def _of(self, key: ClaimKey, channel: str) -> InFlightTask | None:
        in_flight_task = self.held.get(TaskId(key[0]))
        if (
            in_flight_task is None
            or in_flight_task.task.claim_no != key[1]
            or in_flight_task.task.queue != channel
        ):
            return None
        return in_flight_task


def split_into_batches(
    in_flight_tasks: Iterable[tuple[InFlightTask, Any]], largest: int
) -> Iterable[tuple[str, list[tuple[InFlightTask, Any]]]]:
    """By channel, in portions of at most so many; a task under suspicion travels alone."""
    by_channel: dict[str, list[tuple[InFlightTask, Any]]] = {}
    for pair in in_flight_tasks:
        if pair[0].alone:
            yield pair[0].task.queue, [pair]
        else:
            by_channel.setdefault(pair[0].task.queue, []).append(pair)
    for channel, pairs in by_channel.items():
        for first in range(0, len(pairs), largest):
            yield channel, pairs[first : first + largest]


RETURN_REASONS: Mapping[ReturnReason, str] = {
    ReturnReason.REDELIVERED: "its transport was lost before it had begun",
    ReturnReason.LATE: "its transport had no free slot in time",
    ReturnReason.STOPPING: "its transport stopped before it had begun",
    ReturnReason.EXPIRED: "no transport took it in time",
    ReturnReason.STRANGE: "the transport does not have this channel",
}
