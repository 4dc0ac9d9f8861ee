"""The channel that does nothing, as fast as possible: for benchmarks and drills."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from ...model.message import Message
from ...model.outcome import Done, Outcome, Unknown
from ...model.task import OnUnknown
from .base import BaseChannelSettings, traits_of
from .options import ChannelKind, length

_DONE = Done()


@dataclass(frozen=True, slots=True)
class NoopSettings(BaseChannelSettings):
    """`delay` makes each send last that long, as a slow provider would."""

    delay: timedelta | None = None


class NoopChannel:
    """Says that everything was sent."""

    kind: ClassVar[str] = "noop"

    def __init__(self, settings: NoopSettings | None = None) -> None:
        settings = settings or NoopSettings()
        self.traits = traits_of(settings, OnUnknown.RESEND, "nothing is ever sent")
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


KIND = ChannelKind(NoopSettings, lambda settings, now: NoopChannel(settings), {"delay": length})
