"""The console: one line per message on standard output, for a first look without any account."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar

from ...model.errors import Invalid
from ...model.message import Message
from ...model.outcome import Done, Outcome, Retry, Unknown
from ...model.task import Category, OnUnknown
from ...model.time import iso
from .base import BaseChannelSettings, traits_of
from .options import ChannelKind


@dataclass(frozen=True, slots=True)
class ConsoleSettings(BaseChannelSettings):
    """Nothing but what every channel has."""

    deadline: timedelta = field(default=timedelta(seconds=5), kw_only=True)


class ConsoleChannel:
    """Prints messages. `now` gives the wall clock as an instant."""

    kind: ClassVar[str] = "console"

    def __init__(self, settings: ConsoleSettings | None = None, *, now: Callable[[], int]) -> None:
        settings = settings or ConsoleSettings()
        self.traits = traits_of(settings, OnUnknown.RESEND, "twice on a screen harms nobody")
        self._now = now

    def check(self, recipient: str, content: dict[str, object]) -> None:
        """Any recipient will do that is not empty."""
        if not recipient.strip():
            raise Invalid("The recipient is empty", remedy="Give a name", field="to")

    async def send(self, message: Message) -> Outcome:
        """Print the line; standard output may be a pipe that somebody has closed."""
        try:
            sys.stdout.write(line(message, self._now()))
            sys.stdout.flush()
        except (OSError, ValueError) as error:
            return Retry(Category.SYSTEM, f"standard output cannot be written to: {error}")
        return Done()

    async def lookup(self, message: Message) -> Outcome:
        """A screen remembers nothing."""
        return Unknown("a screen cannot be asked what it showed")

    async def close(self) -> None:
        """Nothing to let go of."""


def line(message: Message, at: int) -> str:
    """One line: time, recipient, text. Escaped, so that no message can move the cursor or fake a line."""
    return f"{iso(at)}  {_escaped(message.recipient)}  {_escaped(message.text)}\n"


def _escaped(text: str) -> str:
    return text if text.isprintable() else repr(text)[1:-1]


KIND = ChannelKind(ConsoleSettings, lambda settings, now: ConsoleChannel(settings, now=now), {})
