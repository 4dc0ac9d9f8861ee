"""`tidings broadcasts recipients`, `export` and `reports`: who got it, as a list or a file; groups summed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import engine, files, output
from .broadcasts import Id, counted, group, people
from .commands import CommandContext, command
from .help import examples
from .options import After, ConfigFile, Database, Limit, option
from .output import Column

GROUP = group  # of broadcasts, with what is added here


@command(GROUP, epilog=examples("tidings broadcasts recipients ID --state failed"))
async def recipients(
    ask: CommandContext,
    broadcast: Id,
    *,
    state: Annotated[
        str | None, option("--state", "NAME", "waiting, processing, sent, failed, held …")
    ] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Who gets it, each with its tries and what the other side said."""
    page = await ask.desk.broadcasts.recipients(broadcast, state=state, limit=limit, after=after)
    columns = [
        Column("address", lambda row: row["address"], keep=True),
        Column("state", lambda row: row["state"], output.state),
        Column("attempts", lambda row: row["attempts"], right=True),
        Column("timezone", lambda row: row["timezone"], spare=True),
        Column("said", lambda row: row["said"]),
        Column("id", lambda row: row["id"], spare=True),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nobody")


@GROUP.command(epilog=examples("tidings broadcasts export ID > people.csv"))
def export(
    broadcast: Id,
    *,
    state: Annotated[str | None, option("--state", "NAME", "Only in this state.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Change no cell: for programs, and to upload it again.")
    ] = False,
    output_file: Annotated[Path | None, option("--output", "-o", "FILE", "Write it there.")] = None,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """All recipients as CSV, safe for spreadsheets unless --exact says otherwise."""

    async def work() -> int:
        from ..api.csv_export import csv_header, csv_rows
        from ..outbound.broadcasts.recipient_results import RESULT_COLUMNS, result_cells

        written = 0
        async with engine.opened(engine.settings(config, database)) as app:
            pages = await app.desk.broadcasts.export(broadcast, state=state)
            with files.written(output_file) as target, output.working("writing", is_shown=to_file) as say:
                target.write(csv_header(RESULT_COLUMNS))
                async for found in pages:
                    target.write(csv_rows(map(result_cells, found), RESULT_COLUMNS, exact=exact))
                    written += len(found)
                    say(f"{written:,} recipients")
        return written

    to_file = output_file is not None
    written = engine.run(work())
    if to_file and output.on_terminal():
        output.say(("✓ ", "green"), f"{output_file} has {people(written)}")


@command(GROUP, epilog=examples("tidings broadcasts reports --xref flood-2026"))
async def reports(
    ask: CommandContext,
    *,
    xref: Annotated[str | None, option("--xref", "KEY", "Only this group.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Broadcasts added up by their xref."""
    if xref is not None:
        items, more = [await ask.desk.broadcasts.report(xref)], None
    else:
        items, more = await ask.desk.broadcasts.reports(limit=limit, after=after)
    columns = [
        Column("xref", lambda row: row["xref"], keep=True),
        Column("broadcasts", lambda row: row["broadcasts"], right=True),
        Column("total", lambda row: row["total"], right=True),
        *counted(),
    ]
    ask.listing(items, columns, more=more, nothing="no broadcast has an xref")
