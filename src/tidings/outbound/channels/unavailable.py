"""A configured channel whose secrets are not set in this process; it can be listed, but sends nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

from ...model.errors import Misconfigured
from ...model.message import Message
from ...model.outcome import Outcome
from ...model.task import OnUnknown
from .base import ChannelTraits


class UnavailableChannel:
    """Stands for a channel in commands; every use of it raises the error about its secret."""

    kind: ClassVar[str] = "unavailable"

    def __init__(self, error: Misconfigured) -> None:
        self.traits = ChannelTraits(OnUnknown.HOLD, "its secrets are not set here", timedelta(seconds=15))
        self._error = error

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Misconfigured."""
        raise self._error

    async def send(self, message: Message) -> Outcome:
        """Raise Misconfigured."""
        raise self._error

    async def lookup(self, message: Message) -> Outcome:
        """Raise Misconfigured."""
        raise self._error

    async def close(self) -> None:
        """Do nothing: there are no connections."""
