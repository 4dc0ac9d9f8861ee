"""Retry policies as data: backoff, jitter, Retry-After, and when to give up, by error category.

Three rules hold for every policy:
- jitter is applied before the cap, so no wait is longer than the cap;
- the receiver's Retry-After takes precedence over the policy, up to one day;
- throttling is counted separately: a 429 uses up no attempt, but the number of 429s is limited, too.

All counts include the attempt that has just failed: after the first one `tries` is 1.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from ..model import durations
from ..model.errors import Misconfigured
from ..model.task import Category
from ..model.time import micros

# Permanent and validation errors are never retried, whatever a policy says.
RETRYABLE = frozenset({Category.TEMPORARY, Category.THROTTLING, Category.SYSTEM})
# A receiver may ask for a week by mistake or malice; at most one day is honored.
MAX_RETRY_AFTER = timedelta(days=1)

_ZERO = timedelta(0)


class Backoff(StrEnum):
    """How the wait grows with the number of attempts."""

    EXPONENTIAL = "exponential"  # initial_delay, doubling
    LINEAR = "linear"  # initial_delay × attempts
    QUADRATIC = "quadratic"  # initial_delay × attempts²
    FIXED = "fixed"  # initial_delay, always
    TABLE = "table"  # listed one by one; the last repeats


class RetryErrorKind(StrEnum):
    """Kinds of error within a category that a policy may have a rule for."""

    TIMEOUT = "timeout"
    SERVER = "5xx"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """One backoff rule. `max_attempts` includes the first attempt; `jitter` is a fraction, 0.15 for ±15 %."""

    max_attempts: int
    backoff: Backoff
    initial_delay: timedelta = _ZERO
    max_delay: timedelta = timedelta(hours=12)
    jitter: float = 0.0
    table: tuple[timedelta, ...] = ()

    def __post_init__(self) -> None:
        if self.max_attempts < 1:
            raise ValueError("max_attempts must be at least 1: it includes the first attempt")
        if not 0 <= self.jitter < 1:
            raise ValueError("jitter must be at least 0 and less than 1, such as 0.15 for ±15 %")
        if self.max_delay <= _ZERO:
            raise ValueError("max_delay must be greater than zero")
        if (self.backoff is Backoff.TABLE) != bool(self.table):
            raise ValueError("table requires backoff = 'table', and the other way round")
        if not self.table and self.initial_delay <= _ZERO:
            raise ValueError("initial_delay must be greater than zero")
        if max((self.initial_delay, *self.table)) > self.max_delay:
            raise ValueError("max_delay must not be shorter than initial_delay or an entry of the table")

    def delay(self, attempts: int, *, chance: float) -> timedelta:
        """Return the wait after `attempts` attempts; `chance` (0 to below 1) places it within the jitter."""
        jittered = self._base(attempts) * (1 + self.jitter * (2 * chance - 1))
        return timedelta(microseconds=round(min(jittered, micros(self.max_delay))))

    def _base(self, attempts: int) -> int:
        first = micros(self.initial_delay)
        match self.backoff:
            case Backoff.EXPONENTIAL:
                return first << min(attempts - 1, 63)  # bounded: the cap is reached long before
            case Backoff.LINEAR:
                return first * attempts
            case Backoff.QUADRATIC:
                return first * attempts**2
            case Backoff.FIXED:
                return first
            case Backoff.TABLE:
                return micros(self.table[min(attempts, len(self.table)) - 1])


# For a receiver that asks to slow down without a Retry-After.
THROTTLE_RULE = RetryRule(10, Backoff.EXPONENTIAL, timedelta(seconds=30), timedelta(hours=1), jitter=0.15)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """A named set of rules: a general one, and special ones by kind or category."""

    name: str
    rule: RetryRule
    special: Mapping[str, RetryRule] = field(default_factory=lambda: MappingProxyType({}))
    retry_on: frozenset[Category] = RETRYABLE

    def rule_for(self, category: Category, kind: RetryErrorKind | None = None) -> RetryRule:
        """Return the most specific rule: by kind, by category, or the general one."""
        if kind is not None and kind in self.special:
            return self.special[kind]
        return self.special.get(category, THROTTLE_RULE if category is Category.THROTTLING else self.rule)

    def delay(self, attempts: int, category: Category, *, chance: float) -> timedelta:
        """Return this policy's wait, whether or not attempts are left."""
        return self.rule_for(category).delay(attempts, chance=chance)


def retry_delay(
    policy: RetryPolicy,
    attempts: int,
    throttles: int,
    category: Category,
    *,
    chance: float,
    after: timedelta | None = None,
    kind: RetryErrorKind | None = None,
    max_attempts: int | None = None,
) -> timedelta | None:
    """Return the wait before the next attempt; None means give up.

    `after` is the receiver's Retry-After; if it is not positive, the policy decides. `max_attempts` is the
    message's own limit and replaces the policy's; throttling is counted separately.
    """
    if category not in policy.retry_on or category not in RETRYABLE:
        return None
    rule = policy.rule_for(category, kind)
    if category is Category.THROTTLING:
        spent, allowed = throttles, rule.max_attempts
    else:
        spent, allowed = attempts, max_attempts or rule.max_attempts
    if spent >= allowed:
        return None
    if after is not None and after > _ZERO:
        return min(after, MAX_RETRY_AFTER)
    return rule.delay(max(spent, 1), chance=chance)


def describe_policy(policy: RetryPolicy) -> str:
    """Describe the policy in one line: "6 attempts, 5 min × attempts², at most 12 h, ±15 %"."""
    rule = policy.rule
    first = durations.humanize(rule.initial_delay)
    shape = {
        Backoff.EXPONENTIAL: f"{first}, doubling",
        Backoff.LINEAR: f"{first} × attempts",
        Backoff.QUADRATIC: f"{first} × attempts²",
        Backoff.FIXED: f"{first} each",
        Backoff.TABLE: ", ".join(durations.humanize(wait) for wait in rule.table),
    }[rule.backoff]
    cap = "" if rule.backoff in (Backoff.TABLE, Backoff.FIXED) else f", at most {durations.humanize(rule.max_delay)}"
    jitter = f", ±{rule.jitter * 100:g} %" if rule.jitter else ""
    return f"{rule.max_attempts} attempts, {shape}{cap}{jitter}"


def _minutes(*counts: float) -> tuple[timedelta, ...]:
    return tuple(timedelta(minutes=count) for count in counts)


_MIGRATION = RetryRule(5, Backoff.EXPONENTIAL, timedelta(seconds=2), timedelta(hours=1), jitter=0.10)

POLICIES: Mapping[str, RetryPolicy] = MappingProxyType(
    {
        policy.name: policy
        for policy in (
            RetryPolicy(
                "default", RetryRule(6, Backoff.QUADRATIC, timedelta(minutes=5), timedelta(hours=12), jitter=0.15)
            ),
            RetryPolicy(
                "stepped",
                RetryRule(6, Backoff.TABLE, max_delay=timedelta(hours=15), table=_minutes(5, 15, 60, 300, 900)),
            ),
            # As Standard Webhooks recommends: soon, then increasingly later, over about a day.
            RetryPolicy(
                "events",
                RetryRule(
                    8, Backoff.TABLE, jitter=0.10, table=(timedelta(seconds=5), *_minutes(5, 30, 120, 300, 600, 600))
                ),
            ),
            # Other kinds are categories: rate_limit is throttling, temporary_failure is temporary, fatal
            # ones are permanent, and unclassified errors are system.
            RetryPolicy(
                "exponential",
                _MIGRATION,
                MappingProxyType(
                    {
                        RetryErrorKind.TIMEOUT: RetryRule(
                            3, Backoff.LINEAR, timedelta(seconds=5), timedelta(hours=1), 0.10
                        ),
                        RetryErrorKind.SERVER: _MIGRATION,
                        Category.THROTTLING: RetryRule(10, Backoff.FIXED, timedelta(seconds=60), timedelta(hours=1)),
                        Category.SYSTEM: RetryRule(
                            3, Backoff.EXPONENTIAL, timedelta(seconds=2), timedelta(hours=1), 0.10
                        ),
                    }
                ),
            ),
            RetryPolicy(
                "quick", RetryRule(4, Backoff.TABLE, max_delay=timedelta(minutes=5), table=_minutes(0.5, 2, 5))
            ),
        )
    }
)

_RULE_KEYS = ("max_attempts", "backoff", "initial_delay", "max_delay", "jitter", "table")
_SPECIAL_KEYS = (*map(str, RetryErrorKind), *sorted(map(str, RETRYABLE)))


def parse_policy(name: str, options: Mapping[str, Any]) -> RetryPolicy:
    """Parse a user's policy from TOML; a sub-table such as `throttling` overrides the general rule.

    A sub-table inherits the options of its policy, except `throttling`, which inherits those of
    THROTTLE_RULE.
    """
    where = f"policies.{name}"
    general = _pick(options, _RULE_KEYS, (*_RULE_KEYS, "retry_on", *_SPECIAL_KEYS), where)
    rule = _rule(general, where)
    special: dict[str, RetryRule] = {}
    for key in _SPECIAL_KEYS:
        if key in options:
            own = _pick(options[key], _RULE_KEYS, _RULE_KEYS, f"{where}.{key}")
            base = _THROTTLE_OPTIONS if key == Category.THROTTLING else general
            special[key] = _rule(_merged(base, own), f"{where}.{key}")
    return RetryPolicy(name, rule, MappingProxyType(special), _retry_on(options.get("retry_on"), where))


_THROTTLE_OPTIONS: Mapping[str, Any] = {
    "max_attempts": THROTTLE_RULE.max_attempts,
    "backoff": THROTTLE_RULE.backoff,
    "initial_delay": "30s",
    "max_delay": "1h",
    "jitter": THROTTLE_RULE.jitter,
}


def _pick(options: object, wanted: tuple[str, ...], known: tuple[str, ...], where: str) -> dict[str, Any]:
    """Return the wanted options; raises Misconfigured for an unknown one."""
    if not isinstance(options, Mapping):
        raise Misconfigured(f"{where} is not a table", remedy=f"Write [{where}] and its options below it")
    for key in options:
        if key not in known:
            close = difflib.get_close_matches(str(key), known, 1)
            remedy = f"Did you mean {close[0]!r}?" if close else f"Known options: {', '.join(known)}"
            raise Misconfigured(f"{where} has an unknown option {key!r}", remedy=remedy, field=f"{where}.{key}")
    return {key: options[key] for key in wanted if key in options}


def _merged(base: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Return the base options overridden by the sub-table's; a table is kept only with backoff = "table"."""
    merged = {**base, **own}
    if merged.get("backoff") != Backoff.TABLE and "table" not in own:
        merged.pop("table", None)
    return merged


def _rule(options: Mapping[str, Any], where: str) -> RetryRule:
    backoff = _backoff(options, where)
    table = _table(options.get("table", []), where)
    default_tries = len(table) + 1 if table else None
    # Jitter is below 1, so twice the longest entry never cuts a table's entry.
    default_cap = 2 * max(table) if table else timedelta(hours=12)
    try:
        return RetryRule(
            max_attempts=_count(options.get("max_attempts", default_tries), f"{where}.max_attempts"),
            backoff=backoff,
            initial_delay=_duration(options["initial_delay"], f"{where}.initial_delay")
            if "initial_delay" in options
            else _ZERO,
            max_delay=_duration(options["max_delay"], f"{where}.max_delay") if "max_delay" in options else default_cap,
            jitter=_fraction(options.get("jitter", 0.0), f"{where}.jitter"),
            table=table,
        )
    except ValueError as error:
        raise Misconfigured(f"{where}: {error}", field=where) from None


def _backoff(options: Mapping[str, Any], where: str) -> Backoff:
    raw = options.get("backoff", Backoff.TABLE if "table" in options else None)
    try:
        return Backoff(str(raw))
    except ValueError:
        problem = f"{where}.backoff is missing" if raw is None else f"{where}.backoff is {raw!r}"
        remedy = f"Use one of: {', '.join(Backoff)}"
        raise Misconfigured(problem, remedy=remedy, field=f"{where}.backoff") from None


def _table(raw: object, where: str) -> tuple[timedelta, ...]:
    if not isinstance(raw, list | tuple):
        remedy = 'Write a list such as ["30s", "2m", "5m"]'
        raise Misconfigured(f"{where}.table is not a list", remedy=remedy, field=f"{where}.table")
    return tuple(_duration(entry, f"{where}.table") for entry in raw)


def _duration(raw: Any, where: str) -> timedelta:
    try:
        return durations.parse(raw)
    except ValueError as error:
        raise Misconfigured(f"{where}: {error}", field=where) from None


def _count(raw: object, where: str) -> int:
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    problem = f"{where} is missing" if raw is None else f"{where} is {raw!r}, not a whole number"
    raise Misconfigured(problem, remedy="Use the number of attempts, including the first one", field=where)


def _fraction(raw: object, where: str) -> float:
    if isinstance(raw, int | float) and not isinstance(raw, bool):
        return float(raw)
    remedy = "Use a fraction such as 0.15 for ±15 %"
    raise Misconfigured(f"{where} is {raw!r}, not a number", remedy=remedy, field=where)


def _retry_on(raw: object, where: str) -> frozenset[Category]:
    if raw is None:
        return RETRYABLE
    where = f"{where}.retry_on"
    names = sorted(map(str, RETRYABLE))
    if not isinstance(raw, list | tuple) or not all(entry in RETRYABLE for entry in raw):
        remedy = f"Use a list of: {', '.join(names)}; permanent and validation are never retried"
        raise Misconfigured(f"{where} is {raw!r}", remedy=remedy, field=where)
    return frozenset(Category(entry) for entry in raw)
