"""Broadcasts: states, options, quiet hours and tallies. One content for many recipients, frozen at the start.

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
    """The state of a broadcast."""

    LOADING = "loading"  # recipients are being added; nothing is sent
    READY = "ready"  # recipients are frozen; waits for its time or for a call
    RUNNING = "running"
    PAUSED = "paused"
    COMPLETED = "completed"  # every recipient has ended
    FAILED = "failed"  # none succeeded, or stopped by its error limit
    CANCELLED = "cancelled"
    EXPIRED = "expired"  # its start was missed by more than the allowed time


class BroadcastTrigger(StrEnum):
    """What starts a broadcast."""

    IMMEDIATE = "immediate"
    SCHEDULED = "scheduled"
    MANUAL = "manual"


class QuietHours(NamedTuple):
    """Hours in which nothing is sent, in minutes of the day; 22:00 to 7:00 passes midnight."""

    begin: int
    end: int


@dataclass(frozen=True, slots=True)
class BroadcastOptions:
    """How a broadcast is sent; stored as JSON."""

    per_second: float | None = None
    spread: int = 0  # microseconds over which starts are spread
    error_limit: float | None = None  # fraction of errors at which it stops
    canary: int | None = None
    quiet_hours: QuietHours | None = None
    timezone: str = "UTC"  # for recipients without a time zone
    recipient_timezone: bool = False  # send at each recipient's local time
    max_attempts: int | None = None
    priority: int = 5
    webhook: str | None = None
    skip_bad: bool = False  # leave out and report bad rows; otherwise one bad row rejects all
    variables: Mapping[str, Any] | None = None  # the same for all recipients
    since: tuple[int, int] = (0, 0)  # sent and errors when it was last resumed: earlier errors do not count
    source: Mapping[str, Any] | None = None  # where the feeder finds the recipients

    @property
    def by_zone(self) -> bool:
        """Whether recipients must be grouped by time zone."""
        return self.recipient_timezone or self.quiet_hours is not None

    def to_json(self) -> str:
        """Return the options as JSON."""
        return json.dumps({name: value for name, value in asdict(self).items() if value is not None})


def load_broadcast_options(text: str) -> BroadcastOptions:
    """Load options from JSON."""
    kept = json.loads(text)
    if kept.get("quiet_hours") is not None:
        kept["quiet_hours"] = QuietHours(*kept["quiet_hours"])
    kept["since"] = tuple(kept.get("since", (0, 0)))
    return BroadcastOptions(**kept)


class TimezonePart(NamedTuple):
    """Recipients of one time zone; None: they have no time zone."""

    part: int
    timezone: str | None
    total: int
    taken: int
    taken_to: int
    starts_at: int | None = None

    @property
    def left(self) -> int:
        """Number of recipients that are not enqueued yet."""
        return self.total - self.taken


class BroadcastTally(NamedTuple):
    """Number of recipients by state, at one moment."""

    total: int
    waiting: int
    processing: int
    sent: int
    failed: int
    unknown: int
    cancelled: int
    expired: int
    skipped: int
    open: int  # enqueued and not ended
    pieces: int = 0  # rows that were summed

    @property
    def errors(self) -> int:
        """Number of recipients that failed or whose outcome is unknown."""
        return self.failed + self.unknown

    @property
    def counts(self) -> dict[str, int]:
        """Return the counts by state, in order of processing."""
        return {word: getattr(self, word) for word in TALLY_WORDS}


def broadcast_tally(row: Mapping[str, Any]) -> BroadcastTally:
    """Return the tally of the store's counts; recipients not enqueued share the broadcast's state."""
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
