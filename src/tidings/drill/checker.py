"""The checker of a drill: compares three logs with the engine's records and returns a verdict. Pure.

Each log has one owner: the producer (attempted and acknowledged), the receiver (every copy, before its
answer) and the injector (every kill, pause and cut). The engine's records excuse nothing: they must cover
what the logs show. A fault explains only what it could have caused.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

SLACK = 0.05  # seconds by which a fault's window is widened on each side
RECORD = 2.0  # seconds that a sender has to write down an answer; a kill after that excuses nothing


_ALLOWED = ("explained", "held", "recovered", "lateness")  # all other lists are violations


class ReceiverAction(StrEnum):
    """What the receiver did with a copy."""

    OK = "ok"
    REFUSED = "refused"  # answered with an error: not a delivery, and the next copy is not a duplicate
    DROPPED = "dropped"  # took it and cut the connection
    LATE = "late"  # took it and answered after the sender's deadline


class InjectionKind(StrEnum):
    """What the injector did."""

    KILL = "kill"
    PAUSE = "pause"
    CUT = "cut"  # of the store, from one sender or from all
    PARTITION = "partition"  # of one sender from the receiver; it ends when none of its packets can be left


class ProducerEntry(NamedTuple):
    """A line of the producer's log: `acked` is None without an acknowledgement."""

    ref: str
    digest: str
    due: float
    tried: float
    acked: float | None


class ReceivedCopy(NamedTuple):
    """A line of the receiver's log; the answer followed `after` seconds later."""

    at: float
    ref: str
    id: str
    attempt: int
    pid: int
    digest: str
    did: str = ReceiverAction.OK
    after: float = 0.0


class InjectedFault(NamedTuple):
    """A line of the injector's log. `held`: messages in flight of a dead sender, and whether each started."""

    kind: str
    target: int  # a sender's pid, or 0 for the store of all
    begin: float
    end: float
    how: str = ""
    held: Mapping[str, bool] = {}


class EngineRecord(NamedTuple):
    """The engine's record of a message at the end."""

    state: str
    unknown: bool
    crashes: int = 0
    id: str = ""
    settled_at: float | None = None  # when it last left the state processing


@dataclass(slots=True)
class DrillVerdict:
    """All classes with their messages. Only some of them may be non-empty."""

    lost: list[str] = field(default_factory=list)
    stuck: list[str] = field(default_factory=list)  # accepted but not finished
    unexpected: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    explained: list[str] = field(default_factory=list)
    unexplained: list[str] = field(default_factory=list)
    overlap: list[str] = field(default_factory=list)
    unflagged: list[str] = field(default_factory=list)  # a duplicate that the engine does not report
    misrecorded: list[str] = field(default_factory=list)  # delivered, recorded as failed
    held: list[str] = field(default_factory=list)
    unwitnessed: list[str] = field(default_factory=list)  # held without a witnessed reason
    recovered: list[str] = field(default_factory=list)
    delivered: int = 0
    lateness: list[float] = field(default_factory=list)  # of each first copy, in seconds

    @property
    def violations(self) -> dict[str, list[str]]:
        """The non-empty classes that fail a run."""
        found = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            name: refs[:5] for name, refs in found.items() if isinstance(refs, list) and refs and name not in _ALLOWED
        }

    @property
    def duplicates(self) -> int:
        """Extra copies, explained or not."""
        return len(self.explained) + len(self.unexplained)


def check_logs(
    tried: Iterable[ProducerEntry],
    copies: Iterable[ReceivedCopy],
    faults: Sequence[InjectedFault],
    books: Mapping[str, EngineRecord],
    *,
    deadline: float,
) -> DrillVerdict:
    """Classify every message. `deadline` is the senders' deadline of one attempt."""
    verdict = DrillVerdict()
    asked = {line.ref: line for line in tried}
    seen: defaultdict[str, list[ReceivedCopy]] = defaultdict(list)
    for copy in sorted(copies):
        seen[copy.ref].append(copy)
    for ref, found in seen.items():
        _check_copies(verdict, asked.get(ref), found, faults, books.get(ref), deadline)
    for ref, line in asked.items():
        _check_message(verdict, line, seen.get(ref, []), faults, books.get(ref))
    return verdict


def _check_copies(
    verdict: DrillVerdict,
    line: ProducerEntry | None,
    copies: Sequence[ReceivedCopy],
    faults: Sequence[InjectedFault],
    book: EngineRecord | None,
    deadline: float,
) -> None:
    ref = copies[0].ref
    if line is None or any(copy.digest != line.digest for copy in copies) or len({copy.id for copy in copies}) > 1:
        verdict.unexpected.append(ref)
    if line is not None and copies[0].at < line.due:
        verdict.early.append(ref)
    taken = [copy for copy in copies if copy.did != ReceiverAction.REFUSED]
    if taken and book is not None and book.state == "failed" and not book.unknown:
        verdict.misrecorded.append(ref)
    if line is not None and taken:
        verdict.delivered += 1
        verdict.lateness.append(taken[0].at - line.due)
    for first, second in pairwise(taken):
        excused = any(explains_duplicate(fault, first, second) for fault in faults) or first.did in (
            ReceiverAction.DROPPED,
            ReceiverAction.LATE,
        )
        (verdict.explained if excused else verdict.unexplained).append(ref)
        if book is None or not book.unknown:
            verdict.unflagged.append(ref)
        if overlaps(first, second, faults, deadline):
            verdict.overlap.append(ref)


def _check_message(
    verdict: DrillVerdict,
    line: ProducerEntry,
    copies: Sequence[ReceivedCopy],
    faults: Sequence[InjectedFault],
    book: EngineRecord | None,
) -> None:
    delivered = any(copy.did != ReceiverAction.REFUSED for copy in copies)
    if line.acked is None:
        if copies:
            verdict.recovered.append(line.ref)
        return
    if book is not None and book.state in ("pending", "processing"):
        verdict.stuck.append(line.ref)
    elif book is not None and book.state == "failed" and book.unknown:
        witnessed = any(fault.held.get(line.ref) for fault in faults) or any(
            copy.did in (ReceiverAction.DROPPED, ReceiverAction.LATE) for copy in copies
        )
        (verdict.held if witnessed else verdict.unwitnessed).append(line.ref)
    elif not delivered:
        verdict.lost.append(line.ref)


def explains_duplicate(fault: InjectedFault, first: ReceivedCopy, second: ReceivedCopy) -> bool:
    """Return whether a fault accounts for the second copy.

    In the usual order, the fault hit the sender of the first copy before it could record the answer. An older
    attempt that arrives after a newer one was held up: its sender was paused or partitioned meanwhile.
    """
    begin, end = fault.begin - SLACK, fault.end + SLACK
    if second.attempt < first.attempt:
        return _held_up(fault, second) and begin <= first.at
    if second.at < begin:
        return False
    recorded_by = first.at + first.after + RECORD
    hit = fault.target in (0, first.pid) and recorded_by >= begin
    # Data in a dead sender's socket may be logged after its death; anything else may not.
    return hit and (fault.kind == InjectionKind.KILL or first.at <= end)


def _held_up(fault: InjectedFault, copy: ReceivedCopy) -> bool:
    """Return whether a copy may have been sent before the fault and have arrived during it."""
    during = fault.begin - SLACK <= copy.at <= fault.end + SLACK
    return fault.kind in (InjectionKind.PAUSE, InjectionKind.PARTITION) and fault.target == copy.pid and during


def overlaps(first: ReceivedCopy, second: ReceivedCopy, faults: Iterable[InjectedFault], deadline: float) -> bool:
    """Return whether the first copy was in flight, from a live and unpaused sender, when the second came."""
    if second.at >= first.at + min(first.after, deadline):
        return False
    for fault in faults:
        if _held_up(fault, second) or (fault.kind == InjectionKind.PARTITION and _held_up(fault, first)):
            return False
        is_gone = fault.kind == InjectionKind.KILL or (
            fault.kind == InjectionKind.PAUSE and first.at <= fault.end + SLACK
        )
        if is_gone and fault.target == first.pid and fault.begin - SLACK <= second.at:
            return False
    return True


class CrashCoverage(NamedTuple):
    """Moments that a run must have hit at least once to prove anything."""

    before_start: int  # killed after the claim, before the start mark
    before_send: int  # killed after the start mark, before the first byte
    before_record: int  # killed after the send, before the result was stored
    after_record: int  # killed with its last results stored but not reported
    between: int  # killed while it held nothing


def crash_coverage(copies: Iterable[ReceivedCopy], faults: Iterable[InjectedFault]) -> CrashCoverage:
    """Count the moments at which senders were killed, from the logs alone."""
    sent = {(copy.pid, copy.ref) for copy in copies}
    kills = [fault for fault in faults if fault.kind == InjectionKind.KILL]
    held = [(begun, (kill.target, ref) in sent) for kill in kills for ref, begun in kill.held.items()]
    return CrashCoverage(
        before_start=held.count((False, False)),
        before_send=held.count((True, False)),
        before_record=sum(was_sent for _, was_sent in held),
        after_record=sum(kill.how.startswith("settled") for kill in kills),
        between=sum(not kill.held for kill in kills),
    )


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value that a share of the values does not exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else 0.0
