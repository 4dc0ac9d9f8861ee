"""`tidings drill`: kills real workers on a scratch database, and counts what was lost or doubled."""

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
from .help import examples
from .options import AsJson, ConfigFile, Database, option
from .output import Column

if TYPE_CHECKING:
    from ..config import Settings
    from ..drill.report import DrillReport
    from ..drill.runner import DrillProgress
    from ..drill.workload import DrillOptions

EXAMPLES = examples(
    "tidings drill",
    "tidings drill --database postgresql://tidings@localhost/tidings --workers 5 --kills 20 --seconds 60",
    "tidings drill --on-unknown hold --messages 500 --json",
    "tidings drill --clean",
)

TERMINATED = 128 + signal.SIGTERM
_BOUNDS = {"messages": (1, 1_000_000), "kills": (0, 10_000), "workers": (1, 64), "seconds": (1, 86_400)}
_STYLE = {True: "bold red", False: ""}


class UnknownOutcomeChoice(StrEnum):
    """What happens to a message of which nobody knows whether it went out."""

    RESEND = "resend"
    HOLD = "hold"


def drill(
    *,
    messages: Annotated[int, option("N", "Messages to send.")] = 3000,
    kills: Annotated[int, option("N", "Processes to kill.")] = 8,
    workers: Annotated[int, option("N", "Workers at any time.")] = 3,
    seconds: Annotated[float, option("S", "How long messages come in.")] = 15,
    on_unknown: Annotated[
        UnknownOutcomeChoice,
        option("RULE", "resend: what is in doubt is sent again; hold: a person decides."),
    ] = UnknownOutcomeChoice.RESEND,
    seed: Annotated[int | None, option("N", "Where chance begins; without it a new one.")] = None,
    keep: Annotated[bool, typer.Option("--keep", help="Keep the scratch database and the logs.")] = False,
    clean: Annotated[
        bool, typer.Option("--clean", help="Only remove what a killed drill left behind.")
    ] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Kill real workers under load, on your machine and your database, and count.

    Works in a scratch schema or file of its own: real messages and real channels are never touched.

    The exit code is 0 only if nothing was lost and nothing was doubled in silence.
    """
    chosen = engine.settings(config, database)
    chosen.check()
    if clean:
        return _clean(chosen, as_json=as_json)
    _check(messages=messages, kills=kills, workers=workers, seconds=seconds)
    from ..drill.workload import DrillOptions

    seed = _seed() if seed is None else seed
    course = DrillOptions(messages, kills, workers, seconds, str(on_unknown), seed)
    raise typer.Exit(engine.run(_drill(chosen, course, keep=keep, as_json=as_json), fast=True))


def _check(**given: float) -> None:
    """Refuse what a machine cannot do."""
    for name, value in given.items():
        least, most = _BOUNDS[name]
        if not least <= value <= most:
            raise Invalid(f"{name} is {value:g}", field=name, remedy=f"Give --{name} {least} to {most:,}")


async def _drill(chosen: Settings, course: DrillOptions, *, keep: bool, as_json: bool) -> int:
    from ..drill.runner import run
    from ..drill.scratch import scratch_space

    asked = _on_sigterm()
    try:
        async with scratch_space(chosen, keep=keep) as place:
            with _line(course, is_shown=output.on_terminal() and not as_json) as told:
                found = await run(course, chosen, place, told)
            place.keep = keep or not found.is_clean
    except asyncio.CancelledError:
        if asked.is_set():
            return TERMINATED
        raise
    _tell(found, kept=f"{place.where}; logs in {place.folder}" if place.keep else None, as_json=as_json)
    return 0 if found.is_clean else 1


def _on_sigterm() -> asyncio.Event:
    """Clean up as for Ctrl-C; the event says which of the two it was."""
    asked, task = asyncio.Event(), asyncio.current_task()
    assert task is not None

    def end() -> None:
        asked.set()
        task.cancel()

    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, end)
    return asked


def _clean(chosen: Settings, *, as_json: bool) -> None:
    from ..drill.scratch import remove_leftovers

    gone = engine.run(remove_leftovers(chosen))
    if as_json:
        output.say_json({"removed": gone})
        return
    for name in gone:
        output.say(("✓ ", "green"), f"removed {name}")
    if not gone:
        output.say("nothing was left behind")


@contextmanager
def _line(course: DrillOptions, *, is_shown: bool) -> Iterator[Callable[[DrillProgress], None] | None]:
    """The line that says how far it is."""
    if not is_shown:
        yield None
        return
    with output.console().status("starting the workers") as status:

        def told(now: DrillProgress) -> None:
            status.update(
                f"{now.seconds:.0f} s   accepted {now.accepted:,} of {course.messages:,}   "
                f"arrived {now.arrived:,}   waiting {now.waiting:,}   killed {now.killed} of {course.kills}"
            )

        yield told


def _tell(found: DrillReport, *, kept: str | None, as_json: bool) -> None:
    from ..drill.report import as_json as told
    from ..drill.report import report_figures

    if as_json:
        import orjson

        print(orjson.dumps({**told(found), "kept": kept}).decode())
        return
    rows = [figure._asdict() for figure in report_figures(found)]
    if output.on_terminal():
        _table(rows)
    else:
        output.lines(rows, [Column(name, itemgetter(name)) for name in ("name", "value", "behind")])
    _sum_up(found)
    if kept is not None:
        output.say(f"kept: {kept}; tidings drill --clean removes it")


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
        output.say(("✓ ", "green"), "nothing was lost, and nothing was doubled in silence")
    for name, ids in found.check_at.items():
        output.say(("✗ ", "bold red"), f"{name}: look at {', '.join(ids)}")
    if found.course.kills and not found.proves:
        output.say(
            ("! ", "yellow"),
            "no worker died between sending and recording, so this says little; "
            "give more --messages or more --kills",
        )


def _seed() -> int:
    from ..kernel.clock import SystemClock

    return int(SystemClock().chance() * 1_000_000)
