"""`tidings log`: the log of sent messages."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from .commands import CommandContext
from .options import After, Limit, OfChannel, OfRecipient
from .output import Column, Row

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

EXAMPLES = ("tidings log --to ada", "tidings log --csv > sent.csv")


async def log(
    ctx: CommandContext,
    *,
    channel: OfChannel = None,
    to: OfRecipient = None,
    limit: Limit = 50,
    after: After = None,
    csv: Annotated[bool, typer.Option("--csv", help="Export the whole log as CSV, safe for spreadsheets.")] = False,
) -> None:
    """List sent messages with time, recipient and result, newest first.

    Failed messages are in `tidings dead list`, all messages in `tidings messages list`.
    """
    if csv:
        await _write_csv(ctx.outbound, channel, to)
        return
    columns = [
        *Column.plain("sent=sent_at:time", "channel", "to", "attempts:right,spare"),
        Column("uncertain", lambda row: row["unknown"], _uncertain, spare=True),
        *Column.plain("receipt:spare", "id:keep", "text"),
    ]
    page = await ctx.outbound.sent.page(channel=channel, to=to, limit=limit, after=after)
    ctx.listing(page.items, columns, more=page.next, nothing="no messages sent yet")


def _uncertain(row: Row) -> str:
    return "yes" if row["unknown"] else ""


async def _write_csv(service: OutboundService, channel: str | None, to: str | None) -> None:
    """Write the same CSV as the API: cells that a spreadsheet would run as formulas are escaped."""
    from ..api.csv_export import csv_pages
    from ..outbound.sent_log import SENT_LOG_COLUMNS

    async for piece in csv_pages(service.sent.export(channel=channel, to=to), SENT_LOG_COLUMNS):
        sys.stdout.buffer.write(piece)
