"""`tidings sla`: the share of messages sent on time."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .commands import CommandContext
from .options import OfChannel, option
from .output import Column

EXAMPLES = ("tidings sla --days 7", "tidings sla --channel phone --json", "tidings sla --csv > sla.csv")


async def sla(
    ctx: CommandContext,
    *,
    days: Annotated[int, option("N", "Days to report, 1 to 400, today included.")] = 30,
    channel: OfChannel = None,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV, safe for spreadsheets.")] = False,
) -> None:
    """Report the share of messages sent within 60 seconds of their due time, by day (UTC) and channel."""
    rows = [row._asdict() for row in await ctx.outbound.sla(days=days, channel=channel)]
    if csv:
        from ..api.csv_export import csv_header, csv_rows
        from ..outbound.sla import COLUMNS

        sys.stdout.buffer.write(csv_header(COLUMNS) + csv_rows(rows, COLUMNS, exact=False))
        return
    columns = [
        *Column.plain("day", "channel", "sent:right", "on_time:right"),
        Column("share", lambda row: row["share"], lambda row: f"{row['share']:.2%}", right=True),
    ]
    ctx.listing(rows, columns, nothing="no messages sent in these days")
