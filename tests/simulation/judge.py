"""The judge of a world: rules that hold after every write, and the ledger's rule at the end.

Excuses come from the injector's log and the receiver's ledger alone. The database is looked at from outside:
triggers keep a log of every move, with which the engine's own history must agree.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from tidings.drill.checker import (
    SLACK,
    EngineRecord,
    InjectedFault,
    InjectionKind,
    ProducerEntry,
    ReceivedCopy,
    ReceiverAction,
    check_logs,
)
from tidings.model.task import TaskState, can_transition
from tidings.model.time import SECOND

from ..crash.summary import verdict_counts
from .clock import START
from .plan import DEADLINE, LANES, LEASE, LONGEST, RATE

if TYPE_CHECKING:
    from .world import World

Query = Callable[..., list[tuple[Any, ...]]]

ON_TIME = 1.3  # seconds from due to arrival where nothing went wrong: a poll, two calls and the way
_AFTERMATH = 2 * LEASE + LONGEST + 10  # seconds for which a fault may still make something late

_ALWAYS = """
select 'nobody can take it from its node', t.tenant || ' held by node ' || t.node from tasks t
  left join nodes n on n.id = t.node where t.state = 'processing' and n.id is null
union all
select 'two of one order key at once', queue || ' ' || ordering_key from tasks
  where ordering_key is not null and (state = 'processing' or (state = 'pending' and head))
  group by queue, ordering_key having count(*) > 1
union all
select 'an order key that nobody can move', p.queue || ' ' || p.ordering_key from tasks p
  where p.ordering_key is not null and p.state = 'pending' and not exists (select 1 from tasks h
    where h.queue = p.queue and h.ordering_key = p.ordering_key
      and (h.state = 'processing' or (h.state = 'pending' and h.head)))
"""


class Line(NamedTuple):
    """One task at the end."""

    id: int
    queue: str
    state: str
    unknown: bool
    claim_no: int
    key: str | None
    expires: float | None
    crashes: int


Books = dict[str, Line]


def checked(query: Query) -> Iterator[tuple[str, str]]:
    """What is wrong right now."""
    yield from query(_ALWAYS)


def read_books(query: Query) -> Books:
    """Every task by its message."""
    rows = query("select tenant, id, queue, state, unknown, claim_no, ordering_key, expires_at, crashes from tasks")
    return {
        row[0]: Line(
            row[1], row[2], row[3], bool(row[4]), row[5], row[6],
            None if row[7] is None else (row[7] - START) / SECOND, row[8],
        )
        for row in rows
    }  # fmt: skip


def judged(world: World) -> tuple[dict[str, list[str]], dict[str, float]]:
    """Everything that must not be, by name; and the ledger's counts."""
    violations: defaultdict[str, list[str]] = defaultdict(list)
    for name, found in world.violations.items():
        violations[name] += found
    books = world.books()
    _moves(world, books, violations)
    _ends(world, books, violations)
    _order(world, books, violations)
    _pace(world, violations)
    _late(world, books, violations)
    faults = [_with_held(world, fault) for fault in world.nemesis.log]
    verdict = check_logs(
        [_asked(world, line, books) for line in world.tried.values()],
        world.receiver.copies,
        faults,
        {ref: EngineRecord(line.state, line.unknown, line.crashes) for ref, line in books.items()},
        deadline=DEADLINE,
    )  # fmt: skip
    _excuse_cut_overlaps(world, verdict.overlap)
    for name, refs in verdict.violations.items():
        violations[name] += refs
    world.met["duplicate, explained"] += len(verdict.explained)
    world.met["held for a person"] += len(verdict.held)
    world.met["recovered"] += len(verdict.recovered)
    return {name: found[:5] for name, found in violations.items() if found}, verdict_counts(verdict)


def _moves(world: World, books: Books, violations: defaultdict[str, list[str]]) -> None:
    """The log of the triggers: only legal moves, as many claims as the fence says, and the history agrees."""
    ref_of: dict[int, str] = dict(world.query("select id, tenant from tasks"))
    if len(ref_of) > len(books):
        violations["accepted twice"].append(f"{len(ref_of)} tasks for {len(books)} messages")
    seen: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for task, origin, state in world.query("select task, origin, state from moves order by rowid"):
        seen[ref_of[task]].append((origin, state))
        if not can_transition(TaskState(origin), TaskState(state)):
            violations["illegal move"].append(f"{ref_of[task]} {origin} to {state}")
        world.met[f"{origin} to {state}"] += 1
    told: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
    for task, origin, state, detail in world.query("select task, origin, state, detail from history order by rowid"):
        if origin != state:
            told[ref_of[task]].append((origin, state))
        if detail is not None and detail.startswith("late result"):
            world.met["late result kept"] += 1
        if detail == "the response to its claim was lost":
            world.met["claim unanswered, given back"] += 1
        if detail == "this node could not confirm its claim":
            world.met["not sent for want of trust"] += 1
    for host, task in world.lost_claims:
        kept = world.query("select 1 from history where task = ? and detail like '%late result%'", task)
        if host.is_alive and not kept:
            violations["a late result that nobody kept"].append(ref_of[task])
    for ref, line in books.items():
        claims = sum(to == "processing" for _, to in seen[ref])
        if claims != line.claim_no:
            violations["the fence stood still"].append(f"{ref}: {claims} claims, number {line.claim_no}")
        if told[ref] != seen[ref]:
            violations["the history is not what happened"].append(ref)


def _ends(world: World, books: Books, violations: defaultdict[str, list[str]]) -> None:
    """Nothing is left at work or without a reason; nobody dead is unburied."""
    refused = {copy.ref for copy in world.receiver.copies if copy.did == ReceiverAction.REFUSED}
    for ref in world.tried.keys() - books.keys():
        violations["lost"].append(ref)
    taken = Counter(copy.ref for copy in world.receiver.copies if copy.did != ReceiverAction.REFUSED)
    for ref, line in books.items():
        wished = ref in world.people.touched
        if line.state == "failed" and not line.unknown and ref not in refused | world.poison:
            violations["failed without a reason"].append(ref)
        if line.state == "cancelled" and not wished:
            violations["cancelled by nobody"].append(ref)
        if line.state == "expired" and line.expires is None:
            violations["expired without an expiry"].append(ref)
        if line.state == "done" and not taken[ref]:
            violations["done and never sent"].append(ref)
        if LANES[line.queue].on_unknown == "hold" and taken[ref] > 1 and not wished:
            violations["hold repeated"].append(ref)
    for (name,) in world.query("select name from nodes where state = 'dead'"):
        violations["a dead node that nobody buries"].append(name)
    for copy in world.receiver.copies:
        if copy.did != ReceiverAction.REFUSED and copy.at > world.people.cancelled.get(copy.ref, 1e9) + _AFTERMATH:
            violations["sent after it was cancelled"].append(copy.ref)


def _order(world: World, books: Books, violations: defaultdict[str, list[str]]) -> None:
    """First copies of one key arrive in the order of their due times."""
    first: dict[str, float] = {}
    for copy in world.receiver.copies:
        if copy.did != ReceiverAction.REFUSED:
            first.setdefault(copy.ref, copy.at)
    lines: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for order in sorted(world.plan.orders, key=lambda order: order.due):
        if order.key is not None and order.ref in first and order.ref not in world.people.touched:
            lines[order.queue, order.key].append(order.ref)
    for refs in lines.values():
        for earlier, later in pairwise(refs):
            acked = world.tried[earlier].acked
            known = acked is not None and acked < world.tried[later].due
            if known and first[earlier] > first[later] and not books[earlier].unknown:
                violations["out of order"].append(f"{later} before {earlier}")
            world.met["in order"] += 1


def _pace(world: World, violations: defaultdict[str, list[str]]) -> None:
    """Never more than its rate in any second."""
    stopped = [fault for fault in world.nemesis.log if fault.how == "before send"]  # with its hand on the door
    arrived = [
        copy.at
        for copy in world.receiver.copies
        if world.receiver.queue_of[copy.ref] == "paced"
        and not any(fault.target == copy.pid and 0 <= copy.at - fault.end < SLACK for fault in stopped)
    ]
    for nth, at in enumerate(arrived[RATE:]):
        if at - arrived[nth] < 1.0:
            violations["faster than its rate"].append(f"at {at:.3f}")


def _late(world: World, books: Books, violations: defaultdict[str, list[str]]) -> None:
    """Nothing is late without a fault. What waits for others (a key, a rate, a full node) is not judged."""
    first: dict[str, ReceivedCopy] = {}
    for copy in world.receiver.copies:
        first.setdefault(copy.ref, copy)
    orders = {order.ref: order for order in world.plan.orders}
    for ref, copy in first.items():
        order, tried = orders[ref], world.tried[ref]
        if order.key is not None or order.queue == "paced" or ref in world.people.touched:
            continue
        begin = max(order.due, tried.acked or 0.0)
        if copy.at - begin > ON_TIME and not _is_troubled(world, order.queue, begin, copy.at):
            violations["late without a fault"].append(f"{ref} by {copy.at - begin:.2f} s")
        world.met["on time"] += copy.at - begin <= ON_TIME


def _is_troubled(world: World, queue: str, begin: float, end: float) -> bool:
    quiet_from = begin - _AFTERMATH
    if any(fault.begin <= end and fault.end >= quiet_from for fault in world.nemesis.log):
        return True
    if any(quiet_from <= at <= end for at in world.receiver.trouble.get(queue, ())):
        return True
    if begin < LEASE or world.plan.faults & {"store", "stop"}:
        return True
    return len(world.plan.orders) > 4 * world.plan.slots and world.plan.nodes == 1


def _asked(world: World, line: ProducerEntry, books: Books) -> ProducerEntry:
    """What the ledger's judge may demand of a message; `_ends` has judged the rest."""
    if line.ref in world.people.touched:
        line = line._replace(due=0.0)
    return line._replace(acked=None) if _may_be_undelivered(line.ref, books) else line


def _may_be_undelivered(ref: str, books: Books) -> bool:
    """Ended otherwise, for a reason that `_ends` has judged."""
    line = books.get(ref)
    if line is None or line.state in ("pending", "processing"):
        return False
    return line.state in ("cancelled", "expired") or (line.state == "failed" and not line.unknown)


def _with_held(world: World, fault: InjectedFault) -> InjectedFault:
    """A fault with what its process had begun: the world saw the starts as they were written."""
    since = fault.begin - LONGEST - LEASE
    held = {ref: True for pid, ref, at in world.starts if fault.target in (0, pid) and since <= at <= fault.end + LEASE}
    return fault._replace(held=held)


def _excuse_cut_overlaps(world: World, overlap: list[str]) -> None:
    """A sender that cannot reach its database goes on with what it has begun, where resending is safe."""
    for ref in list(overlap):
        taken = [copy for copy in world.receiver.copies if copy.ref == ref and copy.did != ReceiverAction.REFUSED]
        cut = any(
            fault.kind == InjectionKind.CUT and fault.target in (0, copy.pid)
            and fault.begin <= copy.at + DEADLINE and copy.at <= fault.end + LEASE
            for fault in world.nemesis.log for copy in taken
        )  # fmt: skip
        if cut and not LANES[world.receiver.queue_of[ref]].marks_start:
            overlap.remove(ref)
