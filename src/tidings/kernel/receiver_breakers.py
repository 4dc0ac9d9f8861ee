"""Circuit breakers of many receivers within one process: a failing receiver does not delay others.

A breaker opens after `threshold` failures in a row, or for as long as the receiver asks (Retry-After). Then
one attempt is the probe and the others wait for it; each failed probe may double the wait. The number of
receivers is bounded: the one whose state changed longest ago is forgotten first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from datetime import timedelta
from typing import Generic, NamedTuple, TypeVar

from ..model.time import SECOND, micros
from .breaker import BreakerRule

_MOST = 10_000
_PROBE = 30 * SECOND  # a probe that takes longer is repeated

Name = TypeVar("Name")


class BreakerWait(NamedTuple):
    """Consecutive failures of one receiver, and until when it is blocked (0: not blocked)."""

    failures: int
    until: int
    reason: str
    since: int
    is_probed: bool = False


class ReceiverBreakers(Generic[Name]):
    """One breaker per failing receiver. `longest` bounds the doubling of waits."""

    def __init__(self, rule: BreakerRule, now: Callable[[], int], *, longest: timedelta) -> None:
        self._rule = rule
        self._now = now
        self._longest = longest
        self._waits: OrderedDict[Name, BreakerWait] = OrderedDict()

    def blocked(self, name: Name) -> BreakerWait | None:
        """Return why an attempt must wait; None if it may run, as the probe if one is due."""
        wait = self._waits.get(name)
        if wait is None or not wait.until:
            return None
        now = self._now()
        if now < wait.until:
            return wait
        is_open = wait.failures >= self._rule.threshold
        self._waits[name] = wait._replace(until=now + _PROBE if is_open else 0, is_probed=is_open)
        return None

    def failed(self, name: Name, reason: str) -> BreakerWait | None:
        """Record a failure. Return the wait if this opens the breaker or keeps it open."""
        now, threshold = self._now(), self._rule.threshold
        before = self._waits.get(name) or BreakerWait(0, 0, "", now)
        if before.failures >= threshold and not before.is_probed:
            return None  # it started before the breaker opened
        failures = before.failures + 1
        if failures < threshold:
            self.take(name, before._replace(failures=failures))
            return None
        since = before.since if before.is_probed else now
        return self.take(name, BreakerWait(failures, now + self._cooldown(failures), reason, since))

    def asked(self, name: Name, length: timedelta, reason: str) -> BreakerWait:
        """Block a receiver for as long as it asked."""
        now = self._now()
        before = self._waits.get(name) or BreakerWait(0, 0, "", now)
        return self.take(name, before._replace(until=max(now + micros(length), before.until), reason=reason))

    def succeeded(self, name: Name) -> bool:
        """Record a success. Return True if the receiver had failures or was blocked."""
        return self._waits.pop(name, None) is not None

    def take(self, name: Name, wait: BreakerWait) -> BreakerWait:
        """Store the state of a receiver."""
        self._waits[name] = wait
        self._waits.move_to_end(name)
        if len(self._waits) > _MOST:
            self._waits.popitem(last=False)
        return wait

    def known(self, name: Name) -> BreakerWait | None:
        """Return the stored state of a receiver."""
        return self._waits.get(name)

    def _cooldown(self, failures: int) -> int:
        longer = 1 << min(failures - self._rule.threshold, 10)
        return micros(min(self._rule.cooldown * longer, max(self._longest, self._rule.cooldown)))
