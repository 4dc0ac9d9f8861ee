"""Retry strategies of a job: which kinds of errors are tried again, how often, how soon. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType

from ..kernel.retry import Backoff, Rule
from .section import Section
from .words import Failure

RETRYABLE = (
    *(Failure.RATE_LIMIT, Failure.TIMEOUT, Failure.SERVER, Failure.TEMPORARY, Failure.UNKNOWN),
    Failure.NOT_FOUND,
)
"""What may be tried again at all; bad data stays bad, and doubt is settled by reading."""

_HOUR = timedelta(hours=1)
_GENERAL = Rule(5, Backoff.EXPONENTIAL, timedelta(seconds=2), _HOUR, jitter=0.10)
_DEFAULTS: Mapping[Failure, Rule] = {
    Failure.RATE_LIMIT: Rule(10, Backoff.FIXED, timedelta(seconds=60), _HOUR),
    Failure.TIMEOUT: Rule(3, Backoff.LINEAR, timedelta(seconds=5), _HOUR, jitter=0.10),
    Failure.UNKNOWN: Rule(3, Backoff.EXPONENTIAL, timedelta(seconds=2), _HOUR, jitter=0.10),
}
_RULE_KEYS = ("max_attempts", "backoff", "initial_delay", "max_delay", "jitter")
KEYS = (*_RULE_KEYS, "alert_after", "retry_on", "fatal", *map(str, RETRYABLE))
_BACKOFFS = (Backoff.EXPONENTIAL, Backoff.LINEAR, Backoff.FIXED)


@dataclass(frozen=True, slots=True)
class Retry:
    """One rule per kind of error that is tried again, and after how many of its failures somebody is told."""

    rules: Mapping[Failure, Rule]
    alert_after: Mapping[Failure, int]

    def rule(self, failure: Failure) -> Rule | None:
        """How to wait after such an error; None: it is not tried again."""
        return self.rules.get(failure)


def read_retry(raw: object) -> Retry:
    """The table [retry]; what it leaves out keeps its default."""
    section = Section(raw, "retry", KEYS)
    own = any(key in section.raw for key in _RULE_KEYS)
    general = _rule(section, _GENERAL)
    rules: dict[Failure, Rule] = {}
    alerts = {Failure.SERVER: section.whole("alert_after", 3, least=1, most=1000)}
    for failure in _retried(section):
        base = _DEFAULTS.get(failure, general)
        if own and failure not in (Failure.RATE_LIMIT, Failure.TIMEOUT):
            base = general
        part = Section(section.raw.get(failure, {}), f"retry.{failure}", (*_RULE_KEYS, "alert_after"))
        rules[failure] = _rule(part, base)
        if "alert_after" in part.raw:
            alerts[failure] = part.whole("alert_after", 3, least=1, most=1000)
    return Retry(MappingProxyType(rules), MappingProxyType(alerts))


def _retried(section: Section) -> list[Failure]:
    chosen = _kinds(section, "retry_on", RETRYABLE)
    fatal = _kinds(section, "fatal", tuple(Failure))
    for failure in chosen or ():
        if failure in fatal:
            section.refuse("fatal", f"names {str(failure)!r}, as retry_on does", "keep it in one of the two")
    usual = [failure for failure in RETRYABLE if failure is not Failure.NOT_FOUND or failure in section.raw]
    found = [failure for failure in (chosen if "retry_on" in section.raw else usual) if failure not in fatal]
    for failure in RETRYABLE:
        if failure in section.raw and failure not in found:
            section.refuse(failure, "has a strategy, but is not tried again", "add it to retry_on")
    return found


def _kinds(section: Section, key: str, allowed: tuple[Failure, ...]) -> list[Failure]:
    names = section.texts(key)
    for name in names:
        if name not in allowed:
            section.refuse(key, f"names {name[:60]!r}", f"use a list of: {', '.join(allowed)}")
    return [Failure(name) for name in names]


def _rule(section: Section, base: Rule) -> Rule:
    backoff = section.choice("backoff", base.backoff)
    if backoff not in _BACKOFFS:
        section.refuse("backoff", f"is {str(backoff)!r}", f"use one of: {', '.join(_BACKOFFS)}")
    jitter = section.raw.get("jitter", base.jitter)
    if not isinstance(jitter, int | float) or isinstance(jitter, bool) or not 0 <= jitter <= 0.5:
        section.refuse(
            "jitter", f"is {str(jitter)[:40]}", "write a share from 0 to 0.5, such as 0.1 for ±10 %"
        )
    initial, cap = section.length("initial_delay", base.initial), section.length("max_delay", base.cap)
    if initial > cap:
        section.refuse("max_delay", "is shorter than initial_delay", "make it longer")
    tries = section.whole("max_attempts", base.max_tries, least=1, most=100)
    return Rule(tries, backoff, initial, cap, float(jitter))
