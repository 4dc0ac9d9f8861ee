"""What the engine asks of a calendar beyond the port, and how one says that it is not there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from ...model.errors import TemporaryError
from ..domain import Calendar, CalendarDay


class CalendarUnavailable(TemporaryError):
    """The calendar does not answer, and nothing was changed."""

    code = "calendar_unavailable"

    def __init__(self, problem: str, *, remedy: str = "", after: timedelta | None = None) -> None:
        super().__init__(problem, remedy=remedy or "it is asked again by itself")
        self.after = after  # its own wish


class CalendarOutcomeUnknown(CalendarUnavailable):
    """The command left and no answer came: perhaps it was done, perhaps not."""


class ShiftCalendar(Calendar, Protocol):
    """A calendar that can be shown."""

    grid: int  # minutes; a command that is not on it is never sent
    weeks: tuple[int, int]  # before and from this one on, that a feed may read at once

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        """Several days, in their order."""

    async def close(self) -> None:
        """Let go of connections."""
