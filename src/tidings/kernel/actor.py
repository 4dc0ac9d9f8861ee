"""Actors: what a domain does beside its tasks (a scheduler's tick, a pump): one step, no loop."""

from __future__ import annotations

from typing import Protocol


class Actor(Protocol):
    """Runs on every working node; what only one may do at a time is settled in the database (rule 18)."""

    name: str

    async def step(self) -> float:
        """Do what is due; gives the seconds after which to look again, at the latest. A hint comes sooner."""
