"""`tidings broadcasts recipients`, `export` and `reports`: results per recipient and per xref."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import engine, files, output
from .broadcasts import Id, count_columns, group, people
from .commands import CommandContext, command
from .help import examples
from .options import After, ConfigFile, Database, Limit, option
from .output import Column

GROUP = group


@command(GROUP, "tidings broadcasts recipients ID --state failed")
async def recipients(
    ctx: CommandContext,
    broadcast: Id,
    *,
    state: Annotated[str | None, option("NAME", "waiting, processing, sent, failed, unknown …")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List the recipients with their state, attempts and the provider's answer."""
    page = await ctx.outbound.broadcasts.recipients(broadcast, state=state, limit=limit, after=after)
    columns = Column.plain("address:keep", "state:colored", "attempts:right", "timezone:spare", "detail", "id:spare")
    ctx.listing(page.items, columns, more=page.next, nothing="no recipients")


@GROUP.command(epilog=examples("tidings broadcasts export ID > people.csv"))
def export(
    broadcast: Id,
    *,
    state: Annotated[str | None, option("NAME", "Filter by state.")] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Do not escape cells that a spreadsheet would run as formulas.")
    ] = False,
    output_file: Annotated[Path | None, option("--output", "-o", "FILE", "Write to FILE. [stdout]")] = None,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Export all recipients as CSV, safe for spreadsheets unless --exact is given."""

    async def work() -> int:
        from ..api.csv_export import csv_header, csv_rows
        from ..outbound.broadcasts.recipient_results import RESULT_COLUMNS, result_cells

        written = 0
        async with engine.opened(engine.settings(config, database)) as app:
            pages = await app.outbound.broadcasts.export(broadcast, state=state)
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
        output.say(("✓ ", "green"), f"wrote {people(written)} to {output_file}")


@command(GROUP, "tidings broadcasts reports --xref flood-2026")
async def reports(
    ctx: CommandContext,
    *,
    xref: Annotated[str | None, option("KEY", "Show only this xref.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Sum up broadcasts by xref."""
    if xref is not None:
        items, more = [await ctx.outbound.broadcasts.report(xref)], None
    else:
        items, more = await ctx.outbound.broadcasts.reports(limit=limit, after=after)
    columns = [*Column.plain("xref:keep", "broadcasts:right", "total:right"), *count_columns()]
    ctx.listing(items, columns, more=more, nothing="no broadcasts with an xref")
