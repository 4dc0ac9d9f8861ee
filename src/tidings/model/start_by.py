"""How late an attempt with a rate-limit slot may start: set by the kernel, checked by what holds sends up."""

from __future__ import annotations

import time
from contextvars import ContextVar
from math import inf

START_BY: ContextVar[float] = ContextVar("start_by", default=inf)  # monotonic seconds


class StartedTooLate(Exception):
    """Nothing was sent, because the rate-limit slot has passed."""


def check_start() -> None:
    """Raise `StartedTooLate` after the latest start of the attempt that runs here."""
    if time.monotonic() > START_BY.get():
        raise StartedTooLate
