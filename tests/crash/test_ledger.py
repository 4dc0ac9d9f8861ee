"""The judge itself, with planted logs: what it must call by its name, and what it must not excuse."""

from __future__ import annotations

from typing import Any

import pytest

from tidings.drill.checker import (
    CrashCoverage,
    DrillVerdict,
    EngineRecord,
    InjectedFault,
    InjectionKind,
    ProducerEntry,
    ReceivedCopy,
    ReceiverAction,
    check_logs,
    crash_coverage,
)

pytestmark = pytest.mark.crash

A, B = 11, 22  # two senders
DEADLINE = 2.0
DONE = EngineRecord("done", unknown=False)
DOUBTED = EngineRecord("done", unknown=True)
HELD = EngineRecord("failed", unknown=True)


def tried(ref: str = "m", *, acked: float | None = 1.0, due: float = 0.0) -> ProducerEntry:
    return ProducerEntry(ref, "d", due, 0.9, acked)


def copy(at: float, ref: str = "m", *, pid: int = A, **more: Any) -> ReceivedCopy:
    return ReceivedCopy(**{"at": at, "ref": ref, "id": f"id-{ref}", "attempt": 1, "pid": pid, "digest": "d", **more})


def kill(at: float, pid: int = A, **held: bool) -> InjectedFault:
    return InjectedFault(InjectionKind.KILL, pid, at, at + 0.01, "random", held)


def pause(begin: float, end: float, pid: int = A) -> InjectedFault:
    return InjectedFault(InjectionKind.PAUSE, pid, begin, end)


def cut(begin: float, end: float, pid: int = 0) -> InjectedFault:
    return InjectedFault(InjectionKind.CUT, pid, begin, end)


def partition(begin: float, end: float, pid: int = A) -> InjectedFault:
    return InjectedFault(InjectionKind.PARTITION, pid, begin, end)


def say(
    *copies: ReceivedCopy,
    faults: tuple[InjectedFault, ...] = (),
    book: EngineRecord | None = DONE,
    line: ProducerEntry | None = None,
) -> DrillVerdict:
    books = {} if book is None else {"m": book}
    return check_logs([line or tried()], copies, faults, books, deadline=DEADLINE)


def test_one_copy_of_an_accepted_message_is_no_crime() -> None:
    """The plain case: delivered once, and its lateness counted from its due time."""
    verdict = say(copy(5.0), line=tried(due=4.0))

    assert (verdict.delivered, verdict.lateness, verdict.violations) == (1, [1.0], {})


@pytest.mark.parametrize(
    "book", [DONE, None, EngineRecord("failed", unknown=False), EngineRecord("cancelled", unknown=False)]
)
def test_an_accepted_message_that_nobody_saw_is_lost(book: EngineRecord | None) -> None:
    """Whatever the engine says: done before it was sent, failed for no reason, or not there at all (E1)."""
    assert say(book=book).lost == ["m"]


def test_a_message_that_was_only_refused_is_lost() -> None:
    """A copy to which the receiver said no is no delivery."""
    assert say(copy(2.0, did=ReceiverAction.REFUSED)).lost == ["m"]


def test_a_delivered_message_that_is_recorded_as_failed_is_misrecorded() -> None:
    """A person would retry it and send it twice; recorded as unknown, the person is warned."""
    failed = EngineRecord("failed", unknown=False)

    assert say(copy(2.0), book=failed).violations == {"misrecorded": ["m"]}
    assert say(copy(2.0, did=ReceiverAction.REFUSED), book=failed).misrecorded == []
    assert say(copy(2.0, did=ReceiverAction.DROPPED), book=HELD).violations == {}


def test_a_message_that_still_waits_is_stuck() -> None:
    """Heal, then demand liveness (R6)."""
    assert say(book=EngineRecord("processing", unknown=False)).stuck == ["m"]


def test_an_accept_without_an_answer_may_go_either_way() -> None:
    """Unknown to the producer: not lost if it is not there, recovered if it arrives."""
    silent = tried(acked=None)

    assert say(line=silent, book=None).violations == {}
    assert say(copy(2.0), line=silent).recovered == ["m"]


@pytest.mark.parametrize(
    "strange",
    [copy(2.0, "never-tried"), copy(2.0, digest="other"), copy(2.1, id="a fresh id")],
    ids=["never tried", "another body", "another id on the second try"],
)
def test_a_stranger_is_unexpected(strange: ReceivedCopy) -> None:
    """Seen but never tried, with other words than accepted, or under another id than before."""
    assert say(copy(2.0, did=ReceiverAction.REFUSED), strange).unexpected


def test_a_copy_before_its_time_is_early() -> None:
    """Never early, not by a millisecond."""
    assert say(copy(3.999), line=tried(due=4.0)).early == ["m"]


def test_a_retry_after_a_refusal_is_no_duplicate() -> None:
    """The receiver had said that it did not take the first."""
    assert say(copy(2.0, did=ReceiverAction.REFUSED), copy(3.0)).duplicates == 0


class TestDuplicates:
    """A second copy needs a witness who is not the engine."""

    def test_without_a_fault_it_is_unexplained(self) -> None:
        """And the engine's own doubt is no excuse."""
        assert say(copy(2.0), copy(3.0), book=DOUBTED).unexplained == ["m"]

    def test_a_kill_of_its_sender_between_the_copies_explains_it(self) -> None:
        """Sent, not recorded (F5)."""
        verdict = say(copy(2.0), copy(3.0, pid=B), faults=(kill(2.01),), book=DOUBTED)

        assert (verdict.explained, verdict.violations) == (["m"], {})

    def test_a_copy_read_after_its_sender_died_is_explained(self) -> None:
        """The request was in the receiver's socket; the dead send nothing."""
        assert say(copy(2.3), copy(3.0, pid=B), faults=(kill(2.0),), book=DOUBTED).explained == ["m"]

    @pytest.mark.parametrize(
        "fault",
        [kill(2.01, B), kill(3.2), kill(9.0), pause(3.2, 9.0), cut(3.2, 4.0), pause(1.0, 1.5), cut(0.5, 1.9)],
        ids=["another sender", "after both", "long after", "pause after", "cut after", "pause before", "cut before"],
    )
    def test_a_fault_elsewhere_explains_nothing(self, fault: InjectedFault) -> None:
        """Excuses are as narrow as the fault, or everything is excused."""
        assert say(copy(2.0), copy(3.0, pid=B), faults=(fault,), book=DOUBTED).unexplained == ["m"]

    def test_a_kill_long_after_the_answer_explains_nothing(self) -> None:
        """A sender that had seconds to write its result down and did not is not excused by its death."""
        assert say(copy(2.0), copy(9.0, pid=B), faults=(kill(8.0),), book=DOUBTED).unexplained == ["m"]

    def test_a_pause_of_its_sender_explains_it(self) -> None:
        """Paused between send and record (F9), or stopped with the request on its way."""
        assert say(copy(2.0), copy(5.0, pid=B), faults=(pause(2.01, 7.0),), book=DOUBTED).explained == ["m"]
        late = copy(5.0, pid=B, attempt=2), copy(7.02)
        assert say(*late, faults=(pause(2.01, 7.0),), book=DOUBTED).explained == ["m"]

    @pytest.mark.parametrize("fault", [pause(2.0, 7.0), partition(2.0, 7.0)])
    def test_an_older_attempt_that_was_held_up_is_explained(self, fault: InjectedFault) -> None:
        """The cut-off sender's request waited in its host; meanwhile another worker sent the next attempt."""
        verdict = say(copy(5.0, pid=B, attempt=2), copy(6.5), faults=(fault,), book=DOUBTED)

        assert (verdict.explained, verdict.violations) == (["m"], {})

    @pytest.mark.parametrize(
        ("newer", "second"),
        [
            (copy(5.0, pid=B), copy(6.5, attempt=2)),
            (copy(5.0, pid=B), copy(6.5)),
            (copy(5.0, pid=B, attempt=2), copy(7.2)),
            (copy(5.0, attempt=2), copy(6.5, pid=B)),
            (copy(1.5, pid=B, attempt=2), copy(6.5)),
        ],
        ids=[
            "a newer attempt",
            "the same attempt",
            "after everything has arrived",
            "of another sender",
            "the newer one came before the fault",
        ],
    )
    @pytest.mark.parametrize("fault", [pause(2.0, 7.0), partition(2.0, 7.0)])
    def test_only_an_older_attempt_can_be_held_up(
        self, fault: InjectedFault, newer: ReceivedCopy, second: ReceivedCopy
    ) -> None:
        """A sender that comes back must not send a newer attempt, and no packet travels forever."""
        assert say(newer, second, faults=(fault,), book=DOUBTED).unexplained == ["m"]

    def test_a_cut_of_the_store_holds_no_request_up(self) -> None:
        """The network between sender and receiver was never interrupted."""
        verdict = say(copy(5.0, pid=B, attempt=2), copy(6.5), faults=(cut(2.0, 7.0, A),), book=DOUBTED)

        assert verdict.unexplained == ["m"]

    def test_a_send_after_a_pause_is_unexplained(self) -> None:
        """Whoever wakes must look at its lease before it sends (F8)."""
        assert say(copy(5.0, pid=B), copy(7.2), faults=(pause(2.01, 7.0),), book=DOUBTED).unexplained == ["m"]

    def test_a_cut_of_the_store_explains_it_only_astride(self) -> None:
        """The send must straddle the cut (F12)."""
        assert say(copy(2.0), copy(5.0), faults=(cut(2.2, 4.0),), book=DOUBTED).explained == ["m"]
        assert say(copy(4.2), copy(5.0), faults=(cut(2.2, 4.0),), book=DOUBTED).unexplained == ["m"]

    @pytest.mark.parametrize("did", [ReceiverAction.DROPPED, ReceiverAction.LATE])
    def test_a_receiver_that_did_not_answer_explains_it(self, did: ReceiverAction) -> None:
        """The receiver's own log is a witness (F24, F25)."""
        assert say(copy(2.0, did=did, after=3.0), copy(5.0), book=DOUBTED).explained == ["m"]

    def test_the_engine_must_have_flagged_it(self) -> None:
        """A duplicate with the best excuse is a crime if the engine knows nothing of it (R1)."""
        verdict = say(copy(2.0), copy(3.0, pid=B), faults=(kill(2.01),), book=DONE)

        assert verdict.violations == {"unflagged": ["m"]}


class TestOverlap:
    """Two copies in flight from two live, unpaused workers."""

    def test_two_live_senders_overlap(self) -> None:
        """The worst of all, even where somebody else was killed at the same time."""
        slow = copy(2.0, after=1.5)

        assert say(slow, copy(3.0, pid=B), faults=(kill(2.5, 33),), book=DOUBTED).overlap == ["m"]
        assert say(slow, copy(3.0), book=DOUBTED).overlap == ["m"], "one sender with itself, too"

    @pytest.mark.parametrize("pid", [0, A])
    def test_a_cut_store_excuses_no_overlap(self, pid: int) -> None:
        """A duplicate, perhaps; but nobody may send while another is sending."""
        both = copy(2.0, after=1.5), copy(3.0, pid=B)

        assert say(*both, faults=(cut(1.9, 4.0, pid),), book=DOUBTED).overlap == ["m"]

    @pytest.mark.parametrize("fault", [kill(2.4), pause(2.4, 9.0)])
    def test_the_dead_and_the_paused_do_not_count(self, fault: InjectedFault) -> None:
        """Their request is in flight, but they are not at work."""
        assert say(copy(2.0, after=1.5), copy(3.0, pid=B), faults=(fault,), book=DOUBTED).overlap == []

    def test_a_resumed_process_counts_again(self) -> None:
        """A pause that is over excuses nothing that is sent after it."""
        woken = (pause(1.0, 2.2, pid=B),)

        assert say(copy(2.0, after=1.5), copy(3.0, pid=B), faults=woken, book=DOUBTED).overlap == ["m"]

    def test_a_request_that_the_network_held_up_is_not_in_flight(self) -> None:
        """The partitioned sender gave up long ago; its packets arrived beside the next attempt."""
        late, newer = copy(5.0, after=0.5), copy(5.2, pid=B, attempt=2)

        assert say(late, newer, faults=(partition(2.0, 6.0),), book=DOUBTED).violations == {}
        assert say(late, newer, faults=(partition(2.0, 4.0),), book=DOUBTED).overlap == ["m"]

    def test_after_the_deadline_nothing_is_in_flight(self) -> None:
        """The sender has given up by then."""
        late = copy(2.0, did=ReceiverAction.LATE, after=9.0)

        assert say(late, copy(2.0 + DEADLINE, pid=B), book=DOUBTED).overlap == []


class TestHeld:
    """Dead letters in doubt, for a person."""

    def test_what_had_started_at_a_kill_may_be_held(self) -> None:
        """Seen by the receiver or not: nobody can know (F4, F5)."""
        assert say(faults=(kill(2.0, m=True),), book=HELD).held == ["m"]
        assert say(copy(1.9), faults=(kill(2.0, m=True),), book=HELD).held == ["m"]

    def test_what_had_not_started_may_not_be_held(self) -> None:
        """It was certainly not sent (F3)."""
        assert say(faults=(kill(2.0, m=False),), book=HELD).unwitnessed == ["m"]
        assert say(book=HELD).unwitnessed == ["m"]

    def test_a_dropped_answer_is_a_reason_to_hold(self) -> None:
        """The receiver took it and said nothing (F24)."""
        assert say(copy(2.0, did=ReceiverAction.DROPPED), book=HELD).held == ["m"]


def test_the_moments_of_death_are_counted() -> None:
    """From the logs alone, so that a run can be void (R7)."""
    faults = [
        kill(2.0, a=False, b=True, c=True, d=True),
        InjectedFault(InjectionKind.KILL, B, 5, 5, "settled:2"),
        cut(1, 2),
    ]

    assert CrashCoverage(1, 2, 1, 1, 1) == crash_coverage([copy(1.9, "c"), copy(3.0, "d", pid=B)], faults)
