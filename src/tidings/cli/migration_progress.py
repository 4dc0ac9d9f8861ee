"""Following a migration: a bar for each record type on a terminal, a line a second in a pipe, until it rests.

Whoever follows one works at migrations meanwhile; on SQLite only if no other process works.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from rich.text import Text

    from ..app import App

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
WINDOW = 10.0  # seconds over which the rate is told
IDLE_STATES = ("new", "planned", "approved", "completed", "failed", "cancelled")


async def follow(app: App, id_: str, *, is_quiet: bool, works: bool = True) -> output.Row:
    """Stay until it is over or needs a person; gives it as it stands. `works`: move records here, too."""
    async with _worked_at(app, works=works, is_quiet=is_quiet):
        if output.on_terminal() and not is_quiet:
            return await _with_bars(app, id_)
        return await _in_lines(app, id_, is_quiet=is_quiet)


def print_result(row: output.Row) -> None:
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
    if row["seconds_left"] is not None and row["state"] not in IDLE_STATES:
        parts.append(f"{format_duration(row['seconds_left'])} left")
    parts.append(f"{row['set_aside']:,} set aside")
    if said := row["reason"] or row["problem"]:
        parts.append(output.flat(said))
    return ", ".join(parts)


def format_duration(seconds: float) -> str:
    """A length of time as people say it."""
    from ..migration.serializers import format_duration

    return format_duration(seconds)


def is_idle(row: output.Row) -> bool:
    """Nothing more happens by itself."""
    return row["state"] in IDLE_STATES or (row["state"] == "paused" and row["blocked_until"] is None)


async def look(app: App, id_: str) -> output.Row:
    """How far it is."""
    from ..migration import serializers

    return serializers.status(await app.migrations.status(id_))


class _ProgressMeter:
    """Looks at a job, and says how fast it was in the last seconds rather than since it began."""

    def __init__(self, app: App, id_: str) -> None:
        self._app = app
        self._id = id_
        self._seen: deque[tuple[float, int]] = deque(maxlen=round(WINDOW / LOOK))

    async def look(self) -> output.Row:
        row = await look(self._app, self._id)
        self._seen.append((self._app.clock.monotonic(), row["done"]))
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        rate = max(0, done - before) / (now - began) if now > began else 0.0
        left = (row["expected"] - done) / rate if rate and row["seconds_left"] is not None else None
        return {**row, "per_second": round(rate, 2), "seconds_left": left}


async def _in_lines(app: App, id_: str, *, is_quiet: bool) -> output.Row:
    pace, said, looks = _ProgressMeter(app, id_), "", 0
    while not is_idle(row := await pace.look()):
        if not is_quiet and looks % 2 == 0 and (now := line(row)) != said:
            print(said := now, flush=True)
        looks += 1
        await asyncio.sleep(LOOK)
    return await look(app, id_)


async def _with_bars(app: App, id_: str) -> output.Row:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    pace = _ProgressMeter(app, id_)
    words: Any = TextColumn("{task.description}")
    about: Any = TextColumn("{task.fields[about]}", style="dim")
    with Progress(
        words, BarColumn(), MofNCompleteColumn(), about, console=output.console(), transient=True
    ) as bar:
        tasks: dict[str, Any] = {}
        whole = bar.add_task("", total=None, about="")
        while not is_idle(row := await pace.look()):
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
    return await look(app, id_)


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


def caller_name() -> str:
    """On whose behalf, for the audit trail."""
    from ..access.caller import current_caller

    return current_caller().who


def parse_choice(words: Any, name: str, given: str) -> Any:
    """One of the words of an enum, or a sentence that names them."""
    from ..model.errors import Invalid

    if given not in list(words):
        remedy = f"use one of: {', '.join(words)}"
        raise Invalid(f"there is no {name} {given[:40]!r}", field=name, remedy=remedy)
    return words(given)


@asynccontextmanager
async def _worked_at(app: App, *, works: bool, is_quiet: bool) -> AsyncIterator[None]:
    """Work here meanwhile, for migrations alone, as far as this process may work."""
    if not works:
        yield
        return
    if not is_quiet and app.store.may_work():
        output.say(("this process moves the records until it ends; Ctrl-C stops it, run goes on", "dim"))
    app.narrow_to_migrations()
    app.worker.start()
    try:
        yield
    finally:
        await app.worker.stop()
