"""Garbage collector settings of a worker process. Called by the process's main function, never by a library.

A worker allocates about ten small objects per message, freed by reference counting. The default thresholds
scan them every few hundred allocations, and from time to time everything that was loaded at startup.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 20_000, 20, 20  # thresholds of the three generations


def tune_gc() -> None:
    """Exclude existing objects from collection and raise the thresholds."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
