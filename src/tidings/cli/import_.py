"""`tidings import`: messages from the rows of another system's table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from . import output
from .commands import CommandContext, command
from .help import examples
from .options import DryRun, TimesZone, argument, channel_option, option
from .output import Column

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.imports.table_import import TableImportReport, TableImportService


class _RunsByDefault(TyperGroup):
    """Makes `tidings import --from …` mean `tidings import run --from …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass options without a command to `run`."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    help="Import pending messages from a table of another system.", no_args_is_help=True, cls=_RunsByDefault
)

_EXAMPLE = (
    "tidings import --from postgresql://reader@host/crm --table reminders",
    '  --map "to=phone,text=body,at=payload.$.when" --channel phone',
    "  --where \"status = 'pending'\" --dry-run",
)


@command(group, epilog=examples(" \\\n  ".join(_EXAMPLE)))
async def run(
    ctx: CommandContext,
    *,
    from_: Annotated[str, option("--from", "URL", "sqlite:///path or postgresql://…; it is only read.")],
    table: Annotated[str, option("NAME", "Table, or schema.table.")],
    map_: Annotated[list[str], option("--map", "MAP", "field=column, field=column.$.path or field='constant'.")],
    where: Annotated[str | None, option("SQL", "Condition that selects the rows.")] = None,
    key: Annotated[str | None, option("COLUMN", "Column that identifies a row. [the primary key]")] = None,
    channel: Annotated[str | None, channel_option("Channel for rows without one.")] = None,
    time: Annotated[str, option("FORMAT", "Format of times: auto, s, ms, us or iso.")] = "auto",
    timezone: TimesZone = None,
    overdue: Annotated[
        bool, typer.Option("--overdue", help="Also import expired messages; they are sent immediately.")
    ] = False,
    as_: Annotated[str | None, option("--as", "NAME", "Name to remember the table by.")] = None,
    dry_run: DryRun = False,
) -> None:
    """Create messages from the rows of a table. A repeated run imports only new rows."""
    from ..inputs.timezones import parse_timezone
    from ..outbound.imports.table_import import TableImportRequest
    from ..store.external_tables import open_table

    times_zone = parse_timezone(timezone) if timezone else None
    request = TableImportRequest(map_, where, key, channel, time, times_zone, overdue=overdue, source=as_)
    async with open_table(from_, table) as opened:
        with output.working("", is_shown=not ctx.as_json) as say:
            report = await _importer(ctx.app).take(
                opened, request, dry_run=dry_run, progress=lambda so_far: say(f"{so_far.read:,} rows read")
            )
    ctx.answer(report.described(), lambda: _print(report))


@command(group, "list", epilog=examples("tidings import list"))
async def list_(ctx: CommandContext) -> None:
    """List import runs, newest first."""
    columns = [
        Column("run", lambda row: row["run"], keep=True),
        Column("began", lambda row: row["began_at"], keep=True),
        Column("ended", lambda row: row["ended_at"], keep=True),
        Column("imported", lambda row: row["taken"], right=True),
        Column("undone", lambda row: row["undone_at"]),
        Column("source", lambda row: row["source"]),
    ]
    ctx.listing(await _importer(ctx.app).runs(), columns, nothing="no imports yet")


@command(group, epilog=examples("tidings import undo 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10"))
async def undo(ctx: CommandContext, run: Annotated[str, argument("RUN", "Id of the run.")]) -> None:
    """Cancel the pending messages of a run, and report how many were already sent."""
    counts = await _importer(ctx.app).undo(run)

    def in_words() -> None:
        output.facts([(word.replace("_", " "), count, None) for word, count in counts.items()])
        if counts["being_sent"]:
            output.say("some messages are being sent now: repeat the undo in a minute")

    ctx.answer(counts, in_words)


def _importer(app: App) -> TableImportService:
    from ..outbound.imports.table_import import TableImportService

    return TableImportService(app.store, app.clock, app.messages, list(app.channels), grace=app.settings.expire_after)


def _print(report: TableImportReport) -> None:
    row = report.described()
    is_dry = report.run is None
    output.facts(
        [
            ("run", row["run"], "dry run: nothing was written" if is_dry else None),
            ("source", row["source"], None),
            *((f"{name} from", column, None) for name, column in row["fields"].items()),
            ("read", row["read"], None),
            ("would import" if is_dry else "imported", row["taken"], None),
            ("already imported", row["known"], None),
            ("rejected", row["refused"], None),
        ]
    )
    _section("samples", row["samples"], ("key", "channel", "to", "at", "text"))
    _section("invalid rows", row["bad"], ("key", "field", "problem", "remedy"))
    for reason, count in row["reasons"].items():
        output.say(f"{count:,} × {reason}")


def _section(title: str, rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    if not rows:
        return
    output.say()
    output.say((f"{title}:", "dim"))
    columns = [Column(name, lambda row, name=name: row[name], keep=name == "key") for name in names]  # type: ignore[misc]
    output.listing(rows, columns, as_json=False, nothing="")
