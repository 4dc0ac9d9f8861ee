"""Actors: background jobs of a domain, such as the scheduler. The worker calls their steps in a loop."""

from __future__ import annotations

from typing import Protocol, runtime_checkable


class Actor(Protocol):
    """Runs on every worker node. Steps that must not run twice at once are serialized by the database."""

    name: str

    async def step(self) -> float:
        """Do the work that is due. Return the seconds until the next step; a hint may run it sooner."""


@runtime_checkable
class TaskCreator(Actor, Protocol):
    """An actor that creates due tasks; recovery from a failover runs its step before tasks are claimed."""

    makes_tasks: bool
