"""Pure decisions of migration: verdicts by kind of error, what a system bears, sizes, pages (C1, C3, C6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.migration.extract import rows_of
from tidings.migration.foreman import batch_size, priority_of
from tidings.migration.jobfile import System
from tidings.migration.jobs import identity
from tidings.migration.limits import BREAKS, COOLDOWN, Load, adapted, month_of, next_month
from tidings.migration.policies import Verdict, fingerprint, judge, judge_look
from tidings.migration.retrying import read_retry
from tidings.migration.undoing import Fate, fate_of
from tidings.migration.words import Failure, Page, Record, Spoiled, Standing, Strategy, Trouble, Written
from tidings.migration.writer import portion_after

RETRY = read_retry({})
DOUBT = timedelta(seconds=3)


def verdict(
    failure: Failure, *, repeatable: bool = True, tries: dict[str, int] | None = None, **more: Any
) -> Verdict:
    known = more.pop("known", None)
    return judge(
        Trouble(failure, "x", **more),
        RETRY,
        tries or {},
        repeatable=repeatable,
        known=known,
        doubt=DOUBT,
        chance=0.5,
    )


@pytest.mark.parametrize(
    ("failure", "standing"),
    [
        (Failure.VALIDATION, Standing.REJECTED),
        (Failure.PERMANENT, Standing.REJECTED),
        (Failure.PERMISSION, Standing.FAILED),
        (Failure.PROGRAM, Standing.FAILED),
        (Failure.NOT_FOUND, Standing.FAILED),
        (Failure.DEPENDENCY, Standing.WAITING),
        (Failure.SERVER, Standing.READY),
        (Failure.TIMEOUT, Standing.READY),
        (Failure.TEMPORARY, Standing.READY),
        (Failure.AMBIGUOUS, Standing.READY),
        (Failure.UNKNOWN, Standing.READY),
        (Failure.CREDENTIALS, Standing.READY),
        (Failure.QUOTA, Standing.READY),
        (Failure.RATE_LIMIT, Standing.READY),
    ],
)
def test_every_kind_of_error_has_its_verdict(failure: Failure, standing: Standing) -> None:
    """Bad data is rejected, what may work later is ready again, account troubles touch no record (C3)."""
    found = verdict(failure)
    assert found.standing is standing
    assert found.halt == (failure in (Failure.CREDENTIALS, Failure.QUOTA))


@pytest.mark.parametrize("failure", [Failure.TIMEOUT, Failure.SERVER, Failure.AMBIGUOUS, Failure.PROGRAM])
def test_a_create_that_may_have_happened_is_in_doubt_and_not_tried_again(failure: Failure) -> None:
    """Only a look moves it on; an upsert is simply sent again."""
    assert verdict(failure, sent=True, repeatable=False) == Verdict(Standing.UNKNOWN, DOUBT)
    assert verdict(failure, sent=True).standing is not Standing.UNKNOWN


def test_tries_are_counted_by_kind_and_end() -> None:
    """Five server errors, three time-outs, ten 429 without a wait; a known wait is free (C3)."""
    assert verdict(Failure.SERVER, tries={"5xx": 3, "timeout": 2}).standing is Standing.READY
    assert verdict(Failure.SERVER, tries={"5xx": 4}).standing is Standing.FAILED
    assert verdict(Failure.TIMEOUT, tries={"timeout": 2}).standing is Standing.FAILED
    throttled = verdict(Failure.RATE_LIMIT, tries={"rate_limit": 8})
    assert (throttled.standing, throttled.park) == (Standing.READY, timedelta(seconds=60))
    assert verdict(Failure.RATE_LIMIT, tries={"rate_limit": 9}).standing is Standing.FAILED
    free = verdict(Failure.RATE_LIMIT, tries={"rate_limit": 9}, wait=timedelta(seconds=7))
    assert (free.standing, free.park, free.tries) == (Standing.READY, timedelta(seconds=7), None)


def test_a_record_that_vanished_from_the_target_is_a_conflict() -> None:
    """It was known there, and is not found: somebody deleted it."""
    assert verdict(Failure.NOT_FOUND, known="t1").standing is Standing.CONFLICT


def test_a_look_that_fails_leaves_the_doubt_until_nobody_can_tell() -> None:
    """Temporary troubles are tried again, a target that cannot be asked makes a conflict."""
    again = judge_look(Trouble(Failure.SERVER, "x"), RETRY, {}, chance=0.5)
    assert again.standing is Standing.UNKNOWN and again.after > timedelta(0)
    assert (
        judge_look(Trouble(Failure.SERVER, "x"), RETRY, {"5xx": 4}, chance=0.5).standing is Standing.CONFLICT
    )
    assert judge_look(Trouble(Failure.PERMANENT, "x"), RETRY, {}, chance=0.5).standing is Standing.CONFLICT


def test_one_cause_has_one_fingerprint_whatever_the_record() -> None:
    """Numbers and quoted values do not count."""
    one, two = (
        fingerprint(Failure.VALIDATION, "people", "mail", None, f"'{n}' is no mail: {n}") for n in (1, 22)
    )
    assert one == two


def row(**more: Any) -> dict[str, Any]:
    return {"concurrency": 8.0, "most": 16, "best": 100, "failures": 0, **more}


def test_calls_at_once_grow_by_one_and_are_halved() -> None:
    """AIMD: a good stretch adds one, a 429, a failure or a slow one halves; never over what is allowed."""
    good = Load(calls=10, good=10, took=1000)
    assert adapted(row(), good, 0).concurrency == 9
    assert adapted(row(concurrency=16.0), good, 0).concurrency == 16
    assert adapted(row(), Load(calls=10, good=9, throttled=1, took=900), 0).concurrency == 4
    assert adapted(row(best=100_000), Load(calls=2, good=2, took=2_000_000), 0).concurrency == 4
    assert adapted(row(concurrency=1.0), Load(calls=1, throttled=1), 0).concurrency == 1


def test_the_breaker_opens_after_failures_in_a_row_and_a_success_resets_it() -> None:
    """Shared by all batches of a system (C6)."""
    almost = adapted(row(failures=BREAKS - 2), Load(calls=1, failures=1), 5)
    assert (almost.failures, almost.until) == (BREAKS - 1, 0)
    opened = adapted(row(failures=BREAKS - 1), Load(calls=1, failures=1), 5)
    assert (opened.until, opened.concurrency) == (5 + COOLDOWN, 1.0)
    assert adapted(row(failures=BREAKS - 1), Load(calls=1, good=1, took=1), 5).failures == 0


def test_a_month_ends_with_its_last_day() -> None:
    """Also in December."""
    december = 1_766_966_400_000_000  # 2025-12-29
    assert month_of(next_month(december)) == month_of(december) + 1


def test_a_batch_is_as_large_as_a_minute_allows_within_its_bounds() -> None:
    """As the type says at first; then by the time per record, from 100 to 10,000 (C1)."""
    assert [batch_size(500, pace) for pace in (None, 40_000, 10, 10_000_000)] == [500, 1500, 10_000, 100]


def test_commits_are_about_half_a_second_apart() -> None:
    """More calls between two of them where they are quick, fewer where they are slow."""
    assert portion_after(16, 16, 0.1) == 32
    assert portion_after(16, 3, 0.1) == 16
    assert portion_after(16, 16, 1.5) == 8
    assert portion_after(500, 500, 0.01) == 500


def test_what_comes_again_is_seen_and_what_clashes_is_set_aside() -> None:
    """The same again is counted, other values under the same id are rejected by name, flaws too (C4)."""
    records = [
        Record("people", id_, {"n": n}) for id_, n in (("1", 1), ("2", 2), ("2", 2), ("2", 3), ("9", 9))
    ]
    page = Page(records, None, [Spoiled("people", "line 7", "it is not JSON")])
    taken = rows_of(page, "people", {"9": '{"n":9}'}, 100)
    assert [(found["id"], found["state"]) for found in taken.rows] == [
        ("1", "extracted"),
        ("2", "extracted"),
        ("2 (again, 103)", "rejected"),
        ("line 7", "rejected"),
    ]
    assert (taken.again, taken.clashes) == (2, 1)


def test_a_system_keeps_its_identity_when_its_options_change() -> None:
    """By place and account, not by deadline or page size; a name of its own wins."""
    one = System("attio", {"key": "env:A", "deadline": "5s"})
    assert identity(one) == identity(System("attio", {"key": "env:A", "deadline": "9s"}))
    assert identity(one) != identity(System("attio", {"key": "env:B"}))
    assert identity(System("attio", {"key": "env:B"}, name="crm")) == "crm"


@pytest.mark.parametrize(
    ("base", "busy", "wanted"),
    [
        (5, [], 5),
        (5, [(1, 5)], 6),  # its own first batch is under way
        (5, [(1, 6)], 5),  # that is over: the next one is the first again
        (5, [(2, 5), (3, 5)], 5),
        (5, [(2, 5), (3, 5), (4, 5), (6, 5)], 6),  # a crowd of its tenant's
        (9, [(1, 9)], 9),
    ],
)
def test_the_first_batch_of_a_job_goes_before_the_second_of_any(
    base: int, busy: list[tuple[int, int]], wanted: int
) -> None:
    """C12: job 1, of a tenant that has these under way, where four may be first."""
    rows = [{"job": job, "priority": priority} for job, priority in busy]
    assert priority_of(base, 1, rows, 4) == wanted


@pytest.mark.parametrize(
    ("strategy", "before", "found", "differs", "wanted"),
    [
        (Strategy.UPSERT, None, ["t1"], False, Fate.UNSURE),
        (Strategy.UPSERT, "an image", ["t1"], False, Fate.UNSURE),
        (Strategy.UPSERT, "-", ["t1"], False, Fate.ERASED),
        (Strategy.UPSERT, "-", ["t1"], True, Fate.CHANGED),
        (Strategy.UPSERT, "-", [], False, Fate.GONE),
        (Strategy.SEARCH, None, ["t2"], False, Fate.CHANGED),
        (Strategy.SEARCH, None, ["t2", "t1"], False, Fate.ERASED),
        (Strategy.RECONCILE, None, [], False, Fate.CHANGED),
    ],
)
def test_only_what_was_surely_created_and_is_unchanged_is_taken_out(
    strategy: Strategy, before: str | None, found: list[str], differs: bool, wanted: Fate
) -> None:
    """The way back never takes what others own."""
    there = [Written(id_, {}) for id_ in found]
    assert fate_of(strategy, before, there, "t1", differs=differs) is wanted
    silent = [Written(id_) for id_ in found]
    assert fate_of(strategy, before, silent, "t1", differs=differs) is not Fate.ERASED
