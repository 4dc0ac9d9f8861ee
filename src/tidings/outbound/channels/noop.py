"""The channel that does nothing, as fast as possible: for benchmarks and drills."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from ...model.message import Message
from ...model.outcome import Done, Outcome, Unknown
from ...model.task import OnUnknown
from .base import Traits
from .options import Kind, length

_DONE = Done()


@dataclass(frozen=True, slots=True)
class NoopSettings:
    """`delay` makes each send last that long, as a slow provider would."""

    delay: timedelta | None = None
    deadline: timedelta = timedelta(seconds=15)
    on_unknown: OnUnknown = OnUnknown.RESEND
    policy: str = "companion"
    per_second: float | None = None
    per_recipient: timedelta | None = None


class NoopChannel:
    """Says that everything was sent."""

    kind: ClassVar[str] = "noop"

    def __init__(self, settings: NoopSettings | None = None) -> None:
        settings = settings or NoopSettings()
        self.traits = Traits(
            on_unknown=settings.on_unknown,
            why_on_unknown="nothing is ever sent"
            if settings.on_unknown is OnUnknown.RESEND
            else "chosen in the configuration",
            deadline=settings.deadline,
            policy=settings.policy,
            per_second=settings.per_second,
            per_recipient=settings.per_recipient,
        )
        self._delay = settings.delay.total_seconds() if settings.delay else None

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Everything goes."""

    async def send(self, message: Message) -> Outcome:
        """Done, without doing anything."""
        if self._delay is not None:
            await asyncio.sleep(self._delay)
        return _DONE

    async def lookup(self, message: Message) -> Outcome:
        """Nobody is there to be asked."""
        return Unknown("the no-op channel remembers nothing")

    async def close(self) -> None:
        """Nothing to let go of."""


KIND = Kind(NoopSettings, lambda settings, now: NoopChannel(settings), {"delay": length})
