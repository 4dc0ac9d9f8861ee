"""The quicker event loop, where there is one: whoever plays the others leaves the engine its processor."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from importlib.util import find_spec
from typing import Any


def run(work: Coroutine[Any, Any, None]) -> None:
    """Until it is over."""
    factory: Any = None
    if find_spec("uvloop") is not None:
        from uvloop import new_event_loop as factory
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(work)
