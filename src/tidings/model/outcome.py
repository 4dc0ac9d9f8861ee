"""Outcomes: what came of one attempt. A closed set, so that every `match` on them can be checked.

`whole_channel` says that the news is about the account and not about this message: the channel's row is
parked or paused, and the message keeps its place without spending an attempt.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from .task import Category


@dataclass(frozen=True, slots=True)
class Done:
    """It was done; `receipt` is what the other side calls it."""

    receipt: str | None = None


@dataclass(frozen=True, slots=True)
class Retry:
    """It was certainly not done, and may work later. `after` is the other side's own wish."""

    category: Category
    reason: str
    after: timedelta | None = None
    whole_channel: bool = False


@dataclass(frozen=True, slots=True)
class Reject:
    """It was not done and never will be. With `whole_channel` (a bad credential) the channel is paused."""

    category: Category
    reason: str
    whole_channel: bool = False


@dataclass(frozen=True, slots=True)
class Defer:
    """Not now: wait until an instant. Costs no attempt."""

    until: int
    why: str


@dataclass(frozen=True, slots=True)
class Skip:
    """Not to be done at all: the recipient opted out, or the channel only observes. Nothing was tried."""

    why: str


@dataclass(frozen=True, slots=True)
class Offline:
    """Certainly not done: the channel's own session is down. Everything waits until it is back."""

    reason: str
    needs_person: bool = False  # logged out: it does not come back by itself


@dataclass(frozen=True, slots=True)
class Unknown:
    """Perhaps done, perhaps not: the request left and no answer came."""

    evidence: str
    hold: bool = False  # for a person to decide, whatever the channel's rule


Outcome = Done | Retry | Reject | Defer | Skip | Offline | Unknown
