"""Which due tasks to claim: by priority, then due time, and a share for the oldest (fairness)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple


class ClaimCandidate(NamedTuple):
    """A due task, with what the choice needs."""

    priority: int
    due_at: int
    id: int
    queue: str


def choose_candidates(
    near: Sequence[ClaimCandidate], rooms: Mapping[str, int], room: int, fair: int
) -> list[ClaimCandidate]:
    """Choose at most `room` tasks, and `rooms` per queue; `fair` of them are the oldest due."""
    ordered = sorted(near)
    taken: list[ClaimCandidate] = []
    left = dict(rooms)
    if fair:
        for candidate in sorted(near, key=lambda c: (c.due_at, c.id)):
            if len(taken) >= min(fair, room):
                break
            if left[candidate.queue] > 0:
                left[candidate.queue] -= 1
                taken.append(candidate)
    chosen = set(taken)
    for candidate in ordered:
        if len(taken) >= room:
            break
        if left[candidate.queue] > 0 and candidate not in chosen:
            left[candidate.queue] -= 1
            taken.append(candidate)
    return sorted(taken)
