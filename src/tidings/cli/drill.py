"""`tidings drill`: kill real workers on a scratch database, and count losses and duplicates."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from operator import itemgetter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..model.errors import Invalid
from . import engine, output
from .options import AsJson, ConfigFile, Database, option
from .output import Column

if TYPE_CHECKING:
    from ..config import Settings
    from ..drill.report import DrillReport
    from ..drill.runner import DrillProgress
    from ..drill.workload import DrillOptions

EXAMPLES = (
    "tidings drill",
    "tidings drill --database postgresql://tidings@localhost/tidings --workers 5 --kills 20 --seconds 60",
    "tidings drill --on-unknown hold --messages 500 --json",
    "tidings drill --clean",
)

TERMINATED = 128 + signal.SIGTERM
_BOUNDS = {"messages": (1, 1_000_000), "kills": (0, 10_000), "workers": (1, 64), "seconds": (1, 86_400)}
_STYLE = {True: "bold red", False: ""}


class UnknownOutcomeChoice(StrEnum):
    """The rule for messages whose delivery is uncertain."""

    RESEND = "resend"
    HOLD = "hold"


def drill(
    *,
    messages: Annotated[int, option("N", "Messages to send.")] = 3000,
    kills: Annotated[int, option("N", "Processes to kill.")] = 8,
    workers: Annotated[int, option("N", "Workers at any time.")] = 3,
    seconds: Annotated[float, option("S", "How long to produce messages.")] = 15,
    on_unknown: Annotated[
        UnknownOutcomeChoice, option("RULE", "For uncertain messages: resend them, or hold them for a person.")
    ] = UnknownOutcomeChoice.RESEND,
    seed: Annotated[int | None, option("N", "Seed of the random numbers. [random]")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch database and the logs.")] = False,
    clean: Annotated[bool, typer.Option("--clean", help="Only remove the leftovers of killed drills.")] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Test crash safety: kill real workers under load and count losses and duplicates.

    Runs in a scratch schema or file of your database; real messages and channels are never touched.

    Exit code 0 only if no message was lost and there were no silent duplicates.
    """
    chosen = engine.settings(config, database, sends=True)
    chosen.check()
    if clean:
        return _clean(chosen, as_json=as_json)
    _check(messages=messages, kills=kills, workers=workers, seconds=seconds)
    from ..drill.workload import DrillOptions

    seed = _seed() if seed is None else seed
    course = DrillOptions(messages, kills, workers, seconds, str(on_unknown), seed)
    raise typer.Exit(engine.run(_drill(chosen, course, keep=keep, as_json=as_json), fast=True))


def _check(**given: float) -> None:
    """Raise Invalid if a number is out of range."""
    for name, value in given.items():
        least, most = _BOUNDS[name]
        if not least <= value <= most:
            raise Invalid(f"--{name} {value:g} is out of range", field=name, remedy=f"use {least} to {most:,}")


async def _drill(chosen: Settings, course: DrillOptions, *, keep: bool, as_json: bool) -> int:
    from ..drill.runner import run
    from ..drill.scratch import scratch_space

    terminated = _on_sigterm()
    try:
        async with scratch_space(chosen, keep=keep) as place:
            with _line(course, is_shown=output.on_terminal() and not as_json) as progress:
                found = await run(course, chosen, place, progress)
            place.keep = keep or not found.is_clean
    except asyncio.CancelledError:
        if terminated.is_set():
            return TERMINATED
        raise
    _print(found, kept=f"{place.where}; logs in {place.folder}" if place.keep else None, as_json=as_json)
    return 0 if found.is_clean else 1


def _on_sigterm() -> asyncio.Event:
    """Cancel the task on SIGTERM, as Ctrl-C does, and set the returned event."""
    terminated, task = asyncio.Event(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        terminated.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    return terminated


def _clean(chosen: Settings, *, as_json: bool) -> None:
    from ..drill.scratch import remove_leftovers

    removed = engine.run(remove_leftovers(chosen))
    if as_json:
        output.say_json({"removed": removed})
        return
    for name in removed:
        output.say(("✓ ", "green"), f"removed {name}")
    if not removed:
        output.say("no leftovers found")


@contextmanager
def _line(course: DrillOptions, *, is_shown: bool) -> Iterator[Callable[[DrillProgress], None] | None]:
    """Show the progress on one line."""
    if not is_shown:
        yield None
        return
    with output.console().status("starting the workers") as status:

        def update(now: DrillProgress) -> None:
            status.update(
                f"{now.seconds:.0f} s   accepted {now.accepted:,} of {course.messages:,}   "
                f"arrived {now.arrived:,}   waiting {now.waiting:,}   killed {now.killed} of {course.kills}"
            )

        yield update


def _print(found: DrillReport, *, kept: str | None, as_json: bool) -> None:
    from ..drill import report

    if as_json:
        import orjson

        print(orjson.dumps({**report.as_json(found), "kept": kept}).decode())
        return
    rows = [figure._asdict() for figure in report.report_figures(found)]
    if output.on_terminal():
        _table(rows)
    else:
        output.lines(rows, [Column(name, itemgetter(name)) for name in ("name", "value", "behind")])
    _sum_up(found)
    if kept is not None:
        output.say(f"kept: {kept}; remove it with: tidings drill --clean")


def _table(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    grid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="dim", overflow="fold")
    for row in rows:
        grid.add_row(row["name"], output.quoted(row["value"]), row["behind"], style=_STYLE[row["is_wrong"]])
    output.console().print(grid)


def _sum_up(found: DrillReport) -> None:
    if found.is_clean:
        output.say(("✓ ", "green"), "no message was lost, no silent duplicates")
    for name, ids in found.violations.items():
        output.say(("✗ ", "bold red"), f"{name}: see {', '.join(ids)}")
    if found.course.kills and not found.proves:
        output.say(
            ("! ", "yellow"),
            "no worker died between sending and recording, so this proves little; raise --messages or --kills",
        )


def _seed() -> int:
    from ..kernel.clock import SystemClock

    return int(SystemClock().chance() * 1_000_000)
