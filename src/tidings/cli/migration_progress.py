"""Live progress of a migration: bars per record type on a terminal, one line per second in a pipe.

The command also works on migrations meanwhile; on SQLite only if no other process is active.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..app import App

INTERVAL = 0.5  # seconds between two reads
WINDOW = 10.0  # seconds over which the rate is measured
IDLE_STATES = ("new", "planned", "approved", "completed", "failed", "cancelled")


async def follow(app: App, id_: str, *, is_quiet: bool, works: bool = True) -> output.Row:
    """Wait until the job ends or needs a decision, and return it. With `works`, also process records."""
    async with _working(app, works=works, is_quiet=is_quiet):
        if output.on_terminal() and not is_quiet:
            return await _with_bars(app, id_)
        return await _in_lines(app, id_, is_quiet=is_quiet)


def print_result(row: output.Row) -> None:
    """Print the result of a job and the next command."""
    output.say((row["id"], "bold"), " ", output.state(row), f": {tally(row)}")
    if row["reason"]:
        output.say(("  ", ""), (output.flat(row["reason"]), "yellow"))
    if row["state"] == "paused":
        output.say((f"  next: tidings migrate resume {row['id']}", "dim"))
    elif row["quarantined"]:
        output.say((f"  why: tidings migrate dead {row['id']}", "dim"))


def tally(row: output.Row) -> str:
    """Return the counts by state in words."""
    counted = ", ".join(f"{n:,} {word}" for word, n in row["counts"].items())
    return f"{counted or 'no records'} of {row['expected']:,}"


def line(row: output.Row) -> str:
    """Return the progress in one line."""
    from ..migration.serializers import format_duration

    parts = [f"{row['state']}: {row['done']:,} of {row['expected']:,}", f"{row['per_second']:,.1f}/s"]
    if row["seconds_left"] is not None and row["state"] not in IDLE_STATES:
        parts.append(f"{format_duration(row['seconds_left'])} left")
    parts.append(f"{row['quarantined']:,} quarantined")
    if reason := row["reason"] or row["problem"]:
        parts.append(output.flat(reason))
    return ", ".join(parts)


def is_idle(row: output.Row) -> bool:
    """Return whether nothing more happens automatically."""
    return row["state"] in IDLE_STATES or (row["state"] == "paused" and row["blocked_until"] is None)


async def read_status(app: App, id_: str) -> output.Row:
    """Return the status of a job."""
    from ..migration import serializers

    return serializers.status(await app.migrations.status(id_))


class _ProgressMeter:
    """Reads the status of a job, with its rate over the last seconds."""

    def __init__(self, app: App, id_: str) -> None:
        self._app = app
        self._id = id_
        self._seen: deque[tuple[float, int]] = deque(maxlen=round(WINDOW / INTERVAL))

    async def read(self) -> output.Row:
        row = await read_status(self._app, self._id)
        self._seen.append((self._app.clock.monotonic(), row["done"]))
        (began, before), (now, done) = self._seen[0], self._seen[-1]
        rate = max(0, done - before) / (now - began) if now > began else 0.0
        left = (row["expected"] - done) / rate if rate and row["seconds_left"] is not None else None
        return {**row, "per_second": round(rate, 2), "seconds_left": left}


async def _in_lines(app: App, id_: str, *, is_quiet: bool) -> output.Row:
    meter, last, reads = _ProgressMeter(app, id_), "", 0
    while not is_idle(row := await meter.read()):
        if not is_quiet and reads % 2 == 0 and (now := line(row)) != last:
            print(last := now, flush=True)
        reads += 1
        await asyncio.sleep(INTERVAL)
    return await read_status(app, id_)


async def _with_bars(app: App, id_: str) -> output.Row:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    meter = _ProgressMeter(app, id_)
    words: Any = TextColumn("{task.description}")
    about: Any = TextColumn("{task.fields[about]}", style="dim")
    with Progress(words, BarColumn(), MofNCompleteColumn(), about, console=output.console(), transient=True) as bar:
        tasks: dict[str, Any] = {}
        whole = bar.add_task("", total=None, about="")
        while not is_idle(row := await meter.read()):
            bar.update(
                whole, description=row["state"], completed=row["done"], total=row["expected"] or None, about=_about(row)
            )
            for type_ in row["types"] if len(row["types"]) > 1 else ():
                if type_["type"] not in tasks:
                    tasks[type_["type"]] = bar.add_task("", total=None, about="")
                _show_type(bar, tasks[type_["type"]], type_)
            await asyncio.sleep(INTERVAL)
    return await read_status(app, id_)


def _show_type(bar: Any, task: Any, type_: output.Row) -> None:
    total = type_["read"] if type_["is_read"] else max(type_["read"], type_["expected"] or 0)
    quarantined = f"{type_['quarantined']:,} quarantined" if type_["quarantined"] else ""
    bar.update(
        task,
        description=f"  {output.flat(type_['type'])}",
        completed=type_["done"],
        total=total or None,
        about=quarantined,
    )


def _about(row: output.Row) -> str:
    return output.quoted(line(row).partition(", ")[2]).markup


def undo_words(undo: Mapping[str, Any] | None) -> str:
    """Return the progress of an undo that has not ended."""
    if undo is None:
        return ""
    done = f"{undo['deleted']:,} of {undo['deleted'] + undo['left']:,} records deleted"
    return f"running: {done}" if undo["is_running"] else f"interrupted: {done}; undo again to continue"


@contextmanager
def counting(what: str, total: int, *, is_shown: bool) -> Iterator[Callable[[int], None]]:
    """Yield a function that shows how many records are done: on a terminal always, in a pipe every 1,000."""
    with output.working(what, is_shown=is_shown) as say:

        def count(done: int) -> None:
            line = f"{what}: {done:,} of {max(done, total):,} records"
            say(line)
            if is_shown and done % 1000 == 0 and not output.on_terminal():
                print(line, flush=True)

        yield count


def caller_name() -> str:
    """Return the current caller, for the audit log."""
    from ..access.caller import current_caller

    return current_caller().who


@asynccontextmanager
async def _working(app: App, *, works: bool, is_quiet: bool) -> AsyncIterator[None]:
    """Run a worker for migrations only, if `works` is set."""
    if not works:
        yield
        return
    if not is_quiet and app.store.may_work():
        output.say(("this process copies the records; press Ctrl-C to stop, run it again to continue", "dim"))
    app.narrow_to_migrations()
    app.worker.start()
    try:
        yield
    finally:
        await app.worker.stop()
