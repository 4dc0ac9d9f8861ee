"""Outcomes of one attempt: a closed set, so that every `match` is checked for completeness.

`whole_channel` marks an outcome that concerns the account and not the message: the channel is throttled or
paused, and the message keeps its place without using up an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta

from .errors import error_text
from .task import Category


@dataclass(frozen=True, slots=True)
class Done:
    """It was sent; `receipt` is the provider's id."""

    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """It was certainly not sent, and may succeed later. `after` is the receiver's Retry-After."""

    category: Category
    reason: str
    after: timedelta | None = None
    whole_channel: bool = False
    error: Exception | None = field(default=None, repr=False, compare=False)  # what a handler raised, for the log


@dataclass(frozen=True, slots=True)
class Reject:
    """It was not sent and never will be. With `whole_channel` (a bad credential) the channel is paused.

    `opted_out`: the provider says that the recipient wants no messages from us.
    """

    category: Category
    reason: str
    whole_channel: bool = False
    opted_out: bool = False


@dataclass(frozen=True, slots=True)
class Defer:
    """Wait until an instant. Does not count as an attempt."""

    until: int
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Not to be sent: the recipient opted out, or the channel only observes. Nothing was attempted."""

    why: str


@dataclass(frozen=True, slots=True)
class Offline:
    """Certainly not sent: the channel's session is down. Its tasks wait until it is connected again."""

    reason: str
    needs_person: bool = False  # logged out: it does not reconnect automatically


@dataclass(frozen=True, slots=True)
class Unknown:
    """It may have been sent: there was no response."""

    evidence: str
    hold: bool = False  # a person must decide, whatever the channel's rule
    session_failed: bool = False  # the channel's session must be restarted before the next attempt


def raised(error: Exception) -> Retry:
    """Return the outcome of an attempt whose handler or channel raised an error."""
    return Retry(Category.SYSTEM, error_text(error), error=error)


Outcome = Done | Retry | Reject | Defer | Skip | Offline | Unknown
