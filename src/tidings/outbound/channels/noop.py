"""A channel that sends nothing, for benchmarks and drills."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from ...model.message import Message
from ...model.outcome import Done, Outcome
from ...model.task import OnUnknown
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind

_DONE = Done()


@dataclass(frozen=True, slots=True)
class NoopSettings(BaseChannelSettings):
    """Settings; `delay` simulates a slow provider."""

    delay: timedelta | None = None


class NoopChannel(NoLookup):
    """Reports every message as sent."""

    kind: ClassVar[str] = "noop"
    no_lookup = "the no-op channel keeps no record"

    def __init__(self, settings: NoopSettings | None = None) -> None:
        settings = settings or NoopSettings()
        self.traits = traits_of(settings, OnUnknown.RESEND, "nothing is ever sent")
        self._delay = settings.delay.total_seconds() if settings.delay else None

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Accept everything."""

    async def send(self, message: Message) -> Outcome:
        """Return Done after the delay."""
        if self._delay is not None:
            await asyncio.sleep(self._delay)
        return _DONE

    async def close(self) -> None:
        """Do nothing: there are no connections."""


KIND = channel_kind(NoopSettings, lambda settings, now: NoopChannel(settings))
