"""Named crash points, for tests and drills: a no-op unless armed.

`TIDINGS_CRASH_AT=sent:3` kills the process with SIGKILL at its third pass of the point `sent`.
Points: claimed (nothing started) · started (start mark written, nothing sent) · sent (not settled) ·
settled (written, no events emitted).
"""

from __future__ import annotations

import os
import signal

POINTS = ("claimed", "started", "sent", "settled")

_armed: dict[str, int] = {}


def arm(spec: str | None) -> None:
    """Arm one point, given as `name:pass`; None disarms."""
    _armed.clear()
    if spec:
        name, _, passes = spec.partition(":")
        if name not in POINTS:
            raise ValueError(f"unknown crash point {name!r}; use one of: {', '.join(POINTS)}")
        _armed[name] = int(passes or 1)


def crash_point(name: str) -> None:
    """Pass a crash point: kills the process if this pass is armed."""
    if _armed and name in _armed:
        _armed[name] -= 1
        if _armed[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)


arm(os.environ.get("TIDINGS_CRASH_AT"))
