"""`tidings log`: all that was sent, to whom, when, with what result."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from . import engine, output
from .help import examples
from .options import After, AsJson, ConfigFile, Database, Limit, OfChannel, OfRecipient
from .output import Column

if TYPE_CHECKING:
    from ..outbound.service import OutboundService

EXAMPLES = examples("tidings log --to ada", "tidings log --csv > sent.csv")


def log(
    *,
    channel: OfChannel = None,
    to: OfRecipient = None,
    limit: Limit = 50,
    after: After = None,
    csv: Annotated[bool, typer.Option("--csv", help="All of it as CSV, for a spreadsheet.")] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """All that was sent: to whom, when, with what result. Newest first.

    What failed waits in `tidings dead list`; everything else is in `tidings messages list`.
    """

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            if csv:
                await _write_csv(app.desk, channel, to)
                return
            now = app.clock.now()
            columns = [
                Column.time("sent", "sent_at", now),
                *Column.plain("channel", "to"),
                Column("attempts", lambda row: row["attempts"], right=True, spare=True),
                Column(
                    "in doubt",
                    lambda row: row["unknown"],
                    lambda row: "yes" if row["unknown"] else "",
                    spare=True,
                ),
                Column("receipt", lambda row: row["receipt"], spare=True),
                Column("id", lambda row: row["id"], keep=True),
                Column("text", lambda row: row["text"]),
            ]
            page = await app.desk.sent.page(channel=channel, to=to, limit=limit, after=after)
            nothing = "nothing has been sent yet"
            output.listing(page.items, columns, as_json=as_json, more=page.next, nothing=nothing)

    engine.run(work())


async def _write_csv(desk: OutboundService, channel: str | None, to: str | None) -> None:
    """The same file as the API's: cells that a spreadsheet would run as formulas are marked as text."""
    from ..api.csv_export import csv_header, csv_rows
    from ..outbound.sent_log import SENT_LOG_COLUMNS

    sys.stdout.buffer.write(csv_header(SENT_LOG_COLUMNS))
    async for rows in desk.sent.export(channel=channel, to=to):
        sys.stdout.buffer.write(csv_rows(rows, SENT_LOG_COLUMNS, exact=False))
