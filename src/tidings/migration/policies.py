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

from .retrying import Retry
from .words import Failure, Standing, Strategy, Trouble

DEFAULT_WAIT = timedelta(seconds=60)  # where a system says 'slow down' and not for how long
MONTH = timedelta(days=1)  # how long a used-up allowance is left alone when nobody says until when
SAME_CAUSE = 20  # errors of the program with one fingerprint after which the job stops

HEALTH = frozenset({Failure.TIMEOUT, Failure.SERVER, Failure.TEMPORARY, Failure.AMBIGUOUS})
"""What speaks against a system as a whole; the breaker counts these."""

SUSPICIOUS = frozenset({Failure.PROGRAM, Failure.PERMISSION, Failure.UNKNOWN})
"""Many of one fingerprint are not bad data: the job stops."""

_BAD = frozenset({Failure.VALIDATION, Failure.PERMANENT})
_OVER = frozenset({Failure.PROGRAM, Failure.PERMISSION})


class Verdict(NamedTuple):
    """Where the record stands now, and what else follows."""

    standing: Standing
    after: timedelta = timedelta(0)
    tries: Mapping[str, int] | None = None  # None: no try was spent
    park: timedelta | None = None  # nobody calls the system for so long
    halt: bool = False  # the job stops; `until_after`: and goes on by itself
    until_after: timedelta | None = None


def is_repeatable(strategy: Strategy, known: str | None) -> bool:
    """Whether the same write may be sent again: by a key, or to a record whose id is known."""
    return strategy is Strategy.UPSERT or known is not None


def judge(
    trouble: Trouble,
    retry: Retry,
    tries: Mapping[str, int],
    *,
    repeatable: bool,
    known: str | None,
    doubt: timedelta,
    chance: float,
) -> Verdict:
    """One error of a write, one verdict. `doubt` is how long to wait before looking."""
    whole = _of_all(trouble, retry, tries, Standing.READY, chance)
    if whole is not None:
        return whole
    if trouble.sent and not repeatable:
        return Verdict(Standing.UNKNOWN, doubt)
    failure = Failure.TEMPORARY if trouble.failure is Failure.AMBIGUOUS else trouble.failure
    if failure is Failure.DEPENDENCY:
        return Verdict(Standing.WAITING)
    if failure in _BAD:
        return Verdict(Standing.REJECTED)
    if failure is Failure.NOT_FOUND and known is not None:
        return Verdict(Standing.CONFLICT)
    if failure in _OVER:
        return Verdict(Standing.FAILED)
    return _again(failure, trouble, retry, tries, Standing.READY, Standing.FAILED, chance)


def judge_look(trouble: Trouble, retry: Retry, tries: Mapping[str, int], *, chance: float) -> Verdict:
    """One error of a look at a record in doubt: it stays in doubt, until nobody can tell."""
    whole = _of_all(trouble, retry, tries, Standing.UNKNOWN, chance)
    if whole is not None:
        return whole
    if trouble.failure not in HEALTH and trouble.failure is not Failure.UNKNOWN:
        return Verdict(Standing.CONFLICT)
    failure = Failure.TEMPORARY if trouble.failure is Failure.AMBIGUOUS else trouble.failure
    return _again(failure, trouble, retry, tries, Standing.UNKNOWN, Standing.CONFLICT, chance)


def fingerprint(failure: Failure, type_: str, field: str | None, code: str | None, reason: str) -> str:
    """The same for all records with the same cause."""
    mark = code if code is not None else re.sub(r"\d+|'[^']*'|\"[^\"]*\"", "#", reason)[:80]
    return f"{failure}/{type_}/{field or ''}/{mark}"[:300]


def _of_all(
    trouble: Trouble, retry: Retry, tries: Mapping[str, int], stays: Standing, chance: float
) -> Verdict | None:
    """News about the account and not about this record."""
    match trouble.failure:
        case Failure.CREDENTIALS:
            return Verdict(stays, halt=True)
        case Failure.QUOTA:
            return Verdict(stays, halt=True, until_after=trouble.wait or MONTH)
        case Failure.RATE_LIMIT if trouble.wait is not None:
            return Verdict(stays, park=trouble.wait)
        case Failure.RATE_LIMIT:
            rule, spent = retry.rule(Failure.RATE_LIMIT), _more(tries, Failure.RATE_LIMIT)
            if rule is None or spent[Failure.RATE_LIMIT] >= rule.max_tries:
                over = Standing.CONFLICT if stays is Standing.UNKNOWN else Standing.FAILED
                return Verdict(over, tries=spent, park=DEFAULT_WAIT)
            return Verdict(stays, tries=spent, park=rule.delay(spent[Failure.RATE_LIMIT], chance=chance))
    return None


def _again(
    failure: Failure,
    trouble: Trouble,
    retry: Retry,
    tries: Mapping[str, int],
    again: Standing,
    over: Standing,
    chance: float,
) -> Verdict:
    rule, spent = retry.rule(failure), _more(tries, failure)
    if rule is None or spent[failure] >= rule.max_tries:
        return Verdict(over, tries=spent)
    return Verdict(again, trouble.wait or rule.delay(spent[failure], chance=chance), spent)


def _more(tries: Mapping[str, int], failure: Failure) -> dict[str, int]:
    return {**tries, failure.value: tries.get(failure.value, 0) + 1}
