"""Failed authentication: counted, logged, audited, and limited by key prefix and by client address.

After ten wrong keys in a minute, from one address or for one prefix, further attempts are rejected, even with
the right key. A key that has worked from the same address in the last hour is exempt, so neither an attacker
who knows its prefix nor another client behind the same proxy can lock its owner out. Counted per process.
"""

from __future__ import annotations

import ipaddress
import math

from ..kernel.clock import Clock
from ..model.errors import RateLimited
from ..observability.events import AuthenticationFailed, AuthenticationLimited, Emit
from .api_keys import KEY_MARKER, prefix_of
from .audit import AuditLog, audit_entry
from .caller import ANONYMOUS

MAX_FAILURES = 10
FAILURE_WINDOW = 60.0  # seconds
TRUST_WINDOW = 3600.0  # seconds for which a key that worked is exempt
MAX_AUDITED = 60  # audit entries per window; metric and log have all
_MAX_TRACKED = 10_000


class FailedLogins:
    """Counts recent wrong keys in this process."""

    def __init__(self, clock: Clock, audit: AuditLog, emit: Emit) -> None:
        self._clock = clock
        self._audit = audit
        self._emit = emit
        self._wrong: dict[str, tuple[int, float]] = {}  # by address and by prefix
        self._trusted: dict[tuple[str, int], float] = {}
        self._audited = (0, -math.inf)

    def check(self, address: str | None, key: str) -> None:
        """Raise RateLimited for an address or a prefix with too many wrong keys."""
        if not self._wrong or self._is_trusted(address, key):
            return
        left = max(self._left(name) for name in _names(address, key))
        if left > 0:
            self._emit(AuthenticationLimited(_network(address), _shown(key)))
            raise RateLimited("too many failed logins", seconds=math.ceil(left))

    def passed(self, address: str | None, key: str) -> None:
        """Record that this key works from this address."""
        pair = (_network(address), hash(key))
        if pair not in self._trusted and len(self._trusted) >= _MAX_TRACKED:
            del self._trusted[next(iter(self._trusted))]
        self._trusted[pair] = self._clock.monotonic()

    def failed(self, address: str | None, key: str, *, where: str, request: str) -> None:
        """Record a wrong key; `where` is the interface that received it."""
        now = self._clock.monotonic()
        self._trusted.pop((_network(address), hash(key)), None)
        for name in _names(address, key):
            self._wrong[name] = _one_more(self._wrong.pop(name, (0, now)), now)
        while len(self._wrong) > _MAX_TRACKED:
            del self._wrong[next(iter(self._wrong))]
        self._emit(AuthenticationFailed(_network(address), _shown(key), where))
        self._audited = _one_more(self._audited, now)
        if self._audited[0] <= MAX_AUDITED:
            entry = audit_entry(ANONYMOUS, "authentication.failed", target=_shown(key), status=401, request=request)
            self._audit.note_soon(entry._replace(origin=address, detail=where))

    def _is_trusted(self, address: str | None, key: str) -> bool:
        at = self._trusted.get((_network(address), hash(key)), -math.inf)
        return self._clock.monotonic() - at < TRUST_WINDOW

    def _left(self, name: str) -> float:
        count, since = self._wrong.get(name, (0, 0.0))
        return since + FAILURE_WINDOW - self._clock.monotonic() if count >= MAX_FAILURES else 0.0


def _one_more(counted: tuple[int, float], now: float) -> tuple[int, float]:
    count, since = counted
    return (count + 1, since) if now - since < FAILURE_WINDOW else (1, now)


def _names(address: str | None, key: str) -> list[str]:
    """Return the names under which a wrong key is counted: its network and its prefix."""
    shown = _shown(key)
    return [_network(address), *([] if shown is None else [shown])]


def _shown(key: str) -> str | None:
    """Return the public part of a key, or None if the text does not look like a key."""
    prefix = prefix_of(key)
    return None if prefix is None else KEY_MARKER + prefix


def _network(address: str | None) -> str:
    """Return an IPv4 address, or the /64 of an IPv6 address, which one host controls."""
    if address is None or ":" not in address:
        return address or ""
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
