"""In-flight tasks: tasks held by transports, and what a report means for each. Pure; time is an argument.

A task stays in flight until its outcome is reported, it has certainly not started, or its outcome is unknown
for good. The latter has two causes. Its batch was redelivered, so the first transport is lost: then its
deadline must pass. Or nothing was reported before all timeouts: then a marker must first have passed through
the outcome queue, because the last report may still be on its way.
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

_SLACK = 2.0  # seconds for confirms, loops and the network
_REMEMBERED = 20_000


class DispatchTimeouts(NamedTuple):
    """Time limits of a dispatched task."""

    ttl: float = 10.0  # seconds that a batch waits for a transport
    within: float = 5.0  # seconds from its arrival there to its start
    quarantine_after: int = 4


@dataclass(slots=True)
class InFlightTask:
    """One task held by a transport."""

    task: Task
    lane: Lane
    claimed_at: int
    give_up: float  # monotonic: afterwards it can no longer start
    content: Any = None
    started: bool = False
    unknown_at: float | None = None  # monotonic: when a redelivered task becomes unknown
    alone: bool = False

    @property
    def may_have_started(self) -> bool:
        """Whether it may have started: channels that resend do not report starts."""
        return self.started or self.lane.on_unknown is OnUnknown.RESEND


class ReportEffect(NamedTuple):
    ended: list[tuple[InFlightTask, Outcome, float]]
    started: list[InFlightTask]
    returned: list[tuple[InFlightTask, ReturnReason]]  # certainly not started
    late: list[ReportedOutcome]  # of tasks that are no longer in flight
    refused: int = 0  # entries with a wrong token


def completion_bound(*, ttl: float, within: float, lane: Lane) -> float:
    """Return the seconds after which a task that is published now can no longer be running."""
    return ttl + within + lane.deadline.total_seconds() + _SLACK


@dataclass(slots=True)
class InFlightTasks:
    """All tasks that one node has published."""

    tokens: ClaimTokens
    held: dict[TaskId, InFlightTask] = field(default_factory=dict)
    _reported: OrderedDict[ClaimKey, None] = field(default_factory=OrderedDict)  # to ignore repeated reports

    def add(self, entry: InFlightTask) -> None:
        self.held[entry.task.id] = entry

    def drop(self, entry: InFlightTask) -> None:
        """Remove a task that has ended; a later report about it is late."""
        self.held.pop(entry.task.id, None)

    def apply(self, report: TransportReport, now: float) -> ReportEffect:
        """Apply a report. Tasks that have ended are removed."""
        report, refused = self.tokens.verify(report)
        effect = ReportEffect([], [], [], [], refused)
        for key in report.started:
            if (entry := self._of(key, report.channel)) is not None and not entry.started:
                entry.started = True
                effect.started.append(entry)
        for reported in report.outcomes:
            if (entry := self._of(reported.key, report.channel)) is not None:
                self.drop(entry)
                self._remember(reported.key)
                effect.ended.append((entry, reported.outcome, reported.ms / 1000))
            elif reported.key not in self._reported:
                self._remember(reported.key)
                effect.late.append(reported)
        for key, reason in report.returned:
            if (entry := self._of(key, report.channel)) is None:
                continue
            if entry.started or (reason is ReturnReason.REDELIVERED and entry.may_have_started):
                if entry.unknown_at is None:
                    entry.unknown_at = now + entry.lane.deadline.total_seconds()
            else:
                self.drop(entry)
                effect.returned.append((entry, reason))
        return effect

    def _remember(self, key: ClaimKey) -> None:
        self._reported[key] = None
        if len(self._reported) > _REMEMBERED:
            self._reported.popitem(last=False)

    def unknown(self, now: float) -> list[InFlightTask]:
        """Return redelivered tasks whose first attempt has passed its deadline."""
        return [e for e in self.held.values() if e.unknown_at is not None and e.unknown_at <= now]

    def silent(self, now: float) -> list[InFlightTask]:
        """Return tasks without a report after all timeouts."""
        return [e for e in self.held.values() if e.give_up <= now]

    def _of(self, key: ClaimKey, channel: str) -> InFlightTask | None:
        entry = self.held.get(TaskId(key[0]))
        if entry is None or entry.task.claim_no != key[1] or entry.task.queue != channel:
            return None
        return entry


def split_into_batches(
    entries: Iterable[tuple[InFlightTask, Any]], largest: int
) -> Iterable[tuple[str, list[tuple[InFlightTask, Any]]]]:
    """Split by channel into batches of at most `largest`; a suspect of a crash travels alone."""
    by_channel: dict[str, list[tuple[InFlightTask, Any]]] = {}
    for pair in entries:
        if pair[0].alone:
            yield pair[0].task.queue, [pair]
        else:
            by_channel.setdefault(pair[0].task.queue, []).append(pair)
    for channel, pairs in by_channel.items():
        for first in range(0, len(pairs), largest):
            yield channel, pairs[first : first + largest]


RETURN_REASONS: Mapping[ReturnReason, str] = {
    ReturnReason.REDELIVERED: "its transport was lost before the attempt started",
    ReturnReason.LATE: "its transport had no free slot in time",
    ReturnReason.STOPPING: "its transport stopped before the attempt started",
    ReturnReason.EXPIRED: "no transport accepted it in time",
    ReturnReason.UNKNOWN_CHANNEL: "the transport does not have this channel",
}
