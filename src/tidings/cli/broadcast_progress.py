"""Watching a broadcast: a live bar on a terminal, a line for each change in a pipe, until it has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

_LOOK = 0.25  # seconds between two looks
_OVER = ("completed", "failed", "cancelled", "expired")


async def follow(desk: OutboundService, id_: str, *, as_json: bool) -> output.Row:
    """Stay until it is over; gives the broadcast as it then stands."""
    row: output.Row = await desk.broadcasts.show(id_)
    if output.on_terminal() and not as_json:
        row = await _with_bar(desk, row)
    else:
        last = None
        while True:
            if not as_json and (said := _line(row)) != last:
                print(said, flush=True)
                last = said
            if _is_over(row):
                break
            await asyncio.sleep(_LOOK)
            row = await desk.broadcasts.show(id_)
    if as_json:
        output.say_json(row)
    elif output.on_terminal():
        output.say(_line(row), f": {row['reason']}" if row["reason"] else "")
    return row


async def _with_bar(desk: OutboundService, row: output.Row) -> output.Row:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words: Any = TextColumn("{task.description}")
    columns = (words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(), transient=True) as bar:
        task = bar.add_task("", total=row["total"])
        while not _is_over(row):
            counts = row["counts"]
            done = row["total"] - counts["waiting"] - counts["processing"]
            state = row["state"] if row["reason"] is None else f"{row['state']} ({row['reason']})"
            bar.update(task, completed=done, total=row["total"], description=output.flat(state))
            await asyncio.sleep(_LOOK)
            row = await desk.broadcasts.show(row["id"])
    return row


def _is_over(row: output.Row) -> bool:
    """Ended, and nothing of it is still at work."""
    return row["state"] in _OVER and not row["counts"]["processing"]


def _line(row: output.Row) -> str:
    counted = ", ".join(f"{n:,} {word}" for word, n in row["counts"].items() if n)
    return f"{row['state']}: {counted or 'nobody'} of {row['total']:,}"
