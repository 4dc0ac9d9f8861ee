"""Live progress of a broadcast: a bar on a terminal, one line per change in a pipe."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from . import output

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

_INTERVAL = 0.25  # seconds between two reads
_FINAL = ("completed", "failed", "cancelled", "expired")


async def follow(service: OutboundService, id_: str, *, as_json: bool) -> output.Row:
    """Wait until the broadcast has ended, and return it."""
    row: output.Row = await service.broadcasts.show(id_)
    if output.on_terminal() and not as_json:
        row = await _with_bar(service, row)
    else:
        last = None
        while True:
            if not as_json and (line := _line(row)) != last:
                print(line, flush=True)
                last = line
            if _has_ended(row):
                break
            await asyncio.sleep(_INTERVAL)
            row = await service.broadcasts.show(id_)
    if as_json:
        output.say_json(row)
    elif output.on_terminal():
        output.say(_line(row), f": {row['reason']}" if row["reason"] else "")
    return row


async def _with_bar(service: OutboundService, row: output.Row) -> output.Row:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    words: Any = TextColumn("{task.description}")
    columns = (words, BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=output.console(), transient=True) as bar:
        task = bar.add_task("", total=row["total"])
        while not _has_ended(row):
            counts = row["counts"]
            done = row["total"] - counts["waiting"] - counts["processing"]
            state = row["state"] if row["reason"] is None else f"{row['state']} ({row['reason']})"
            bar.update(task, completed=done, total=row["total"], description=output.flat(state))
            await asyncio.sleep(_INTERVAL)
            row = await service.broadcasts.show(row["id"])
    return row


def _has_ended(row: output.Row) -> bool:
    """Return whether it has ended and none of its messages is being sent."""
    return row["state"] in _FINAL and not row["counts"]["processing"]


def _line(row: output.Row) -> str:
    counted = ", ".join(f"{n:,} {word}" for word, n in row["counts"].items() if n)
    return f"{row['state']}: {counted or 'no recipients'} of {row['total']:,}"
