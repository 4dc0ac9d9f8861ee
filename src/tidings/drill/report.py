"""The figures of a drill. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from .checker import (
    DrillVerdict,
    EngineRecord,
    InjectedFault,
    InjectionKind,
    ProducerEntry,
    ReceivedCopy,
    ReceiverAction,
    crash_coverage,
    percentile,
)
from .workload import RECOVERY_GRACE, DrillOptions

PRODUCER = "producer"  # marks a kill of the producer
_SHARES = {"p50": 0.5, "p99": 0.99, "max": 1.0}


class DrillEvidence(NamedTuple):
    """The three logs, the engine's records, and the verdict on them."""

    tried: Sequence[ProducerEntry]
    copies: Sequence[ReceivedCopy]
    faults: Sequence[InjectedFault]
    books: Mapping[str, EngineRecord]
    verdict: DrillVerdict
    repeated: int = 0  # messages requested again after a lost answer


class DrillFigure(NamedTuple):
    name: str
    value: str
    behind: str
    is_wrong: bool = False


@dataclass(frozen=True, slots=True)
class DrillReport:
    course: DrillOptions
    lease: float
    seconds: float
    accepted: int
    repeated: int
    delivered: int
    lost: Sequence[str]
    stuck: Sequence[str]
    witnessed: Sequence[str]
    silent: Sequence[str]
    copies: int  # beyond the first of each message
    resent: int
    held: int
    late: int
    lateness: Sequence[float]
    waits: Sequence[float]  # seconds from a worker's death to the next result of its messages in flight
    killed: Mapping[str, int]
    moments: Mapping[str, int]
    violations: Mapping[str, Sequence[str]]  # violations with message ids

    @property
    def is_clean(self) -> bool:
        """Whether nothing was lost, duplicated silently, or is otherwise unexplained."""
        return not self.violations

    @property
    def proves(self) -> bool:
        """Whether a worker died between sending and recording; otherwise no duplicates prove nothing."""
        return bool(self.moments["sent, not recorded"])


def build_report(evidence: DrillEvidence, course: DrillOptions, *, lease: float, seconds: float) -> DrillReport:
    verdict, books = evidence.verdict, evidence.books
    silent = {*verdict.unexplained, *verdict.unflagged, *verdict.overlap}
    lateness = _lateness(evidence)
    in_doubt = [book for book in books.values() if book.unknown]
    met = crash_coverage(evidence.copies, [fault for fault in evidence.faults if fault.how != PRODUCER])
    producers = sum(fault.how == PRODUCER for fault in evidence.faults)
    return DrillReport(
        course=course,
        lease=lease,
        seconds=seconds,
        accepted=sum(line.acked is not None for line in evidence.tried),
        repeated=evidence.repeated,
        delivered=verdict.delivered,
        lost=verdict.lost,
        stuck=verdict.stuck,
        witnessed=sorted({*verdict.explained} - silent),
        silent=sorted(silent),
        copies=verdict.duplicates,
        resent=sum(book.state == "done" for book in in_doubt),
        held=sum(book.state == "failed" for book in in_doubt),
        late=sum(late > lease + RECOVERY_GRACE for late in lateness),
        lateness=lateness,
        waits=_waits(evidence),
        killed={"workers": len(evidence.faults) - producers, "producers": producers},
        moments={
            "claimed, not started": met.before_start,
            "started, not sent": met.before_send,
            "sent, not recorded": met.before_record,
        },
        violations={name: [_named(ref, books) for ref in found] for name, found in verdict.violations.items()},
    )


def _lateness(evidence: DrillEvidence) -> list[float]:
    """Return the seconds from due and accepted to the first copy."""
    first: dict[str, float] = {}
    for copy in evidence.copies:
        if copy.did != ReceiverAction.REFUSED:
            first[copy.ref] = min(copy.at, first.get(copy.ref, copy.at))
    return [
        max(0.0, first[line.ref] - max(line.due, line.acked or line.due))
        for line in evidence.tried
        if line.ref in first
    ]


def _waits(evidence: DrillEvidence) -> list[float]:
    """Return the seconds from each death to the next copy by another worker, or to the settlement."""
    by_ref: dict[str, list[ReceivedCopy]] = {}
    for copy in sorted(evidence.copies):
        by_ref.setdefault(copy.ref, []).append(copy)
    waits = []
    for fault in evidence.faults:
        for ref in fault.held if fault.kind == InjectionKind.KILL else ():
            again = [copy.at for copy in by_ref.get(ref, ()) if copy.pid != fault.target and copy.at > fault.begin]
            book = evidence.books.get(ref)
            settled = None if book is None else book.settled_at
            end = min(again, default=settled)
            if end is not None:
                waits.append(max(0.0, end - fault.begin))
    return waits


def _named(ref: str, books: Mapping[str, EngineRecord]) -> str:
    """Return the reference of a message with its id in the engine."""
    return f"{ref} ({books[ref].id})" if ref in books else f"{ref} (not in the database)"


def report_figures(found: DrillReport) -> list[DrillFigure]:
    slow = ", ".join(f"{name} {_seconds(found.lateness, share)}" for name, share in _SHARES.items())
    moments = ", ".join(f"{count:,} {name}" for name, count in found.moments.items() if count)
    killed = " and ".join(f"{n} {who if n != 1 else who[:-1]}" for who, n in found.killed.items())
    return [
        DrillFigure(
            "accepted",
            f"{found.accepted:,}",
            f"of {found.course.messages:,}; {found.repeated:,} were requested again after a lost answer"
            if found.repeated
            else f"of {found.course.messages:,}",
            found.accepted < found.course.messages,
        ),
        DrillFigure("delivered", f"{found.delivered:,}", "seen by the receiver at least once"),
        DrillFigure(
            "lost",
            f"{len(found.lost) + len(found.stuck):,}",
            f"{len(found.lost):,} never seen, {len(found.stuck):,} still waiting",
            bool(found.lost or found.stuck),
        ),
        DrillFigure(
            "duplicated",
            f"{len(found.witnessed) + len(found.silent):,}",
            f"{len(found.witnessed):,} witnessed (a kill between the copies, recorded in the history),"
            f" {len(found.silent):,} silent; {found.copies:,} extra copies",
            bool(found.silent),
        ),
        DrillFigure("unknown", f"{found.resent + found.held:,}", f"{found.resent:,} resent, {found.held:,} held"),
        DrillFigure("late", f"{found.late:,}", f"beyond the lease of {found.lease:g} s + {RECOVERY_GRACE:g} s; {slow}"),
        DrillFigure("slowest resume", _seconds(found.waits, 1), f"of {len(found.waits):,} messages of killed workers"),
        DrillFigure("kills", f"{sum(found.killed.values()):,}", killed + (f"; {moments}" if moments else "")),
        DrillFigure("seconds", f"{found.seconds:.1f}", f"seed {found.course.seed}"),
    ]


def _seconds(values: Sequence[float], share: float) -> str:
    return f"{percentile(values, share):.2f} s" if values else "–"


def as_json(found: DrillReport) -> dict[str, Any]:
    late = {name: round(percentile(found.lateness, share), 3) for name, share in _SHARES.items()}
    return {
        "ok": found.is_clean,
        "proves": found.proves,
        "messages": found.course.messages,
        "accepted": found.accepted,
        "repeated": found.repeated,
        "delivered": found.delivered,
        "lost": len(found.lost),
        "stuck": len(found.stuck),
        "duplicated": {"witnessed": len(found.witnessed), "silent": len(found.silent), "copies": found.copies},
        "unknown": {"sent": found.resent, "held": found.held},
        "late": found.late,
        "late_after_s": found.lease + RECOVERY_GRACE,
        "lateness_s": late,
        "slowest_resume_s": round(max(found.waits, default=0.0), 3),
        "claimed_by_dead": len(found.waits),
        "kills": {
            **found.killed,
            **{name.replace(", ", "_").replace(" ", "_"): n for name, n in found.moments.items()},
        },
        "workers": found.course.workers,
        "on_unknown": found.course.on_unknown,
        "seed": found.course.seed,
        "seconds": round(found.seconds, 1),
        "violations": found.violations,
    }
