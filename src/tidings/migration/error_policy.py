"""What happens to a record after an error: policies as data, one pure decision.

bad data                      rejected: repaired and replayed, or given up
not applied, may work later   ready again, by the retry rule of its kind, a bounded number of times
perhaps applied               unknown, unless the write is idempotent; only a lookup resolves it
rate limit                    the whole system is throttled; a known Retry-After costs no attempt
credentials, quota            the job is paused with an event; the record is unchanged
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from .connectors.port import ConnectorError, ErrorKind, WriteStrategy
from .record_states import RecordState
from .retry_policy import JobRetryPolicy

DEFAULT_WAIT = timedelta(seconds=60)  # for a rate limit without Retry-After
QUOTA_WAIT = timedelta(days=1)  # for an exhausted quota without a reset time
SAME_CAUSE_LIMIT = 20  # systemic errors with one fingerprint after which the job is paused

HEALTH_ERRORS = frozenset({ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.TEMPORARY, ErrorKind.AMBIGUOUS})
"""Errors that count against a system as a whole, for the circuit breaker."""

SYSTEMIC_ERRORS = frozenset({ErrorKind.PROGRAM, ErrorKind.PERMISSION, ErrorKind.UNKNOWN})
"""Errors that indicate a bug or setup problem, not bad data: many of one fingerprint pause the job."""

ACCOUNT_ERRORS = frozenset({ErrorKind.CREDENTIALS, ErrorKind.QUOTA, ErrorKind.RATE_LIMIT})
"""Errors that concern all calls with the same account, not one record."""

_BAD = frozenset({ErrorKind.VALIDATION, ErrorKind.PERMANENT})
REJECTING_ERRORS = _BAD | {ErrorKind.PROGRAM}
"""Errors of a hook that reject its record."""

_OVER = frozenset({ErrorKind.PROGRAM, ErrorKind.PERMISSION})


class ErrorDecision(NamedTuple):
    """The new state of the record, and what else follows."""

    state: RecordState
    after: timedelta = timedelta(0)
    attempts: Mapping[str, int] | None = None  # None: no attempt was spent
    throttle: timedelta | None = None  # throttle the system for this long
    halt: bool = False  # pause the job; with `until_after` it resumes automatically
    until_after: timedelta | None = None


def is_repeatable(strategy: WriteStrategy, known: str | None) -> bool:
    """Return whether a write may be repeated: by key, or to a record with a known id."""
    return strategy is WriteStrategy.UPSERT or known is not None


def decide_write_error(
    error: ConnectorError,
    retry: JobRetryPolicy,
    attempts: Mapping[str, int],
    *,
    repeatable: bool,
    known: str | None,
    doubt: timedelta,
    chance: float,
) -> ErrorDecision:
    """Decide about a failed write. `doubt` is the delay before a lookup."""
    whole = _of_all(error, retry, attempts, RecordState.READY, chance)
    if whole is not None:
        return whole
    failure = ErrorKind.TEMPORARY if error.failure is ErrorKind.AMBIGUOUS else error.failure
    if error.sent and not repeatable:
        return ErrorDecision(RecordState.UNKNOWN, doubt, _more(attempts, failure))
    if failure is ErrorKind.DEPENDENCY:
        return ErrorDecision(RecordState.WAITING)
    if failure in _BAD:
        return ErrorDecision(RecordState.REJECTED)
    if failure is ErrorKind.NOT_FOUND and known is not None:
        return ErrorDecision(RecordState.CONFLICT)
    if failure in _OVER:
        return ErrorDecision(RecordState.FAILED)
    return _again(failure, error, retry, attempts, RecordState.READY, RecordState.FAILED, chance)


def decide_lookup_error(
    error: ConnectorError, retry: JobRetryPolicy, attempts: Mapping[str, int], *, chance: float
) -> ErrorDecision:
    """Decide about a failed lookup of an uncertain record: it stays unknown until attempts are used up."""
    whole = _of_all(error, retry, attempts, RecordState.UNKNOWN, chance)
    if whole is not None:
        return whole
    if error.failure not in HEALTH_ERRORS and error.failure is not ErrorKind.UNKNOWN:
        return ErrorDecision(RecordState.CONFLICT)
    failure = ErrorKind.TEMPORARY if error.failure is ErrorKind.AMBIGUOUS else error.failure
    return _again(failure, error, retry, attempts, RecordState.UNKNOWN, RecordState.CONFLICT, chance)


def error_fingerprint(kind: ErrorKind, type_: str, field: str | None, code: str | None, reason: str) -> str:
    """Return a value that is the same for all records with the same cause."""
    mark = code if code is not None else re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", reason)[:80]
    return f"{kind}/{type_}/{field or ''}/{mark}"[:300]


def _of_all(
    error: ConnectorError, retry: JobRetryPolicy, attempts: Mapping[str, int], stays: RecordState, chance: float
) -> ErrorDecision | None:
    """Decide about errors that concern the account, not this record."""
    match error.failure:
        case ErrorKind.CREDENTIALS:
            return ErrorDecision(stays, halt=True)
        case ErrorKind.QUOTA:
            return ErrorDecision(stays, halt=True, until_after=error.wait or QUOTA_WAIT)
        case ErrorKind.RATE_LIMIT if error.wait is not None:
            return ErrorDecision(stays, throttle=error.wait)
        case ErrorKind.RATE_LIMIT:
            over = RecordState.CONFLICT if stays is RecordState.UNKNOWN else RecordState.FAILED
            found = _again(ErrorKind.RATE_LIMIT, error, retry, attempts, stays, over, chance)
            throttle = DEFAULT_WAIT if found.state is over else found.after
            return ErrorDecision(found.state, attempts=found.attempts, throttle=throttle)
    return None


def _again(
    failure: ErrorKind,
    error: ConnectorError,
    retry: JobRetryPolicy,
    attempts: Mapping[str, int],
    again: RecordState,
    over: RecordState,
    chance: float,
) -> ErrorDecision:
    rule, spent = retry.rule(failure), _more(attempts, failure)
    if rule is None or spent[failure] >= rule.max_attempts:
        return ErrorDecision(over, attempts=spent)
    return ErrorDecision(again, error.wait or rule.delay(spent[failure], chance=chance), spent)


def _more(attempts: Mapping[str, int], failure: ErrorKind) -> dict[str, int]:
    return {**attempts, failure.value: attempts.get(failure.value, 0) + 1}
