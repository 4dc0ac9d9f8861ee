"""Clock, randomness and sleep, replaceable in tests."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass


def _wall() -> int:
    return time.time_ns() // 1_000


@dataclass(frozen=True, slots=True)
class SandboxEnvironment:
    """What the sandbox needs from its machine. `wall` dates the ledger, `ticks` times the faults."""

    wall: Callable[[], int] = _wall  # microseconds since 1970
    ticks: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.random  # 0 <= x < 1
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
