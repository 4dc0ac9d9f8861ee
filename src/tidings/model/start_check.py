"""Whether an attempt may still start: set by the kernel for rate-limit slots, asked by what delays sends."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

TOO_LATE: ContextVar[Callable[[], bool]] = ContextVar("too_late", default=bool)  # bool() is False: never


class StartedTooLate(Exception):
    """Nothing was sent, because the rate-limit slot has passed."""


def check_start() -> None:
    """Raise `StartedTooLate` once the attempt that runs here may not start any more."""
    if TOO_LATE.get()():
        raise StartedTooLate
