"""The built-in shift calendar: own tables, every change kept with what was and what became.

A change and its day are written in one transaction that holds the day, so two writers cannot lose each
other's; the key is unique, so the same command twice is one change with one answer.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from ...store.port import Step, Store
from ...store.together import Lookup
from ..words import Applied, Command, Day
from .days import BLANK, MARKS, after, bounds, day_of, objection

GRID = 30


class BuiltinCalendar:
    """`Calendar` on our own store."""

    grid = GRID
    weeks = (4, 12)

    def __init__(self, store: Store, name: str = "shifts") -> None:
        self.name = name
        self._store = store
        self._days = Lookup(self._read)

    async def day(self, date: str) -> Day:
        """One operational day as it is."""
        return await self._days.find(date)

    async def days(self, dates: Sequence[str]) -> list[Day]:
        """Several days, in one question."""
        found = await self._read(dates)
        return [found[date] for date in dates]

    async def _read(self, dates: Sequence[str]) -> dict[str, Day]:
        lines: dict[str, dict[str, str]] = {date: {} for date in dates}
        asked = orjson.dumps(list(lines)).decode()
        for row in await self._store.read("shift_days_read", calendar=self.name, days=asked):
            lines[row["day"]][row["squad"]] = row["slots"]
        return {date: day_of(date, its_lines) for date, its_lines in lines.items()}

    async def preview(self, command: Command) -> Day:
        """The day as it would be."""
        return after(await self.day(command.date), command)

    async def apply(self, command: Command, key: str) -> Applied:
        """Do it, or answer as before if this key has done it."""
        problem = objection(command, grid=self.grid)
        if problem is not None:
            return Applied(False, problem)
        first, last = bounds(command)
        change = {
            "key": key,
            "calendar": self.name,
            "day": command.date,
            "squad": command.squad,
            "action": command.action.value,
            "begins": command.start,
            "ends": command.end,
            "first": first,
            "last": last,
            "fill": MARKS[command.action] * (last - first),
            "blank": BLANK,
        }
        _, _, _, made = await self._store.write(
            [
                Step("shift_day_hold", {"calendar": self.name, "day": command.date}),
                Step("shift_change_add", change),
                Step("shift_line_set", {"key": key}, only_if=1),
                Step("shift_change_of", {"key": key}),
            ]
        )
        return Applied(True, f"change {made[0]['id']}")

    async def close(self) -> None:
        """Nothing of its own is open."""
