"""Ends a process when the drill ends, however that ends, so that no process is left running."""

from __future__ import annotations

import os
import signal
import sys
import threading


def end_with_parent() -> None:
    """Watch standard input, whose other end the drill holds; when it closes, kill this process."""
    threading.Thread(target=_watch, args=(sys.stdin.fileno(),), daemon=True).start()


def _watch(pipe: int) -> None:
    while os.read(pipe, 4096):
        pass
    os.kill(os.getpid(), signal.SIGKILL)
