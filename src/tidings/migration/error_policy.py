"""What becomes of a record after an error: policies as data, one pure decision.

bad data                      rejected: repaired and replayed, or given up
not done, may work later      ready again, by the rule of its kind, a bounded number of times
perhaps done                  unknown, unless it may simply be sent again; only a look moves it on
'slow down'                   the whole system waits; a known wait costs no try
credentials, quota            the whole job waits, and somebody is told; the record is untouched
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from typing import NamedTuple

from .connectors.port import ConnectorError, ErrorKind, RecordState, WriteStrategy
from .retry_policy import JobRetryPolicy

DEFAULT_WAIT = timedelta(seconds=60)  # where a system says 'slow down' and not for how long
QUOTA_WAIT = timedelta(days=1)  # how long a used-up allowance is left alone when nobody says until when
SAME_CAUSE_LIMIT = 20  # errors of the program with one fingerprint after which the job stops

HEALTH_ERRORS = frozenset({ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.TEMPORARY, ErrorKind.AMBIGUOUS})
"""What speaks against a system as a whole; the breaker counts these."""

SYSTEMIC_ERRORS = frozenset({ErrorKind.PROGRAM, ErrorKind.PERMISSION, ErrorKind.UNKNOWN})
"""Many of one fingerprint are not bad data: the job stops."""

_BAD = frozenset({ErrorKind.VALIDATION, ErrorKind.PERMANENT})
_OVER = frozenset({ErrorKind.PROGRAM, ErrorKind.PERMISSION})


class ErrorDecision(NamedTuple):
    """Where the record stands now, and what else follows."""

    standing: RecordState
    after: timedelta = timedelta(0)
    attempts: Mapping[str, int] | None = None  # None: no try was spent
    park: timedelta | None = None  # nobody calls the system for so long
    halt: bool = False  # the job stops; `until_after`: and goes on by itself
    until_after: timedelta | None = None


def is_repeatable(strategy: WriteStrategy, known: str | None) -> bool:
    """Whether the same write may be sent again: by a key, or to a record whose id is known."""
    return strategy is WriteStrategy.UPSERT or known is not None


def decide_write_error(
    trouble: ConnectorError,
    retry: JobRetryPolicy,
    attempts: Mapping[str, int],
    *,
    repeatable: bool,
    known: str | None,
    doubt: timedelta,
    chance: float,
) -> ErrorDecision:
    """One error of a write, one verdict. `doubt` is how long to wait before looking."""
    whole = _of_all(trouble, retry, attempts, RecordState.READY, chance)
    if whole is not None:
        return whole
    if trouble.sent and not repeatable:
        return ErrorDecision(RecordState.UNKNOWN, doubt)
    failure = ErrorKind.TEMPORARY if trouble.failure is ErrorKind.AMBIGUOUS else trouble.failure
    if failure is ErrorKind.DEPENDENCY:
        return ErrorDecision(RecordState.WAITING)
    if failure in _BAD:
        return ErrorDecision(RecordState.REJECTED)
    if failure is ErrorKind.NOT_FOUND and known is not None:
        return ErrorDecision(RecordState.CONFLICT)
    if failure in _OVER:
        return ErrorDecision(RecordState.FAILED)
    return _again(failure, trouble, retry, attempts, RecordState.READY, RecordState.FAILED, chance)


def decide_lookup_error(
    trouble: ConnectorError, retry: JobRetryPolicy, attempts: Mapping[str, int], *, chance: float
) -> ErrorDecision:
    """One error of a look at a record in doubt: it stays in doubt, until nobody can tell."""
    whole = _of_all(trouble, retry, attempts, RecordState.UNKNOWN, chance)
    if whole is not None:
        return whole
    if trouble.failure not in HEALTH_ERRORS and trouble.failure is not ErrorKind.UNKNOWN:
        return ErrorDecision(RecordState.CONFLICT)
    failure = ErrorKind.TEMPORARY if trouble.failure is ErrorKind.AMBIGUOUS else trouble.failure
    return _again(failure, trouble, retry, attempts, RecordState.UNKNOWN, RecordState.CONFLICT, chance)


def error_fingerprint(
    failure: ErrorKind, type_: str, field: str | None, code: str | None, reason: str
) -> str:
    """The same for all records with the same cause."""
    mark = code if code is not None else re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", reason)[:80]
    return f"{failure}/{type_}/{field or ''}/{mark}"[:300]


def _of_all(
    trouble: ConnectorError,
    retry: JobRetryPolicy,
    attempts: Mapping[str, int],
    stays: RecordState,
    chance: float,
) -> ErrorDecision | None:
    """News about the account and not about this record."""
    match trouble.failure:
        case ErrorKind.CREDENTIALS:
            return ErrorDecision(stays, halt=True)
        case ErrorKind.QUOTA:
            return ErrorDecision(stays, halt=True, until_after=trouble.wait or QUOTA_WAIT)
        case ErrorKind.RATE_LIMIT if trouble.wait is not None:
            return ErrorDecision(stays, park=trouble.wait)
        case ErrorKind.RATE_LIMIT:
            rule, spent = retry.rule(ErrorKind.RATE_LIMIT), _more(attempts, ErrorKind.RATE_LIMIT)
            if rule is None or spent[ErrorKind.RATE_LIMIT] >= rule.max_attempts:
                over = RecordState.CONFLICT if stays is RecordState.UNKNOWN else RecordState.FAILED
                return ErrorDecision(over, attempts=spent, park=DEFAULT_WAIT)
            return ErrorDecision(
                stays, attempts=spent, park=rule.delay(spent[ErrorKind.RATE_LIMIT], chance=chance)
            )
    return None


def _again(
    failure: ErrorKind,
    trouble: ConnectorError,
    retry: JobRetryPolicy,
    attempts: Mapping[str, int],
    again: RecordState,
    over: RecordState,
    chance: float,
) -> ErrorDecision:
    rule, spent = retry.rule(failure), _more(attempts, failure)
    if rule is None or spent[failure] >= rule.max_attempts:
        return ErrorDecision(over, attempts=spent)
    return ErrorDecision(again, trouble.wait or rule.delay(spent[failure], chance=chance), spent)


def _more(attempts: Mapping[str, int], failure: ErrorKind) -> dict[str, int]:
    return {**attempts, failure.value: attempts.get(failure.value, 0) + 1}
