"""Last checks before a send: suppression, broadcast state, rollout mode and percentage. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

from ..model.outcome import Defer, Skip
from ..model.time import SECOND

_PAUSED = 5 * SECOND  # by then the feeder has moved it to the pause queue
OBSERVED = Skip("the channel is in observe mode: not sent")
SHADOWED = Skip("the channel is in shadow mode: recorded for comparison, not sent")


def check_send(
    recipient: str,
    broadcast: str | None,
    mode: str | None,
    share: int | None,
    suppressed: str | None,
    *,
    now: Callable[[], int],
) -> Skip | Defer | None:
    """Return Skip, Defer, or None to send. `broadcast` is the state of the message's broadcast."""
    if suppressed is not None:
        return Skip(f"the recipient is suppressed: {suppressed}")
    if broadcast == "paused":
        return Defer(now() + _PAUSED, "its broadcast is paused")
    if broadcast in ("cancelled", "expired"):
        return Skip(f"its broadcast was {broadcast}")
    if mode == "observe":
        return OBSERVED
    if mode == "shadow":
        return SHADOWED
    if share is not None and share < 100 and rollout_bucket(recipient) >= share:
        return Skip(f"the recipient is not among the {share} % that the channel is rolled out to")
    return None


def rollout_bucket(recipient: str) -> int:
    """A stable number from 0 to 99: a recipient within 10 % is also within 50 %."""
    return int.from_bytes(hashlib.sha256(recipient.encode()).digest()[:8]) % 100
