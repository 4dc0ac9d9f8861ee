"""Decisions are values: one outcome, one move; no fixtures, no database."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.kernel.decisions import PauseChannel, TaskDecision, ThrottleChannel, decide, sanitize_text
from tidings.kernel.heartbeats import HeartbeatSighting, find_silent_nodes
from tidings.kernel.lanes import Lane
from tidings.kernel.quarantine import ISOLATE_AFTER, decide_after_crash
from tidings.kernel.retry import POLICIES
from tidings.model.outcome import Defer, Done, Outcome, Reject, Retry, Unknown
from tidings.model.task import (
    FINAL_STATES,
    TRANSITIONS,
    Category,
    OnUnknown,
    Task,
    TaskId,
    TaskState,
    Transition,
    can_transition,
)
from tidings.model.time import SECOND
from tidings.store.rate_limits import MAX_AHEAD, RateLimitState, reserve_slots, slot_interval
from tidings.store.sqlite_claims import choose_tasks

NOW = 1_800_000_000 * SECOND
LANE = Lane("q", policy=POLICIES["quick"])


def task(**more: Any) -> Task:
    known = Task(TaskId(7), "default", "q", "message", 5, NOW, 1, 0, 3, 0, False, None, None, None)
    return known._replace(**more)


def outcome_of(outcome: Outcome, lane: Lane = LANE, **more: Any) -> TaskDecision:
    return decide(task(**more), outcome, lane, now=NOW, chance=lambda: 0.5)


def test_done_keeps_the_receipt() -> None:
    """The other side's name for it is kept in the history."""
    move = outcome_of(Done("sid-1")).move
    assert (move.to, move.detail, move.claim_no) == (TaskState.DONE, "sid-1", 3)


@pytest.mark.parametrize(("attempts", "wait"), [(1, 30), (2, 120), (3, 300)])
def test_a_temporary_failure_waits_as_its_policy_says(attempts: int, wait: int) -> None:
    """Personal: 30 s, 2 min, 5 min (E3)."""
    move = outcome_of(Retry(Category.TEMPORARY, "busy"), attempts=attempts).move
    assert (TaskState.PENDING, NOW + wait * SECOND, attempts) == (move.to, move.due_at, move.attempts)


def test_the_last_try_fails_for_good() -> None:
    """`max_attempts` counts the first one."""
    move = outcome_of(Retry(Category.TEMPORARY, "busy"), attempts=4).move
    assert (move.to, move.category) == (TaskState.FAILED, Category.TEMPORARY)


def test_a_throttle_spends_no_try_but_counts_for_itself() -> None:
    """A 429 has its own counter (A4)."""
    move = outcome_of(Retry(Category.THROTTLING, "429", timedelta(seconds=9)), attempts=2).move
    assert (move.attempts, move.throttles, move.due_at) == (1, 1, NOW + 9 * SECOND)
    spent = outcome_of(Retry(Category.THROTTLING, "429"), throttles=9).move
    assert spent.to is TaskState.FAILED


def test_news_about_the_channel_leaves_the_task_where_it_was() -> None:
    """Parked or paused; no attempt spent (rule 13)."""
    wide = outcome_of(Retry(Category.THROTTLING, "429", timedelta(seconds=30), whole_channel=True))
    assert ThrottleChannel("q", NOW + 30 * SECOND, "429") == wide.effect
    assert (wide.move.to, wide.move.attempts) == (TaskState.PENDING, 0)
    bad = outcome_of(Reject(Category.PERMANENT, "revoked", whole_channel=True))
    assert PauseChannel("q", "revoked") == bad.effect


@pytest.mark.parametrize(
    ("policy", "state"),
    [(OnUnknown.RESEND, TaskState.PENDING), (OnUnknown.ASK, TaskState.PENDING), (OnUnknown.HOLD, TaskState.FAILED)],
)
def test_unknown_follows_the_channels_rule_and_is_flagged(policy: OnUnknown, state: TaskState) -> None:
    """Never silent (rule 7)."""
    decision = outcome_of(Unknown("time-out"), Lane("q", on_unknown=policy))
    move = decision.move
    assert (state, True, None, "unknown") == (move.to, move.unknown, move.category, decision.what)


def test_a_retry_after_the_expiry_waits_for_the_expiry() -> None:
    """No try is made that nobody wants any more (rule 8)."""
    expires = NOW + 10 * SECOND
    move = outcome_of(Retry(Category.TEMPORARY, "busy"), expires_at=expires).move
    assert expires == move.due_at
    assert "no further attempt before" in (move.detail or "")


def test_a_deferral_gives_its_try_back() -> None:
    """It costs no attempt."""
    move = outcome_of(Defer(NOW + 5, "quiet"), attempts=3).move
    assert (move.attempts, move.due_at) == (2, NOW + 5)


class TestDeath:
    """What becomes of a task whose node died."""

    def judge(self, *, started: bool, alone: bool = False, crashes: int = 0, hold: bool = True) -> Transition:
        lane = Lane("q", on_unknown=OnUnknown.HOLD if hold else OnUnknown.RESEND)
        return decide_after_crash(
            task(crashes=crashes), lane, started=started, alone=alone, now=NOW, quarantine_after=3
        ).move  # fmt: skip

    def test_not_started_goes_back_free(self) -> None:
        """Its try is given back."""
        move = self.judge(started=False)
        assert (move.to, move.attempts, move.unknown) == (TaskState.PENDING, 0, False)

    def test_a_started_task_of_a_dead_node_is_unknown(self) -> None:
        """Held, or sent again and flagged."""
        assert ((m := self.judge(started=True)).to, m.unknown) == (TaskState.FAILED, True)
        again = self.judge(started=True, hold=False)
        assert (again.to, again.unknown, again.attempts) == (TaskState.PENDING, True, 1)

    def test_a_resend_keeps_its_due_time_and_so_its_place_ahead_of_the_backlog(self) -> None:
        """A dead node's work resumes before messages that became due later."""
        lane = Lane("q", on_unknown=OnUnknown.RESEND)
        earlier = task(due_at=NOW - 60 * SECOND)
        again = decide_after_crash(earlier, lane, started=True, alone=False, now=NOW, quarantine_after=3).move

        assert again.due_at == earlier.due_at

    def test_in_company_it_is_only_suspected(self) -> None:
        """However often; blame is a guess with many in hand."""
        assert self.judge(started=False, crashes=ISOLATE_AFTER).crashes == ISOLATE_AFTER

    def test_a_task_that_crashes_its_node_alone_three_times_is_quarantined(self) -> None:
        """Poison (F31)."""
        move = self.judge(started=False, alone=True, crashes=2)
        assert (move.to, move.category, move.crashes) == (TaskState.FAILED, Category.SYSTEM, 3)


@given(st.text(st.characters(codec=None)))
def test_sanitized_text_can_always_be_stored(text: str) -> None:
    """No NUL, no half characters, not endless: one bad answer must not stop a whole batch."""
    kept = sanitize_text(text)
    assert "\x00" not in kept
    assert len(kept) <= 2000
    kept.encode()


def test_every_state_is_in_the_table_or_final() -> None:
    """The table of moves is total (A6)."""
    assert frozenset(TRANSITIONS) | FINAL_STATES == frozenset(TaskState)
    assert not any(can_transition(state, other) for state in FINAL_STATES for other in TaskState)


def test_a_node_is_silent_only_after_a_full_lease_of_the_same_number() -> None:
    """By our own clock; a moving number starts anew (rule 9)."""
    lease = timedelta(seconds=10)
    row = {"id": 1, "heartbeat": 5}
    seen, dead = find_silent_nodes({}, [row], now=0.0, node_timeout=lease)
    assert (seen, dead) == ({1: HeartbeatSighting(5, 0.0)}, [])
    assert find_silent_nodes(seen, [row], now=9.9, node_timeout=lease)[1] == []
    assert find_silent_nodes(seen, [row], now=10.0, node_timeout=lease)[1] == [row]
    assert find_silent_nodes(seen, [{"id": 1, "heartbeat": 6}], now=10.0, node_timeout=lease)[1] == []


@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 99), st.sampled_from("ab")), max_size=40),
    st.integers(0, 20),
    st.integers(0, 5),
    st.integers(0, 10),
)
def test_the_choice_keeps_its_bounds(rows: list[tuple[int, int, str]], room: int, fair: int, cap: int) -> None:
    """Never more than the room, nor a queue's own, nothing twice; priority first."""
    near = [
        task()._replace(id=TaskId(i), priority=priority, due_at=due, queue=queue)
        for i, (priority, due, queue) in enumerate(rows)
    ]
    rooms = {"a": cap, "b": room}
    chosen = choose_tasks(near, rooms, room, fair)
    assert len(chosen) == len(set(chosen)) <= room
    assert sum(c.queue == "a" for c in chosen) <= cap
    if not fair and cap >= room:
        assert chosen == sorted(near, key=attrgetter("priority", "due_at", "id"))[:room]


@given(st.integers(1, 10**6), st.integers(-(10**6), 10**6), st.integers(0, 50))
def test_reserved_instants_are_paced_and_never_early(interval: int, ahead: int, count: int) -> None:
    """At most a quarter second of allowance, instants one step apart (rule 15)."""
    pace = RateLimitState(interval, NOW + ahead)
    allowed = pace.allowance(NOW)
    tasks, next_at = reserve_slots({"q": pace}, [task()] * min(count, allowed), (), NOW)
    instants = [timed.start_at for timed in tasks]
    assert all(at >= NOW for at in instants)
    assert all(later - earlier == slot_interval(interval) for earlier, later in pairwise(instants))
    if instants:
        assert instants[-1] <= NOW + MAX_AHEAD
        assert next_at == {"q": instants[-1] + slot_interval(interval)}
