"""What private servers for tests have in common."""

from __future__ import annotations

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

from tidings.model.errors import Misconfigured

from .watchdog import Watchdog


class PrivateServer(ABC):
    """A server that is started on entering its context, and closed on leaving it."""

    def __init__(self, folder: Path | None, parent: Path | None) -> None:
        self._folder = folder
        self._parent = parent
        self._home: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog = Watchdog()

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @abstractmethod
    def start(self) -> Self:
        """Start it and wait until it accepts connections."""

    @abstractmethod
    def close(self) -> None:
        """Stop it and remove temporary files."""

    @abstractmethod
    def _watch(self) -> None:
        """Clean up if this process dies."""

    def _launch(self, command: Sequence[str | Path], log: Path, **how: Any) -> None:
        """Start its process in a new session: an interrupt of the tests must not reach the server first."""
        with log.open("ab") as out:
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True, **how
            )
        self._watch()

    def __enter__(self) -> Self:
        try:
            return self.start()
        except BaseException:
            self.close()
            raise

    def __exit__(self, *_: object) -> None:
        self.close()


def find_programs(
    variable: str, content: str, needed: str, usable: Callable[[Path], bool], candidates: Iterable[Path]
) -> Path | None:
    """Return the first usable folder; the one in the environment variable overrides them."""
    asked = os.environ.get(variable)
    if asked and not usable(Path(asked)):
        raise Misconfigured(
            f"{variable} is {asked}, which contains no {content}",
            remedy=f"Set it to the folder with {needed}, or unset it",
        )
    return Path(asked) if asked else next(filter(usable, candidates), None)


def wait_until(condition: Callable[[], bool], timeout: float) -> bool:
    """Poll until the condition holds. Return False after the timeout in seconds."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True
