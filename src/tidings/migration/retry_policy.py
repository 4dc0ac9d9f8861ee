"""Retry policies of a job by kind of error: attempts, backoff, jitter. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from ..kernel.retry import Backoff, RetryRule
from .connectors.port import ErrorKind
from .job_file_section import JobFileSection

RETRYABLE = (
    *(ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT, ErrorKind.SERVER, ErrorKind.TEMPORARY, ErrorKind.UNKNOWN),
    ErrorKind.NOT_FOUND,
)
"""Errors that may be retried at all. Bad data is not; unknown outcomes are looked up."""

_HOUR = timedelta(hours=1)
_GENERAL = RetryRule(5, Backoff.EXPONENTIAL, timedelta(seconds=2), _HOUR, jitter=0.10)
_DEFAULTS: Mapping[ErrorKind, RetryRule] = {
    ErrorKind.RATE_LIMIT: RetryRule(10, Backoff.FIXED, timedelta(seconds=60), _HOUR),
    ErrorKind.TIMEOUT: RetryRule(3, Backoff.LINEAR, timedelta(seconds=5), _HOUR, jitter=0.10),
    ErrorKind.UNKNOWN: RetryRule(3, Backoff.EXPONENTIAL, timedelta(seconds=2), _HOUR, jitter=0.10),
}
_RULE_KEYS = ("max_attempts", "backoff", "initial_delay", "max_delay", "jitter")
KEYS = (*_RULE_KEYS, "alert_after", "retry_on", "fatal", *map(str, RETRYABLE))
_BACKOFFS = (Backoff.EXPONENTIAL, Backoff.LINEAR, Backoff.FIXED)


@dataclass(frozen=True, slots=True)
class JobRetryPolicy:
    """One rule per retryable kind of error, and the number of failures after which an event is emitted."""

    rules: Mapping[ErrorKind, RetryRule]
    alert_after: Mapping[ErrorKind, int]

    def rule(self, failure: ErrorKind) -> RetryRule | None:
        """Return the rule for an error; None: not retried."""
        return self.rules.get(failure)

    def is_exhausted(self, attempts: Mapping[str, int]) -> bool:
        """Return whether a record has used up its attempts for some kind of error; kinds without a rule have one."""
        used = ((self.rule(ErrorKind(kind)), n) for kind, n in attempts.items())
        return any(n >= (1 if rule is None else rule.max_attempts) for rule, n in used)


def parse_retry_policy(raw: object) -> JobRetryPolicy:
    """Parse the table [retry]; missing keys keep their defaults."""
    section = JobFileSection(raw, "retry", KEYS)
    own = any(key in section.raw for key in _RULE_KEYS)
    general = _rule(section, _GENERAL)
    rules: dict[ErrorKind, RetryRule] = {}
    alerts = {ErrorKind.SERVER: section.whole("alert_after", 3, least=1, most=1000)}
    for failure in _retried(section):
        base = _DEFAULTS.get(failure, general)
        if own and failure not in (ErrorKind.RATE_LIMIT, ErrorKind.TIMEOUT):
            base = general
        part = JobFileSection(section.raw.get(failure, {}), f"retry.{failure}", (*_RULE_KEYS, "alert_after"))
        rules[failure] = _rule(part, base)
        if "alert_after" in part.raw:
            alerts[failure] = part.whole("alert_after", 3, least=1, most=1000)
    return JobRetryPolicy(MappingProxyType(rules), MappingProxyType(alerts))


def _retried(section: JobFileSection) -> list[ErrorKind]:
    chosen = _kinds(section, "retry_on", RETRYABLE)
    fatal = _kinds(section, "fatal", tuple(ErrorKind))
    for failure in chosen or ():
        if failure in fatal:
            section.refuse("fatal", f"names {str(failure)!r}, as retry_on does", "keep it in one of them")
    usual = [failure for failure in RETRYABLE if failure is not ErrorKind.NOT_FOUND or failure in section.raw]
    found = [failure for failure in (chosen if "retry_on" in section.raw else usual) if failure not in fatal]
    for failure in RETRYABLE:
        if failure in section.raw and failure not in found:
            section.refuse(failure, "has a policy, but is not retried", "add it to retry_on")
    return found


def _kinds(section: JobFileSection, key: str, allowed: tuple[ErrorKind, ...]) -> list[ErrorKind]:
    names = section.texts(key)
    for name in names:
        if name not in allowed:
            section.refuse(key, f"names {name[:60]!r}", f"use a list of: {', '.join(allowed)}")
    return [ErrorKind(name) for name in names]


def _rule(section: JobFileSection, base: RetryRule) -> RetryRule:
    backoff = section.choice("backoff", base.backoff)
    if backoff not in _BACKOFFS:
        section.refuse("backoff", f"is {str(backoff)!r}", f"use one of: {', '.join(_BACKOFFS)}")
    jitter = section.raw.get("jitter", base.jitter)
    if not isinstance(jitter, int | float) or isinstance(jitter, bool) or not 0 <= jitter <= 0.5:
        section.refuse("jitter", f"is {str(jitter)[:40]}", "write a fraction from 0 to 0.5, such as 0.1 for ±10 %")
    initial, cap = section.length("initial_delay", base.initial_delay), section.length("max_delay", base.max_delay)
    if initial > cap:
        section.refuse("max_delay", "is shorter than initial_delay", "make it longer")
    attempts = section.whole("max_attempts", base.max_attempts, least=1, most=100)
    return RetryRule(attempts, backoff, initial, cap, float(jitter))
