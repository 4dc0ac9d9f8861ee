"""Python's collector, set for a process that only works. Called by whoever owns the process, never a library.

A worker makes some ten small objects per message, which die by themselves; by default they are looked through
every few hundred, and from time to time all that was loaded at the start.
"""

from __future__ import annotations

import gc

_YOUNG, _MIDDLE, _OLD = 20_000, 20, 20  # new objects before a look, looks before one at the older ones


def tune_gc() -> None:
    """Leave out what is there already, and look at new objects in larger portions."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
