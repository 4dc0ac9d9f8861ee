"""The built-in shift calendar in our own tables, with a history of all changes.

A change and its day are written in one transaction that locks the day, so concurrent writers lose no update.
The idempotency key is unique, so a repeated command is one change with one answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import orjson

from ...store.port import Step, Store
from ...store.request_batches import BatchedLookup, RequestBatcher
from ..domain import CalendarAnswer, CalendarCommand, CalendarDay
from .day_grid import BLANK, MARKS, after, bounds, command_problem, day_of

GRID = 30


class BuiltinCalendar:
    """A shift calendar in the store."""

    grid = GRID
    weeks = (4, 12)

    def __init__(self, store: Store, name: str = "shifts") -> None:
        self.name = name
        self._store = store
        self._days = BatchedLookup(self._read)
        self._changes = RequestBatcher(self._apply_all)

    async def day(self, date: str) -> CalendarDay:
        return await self._days.find(date)

    async def days(self, dates: Sequence[str]) -> list[CalendarDay]:
        """Read several days with one query."""
        found = await self._read(dates)
        return [found[date] for date in dates]

    async def _read(self, dates: Sequence[str]) -> dict[str, CalendarDay]:
        asked = orjson.dumps(list(dates)).decode()
        rows = await self._store.read("shift_days_read", calendar=self.name, days=asked)
        lines = {row["day"]: row["lines"] for row in rows}
        return {date: _day(date, lines.get(date, "{}")) for date in dates}

    async def preview(self, command: CalendarCommand) -> CalendarDay:
        return after(await self.day(command.date), command)

    async def apply(self, command: CalendarCommand, key: str) -> CalendarAnswer:
        """Execute a command; a known key gets the same answer again."""
        problem = command_problem(command, grid=self.grid)
        if problem is not None:
            return CalendarAnswer(False, problem)
        return await self._changes.ask((command, key))

    async def _apply_all(self, asked: Sequence[tuple[CalendarCommand, str]]) -> list[CalendarAnswer | Exception]:
        """Write the changes of different days in one transaction, and those of the same day one by one."""
        ids: dict[str, int] = {}
        waiting = list(asked)
        while waiting:
            by_day = {command.date: (command, key) for command, key in reversed(waiting)}
            ids |= await self._write(list(by_day.values()))
            waiting = [(command, key) for command, key in waiting if key not in ids]
        return [CalendarAnswer(True, f"change {ids[key]}") for _, key in asked]

    async def _write(self, changes: Sequence[tuple[CalendarCommand, str]]) -> dict[str, int]:
        days = orjson.dumps([command.date for command, _ in changes]).decode()
        keys = {"keys": orjson.dumps([key for _, key in changes]).decode()}
        rows = orjson.dumps([_change(command, key) for command, key in changes]).decode()
        *_, made = await self._store.write(
            [
                Step("shift_day_hold", {"calendar": self.name, "days": days}),
                Step("shift_change_add", {"calendar": self.name, "changes": rows, "blank": BLANK}),
                Step("shift_line_set", keys),
                Step("shift_change_of", keys),
            ]
        )
        return {row["key"]: row["id"] for row in made}

    async def close(self) -> None:
        """Do nothing: the store is closed by its owner."""


@lru_cache(1024)
def _day(date: str, lines: str) -> CalendarDay:
    """Parse a day from its lines; cached, because most reads find it unchanged."""
    return day_of(date, orjson.loads(lines))


def _change(command: CalendarCommand, key: str) -> dict[str, str | int]:
    first, last = bounds(command)
    return {
        "key": key,
        "day": command.date,
        "squad": command.squad,
        "action": command.action.value,
        "begins": command.start,
        "ends": command.end,
        "first": first,
        "last": last,
        "fill": MARKS[command.action] * (last - first),
    }
