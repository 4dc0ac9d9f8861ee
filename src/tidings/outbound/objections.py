"""Objections: what keeps a message from being sent although its time has come. Judged last. Pure."""

from __future__ import annotations

from collections.abc import Callable

from ..model.outcome import Defer, Skip
from ..model.time import MINUTE


def objection(
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
        return Defer(now() + MINUTE, "its broadcast is paused")
    if broadcast in ("cancelled", "expired"):
        return Skip(f"its broadcast was {broadcast}")
    return None
