"""`tidings import`: messages, schedules and broadcasts from the rows of another system."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from . import output
from .commands import CommandContext, command
from .options import DryRun, TimesZone, argument, channel_option, option
from .output import Column

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.imports.settings import ImportSettings
    from ..outbound.imports.table_import import TableImportReport, TableImportService


class _RunsByDefault(TyperGroup):
    """Makes `tidings import --from …` mean `tidings import run --from …`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Pass options without a command to `run`."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["run", *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    help="Import messages, schedules and broadcasts from another system.", no_args_is_help=True, cls=_RunsByDefault
)

_EXAMPLE = (
    "tidings import --from postgresql://reader@host/crm --table reminders",
    '  --map "to=phone,text=body,at=payload.$.when" --channel phone',
    "  --where \"status = 'pending'\" --dry-run",
)


@command(group, " \\\n  ".join(_EXAMPLE), "tidings import run reminders --dry-run")
async def run(
    ctx: CommandContext,
    name: Annotated[str | None, argument("[NAME]", "Import from the settings file.")] = None,
    *,
    from_: Annotated[
        str | None,
        option("--from", "URL", "sqlite:///, postgresql://, mysql:// or mongodb:// URL, or a file; only read."),
    ] = None,
    table: Annotated[str | None, option("NAME", "Table, schema.table or collection.")] = None,
    map_: Annotated[
        list[str] | None, option("--map", "MAP", "field=column, field=column.$.path or field='constant'.")
    ] = None,
    where: Annotated[str | None, option("SQL", "Condition that selects the rows; for MongoDB a JSON filter.")] = None,
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
    """Create messages, schedules and broadcasts from rows. A repeated run imports only new rows."""
    from ..inputs.timezones import parse_timezone
    from ..model.errors import Invalid
    from ..outbound.imports.settings import ImportSettings, TableImportRequest
    from ..store.external_tables.registry import open_table

    if name is not None:
        given = [flag for flag, value in (("--from", from_), ("--table", table), ("--map", map_)) if value]
        if given:
            raise Invalid(f"{given[0]} is given with a named import", field="name", remedy="give one of them")
        wanted = _named(ctx.app, name)
    elif from_ is None or not map_:
        remedy = "give --from and --map, or the name of an import of the settings file"
        raise Invalid("the source is missing" if from_ is None else "the map is missing", field="from", remedy=remedy)
    else:
        times_zone = parse_timezone(timezone) if timezone else None
        request = TableImportRequest(map_, where, key, channel, time, times_zone, overdue=overdue, source=as_)
        wanted = ImportSettings(from_, table, request)
    async with open_table(wanted.url, wanted.table) as opened:
        with output.working("", is_shown=not ctx.as_json) as say:
            report = await _importer(ctx.app).take(
                opened,
                wanted.request,
                dry_run=dry_run,
                progress=lambda so_far: say(f"{so_far.read:,} rows read, {so_far.taken:,} accepted"),
            )
    ctx.answer(report.described(), lambda: _print(report))


@command(group, "tidings import list", name="list")
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


@command(group, "tidings import status", "tidings import status reminders")
async def status(
    ctx: CommandContext, name: Annotated[str | None, argument("[NAME]", "Import from the settings file.")] = None
) -> None:
    """Show what was written back to other systems, what waits, and what was rejected."""
    from ..outbound.imports.write_back import write_back_status

    found = await write_back_status(ctx.app.store)
    rows = [row for row in found if name in (None, row["source"])]
    columns = [
        Column("source", lambda row: row["source"], keep=True),
        Column("imported", lambda row: row["imported"], right=True),
        Column("waiting", lambda row: row["waiting"], right=True),
        Column("written", lambda row: row["written"], right=True),
        Column("rejected", lambda row: row["rejected"] or None, right=True),
        Column("last written", lambda row: row["last_at"]),
        Column("failing since", lambda row: row["failing_since"]),
        Column("next attempt", lambda row: row["next_at"]),
        Column("problem", lambda row: row["problem"]),
    ]
    ctx.listing(rows, columns, nothing="nothing is written back; see write_back in the settings")
    if not ctx.as_json:
        _section("rejected rows", [one for row in rows for one in row["rejected_rows"]], ("key", "problem"))


@command(group, "tidings import undo 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10")
async def undo(ctx: CommandContext, run: Annotated[str, argument("RUN", "Id of the run.")]) -> None:
    """Cancel what a run created and has not been sent, and report what was already sent."""
    from ..outbound.imports.undo import ImportUndo

    with output.working("", is_shown=not ctx.as_json) as say:
        counts = await ImportUndo(ctx.app.store, ctx.outbound).undo(run, lambda count: say(f"{count:,} rows"))

    def in_words() -> None:
        output.facts([(word.replace("_", " "), count, None) for word, count in counts.items()])
        if counts["being_sent"]:
            output.say("some messages are being sent now: repeat the undo in a minute")

    ctx.answer(counts, in_words)


@command(group, "tidings import cursor crew --from last_message_id.txt")
async def cursor(
    ctx: CommandContext,
    source: Annotated[str, argument("SOURCE", "Polled source of the settings file.")],
    *,
    from_: Annotated[str, option("--from", "FILE", "File with the id of the last message that the old bot handled.")],
) -> None:
    """Let a source begin after the last message that another bot has handled."""
    from pathlib import Path

    from ..model.errors import Conflict, Invalid
    from ..store.port import Step

    known = [one.name for one in ctx.app.settings.inbound.sources.values() if one.is_polled]
    if source not in known:
        remedy = f"polled sources: {', '.join(known) or 'none'}"
        raise Invalid(f"there is no polled source {source[:60]!r}", field="source", remedy=remedy)
    try:
        last = Path(from_).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{from_} cannot be read ({error})", field="from", remedy="check the path") from None
    if not last.isdigit():
        raise Invalid(f"{from_} holds no message id", field="from", remedy="give a file with one number")
    if not (await ctx.app.store.write([Step("source_begin", {"name": source, "cursor": last})]))[0]:
        raise Conflict(f"{source} has already read messages", remedy="see: tidings inbox sources")
    ctx.answer({"source": source, "cursor": last}, lambda: output.say(f"{source} begins after message {last}"))


def _importer(app: App) -> TableImportService:
    from ..outbound.imports.table_import import TableImportService

    grace, zone = app.settings.expire_after, app.settings.timezone
    return TableImportService(app.store, app.clock, app.outbound, list(app.channels), grace=grace, timezone=zone)


def _named(app: App, name: str) -> ImportSettings:
    from ..model.errors import Invalid

    known = app.settings.imports
    if name not in known:
        remedy = f"configured imports: {', '.join(known) or 'none'}"
        raise Invalid(f"there is no import {name[:60]!r} in the settings", field="name", remedy=remedy)
    return known[name]


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
            *((f"as {name}", row[name], None) for name in ("messages", "schedules", "broadcasts") if row[name]),
            ("already imported", row["known"], None),
            ("rejected", row["refused"], None),
        ]
    )
    _section("samples", row["samples"], ("key", "kind", "channel", "to", "at", "text"))
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
