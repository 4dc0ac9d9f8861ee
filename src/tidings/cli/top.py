"""`tidings top`: a live view of the engine in the terminal."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from collections.abc import Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

from . import output
from .commands import CommandContext
from .options import option

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ..outbound.service import OutboundService
    from ..outbound.summary import EngineSummary

EXAMPLES = ("tidings top", "tidings top --every 5", "tidings top --json")
_FEW = 8  # channels and processes shown
_STYLES = {
    "live": "green", "dead": "bold red", "open": "green", "closed": "green", "half_open": "yellow",
    "paused": "yellow", "critical": "bold red", "warning": "yellow",
}  # fmt: skip
_RIGHT = ("in flight", "concurrency", "memory", "seen")


async def top(
    ctx: CommandContext, *, every: Annotated[float, option("SECONDS", "Seconds between two updates.")] = 1.0
) -> None:
    """Show live figures: queue, rate, lag, success, processes, channels, failures.

    Press q to quit. In a pipe and with --json, it prints once.
    """
    from ..model.errors import Invalid
    from ..outbound.summary import read_summary

    if not 0.2 <= every <= 3600:
        raise Invalid(f"--every {every:g} is out of range", field="every", remedy="use 0.2 to 3600 seconds")
    if ctx.as_json:
        output.say_json((await read_summary(ctx.outbound)).plainly())
    elif not output.on_terminal():
        output.console().print(render(await read_summary(ctx.outbound)))
    else:
        await watch(ctx.outbound, output.console(), every=every, keys=sys.stdin.fileno())


async def watch(service: OutboundService, console: Console, *, every: float, keys: int) -> None:
    """Update the view until q or Ctrl-C."""
    from rich.live import Live

    from ..outbound.summary import read_summary

    stop = asyncio.Event()
    with _ended_by(stop, keys), Live(render(await read_summary(service)), console=console, screen=True) as live:
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(every):
                    await stop.wait()
            live.update(render(await read_summary(service)))


@contextlib.contextmanager
def _ended_by(stop: asyncio.Event, keys: int) -> Iterator[None]:
    """Read single keys, and restore the terminal afterwards."""
    import os
    import termios
    import tty

    loop = asyncio.get_running_loop()

    def pressed() -> None:
        if os.read(keys, 32)[:1] in (b"q", b"Q", b"\x03", b""):
            stop.set()

    loop.add_signal_handler(signal.SIGINT, stop.set)
    before = termios.tcgetattr(keys) if os.isatty(keys) else None  # stdin may not be a terminal
    if before is not None:
        tty.setcbreak(keys)
        loop.add_reader(keys, pressed)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        if before is not None:
            loop.remove_reader(keys)
            termios.tcsetattr(keys, termios.TCSADRAIN, before)


def render(summary: EngineSummary) -> RenderableType:
    """Return the view of one summary."""
    from rich.console import Group
    from rich.text import Text

    counts = summary.counts
    success = "–" if summary.success is None else f"{summary.success:.1%}"
    head = Text.assemble(
        ("Tidings ", "bold"), f"{_clock(summary.at)}   ",
        *_figure("due", counts["due"]), *_figure("waiting", counts["waiting"]),
        *_figure("in flight", counts["processing"]), *_figure("failed", counts["failed"], "bold red"),
        *_figure("uncertain", counts["unknown"], "bold yellow"), "\n",
        *_figure("sent per minute", f"{summary.sent_per_minute:,.0f}"),
        *_figure("lag", f"{summary.lag_s:g} s"), *_figure("success", success),
    )  # fmt: skip
    parts = [head, *_alerts(summary), _nodes(summary), _channels(summary), _failures(summary)]
    return Group(*parts, Text("q to quit", "dim"))


def _clock(iso_time: str) -> str:
    return f"{datetime.fromisoformat(iso_time):%a %d %b %H:%M:%S} UTC"


def _figure(name: str, value: object, style: str = "bold") -> list[Any]:
    shown = f"{value:,}" if isinstance(value, int) else str(value)
    return [(f"{name} ", "dim"), (shown, style if value else ""), "   "]


def _table(title: str, *heads: str) -> Any:
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for head in heads:
        side: Any = "right" if head in _RIGHT else "left"
        table.add_column(head, header_style="dim", no_wrap=True, overflow="ellipsis", justify=side)
    return table


def _alerts(summary: EngineSummary) -> list[Any]:
    if not summary.alerts:
        return []
    table = _table("\nAlerts", "severity", "problem", "acknowledged by")
    for row in summary.alerts:
        table.add_row(_styled(row["severity"]), *_cells(row["problem"], row["acknowledged_by"]))
    return [table]


def _nodes(summary: EngineSummary) -> Any:
    from ..model.time import instant

    if not summary.nodes:
        return _nothing("Processes", "none is running; start one with: tidings serve", "bold yellow")
    table = _table("\nProcesses", "name", "state", "in flight", "concurrency", "memory", "seen")
    now = instant(datetime.fromisoformat(summary.at))
    for row in summary.nodes[:_FEW]:
        load, memory = row["load"], row["load"].get("memory")
        share = "" if memory is None else f"{memory:.0%}"
        cells = (load.get("in_flight"), load.get("concurrency"), share, output.relative_time(row["seen_at"], now))
        table.add_row(*_cells(row["name"]), _styled(row["state"]), *_cells(*cells))
    return table


def _channels(summary: EngineSummary) -> Any:
    table = _table("\nChannels", "name", "kind", "state", "breaker", "reason")
    for row in sorted(summary.channels, key=lambda row: row["state"] == "open")[:_FEW]:
        why = row["pause_reason"] or row["block_reason"] or row["session_reason"]
        states = (_styled(row["state"]), _styled(row["breaker"], good="closed"))
        table.add_row(*_cells(row["name"], row["kind"]), *states, *_cells(why))
    return table


def _failures(summary: EngineSummary) -> Any:
    if not summary.failures:
        return _nothing("Newest failures", "none", "dim")
    table = _table("\nNewest failures", "channel", "to", "category", "error")
    for row in summary.failures:
        table.add_row(*_cells(row["channel"], row["to"], row["category"], row["error"]))
    return table


def _nothing(title: str, words: str, style: str) -> Any:
    from rich.text import Text

    return Text.assemble((f"\n{title}\n", "bold"), (words, style))


def _styled(word: str, *, good: str = "open") -> Any:
    """Return a state in its color: an open channel is good, an open breaker is not."""
    from rich.text import Text

    style = "bold red" if word == "open" and good != "open" else _STYLES.get(word, "yellow")
    return Text(output.flat(word), style)


def _cells(*values: object) -> list[Any]:
    return [output.quoted(output.flat(value)) for value in values]
