"""What has been seen of each id, and the counts over all requests. Bounded: the oldest ids are forgotten.

A duplicate is an id that was *delivered* more than once. A second try of something that was refused is
not a duplicate: nobody got it twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from .ledger import SandboxEntry

MAX_IDS = 400_000

T = TypeVar("T")


@dataclass(slots=True)
class RefusalCount:
    """How often one id was refused, and when first (in ticks)."""

    first: float
    times: int = 0


class RecentIds(Generic[T]):
    """The newest entries, at least half of `most` of them; each costs the same, however many there were.

    Two flat dicts: the garbage collector need not walk texts and numbers, and the older half is dropped
    whole. Taking the first out of a large dict again and again walks over all that was taken before.
    """

    def __init__(self, most: int) -> None:
        self._half = max(1, most // 2)
        self._newer: dict[str, T] = {}
        self._older: dict[str, T] = {}

    def get(self, key: str) -> T | None:
        """What is remembered of it."""
        found = self._newer.get(key)
        return self._older.get(key) if found is None else found

    def put(self, key: str, value: T) -> bool:
        """Remember; True: something was forgotten for it."""
        pruning = False
        if key not in self._newer and len(self._newer) >= self._half:
            pruning = bool(self._older)
            self._newer, self._older = {}, self._newer
        self._newer[key] = value
        return pruning


class DuplicateCounts:
    """Counts, and the ids behind them."""

    def __init__(self, max_ids: int = MAX_IDS) -> None:
        self.requests = 0
        self.refused = 0
        self.duplicates = 0
        self.unique_ids = 0
        self.whole = True  # whether the counts cover the whole ledger and every id of it
        self._copies: RecentIds[int] = RecentIds(max_ids)
        self._refusals: RecentIds[RefusalCount] = RecentIds(max_ids)

    def seen(self, channel: str, id: str) -> tuple[int, RefusalCount | None]:
        """How often an id was delivered, and its refusals if there were any (not to be changed)."""
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
        """The counts as the API shows them."""
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
