"""`tidings calendar`: who has a crew when, what was asked of the calendar, and taking it back."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import After, Limit, argument, option
from .output import Column, Row

group = typer.Typer(help="The shift calendar: a week, its history, changes, undo.", no_args_is_help=True)

Change = Annotated[str, argument("CHANGE", "The change's id.")]
Who = Annotated[str | None, option("--who", "NAME", "Who asks, for the history.")]


@command(group, epilog=examples("tidings calendar show", "tidings calendar show --week 2027-W03"))
async def show(
    ask: CommandContext,
    *,
    week: Annotated[str | None, option("--week", "WEEK", "Such as 2027-W03, or a day of it.")] = None,
) -> None:
    """A week: each squad's shifts on the day they start, and when nobody has a crew."""
    found = await ask.app.shifts.week(week)
    if ask.as_json:
        output.say_json(found)
        return
    rows = [_line(squad, [day["squads"][squad] for day in found["days"]]) for squad in found["squads"]]
    rows.append(_line("nobody", [day["gaps"] for day in found["days"]], always=True))
    columns = [Column("squad", lambda row: row["squad"], keep=True)]
    columns += [_day(place, day["date"]) for place, day in enumerate(found["days"])]
    if output.on_terminal():
        output.say((f"{found['calendar']}, {found['week']}", "bold"))
    output.listing(rows, columns, as_json=False, nothing="no squads")


@command(group, epilog=examples("tidings calendar history", "tidings calendar history --day 2027-01-15"))
async def history(
    ask: CommandContext,
    *,
    day: Annotated[str | None, option("--day", "DATE", "Only of this day.")] = None,
    limit: Limit = 50,
    after: After = None,
) -> None:
    """What was asked of the calendar and what came of it, newest first."""
    now = ask.app.clock.now()
    columns = [
        Column("change", lambda row: row["id"], keep=True),
        *Column.plain("state", "action", "squad"),
        Column("day", lambda row: row["date"], keep=True),
        Column("hours", lambda row: f"{row['start']}-{row['end']}", keep=True),
        Column("who", lambda row: row["who"]),
        Column.time("asked", "planned_at", now),
        Column("last word", lambda row: (row["evidence"] or [""])[-1], spare=True),
    ]
    page = await ask.app.shifts.changes(day=day, limit=limit, after=after)
    ask.listing(page.items, columns, nothing="nothing was asked of the calendar yet", more=page.next)


@command(group, epilog=examples("tidings calendar change add 34 2027-01-15 1800 0600 --who Ada"))
async def change(
    ask: CommandContext,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, no-crew or remove.")],
    squad: Annotated[str, typer.Argument(metavar="SQUAD")],
    date: Annotated[str, typer.Argument(metavar="DATE", help="The day it starts.")],
    start: Annotated[str, typer.Argument(metavar="START", help="HHMM.")],
    end: Annotated[str, typer.Argument(metavar="END", help="HHMM; 0600 is the end of the day.")],
    *,
    who: Who = None,
) -> None:
    """Ask for a change. The engine does it, and `history` says what came of it."""
    given = {"action": action, "squad": squad, "date": date, "start": start, "end": end, "who": who}
    made = await ask.app.shifts.change(given)
    ask.answer(made, lambda: _facts(made))


@command(group, epilog=examples("tidings calendar undo ID --who Ada"))
async def undo(ask: CommandContext, change: Change, *, who: Who = None) -> None:
    """Bring back what the calendar said before a change, unless it was changed since."""
    made = await ask.app.shifts.undo(change, who=who or "by hand")
    if ask.as_json:
        output.say_json({"items": made})
        return
    for row in made:
        _facts(row)


def _day(place: int, date: str) -> Column:
    from datetime import date as Date

    name = f"{Date.fromisoformat(date):%a %d}"
    return Column(name, lambda row: row["cells"][place], keep=True)


def _line(squad: str, days: list[list[Row]], *, always: bool = False) -> Row:
    """One row of the week; what is marked as without a crew is in brackets."""
    cells = [
        " ".join(
            f"{run['start']}-{run['end']}" if run["crew"] or always else f"({run['start']}-{run['end']})"
            for run in runs
        )
        for runs in days
    ]
    return {"squad": squad, "cells": cells}


def _facts(row: dict[str, Any] | Row) -> None:
    names = ("id", "state", "action", "squad", "date", "start", "end", "who")
    output.facts([(name, row[name], None) for name in names])
