"""Counts of requests, refusals and duplicates, in bounded memory: the oldest ids are dropped.

A duplicate is an id that was *delivered* more than once. A retry of a refused request is not a duplicate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from .ledger import SandboxEntry

MAX_IDS = 400_000

T = TypeVar("T")


@dataclass(slots=True)
class RefusalCount:
    """How often an id was refused, and when first (in ticks)."""

    first: float
    times: int = 0


class RecentIds(Generic[T]):
    """The newest entries, at least half of `most`, at a constant cost per entry.

    Two flat dicts, of which the older is dropped as a whole: the garbage collector need not traverse them,
    and removing the first key of a large dict again and again would be slow.
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._newer: dict[str, T] = {}
        self._older: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """Return the value of a key, if it is still stored."""
        found = self._newer.get(key)
        return self._older.get(key) if found is None else found

    def put(self, key: str, value: T) -> bool:
        """Store a value; return whether entries were dropped for it."""
        forgets = False
        if key not in self._newer and len(self._newer) >= self._half:
            forgets = bool(self._older)
            self._newer, self._older = {}, self._newer
        self._newer[key] = value
        return forgets


class DuplicateCounts:
    """Counts over all requests, and the ids behind them."""

    def __init__(self, max_ids: int = MAX_IDS) -> None:
        self.requests = 0
        self.refused = 0
        self.duplicates = 0
        self.unique_ids = 0
        self.whole = True  # whether the counts cover the whole ledger and every id of it
        self._copies: RecentIds[int] = RecentIds(max_ids)
        self._refusals: RecentIds[RefusalCount] = RecentIds(max_ids)

    def seen(self, channel: str, id: str) -> tuple[int, RefusalCount | None]:
        """Return how often an id was delivered, and its refusals if any (read-only)."""
        key = f"{channel}/{id}"
        return self._copies.get(key) or 0, self._refusals.get(key)

    def add(self, entry: SandboxEntry, *, ticks: float) -> None:
        """Count one request."""
        self.requests += 1
        key = f"{entry.channel}/{entry.id}"
        if not entry.delivered:
            self.refused += 1
            refusals = self._refusals.get(key) or RefusalCount(ticks)
            refusals.times += 1
            self._remember(self._refusals.put(key, refusals))
            return
        self._remember(self._copies.put(key, max(entry.copy, (self._copies.get(key) or 0) + 1)))
        if entry.copy > 1:
            self.duplicates += 1
        else:
            self.unique_ids += 1

    def counts(self) -> dict[str, object]:
        """Return the counts for the API."""
        return {
            "requests": self.requests,
            "refused": self.refused,
            "delivered": self.unique_ids + self.duplicates,
            "unique_ids": self.unique_ids,
            "duplicates": self.duplicates,
            "whole": self.whole,
        }

    def _remember(self, forgot: bool) -> None:
        self.whole = self.whole and not forgot
