"""Broadcasts: one content for many recipients, frozen when it starts. The words, and nothing that acts.

Invariant of every tally: total = waiting + processing + sent + failed + held + cancelled + expired + skipped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any, NamedTuple

TALLY_WORDS = ("waiting", "processing", "sent", "failed", "unknown", "cancelled", "expired", "skipped")


class BroadcastState(StrEnum):
    """Where a broadcast stands."""

    LOADING = "loading"  # recipients come in; nothing is sent
    NEW = "new"  # frozen; waits for its time or for a call
    PENDING = "pending"  # under way
    PAUSED = "paused"
    COMPLETED = "completed"  # every recipient has ended
    FAILED = "failed"  # none succeeded, or stopped by errors
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its time was missed by more than the grace


class BroadcastTrigger(StrEnum):
    """What starts a broadcast."""

    IMMEDIATE = "immediate"
    SCHEDULED = "scheduled"
    MANUAL = "manual"


class QuietHours(NamedTuple):
    """Hours in which nothing is sent, in minutes of the day; from 22:00 to 7:00 goes over midnight."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class BroadcastOptions:
    """How a broadcast is sent; kept with it as JSON."""

    per_second: float | None = None
    spread: int = 0  # microseconds over which starts are spread
    error_limit: float | None = None  # share of errors at which it stops
    canary: int | None = None
    quiet: QuietHours | None = None
    timezone: str = "UTC"  # of whoever has none of their own
    recipient_timezone: bool = False  # each recipient at their own local time
    max_attempts: int | None = None
    priority: int = 5
    webhook: str | None = None
    skip_bad: bool = False  # bad rows are left out and reported; otherwise one refuses them all
    variables: Mapping[str, Any] | None = None  # the same for everybody
    since: tuple[int, int] = (0, 0)  # sent and errors when it was last resumed: what came before is forgiven
    source: Mapping[str, Any] | None = None  # where the pump finds the recipients by itself

    @property
    def by_zone(self) -> bool:
        """Whether recipients of one zone must be kept together."""
        return self.recipient_timezone or self.quiet is not None

    def to_json(self) -> str:
        """As it is kept."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})


def load_broadcast_options(text: str) -> BroadcastOptions:
    """As it was kept."""
    kept = json.loads(text)
    if kept.get("quiet") is not None:
        kept["quiet"] = QuietHours(*kept["quiet"])
    kept["since"] = tuple(kept.get("since", (0, 0)))
    return BroadcastOptions(**kept)


class TimezonePart(NamedTuple):
    """Recipients of one time zone; None: they have none of their own."""

    part: int
    timezone: str | None
    total: int
    taken: int
    taken_to: int
    starts_at: int | None = None

    @property
    def left(self) -> int:
        """How many have not been taken yet."""
        return self.total - self.taken


class BroadcastTally(NamedTuple):
    """How many of the frozen recipients stand where, at one moment."""

    total: int
    waiting: int
    processing: int
    sent: int
    failed: int
    unknown: int
    cancelled: int
    expired: int
    skipped: int
    open: int  # taken and not ended
    pieces: int = 0  # rows that were summed up

    @property
    def errors(self) -> int:
        """Those that ended badly, or in doubt."""
        return self.failed + self.unknown

    @property
    def counts(self) -> dict[str, int]:
        """By word, in the order of a life."""
        return {word: getattr(self, word) for word in TALLY_WORDS}


def broadcast_tally(row: Mapping[str, Any]) -> BroadcastTally:
    """A tally from the counts of the store. What was never taken goes the way of the whole."""
    ended = row["sent"] + row["failed"] + row["unknown"] + row["cancelled"] + row["expired"] + row["skipped"]
    untaken = row["total"] - row["taken"]
    cancelled, expired = row["cancelled"], row["expired"]
    waiting = row["total"] - ended - row["processing"]
    if row["state"] == BroadcastState.CANCELLED:
        cancelled, waiting = cancelled + untaken, waiting - untaken
    elif row["state"] == BroadcastState.EXPIRED:
        expired, waiting = expired + untaken, waiting - untaken
    return BroadcastTally(
        row["total"], waiting, row["processing"], row["sent"], row["failed"], row["unknown"], cancelled,
        expired, row["skipped"], row["taken"] - ended, row["pieces"],
    )  # fmt: skip
