"""Following a migration: a bar for each record type on a terminal, a line a second in a pipe, until it rests.

Where no process works on the database, this one does, for migrations alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from rich.text import Text

    from ..app import App
    from ..migration.desk import Migrations

STYLES = {
    "new": "cyan",
    "planning": "blue",
    "planned": "cyan",
    "approved": "cyan",
    "running": "blue",
    "paused": "yellow",
    "cancelled": "dim",
    "completed": "green",
    "written": "green",
    "unchanged": "green",
    "rejected": "red",
    "failed": "bold red",
    "conflict": "yellow",
}
LOOK = 0.5  # seconds between two looks
AT_REST = ("new", "planned", "approved", "completed", "failed", "cancelled")


async def follow(app: App, id_: str, *, is_quiet: bool, works: bool = True) -> output.Row:
    """Stay until it is over or needs a person; gives it as it stands. `works`: do it here if nobody does."""
    async with _worked_at(app, works=works, is_quiet=is_quiet):
        if output.on_terminal() and not is_quiet:
            return await _with_bars(app.migrations, id_)
        return await _in_lines(app.migrations, id_, is_quiet=is_quiet)


def say_end(row: output.Row) -> None:
    """How it stands, and what to do about it."""
    output.say((row["id"], "bold"), " ", state(row), f": {tally(row)}")
    if row["reason"]:
        output.say(("  ", ""), (output.flat(row["reason"]), "yellow"))
    if row["state"] == "paused":
        output.say((f"  then: tidings migrate resume {row['id']}", "dim"))
    elif row["set_aside"]:
        output.say((f"  why: tidings migrate dead {row['id']}", "dim"))


def tally(row: output.Row) -> str:
    """How many stand where."""
    counted = ", ".join(f"{n:,} {word}" for word, n in row["counts"].items())
    return f"{counted or 'nothing yet'} of {row['expected']:,}"


def line(row: output.Row) -> str:
    """One look in one line: how far, how fast, how long still, what went wrong."""
    parts = [f"{row['state']}: {row['done']:,} of {row['expected']:,}", f"{row['per_second']:,.1f}/s"]
    if row["seconds_left"] is not None and row["state"] not in AT_REST:
        parts.append(f"{left(row['seconds_left'])} left")
    parts.append(f"{row['set_aside']:,} set aside")
    if said := row["reason"] or row["problem"]:
        parts.append(output.flat(said))
    return ", ".join(parts)


def left(seconds: float) -> str:
    """A length of time as people say it."""
    from ..migration.shown import length

    return length(seconds)


def rests(row: output.Row) -> bool:
    """Nothing more happens by itself."""
    return row["state"] in AT_REST or (row["state"] == "paused" and row["parked_until"] is None)


async def look(migrations: Migrations, id_: str) -> output.Row:
    """How far it is."""
    from ..migration import shown

    return shown.status(await migrations.status(id_))


async def _in_lines(migrations: Migrations, id_: str, *, is_quiet: bool) -> output.Row:
    row, said, looks = await look(migrations, id_), "", 0
    while not rests(row):
        if not is_quiet and looks % 2 == 0 and (now := line(row)) != said:
            print(said := now, flush=True)
        looks += 1
        await asyncio.sleep(LOOK)
        row = await look(migrations, id_)
    return row


async def _with_bars(migrations: Migrations, id_: str) -> output.Row:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    row = await look(migrations, id_)
    words: Any = TextColumn("{task.description}")
    about: Any = TextColumn("{task.fields[about]}", style="dim")
    with Progress(
        words, BarColumn(), MofNCompleteColumn(), about, console=output.console(), transient=True
    ) as bar:
        tasks: dict[str, Any] = {}
        whole = bar.add_task("", total=None, about="")
        while not rests(row):
            bar.update(
                whole,
                description=row["state"],
                completed=row["done"],
                total=row["expected"] or None,
                about=_about(row),
            )
            for type_ in row["types"] if len(row["types"]) > 1 else ():
                if type_["type"] not in tasks:
                    tasks[type_["type"]] = bar.add_task("", total=None, about="")
                _show_type(bar, tasks[type_["type"]], type_)
            await asyncio.sleep(LOOK)
            row = await look(migrations, id_)
    return row


def _show_type(bar: Any, task: Any, type_: output.Row) -> None:
    total = type_["read"] if type_["is_read"] else max(type_["read"], type_["expected"] or 0)
    aside = f"{type_['set_aside']:,} set aside" if type_["set_aside"] else ""
    bar.update(
        task,
        description=f"  {output.flat(type_['type'])}",
        completed=type_["done"],
        total=total or None,
        about=aside,
    )


def _about(row: output.Row) -> str:
    return output.quoted(line(row).partition(", ")[2]).markup


def state(row: output.Row) -> Text:
    """The state of a job or a record in its colour."""
    from rich.text import Text

    return Text(row["state"], STYLES.get(row["state"], ""))


def who() -> str:
    """On whose behalf, for the audit trail."""
    from ..access.caller import current

    return current().who


def word(words: Any, name: str, given: str) -> Any:
    """One of the words of an enum, or a sentence that names them."""
    from ..model.errors import Invalid

    if given not in list(words):
        remedy = f"use one of: {', '.join(words)}"
        raise Invalid(f"there is no {name} {given[:40]!r}", field=name, remedy=remedy)
    return words(given)


async def is_anybody_working(app: App) -> bool:
    """Whether a process works on this database."""
    return any(row["state"] == "live" for row in await app.store.read("node_list"))


@asynccontextmanager
async def _worked_at(app: App, *, works: bool, is_quiet: bool) -> AsyncIterator[None]:
    """Somebody works while this is open: another process, or this one."""
    if not works or await is_anybody_working(app):
        yield
        return
    if not is_quiet:
        output.say(("no other process is working: this one moves the records until it ends", "dim"))
    app.narrow_to_migrations()
    app.worker.start()
    try:
        yield
    finally:
        await app.worker.stop()
