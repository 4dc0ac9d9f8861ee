"""What reports mean for tasks that are with transports (B15, rules 5 to 7). No broker needed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.dispatch.errands import Errand, Errands, bound, parcels
from tidings.dispatch.roles import Part, Role, Share, part_of, share
from tidings.dispatch.tokens import Tokens
from tidings.dispatch.window import LEAST, next_window
from tidings.dispatch.wire import Key, Report, Told, Why
from tidings.kernel.lanes import Lane
from tidings.model.errors import Invalid
from tidings.model.outcome import Done
from tidings.model.task import OnUnknown, Task, TaskId

DEADLINE = 30.0
TOKENS = Tokens(b"secret")


def named(id_: int, claim: int, channel: str = "phone") -> Key:
    return id_, claim, TOKENS.of(channel, id_, claim)


def errand(id_: int = 1, claim: int = 1, on_unknown: OnUnknown = OnUnknown.HOLD, **more: Any) -> Errand:
    task = Task(TaskId(id_), "default", "phone", "message", 5, 0, 1, 0, claim, 0, False, None, None, None)
    lane = Lane("phone", on_unknown=on_unknown, deadline=timedelta(seconds=DEADLINE))
    return Errand(task, lane, 0, give_up=100.0, **more)


def held(*errands: Errand) -> Errands:
    made = Errands(TOKENS)
    for one in errands:
        made.add(one)
    return made


def report(**said: Any) -> Report:
    return Report("phone", "t", **said)


def done(key: Key) -> Told:
    return Told(key, Done(), 1.0)


def test_an_outcome_ends_its_errand_once() -> None:
    """The same told again, after a lost confirm, is no news."""
    errands = held(errand())

    first = errands.hear(report(outcomes=[done(named(1, 1))]), 0)
    again = errands.hear(report(outcomes=[done(named(1, 1))]), 0)

    assert [(TaskId(1), Done())] == [(e.task.id, outcome) for e, outcome, _ in first.ended]
    assert not again.ended and not again.late and not errands.held


@pytest.mark.parametrize(
    ("key", "channel"), [(named(1, 2), "phone"), (named(2, 1), "phone"), (named(1, 1, "mail"), "mail")]
)
def test_a_report_counts_for_its_own_claim_and_channel_only(key: Key, channel: str) -> None:
    """The claim is the fence, and a transport speaks for its own channel (rule 5)."""
    errands = held(errand())

    heard = errands.hear(Report(channel, "t", outcomes=[done(key)]), 0)

    assert not heard.ended and [key] == [told.key for told in heard.late]
    assert errands.held


def test_redelivered_and_not_started_is_given_back_at_once() -> None:
    """Where starts are told, silence is proof: the flag alone means nothing (design 7)."""
    heard = held(errand()).hear(report(returned=[(named(1, 1), Why.REDELIVERED)]), 0)

    assert [why for _, why in heard.back] == [Why.REDELIVERED]


@pytest.mark.parametrize(
    ("started", "on_unknown"), [(True, OnUnknown.HOLD), (True, OnUnknown.ASK), (False, OnUnknown.RESEND)]
)
def test_redelivered_and_perhaps_started_is_in_doubt_after_its_deadline(
    started: bool, on_unknown: OnUnknown
) -> None:
    """Until then whoever had it may still be sending it, and may still say so (rule 9)."""
    errands = held(errand(on_unknown=on_unknown, started=started))

    heard = errands.hear(report(returned=[(named(1, 1), Why.REDELIVERED)]), 10)

    assert not heard.back
    assert not errands.doubtful(10 + DEADLINE - 0.1)
    assert errands.doubtful(10 + DEADLINE)


def test_a_late_answer_of_a_living_transport_ends_the_doubt() -> None:
    """Its connection broke, it sent, and it says so with its next connection."""
    errands = held(errand(started=True))
    errands.hear(report(returned=[(named(1, 1), Why.REDELIVERED)]), 0)

    heard = errands.hear(report(outcomes=[done(named(1, 1))]), 5)

    assert len(heard.ended) == 1 and not errands.doubtful(1000)


def test_an_answer_after_the_doubt_was_settled_is_news_once() -> None:
    """Its transport lived, without a connection: what it tells at last is evidence of sending (rule 4)."""
    errands = held(doubted := errand(started=True))
    errands.drop(doubted)

    heard = [errands.hear(report(outcomes=[done(named(1, 1))]), 5) for _ in range(2)]

    assert [[told.key for told in each.late] for each in heard] == [[named(1, 1)], []]


@pytest.mark.parametrize("why", [Why.EXPIRED, Why.LATE, Why.STOPPING, Why.STRANGE])
@pytest.mark.parametrize("on_unknown", OnUnknown)
def test_what_was_certainly_not_begun_is_given_back(why: Why, on_unknown: OnUnknown) -> None:
    """Also on channels that resend: a parcel that nobody had is no doubt."""
    heard = held(errand(on_unknown=on_unknown)).hear(report(returned=[(named(1, 1), why)]), 0)

    assert len(heard.back) == 1


def test_silence_counts_only_after_every_bound() -> None:
    """Waiting in the broker, waiting for a slot, and the attempt itself."""
    length = bound(ttl=10, within=5, lane=Lane("phone", deadline=timedelta(seconds=DEADLINE)))
    errands = held(errand())

    assert length > 10 + 5 + DEADLINE
    assert not errands.silent(99.9) and errands.silent(100.0)


def test_parcels_hold_one_channel_and_at_most_so_many_and_suspects_travel_alone() -> None:
    """Whoever may have taken a transport down is not packed with others (F31)."""
    suspect = errand(99, alone=True)
    pairs = [(errand(i), i) for i in range(60)] + [(suspect, 99)]

    sizes = sorted(len(part) for _, part in parcels(pairs, 25))

    assert sizes == [1, 10, 25, 25]


@pytest.mark.parametrize(
    ("now", "done_", "most", "slots", "then"),
    [
        (50, 400, 50, 1000, 400),  # answered quickly: more next time
        (400, 5000, 400, 1000, 1000),  # never more than the slots
        (400, 100, 400, 1000, 200),  # slow: down by half at a time
        (60, 0, 60, 1000, LEAST),  # never below what it takes to learn
        (400, 30, 40, 1000, 400),  # little to do: nothing was learned
        (50, 0, 50, 10, 10),  # few slots in all
    ],
)
def test_a_window_is_what_was_done_in_the_last_second(
    now: int, done_: int, most: int, slots: int, then: int
) -> None:
    """At most one second of work is with transports (design 7)."""
    assert then == next_window(now, done=done_, most_in_flight=most, slots=slots)


def test_every_name_is_in_exactly_one_part_and_always_the_same() -> None:
    """Stable over machines and versions: these numbers must never change (B12)."""
    names = [f"channel-{i}" for i in range(200)]

    counts = [sum(Part(i, 3).has(name) for i in (1, 2, 3)) for name in names]

    assert {1} == set(counts)
    assert {0, 1, 2} == {part_of(name, 3) for name in names}
    assert [part_of(name, 3) for name in ("phone", "mail", "events")] == [0, 0, 1]


def test_the_flags_of_serve_become_a_share() -> None:
    """Any mix of roles; none means the usual ones."""
    chosen = share(["worker", "transport"], ["phone"], "2/2")

    assert frozenset({Role.WORKER, Role.TRANSPORT}) == chosen.roles
    assert chosen.takes("phone") == Part(2, 2).has("phone") and not chosen.takes("mail")
    assert {Role.API, Role.SCHEDULER, Role.WORKER, Role.POLLER} == Share().roles
    assert not share(["transport"], [], None).needs_database


@pytest.mark.parametrize(
    ("roles", "partition", "field"),
    [(["boss"], None, "role"), ([], "0/3", "partition"), ([], "4/3", "partition")],
)
def test_flags_that_make_no_sense_are_refused(roles: list[str], partition: str | None, field: str) -> None:
    """One sentence that names the flag and what to write instead."""
    with pytest.raises(Invalid) as refused:
        share(roles, [], partition)

    assert field == refused.value.field and refused.value.remedy
