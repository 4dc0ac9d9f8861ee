"""Adaptive batch size: batches that take about a minute, and commits about half a second apart. Pure."""

from __future__ import annotations

from ..model.time import SECOND

MIN_BATCH_SIZE, MAX_BATCH_SIZE = 100, 10_000
DEFAULT_BATCH_SIZES = {"contacts": 1000, "companies": 500, "notes": 2000, "activities": 1500, "files": 100}
DEFAULT_BATCH_SIZE = 1000
TARGET_BATCH_DURATION = 60 * SECOND
INITIAL_COMMIT_SIZE, MAX_COMMIT_SIZE = 16, 500  # calls between two commits
COMMIT_INTERVAL = 0.5  # seconds between two commits, as a target


def next_batch_size(base: int, pace: int | None) -> int:
    """Return the size of the next batch: `base` until the time per record (`pace`, microseconds) is known."""
    wanted = base if pace is None else TARGET_BATCH_DURATION // max(1, pace)
    return max(MIN_BATCH_SIZE, min(MAX_BATCH_SIZE, wanted))


def next_commit_size(size: int, calls: int, took: float) -> int:
    """Return the number of calls until the next commit, after `calls` took so many seconds."""
    if took > 2 * COMMIT_INTERVAL:
        return max(1, size // 2)
    return min(MAX_COMMIT_SIZE, size * 2) if calls >= size and took < COMMIT_INTERVAL / 2 else size
