"""What private servers for tests have in common."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self


class PrivateServer(ABC):
    """A server that is started on entering its context, and closed on leaving it."""

    @abstractmethod
    def start(self) -> Self:
        """Start it and wait until it accepts connections."""

    @abstractmethod
    def close(self) -> None:
        """Stop it and remove temporary files."""

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll until the condition holds. Return False after the timeout in seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
