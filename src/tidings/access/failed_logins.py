"""Failed authentication: counted, logged, audited, and limited by key prefix and by client address.

After ten wrong keys in a minute, from one address or for one prefix, the next caller from there must wait,
even with the right key. A key that has worked from the same address in the last hour is let through: neither
a stranger who knows its prefix nor a neighbor behind the same proxy can lock its owner out. Each process
counts for itself.
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
TRUST_WINDOW = 3600.0  # seconds for which a key that worked is let through from its address
MOST_LINES = 60  # of the audit trail in WRONG_FOR; the metric and the log have all
_MOST_KNOWN = 10_000


class FailedLogins:
    """Wrong keys of late, in this process."""

    def __init__(self, clock: Clock, audit: AuditLog, emit: Emit) -> None:
        self._clock = clock
        self._audit = audit
        self._emit = emit
        self._wrong: dict[str, tuple[int, float]] = {}  # by address and by prefix
        self._proven: dict[tuple[str, int], float] = {}
        self._lines = (0, -math.inf)

    def check(self, address: str | None, key: str) -> None:
        """Raise TooOften for an address or a prefix with too many wrong keys."""
        if not self._wrong or self._is_proven(address, key):
            return
        left = max(self._left(name) for name in _names(address, key))
        if left > 0:
            self._emit(AuthenticationLimited(_network(address), _shown(key)))
            raise RateLimited("too many wrong keys were shown", seconds=math.ceil(left))

    def passed(self, address: str | None, key: str) -> None:
        """Remember that this key works from this address."""
        pair = (_network(address), hash(key))
        if pair not in self._proven and len(self._proven) >= _MOST_KNOWN:
            del self._proven[next(iter(self._proven))]
        self._proven[pair] = self._clock.monotonic()

    def failed(self, address: str | None, key: str, *, where: str, request: str) -> None:
        """Take down a wrong key; `where` is the face that it was shown to."""
        now = self._clock.monotonic()
        self._proven.pop((_network(address), hash(key)), None)
        for name in _names(address, key):
            self._wrong[name] = _one_more(self._wrong.pop(name, (0, now)), now)
        while len(self._wrong) > _MOST_KNOWN:
            del self._wrong[next(iter(self._wrong))]
        self._emit(AuthenticationFailed(_network(address), _shown(key), where))
        self._lines = _one_more(self._lines, now)
        if self._lines[0] <= MOST_LINES:
            told = audit_entry(
                ANONYMOUS, "authentication.failed", target=_shown(key), status=401, request=request
            )
            self._audit.note_soon(told._replace(origin=address, detail=where))

    def _is_proven(self, address: str | None, key: str) -> bool:
        at = self._proven.get((_network(address), hash(key)), -math.inf)
        return self._clock.monotonic() - at < TRUST_WINDOW

    def _left(self, name: str) -> float:
        count, since = self._wrong.get(name, (0, 0.0))
        return since + FAILURE_WINDOW - self._clock.monotonic() if count >= MAX_FAILURES else 0.0


def _one_more(counted: tuple[int, float], now: float) -> tuple[int, float]:
    count, since = counted
    return (count + 1, since) if now - since < FAILURE_WINDOW else (1, now)


def _names(address: str | None, key: str) -> list[str]:
    """What a wrong key is counted under."""
    prefix = prefix_of(key)
    return [_network(address), *([] if prefix is None else [KEY_MARKER + prefix])]


def _shown(key: str) -> str | None:
    """The public part of a key; nothing of what does not look like one."""
    prefix = prefix_of(key)
    return None if prefix is None else KEY_MARKER + prefix


def _network(address: str | None) -> str:
    """An address, or the network of an IPv6 address: one host has a whole /64 to choose from."""
    if address is None or ":" not in address:
        return address or ""
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
