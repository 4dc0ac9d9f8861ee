"""Pure decisions of migration: verdicts by kind of error, what a system bears, sizes, pages (C1, C3, C6)."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from tidings.migration.adaptive_batch_size import next_batch_size, next_commit_size
from tidings.migration.adaptive_concurrency import BREAKER_THRESHOLD, BREAKER_TIMEOUT, CallStats, adapt_concurrency
from tidings.migration.batch_scheduler import fair_priority
from tidings.migration.connectors.port import (
    ConnectorError,
    ErrorKind,
    Record,
    RecordPage,
    TargetRecord,
    UnreadableRecord,
    WriteStrategy,
)
from tidings.migration.error_policy import ErrorDecision, decide_lookup_error, decide_write_error, error_fingerprint
from tidings.migration.extractor import page_rows
from tidings.migration.job_file import SystemConfig
from tidings.migration.job_undo import UndoOutcome, undo_outcome
from tidings.migration.jobs import system_identity
from tidings.migration.rate_limits import month_of, next_month
from tidings.migration.record_states import RecordState
from tidings.migration.retry_policy import parse_retry_policy

RETRY = parse_retry_policy({})
DOUBT = timedelta(seconds=3)


def verdict(
    failure: ErrorKind, *, repeatable: bool = True, attempts: dict[str, int] | None = None, **more: Any
) -> ErrorDecision:
    known = more.pop("known", None)
    return decide_write_error(
        ConnectorError(failure, "x", **more),
        RETRY,
        attempts or {},
        repeatable=repeatable,
        known=known,
        doubt=DOUBT,
        chance=0.5,
    )


@pytest.mark.parametrize(
    ("failure", "state"),
    [
        (ErrorKind.VALIDATION, RecordState.REJECTED),
        (ErrorKind.PERMANENT, RecordState.REJECTED),
        (ErrorKind.PERMISSION, RecordState.FAILED),
        (ErrorKind.PROGRAM, RecordState.FAILED),
        (ErrorKind.NOT_FOUND, RecordState.FAILED),
        (ErrorKind.DEPENDENCY, RecordState.WAITING),
        (ErrorKind.SERVER, RecordState.READY),
        (ErrorKind.TIMEOUT, RecordState.READY),
        (ErrorKind.TEMPORARY, RecordState.READY),
        (ErrorKind.AMBIGUOUS, RecordState.READY),
        (ErrorKind.UNKNOWN, RecordState.READY),
        (ErrorKind.CREDENTIALS, RecordState.READY),
        (ErrorKind.QUOTA, RecordState.READY),
        (ErrorKind.RATE_LIMIT, RecordState.READY),
    ],
)
def test_every_kind_of_error_has_its_decision(failure: ErrorKind, state: RecordState) -> None:
    """Bad data is rejected, what may work later is ready again, account troubles touch no record (C3)."""
    found = verdict(failure)
    assert found.state is state
    assert found.halt == (failure in (ErrorKind.CREDENTIALS, ErrorKind.QUOTA))


@pytest.mark.parametrize("failure", [ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.AMBIGUOUS, ErrorKind.PROGRAM])
def test_a_create_that_may_have_happened_is_unknown_and_not_retried(failure: ErrorKind) -> None:
    """Only a look moves it on; an upsert is simply sent again."""
    counted = ErrorKind.TEMPORARY if failure is ErrorKind.AMBIGUOUS else failure
    assert verdict(failure, sent=True, repeatable=False) == ErrorDecision(RecordState.UNKNOWN, DOUBT, {counted: 1})
    assert verdict(failure, sent=True).state is not RecordState.UNKNOWN


def test_attempts_are_counted_by_kind_of_error_and_limited() -> None:
    """Five server errors, three time-outs, ten 429 without a wait; a known wait is free (C3)."""
    assert verdict(ErrorKind.SERVER, attempts={"5xx": 3, "timeout": 2}).state is RecordState.READY
    assert verdict(ErrorKind.SERVER, attempts={"5xx": 4}).state is RecordState.FAILED
    assert verdict(ErrorKind.TIMEOUT, attempts={"timeout": 2}).state is RecordState.FAILED
    throttled = verdict(ErrorKind.RATE_LIMIT, attempts={"rate_limit": 8})
    assert (throttled.state, throttled.throttle) == (RecordState.READY, timedelta(seconds=60))
    assert verdict(ErrorKind.RATE_LIMIT, attempts={"rate_limit": 9}).state is RecordState.FAILED
    free = verdict(ErrorKind.RATE_LIMIT, attempts={"rate_limit": 9}, wait=timedelta(seconds=7))
    assert (free.state, free.throttle, free.attempts) == (RecordState.READY, timedelta(seconds=7), None)


def test_a_record_that_vanished_from_the_target_is_a_conflict() -> None:
    """It was known there, and is not found: somebody deleted it."""
    assert verdict(ErrorKind.NOT_FOUND, known="t1").state is RecordState.CONFLICT


def test_a_failed_lookup_stays_unknown_until_its_attempts_are_used() -> None:
    """Temporary troubles are tried again, a target that cannot be asked makes a conflict."""
    again = decide_lookup_error(ConnectorError(ErrorKind.SERVER, "x"), RETRY, {}, chance=0.5)
    assert again.state is RecordState.UNKNOWN and again.after > timedelta(0)
    assert (
        decide_lookup_error(ConnectorError(ErrorKind.SERVER, "x"), RETRY, {"5xx": 4}, chance=0.5).state
        is RecordState.CONFLICT
    )
    assert (
        decide_lookup_error(ConnectorError(ErrorKind.PERMANENT, "x"), RETRY, {}, chance=0.5).state
        is RecordState.CONFLICT
    )


def test_one_cause_has_one_fingerprint_whatever_the_record() -> None:
    """Numbers and quoted values do not count."""
    one, two = (
        error_fingerprint(ErrorKind.VALIDATION, "people", "mail", None, f"'{n}' is no mail: {n}") for n in (1, 22)
    )
    assert one == two


def row(**more: Any) -> dict[str, Any]:
    return {"concurrency": 8.0, "most": 16, "best": 100, "failures": 0, **more}


def test_adaptive_concurrency_grows_by_one_and_is_halved() -> None:
    """AIMD: a good stretch adds one, a 429, a failure or a slow one halves; never over what is allowed."""
    good = CallStats(calls=10, good=10, took=1000)
    assert adapt_concurrency(row(), good, 0).concurrency == 9
    assert adapt_concurrency(row(concurrency=16.0), good, 0).concurrency == 16
    assert adapt_concurrency(row(), CallStats(calls=10, good=9, throttled=1, took=900), 0).concurrency == 4
    assert adapt_concurrency(row(best=100_000), CallStats(calls=2, good=2, took=2_000_000), 0).concurrency == 4
    assert adapt_concurrency(row(concurrency=1.0), CallStats(calls=1, throttled=1), 0).concurrency == 1


def test_the_breaker_opens_after_failures_in_a_row_and_a_success_resets_it() -> None:
    """Shared by all batches of a system (C6)."""
    almost = adapt_concurrency(row(failures=BREAKER_THRESHOLD - 2), CallStats(calls=1, failures=1), 5)
    assert (almost.failures, almost.until) == (BREAKER_THRESHOLD - 1, 0)
    opened = adapt_concurrency(row(failures=BREAKER_THRESHOLD - 1), CallStats(calls=1, failures=1), 5)
    assert (opened.until, opened.concurrency) == (5 + BREAKER_TIMEOUT, 1.0)
    assert adapt_concurrency(row(failures=BREAKER_THRESHOLD - 1), CallStats(calls=1, good=1, took=1), 5).failures == 0


def test_a_month_ends_with_its_last_day() -> None:
    """Also in December."""
    december = 1_766_966_400_000_000  # 2025-12-29
    assert month_of(next_month(december)) == month_of(december) + 1


def test_adaptive_batch_size_targets_one_minute_within_bounds() -> None:
    """As the type says at first; then by the time per record, from 100 to 10,000 (C1)."""
    assert [next_batch_size(500, pace) for pace in (None, 40_000, 10, 10_000_000)] == [500, 1500, 10_000, 100]


def test_adaptive_commit_size_targets_half_a_second() -> None:
    """More calls between two of them where they are quick, fewer where they are slow."""
    assert next_commit_size(16, 16, 0.1) == 32
    assert next_commit_size(16, 3, 0.1) == 16
    assert next_commit_size(16, 16, 1.5) == 8
    assert next_commit_size(500, 500, 0.01) == 500


def test_duplicate_source_ids_are_detected_and_clashes_rejected() -> None:
    """The same again is counted, other values under the same id are rejected by name, flaws too (C4)."""
    records = [Record("people", id_, {"n": n}) for id_, n in (("1", 1), ("2", 2), ("2", 2), ("2", 3), ("9", 9))]
    page = RecordPage(records, None, [UnreadableRecord("people", "line 7", "it is not JSON")])
    taken = page_rows(page, "people", {"9": '{"n":9}'}, 100)
    assert [(found["id"], found["state"]) for found in taken.rows] == [
        ("1", "extracted"),
        ("2", "extracted"),
        ("2 (again, 103)", "rejected"),
        ("line 7", "rejected"),
    ]
    assert (taken.again, taken.clashes) == (2, 1)


def test_a_system_keeps_its_identity_when_its_options_change() -> None:
    """By place and account, not by deadline or page size; a name of its own wins."""
    one = SystemConfig("attio", {"key": "env:A", "deadline": "5s"})
    assert system_identity(one) == system_identity(SystemConfig("attio", {"key": "env:A", "deadline": "9s"}))
    assert system_identity(one) != system_identity(SystemConfig("attio", {"key": "env:B"}))
    assert system_identity(SystemConfig("attio", {"key": "env:B"}, name="crm")) == "crm"


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
    assert fair_priority(base, 1, rows, 4) == wanted


@pytest.mark.parametrize(
    ("strategy", "before", "found", "differs", "wanted"),
    [
        (WriteStrategy.UPSERT, None, ["t1"], False, UndoOutcome.UNSURE),
        (WriteStrategy.UPSERT, "an image", ["t1"], False, UndoOutcome.UNSURE),
        (WriteStrategy.UPSERT, "-", ["t1"], False, UndoOutcome.ERASED),
        (WriteStrategy.UPSERT, "-", ["t1"], True, UndoOutcome.CHANGED),
        (WriteStrategy.UPSERT, "-", [], False, UndoOutcome.GONE),
        (WriteStrategy.SEARCH, None, ["t2"], False, UndoOutcome.CHANGED),
        (WriteStrategy.SEARCH, None, ["t2", "t1"], False, UndoOutcome.ERASED),
        (WriteStrategy.RECONCILE, None, [], False, UndoOutcome.CHANGED),
    ],
)
def test_undo_erases_only_surely_created_unchanged_records(
    strategy: WriteStrategy, before: str | None, found: list[str], differs: bool, wanted: UndoOutcome
) -> None:
    """The way back never takes what others own."""
    there = [TargetRecord(id_, {}) for id_ in found]
    assert undo_outcome(strategy, before, there, "t1", differs=differs) is wanted
    silent = [TargetRecord(id_) for id_ in found]
    assert undo_outcome(strategy, before, silent, "t1", differs=differs) is not UndoOutcome.ERASED
