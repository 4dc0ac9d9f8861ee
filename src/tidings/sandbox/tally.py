"""What has been seen of each id, and the counts over all requests. Bounded: the oldest ids are forgotten.

A duplicate is an id that was *delivered* more than once. A second try of something that was refused is
not a duplicate: nobody got it twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from .ledger import Entry

MAX_IDS = 200_000


@dataclass(slots=True)
class Refusals:
    """How often one id was refused, and when first (in ticks)."""

    first: float
    times: int = 0


class Tally:
    """Counts, and the ids behind them.

    The ids are one flat dict of text to number: the garbage collector need not walk it, so the
    200,000th request is as cheap as the first.
    """

    def __init__(self, max_ids: int = MAX_IDS) -> None:
        self.requests = 0
        self.refused = 0
        self.duplicates = 0
        self.unique_ids = 0
        self.whole = True  # whether the counts cover the whole ledger and every id of it
        self._max_ids = max_ids
        self._copies: dict[str, int] = {}
        self._refusals: dict[str, Refusals] = {}

    def seen(self, channel: str, id: str) -> tuple[int, Refusals | None]:
        """How often an id was delivered, and its refusals if there were any (not to be changed)."""
        key = f"{channel}/{id}"
        return self._copies.get(key, 0), self._refusals.get(key)

    def add(self, entry: Entry, *, ticks: float) -> None:
        """Count one request."""
        self.requests += 1
        key = f"{entry.channel}/{entry.id}"
        if not entry.delivered:
            self.refused += 1
            self._refusals.setdefault(key, Refusals(ticks)).times += 1
            self._forget(self._refusals)
            return
        self._copies[key] = max(entry.copy, self._copies.get(key, 0) + 1)
        self._forget(self._copies)
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

    def _forget(self, ids: dict[str, int] | dict[str, Refusals]) -> None:
        if len(ids) > self._max_ids:
            del ids[next(iter(ids))]
            self.whole = False
