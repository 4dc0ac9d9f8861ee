"""The console channel: one line per message on standard output, without any account."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Retry
from ...model.task import Category, OnUnknown
from ...model.time import iso
from .base import BaseChannelSettings, NoLookup, traits_of
from .options import channel_kind


@dataclass(frozen=True, slots=True)
class ConsoleSettings(BaseChannelSettings):
    """Settings of the console channel."""

    deadline: timedelta = field(default=timedelta(seconds=5), kw_only=True)


class ConsoleChannel(NoLookup):
    """Prints messages; `now` returns the current instant."""

    kind: ClassVar[str] = "console"
    no_lookup = "standard output cannot be queried"

    def __init__(self, settings: ConsoleSettings | None = None, *, now: Callable[[], int]) -> None:
        settings = settings or ConsoleSettings()
        self.traits = traits_of(settings, OnUnknown.RESEND, "a duplicate line is harmless")
        self._now = now

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Raise Invalid for an empty recipient."""
        if not recipient.strip():
            raise Invalid("The recipient is empty", remedy="Give a name", field="to")

    async def send(self, message: Message) -> Outcome:
        """Print the line; Retry if standard output is closed."""
        try:
            sys.stdout.write(line(message, self._now()))
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            return Retry(Category.SYSTEM, f"standard output cannot be written to: {error}")
        return Done()

    async def close(self) -> None:
        """Do nothing: there are no connections."""


def line(message: Message, at: int) -> str:
    """Time, recipient and text, escaped to prevent terminal injection and forged lines."""
    return f"{iso(at)}  {_escaped(message.recipient)}  {_escaped(message.text)}\n"


def _escaped(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


KIND = channel_kind(ConsoleSettings, ConsoleChannel)
