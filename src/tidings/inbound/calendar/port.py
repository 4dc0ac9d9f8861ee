"""The calendar port for the engine and its errors."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Protocol

from ...model.errors import TemporaryError
from ..domain import CalendarAnswer, CalendarCommand, CalendarDay


class CalendarUnavailable(TemporaryError):
    """The calendar is unavailable, and nothing was changed."""

    code = "calendar_unavailable"

    def __init__(self, problem: str, *, remedy: str = "", after: timedelta | None = None) -> None:
        super().__init__(problem, remedy=remedy or "it is retried automatically")
        self.after = after  # its Retry-After


class CalendarOutcomeUnknown(CalendarUnavailable):
    """A command was sent without a response: it may have been executed."""


class ShiftCalendar(Protocol):
    """A shift calendar. Only `apply` writes; the result is verified by reading the day."""

    name: str
    grid: int  # minutes; a command off the grid is never sent
    weeks: tuple[int, int]  # weeks before and from the current one that a feed contains

    async def day(self, date: str) -> CalendarDay:
        """Read one operational day."""

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        """Return the day as it would be after the command."""

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        """Execute a command. `key` is its idempotency key, the same for every attempt."""

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        """Read several days, in order."""

    async def close(self) -> None:
        """Close all connections."""
