"""What reports mean for tasks that are with transports (B15, rules 5 to 7). No broker needed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.dispatch.claim_tokens import ClaimTokens
from tidings.dispatch.flow_control import MIN_WINDOW, next_window
from tidings.dispatch.in_flight_tasks import InFlightTask, InFlightTasks, completion_bound, split_into_batches
from tidings.dispatch.roles import Partition, ProcessRole, ProcessShare, parse_share, partition_of
from tidings.dispatch.wire_format import ClaimKey, ReportedOutcome, ReturnReason, TransportReport
from tidings.kernel.lanes import Lane
from tidings.model.errors import Invalid
from tidings.model.outcome import Done
from tidings.model.task import OnUnknown, Task, TaskId

DEADLINE = 30.0
TOKENS = ClaimTokens(b"secret")


def named(id_: int, claim: int, channel: str = "phone") -> ClaimKey:
    return id_, claim, TOKENS.of(channel, id_, claim)


def in_flight_task(id_: int = 1, claim: int = 1, on_unknown: OnUnknown = OnUnknown.HOLD, **more: Any) -> InFlightTask:
    task = Task(TaskId(id_), "default", "phone", "message", 5, 0, 1, 0, claim, 0, False, None, None, None)
    lane = Lane("phone", on_unknown=on_unknown, deadline=timedelta(seconds=DEADLINE))
    return InFlightTask(task, lane, 0, give_up=100.0, **more)


def held(*in_flight_tasks: InFlightTask) -> InFlightTasks:
    made = InFlightTasks(TOKENS)
    for one in in_flight_tasks:
        made.add(one)
    return made


def report(**said: Any) -> TransportReport:
    return TransportReport("phone", "t", **said)


def done(key: ClaimKey) -> ReportedOutcome:
    return ReportedOutcome(key, Done(), 1.0)


def test_an_outcome_ends_its_in_flight_task_once() -> None:
    """The same told again, after a lost confirm, is no news."""
    in_flight_tasks = held(in_flight_task())

    first = in_flight_tasks.apply(report(outcomes=[done(named(1, 1))]), 0)
    again = in_flight_tasks.apply(report(outcomes=[done(named(1, 1))]), 0)

    assert [(TaskId(1), Done())] == [(e.task.id, outcome) for e, outcome, _ in first.ended]
    assert not again.ended and not again.late and not in_flight_tasks.held


@pytest.mark.parametrize(
    ("key", "channel"), [(named(1, 2), "phone"), (named(2, 1), "phone"), (named(1, 1, "mail"), "mail")]
)
def test_a_report_counts_for_its_own_claim_and_channel_only(key: ClaimKey, channel: str) -> None:
    """The claim is the fence, and a transport speaks for its own channel (rule 5)."""
    in_flight_tasks = held(in_flight_task())

    heard = in_flight_tasks.apply(TransportReport(channel, "t", outcomes=[done(key)]), 0)

    assert not heard.ended and [key] == [told.key for told in heard.late]
    assert in_flight_tasks.held


def test_a_redelivered_task_that_was_not_started_is_released_immediately() -> None:
    """Where starts are told, silence is proof: the flag alone means nothing (design 7)."""
    heard = held(in_flight_task()).apply(report(returned=[(named(1, 1), ReturnReason.REDELIVERED)]), 0)

    assert [why for _, why in heard.returned] == [ReturnReason.REDELIVERED]


@pytest.mark.parametrize(
    ("started", "on_unknown"), [(True, OnUnknown.HOLD), (True, OnUnknown.ASK), (False, OnUnknown.RESEND)]
)
def test_a_redelivered_task_that_may_have_started_is_unknown_after_its_deadline(
    started: bool, on_unknown: OnUnknown
) -> None:
    """Until then whoever had it may still be sending it, and may still say so (rule 9)."""
    in_flight_tasks = held(in_flight_task(on_unknown=on_unknown, started=started))

    heard = in_flight_tasks.apply(report(returned=[(named(1, 1), ReturnReason.REDELIVERED)]), 10)

    assert not heard.returned
    assert not in_flight_tasks.unknown(10 + DEADLINE - 0.1)
    assert in_flight_tasks.unknown(10 + DEADLINE)


def test_a_late_report_of_a_live_transport_settles_a_redelivered_task() -> None:
    """Its connection broke, it sent, and it says so with its next connection."""
    in_flight_tasks = held(in_flight_task(started=True))
    in_flight_tasks.apply(report(returned=[(named(1, 1), ReturnReason.REDELIVERED)]), 0)

    heard = in_flight_tasks.apply(report(outcomes=[done(named(1, 1))]), 5)

    assert len(heard.ended) == 1 and not in_flight_tasks.unknown(1000)


def test_a_report_after_an_unknown_outcome_was_settled_is_recorded_once() -> None:
    """Its transport lived, without a connection: what it tells at last is evidence of sending (rule 4)."""
    in_flight_tasks = held(doubted := in_flight_task(started=True))
    in_flight_tasks.drop(doubted)

    heard = [in_flight_tasks.apply(report(outcomes=[done(named(1, 1))]), 5) for _ in range(2)]

    assert [[told.key for told in each.late] for each in heard] == [[named(1, 1)], []]


@pytest.mark.parametrize(
    "why", [ReturnReason.EXPIRED, ReturnReason.LATE, ReturnReason.STOPPING, ReturnReason.UNKNOWN_CHANNEL]
)
@pytest.mark.parametrize("on_unknown", OnUnknown)
def test_a_task_that_certainly_did_not_start_is_released(why: ReturnReason, on_unknown: OnUnknown) -> None:
    """Also on channels that resend: a batch that nobody had is no doubt."""
    heard = held(in_flight_task(on_unknown=on_unknown)).apply(report(returned=[(named(1, 1), why)]), 0)

    assert len(heard.returned) == 1


def test_silent_tasks_are_settled_only_after_all_timeouts() -> None:
    """Waiting in the broker, waiting for a slot, and the attempt itself."""
    length = completion_bound(ttl=10, within=5, lane=Lane("phone", deadline=timedelta(seconds=DEADLINE)))
    in_flight_tasks = held(in_flight_task())

    assert length > 10 + 5 + DEADLINE
    assert not in_flight_tasks.silent(99.9) and in_flight_tasks.silent(100.0)


def test_batches_hold_one_channel_and_at_most_so_many_and_suspects_travel_alone() -> None:
    """Whoever may have taken a transport down is not packed with others (F31)."""
    suspect = in_flight_task(99, alone=True)
    pairs = [(in_flight_task(i), i) for i in range(60)] + [(suspect, 99)]

    sizes = sorted(len(part) for _, part in split_into_batches(pairs, 25))

    assert sizes == [1, 10, 25, 25]


@pytest.mark.parametrize(
    ("now", "done_", "most", "slots", "then"),
    [
        (50, 400, 50, 1000, 400),  # answered quickly: more next time
        (400, 5000, 400, 1000, 1000),  # never more than the slots
        (400, 100, 400, 1000, 200),  # slow: down by half at a time
        (60, 0, 60, 1000, MIN_WINDOW),  # never below what it takes to learn
        (400, 30, 40, 1000, 400),  # little to do: nothing was learned
        (50, 0, 50, 10, 10),  # few slots in all
    ],
)
def test_adaptive_concurrency_follows_the_throughput_of_the_last_second(
    now: int, done_: int, most: int, slots: int, then: int
) -> None:
    """At most one second of work is with transports (design 7)."""
    assert then == next_window(now, done=done_, most_in_flight=most, slots=slots)


def test_every_name_is_in_exactly_one_part_and_always_the_same() -> None:
    """Stable over machines and versions: these numbers must never change (B12)."""
    names = [f"channel-{i}" for i in range(200)]

    counts = [sum(Partition(i, 3).has(name) for i in (1, 2, 3)) for name in names]

    assert {1} == set(counts)
    assert {0, 1, 2} == {partition_of(name, 3) for name in names}
    assert [partition_of(name, 3) for name in ("phone", "mail", "events")] == [0, 0, 1]


def test_the_flags_of_serve_become_a_share() -> None:
    """Any mix of roles; none means the usual ones."""
    chosen = parse_share(["worker", "transport"], ["phone"], "2/2")

    assert frozenset({ProcessRole.WORKER, ProcessRole.TRANSPORT}) == chosen.roles
    assert chosen.takes("phone") == Partition(2, 2).has("phone") and not chosen.takes("mail")
    assert {ProcessRole.API, ProcessRole.SCHEDULER, ProcessRole.WORKER, ProcessRole.POLLER} == ProcessShare().roles
    assert not parse_share(["transport"], [], None).needs_database


@pytest.mark.parametrize(
    ("roles", "partition", "field"), [(["boss"], None, "role"), ([], "0/3", "partition"), ([], "4/3", "partition")]
)
def test_flags_that_make_no_sense_are_refused(roles: list[str], partition: str | None, field: str) -> None:
    """One sentence that names the flag and what to write instead."""
    with pytest.raises(Invalid) as refused:
        parse_share(roles, [], partition)

    assert field == refused.value.field and refused.value.remedy
