"""Whether an attempt may still start in its rate-limit slot: set by the kernel, checked by HTTP clients."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

TOO_LATE: ContextVar[Callable[[], bool]] = ContextVar("too_late", default=bool)  # bool() is False


class StartedTooLate(Exception):
    """Nothing was sent, because the rate-limit slot has passed."""


def check_start() -> None:
    """Raise `StartedTooLate` if the current attempt may no longer start."""
    if TOO_LATE.get()():
        raise StartedTooLate
