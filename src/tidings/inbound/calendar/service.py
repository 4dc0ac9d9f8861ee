"""The calendar service for the API, CLI and dashboard. All changes go through the ledger."""

from __future__ import annotations

import re
from datetime import date as Date
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

from ...inputs.fields import Field
from ...inputs.pagination import Page, decode_position, page_size
from ...kernel.clock import Clock
from ...model.errors import Conflict, Invalid, NotFound
from ...model.time import DAY, iso, moment
from ...store.port import IdempotencyRecord, Row, Store
from ..domain import CalendarCommand, CalendarDay, ShiftAction
from ..effects.ledger import EffectPlan, EffectState, command_of, idempotency_key, plan_effects
from .day_grid import (
    CREWED,
    SlotRun,
    clock,
    command_problem,
    dates,
    gaps,
    read_date,
    shifts,
    squads_of,
    touched_slots,
    undo_commands,
)
from .ical import feed
from .port import ShiftCalendar

CHANGE = {
    "action": Field("string", "add, no_crew or remove", "add", required=True),
    "squad": Field("string", "squad of the shift", "34", required=True),
    "date": Field("string", "start date, YYYYMMDD or YYYY-MM-DD", "2027-01-15", required=True),
    "start": Field("string", "HHMM, on the calendar's grid", "1800", required=True),
    "end": Field("string", "HHMM; 0600 is the end of the day", "0600", required=True),
    "who": Field("string", "name for the history", "Ada"),
}

_WEEK = re.compile(r"(\d{4})-?W(\d{2})", re.ASCII)
_LONGEST_WHO = 100
_LONGEST_KEY = 255
_REMEMBERED = 30 * DAY  # retention of idempotency keys


class CalendarService:
    """Weeks, feed, history, manual changes and undo."""

    def __init__(
        self, store: Store, clock_: Clock, calendar: ShiftCalendar, *, squads: tuple[str, ...], timezone: ZoneInfo
    ) -> None:
        self._store = store
        self._clock = clock_
        self._calendar = calendar
        self._squads = squads
        self._zone = timezone

    async def week(self, week: str | None = None) -> Row:
        """Return a week, Monday to Sunday: the shifts of each squad, and the gaps without any crew."""
        first = read_week(week) if week else monday(self.today())
        days = await self._calendar.days(dates(first, 7))
        squads = squads_of(days, self._squads)
        return {
            "calendar": self._calendar.name,
            "week": week_name(first),
            "previous": week_name(first - timedelta(days=7)),
            "next": week_name(first + timedelta(days=7)),
            "today": self.today().isoformat(),
            "squads": squads,
            "days": [_shown_day(day, squads) for day in days],
        }

    async def feed(self, squad: str | None = None) -> str:
        """Return the shifts of the weeks around today as an iCalendar feed (RFC 5545)."""
        back, ahead = self._calendar.weeks
        first = monday(self.today()) - timedelta(weeks=back)
        days = await self._calendar.days(dates(first, 7 * (back + ahead)))
        squads = squads_of(days, self._squads)
        if squad is not None and squad not in squads:
            raise NotFound(f"unknown squad {squad[:40]!r}", field="squad", remedy=f"known squads: {', '.join(squads)}")
        chosen = squads if squad is None else [squad]
        return feed(self._calendar.name, days, chosen, timezone=self._zone, now=self._clock.now())

    async def changes(self, *, day: str | None = None, limit: int = 50, after: str | None = None) -> Page:
        """List changes with their results, newest first."""
        chosen = None if day is None else _date(day)
        rows = await self._store.read(
            "effect_page",
            calendar=self._calendar.name,
            tenant="default",
            before=decode_position(after),
            day=chosen,
            limit=page_size(limit),
        )
        more = str(rows[-1]["task"]) if len(rows) == limit else None
        return Page([_shown(row) for row in rows], more)

    async def show(self, key: str) -> Row:
        return _shown(await self._find(key))

    async def change(self, given: dict[str, Any], *, key: str | None = None) -> Row:
        """Request a manual change; a worker executes it. `key` is an idempotency key."""
        command = self._command(given)
        who = str(given.get("who") or "by hand")
        if len(who) > _LONGEST_WHO or not who.isprintable():
            remedy = f"use at most {_LONGEST_WHO} printable characters"
            raise Invalid("who is too long or not printable", field="who", remedy=remedy)
        if key is not None and not (0 < len(key) <= _LONGEST_KEY and key.isprintable()):
            remedy = f"use 1 to {_LONGEST_KEY} printable characters"
            raise Invalid("the idempotency key is invalid", field="Idempotency-Key", remedy=remedy)
        plan = EffectPlan(f"hand-{key or self._clock.new_id()}", self._calendar.name, who)
        asked = idempotency_key(plan, command)
        if key is None or not await self._store.read("effect_of_key", key=asked):
            await self._ask(plan, [command], once=key is not None)
        return await self.show(asked)

    async def undo(self, key: str, *, who: str = "by hand") -> list[Row]:
        """Restore the state before a change, unless it was changed since."""
        row = await self._find(key)
        undos = await self._store.read("effect_undos", key=key)
        if any(undo["state"] != EffectState.REFUSED for undo in undos):
            raise Conflict(f"change {key} has already been undone", remedy="undo the change that undid it")
        command = command_of(row)
        if row["state"] != EffectState.CONFIRMED or row["pre"] is None or row["pre"] == row["expected"]:
            raise Conflict(
                f"change {key} is {row['state']} and there is nothing to undo",
                remedy="only confirmed changes can be undone",
            )
        if touched_slots(await self._calendar.day(command.date), command) != row["expected"]:
            raise Conflict(
                f"the half hours of change {key} have been changed since", remedy="undo the later change first"
            )
        tried = len({undo["plan"] for undo in undos})
        plan = EffectPlan(f"undo-{key}-{tried}", self._calendar.name, who, undoes=key)
        commands = undo_commands(command, row["pre"])
        await self._ask(plan, commands, once=True)
        return [await self.show(idempotency_key(plan, one)) for one in commands]

    async def _ask(self, plan: EffectPlan, commands: list[CalendarCommand], *, once: bool) -> None:
        """Write a plan and its tasks once; raises Conflict if the idempotency key has another change."""
        now = self._clock.now()
        tasks, rows = plan_effects(plan, commands, now=now)
        digest = idempotency_key(plan, commands[0])
        kept = IdempotencyRecord("calendar", plan.id, digest, "", now + _REMEMBERED) if once else None
        done = await self._store.enqueue(tasks, rows, once=kept)
        if done.earlier is not None and done.earlier["digest"] != digest:
            remedy = "use a new key for a new change"
            raise Conflict("this Idempotency-Key was used for another change", remedy=remedy)
        await self._store.hint()

    def _command(self, given: dict[str, Any]) -> CalendarCommand:
        try:
            action = ShiftAction(str(given["action"]).replace("-", "_"))
        except ValueError:
            remedy = f"use one of: {', '.join(ShiftAction)}"
            unknown = f"unknown action {str(given['action'])[:40]!r}"
            raise Invalid(unknown, field="action", remedy=remedy) from None
        squad = str(given["squad"])
        if squad not in self._squads:
            remedy = f"known squads: {', '.join(self._squads)}; add others in [inbound.calendar]"
            raise Invalid(f"unknown squad {squad[:40]!r}", field="squad", remedy=remedy)
        times = [str(given[name]).replace(":", "") for name in ("start", "end")]
        command = CalendarCommand(action, squad, _date(str(given["date"])), times[0], times[1])
        if (problem := command_problem(command, grid=self._calendar.grid)) is not None:
            remedy = f"write times as HHMM on a grid of {self._calendar.grid} minutes"
            raise Invalid(problem, field="end" if problem.startswith("the end") else "start", remedy=remedy)
        return command

    async def _find(self, key: str) -> Row:
        rows = await self._store.read("effect_of_key", key=key)
        if not rows:
            remedy = "see: tidings calendar history"
            raise NotFound(f"unknown change {key[:40]!r}", field="change", remedy=remedy)
        return rows[0]

    def today(self) -> Date:
        """Return the current operational day, which begins at 0600."""
        return (moment(self._clock.now()).astimezone(self._zone) - timedelta(hours=6)).date()


def monday(day: Date) -> Date:
    """Return the Monday of a day's week."""
    return day - timedelta(days=day.weekday())


def week_name(day: Date) -> str:
    """Return the ISO 8601 week of a day."""
    year, week, _ = day.isocalendar()
    return f"{year}-W{week:02d}"


def read_week(text: str) -> Date:
    """Parse a week or any of its days and return its Monday; raises Invalid."""
    found = _WEEK.fullmatch(text.strip().upper())
    try:
        if found:
            return Date.fromisocalendar(int(found[1]), int(found[2]), 1)
    except ValueError:
        found = None
    day = read_date(text.strip().replace("-", ""))
    if day is None or not 1970 < day.year < 9000:
        remedy = "use a week such as 2027-W03, or a day such as 2027-01-15"
        raise Invalid(f"{text[:40]!r} is not a week", field="week", remedy=remedy)
    return monday(day)


def _date(text: str) -> str:
    plain = text.strip().replace("-", "")
    if read_date(plain) is None:
        remedy = "use YYYYMMDD or YYYY-MM-DD"
        raise Invalid(f"{text[:40]!r} is not a date", field="date", remedy=remedy)
    return plain


def _shown_day(day: CalendarDay, squads: list[str]) -> Row:
    return {
        "date": _iso_date(day.date),
        "squads": {squad: [_shown_run(run) for run in shifts(day, squad)] for squad in squads},
        "gaps": [_shown_run(run) for run in gaps(day)],
    }


def _iso_date(date: str) -> str:
    return f"{date[:4]}-{date[4:6]}-{date[6:]}"


def _shown_run(run: SlotRun) -> Row:
    return {"start": clock(run.first), "end": clock(run.last), "crew": run.mark == CREWED}


def _shown(row: Row) -> Row:
    command = command_of(row)
    return {
        "id": row["key"],
        "state": row["state"],
        "action": command.action.value,
        "squad": command.squad,
        "date": _iso_date(command.date),
        "start": command.start,
        "end": command.end,
        "who": row["who"],
        "plan": row["plan"],
        "before": row["pre"],
        "after": row["expected"],
        "attempts": row["attempts"],
        "evidence": row["evidence"].splitlines(),
        "planned_at": iso(row["planned_at"]),
        "ended_at": iso(row["ended_at"]),
        "undoes": row["undoes"],
    }
