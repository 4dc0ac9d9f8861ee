"""`tidings calendar`: the shift calendar, its change history, changes and undo."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from . import output
from .commands import CommandContext, command
from .options import After, Limit, argument, option
from .output import Column, Row

group = typer.Typer(help="Show and change the shift calendar.", no_args_is_help=True)

Change = Annotated[str, argument("CHANGE", "Change id.")]
Who = Annotated[str | None, option("--who", "NAME", "Name of the person, for the history.")]


@command(group, "tidings calendar show", "tidings calendar show --week 2027-W03")
async def show(
    ctx: CommandContext,
    *,
    week: Annotated[str | None, option("WEEK", "Week such as 2027-W03, or a day in it. [this week]")] = None,
) -> None:
    """Show a week: the shifts of each squad by start day, and the hours without any crew."""
    found = await ctx.app.shifts.week(week)
    if ctx.as_json:
        output.say_json(found)
        return
    rows = [_line(squad, [day["squads"][squad] for day in found["days"]]) for squad in found["squads"]]
    rows.append(_line("no crew", [day["gaps"] for day in found["days"]], always=True))
    columns = [Column("squad", lambda row: row["squad"], keep=True)]
    columns += [_day(place, day["date"]) for place, day in enumerate(found["days"])]
    if output.on_terminal():
        output.say((f"{found['calendar']}, {found['week']}", "bold"))
    output.listing(rows, columns, nothing="no squads")


@command(group, "tidings calendar history", "tidings calendar history --day 2027-01-15")
async def history(
    ctx: CommandContext,
    *,
    day: Annotated[str | None, option("DATE", "Filter by day.")] = None,
    limit: Limit = 50,
    after: After = None,
) -> None:
    """List changes and their results, newest first."""
    columns = [
        *Column.plain("change=id:keep", "state", "action", "squad", "day=date:keep"),
        Column("hours", lambda row: f"{row['start']}-{row['end']}", keep=True),
        *Column.plain("who", "requested=planned_at:time"),
        Column("evidence", lambda row: (row["evidence"] or [""])[-1], spare=True),
    ]
    page = await ctx.app.shifts.changes(day=day, limit=limit, after=after)
    ctx.listing(page.items, columns, nothing="no changes yet", more=page.next)


@command(group, "tidings calendar change add 34 2027-01-15 1800 0600 --who Ada")
async def change(
    ctx: CommandContext,
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, no-crew or remove.")],
    squad: Annotated[str, typer.Argument(metavar="SQUAD")],
    date: Annotated[str, typer.Argument(metavar="DATE", help="Day on which the shift starts.")],
    start: Annotated[str, typer.Argument(metavar="START", help="Start as HHMM.")],
    end: Annotated[str, typer.Argument(metavar="END", help="End as HHMM; 0600 is the end of the day.")],
    *,
    who: Who = None,
) -> None:
    """Request a change. The engine makes it; `history` shows the result."""
    given = {"action": action, "squad": squad, "date": date, "start": start, "end": end, "who": who}
    made = await ctx.app.shifts.change(given)
    ctx.answer(made, lambda: _facts(made))


@command(group, "tidings calendar undo ID --who Ada")
async def undo(ctx: CommandContext, change: Change, *, who: Who = None) -> None:
    """Undo a change, unless the calendar was changed since."""
    made = await ctx.app.shifts.undo(change, who=who or "by hand")
    if ctx.as_json:
        output.say_json({"items": made})
        return
    for row in made:
        _facts(row)


def _day(place: int, date: str) -> Column:
    from datetime import date as Date

    name = f"{Date.fromisoformat(date):%a %d}"
    return Column(name, lambda row: row["cells"][place], keep=True)


def _line(squad: str, days: list[list[Row]], *, always: bool = False) -> Row:
    """Return one row of the week; shifts without a crew are in brackets."""
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
