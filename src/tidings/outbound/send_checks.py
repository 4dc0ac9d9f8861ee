"""Objections: what keeps a message from being sent although its time has come. Judged last. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ..model.outcome import Defer, Skip
from ..model.time import SECOND

_PAUSED = 5 * SECOND  # by then its pump has set it aside
OBSERVED = Skip("the channel only observes: nothing is sent")
SHADOWED = Skip("the channel is a shadow: noted for a comparison, not sent")


def check_send(
    recipient: str,
    broadcast: str | None,
    mode: str | None,
    share: int | None,
    suppressed: str | None,
    *,
    now: Callable[[], int],
) -> Skip | Defer | None:
    """Why not now, or why not at all; None: send it. `broadcast` is the state of the one it belongs to."""
    if suppressed is not None:
        return Skip(f"the recipient does not want it: {suppressed}")
    if broadcast == "paused":
        return Defer(now() + _PAUSED, "its broadcast is paused")
    if broadcast in ("cancelled", "expired"):
        return Skip(f"its broadcast was {broadcast}")
    if mode == "observe":
        return OBSERVED
    if mode == "shadow":
        return SHADOWED
    if share is not None and share < 100 and rollout_bucket(recipient) >= share:
        return Skip(
            f"only {share} % of the recipients are served on this channel, and this one is not among them"
        )
    return None


def rollout_bucket(recipient: str) -> int:
    """A number from 0 to 99 that stays the same for a recipient: whoever is among 10 % is among 50 % too."""
    return int.from_bytes(hashlib.sha256(recipient.encode()).digest()[:8]) % 100
