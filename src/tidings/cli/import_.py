"""`tidings import`: take over the pending rows of another system's table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from . import engine, output
from .command_audit import audited
from .help import examples
from .options import AsJson, ConfigFile, Database, argument, channel_option, option
from .output import Column

if TYPE_CHECKING:
    from ..app import App
    from ..outbound.imports.table_import import TableImportReport, TableImportService


class _TakesByDefault(TyperGroup):
    """`tidings import --from ...` means `tidings import take --from ...`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options without a command are those of `take`."""
        if args and args[0].startswith("-") and args[0] not in ctx.help_option_names:
            args = ["take", *args]
        return super().parse_args(ctx, args)


group = typer.Typer(
    help="Take over another system's table: dry run, repeat, undo.", no_args_is_help=True, cls=_TakesByDefault
)

_EXAMPLE = (
    "tidings import --from postgresql://reader@host/crm --table reminders",
    '  --map "to=phone,text=body,at=payload.$.when" --channel phone',
    "  --where \"status = 'pending'\" --dry-run",
)


@group.command(epilog=examples(" \\\n  ".join(_EXAMPLE)))
def take(
    *,
    from_: Annotated[str, option("--from", "URL", "sqlite:///path or postgresql://…; only read.")],
    table: Annotated[str, option("NAME", "The table, or schema.table.")],
    map_: Annotated[
        list[str], option("--map", "MAP", "field=column, field=column.$.path or field='constant'.")
    ],
    where: Annotated[str | None, option("SQL", "Which rows: a condition.")] = None,
    key: Annotated[str | None, option("COLUMN", "What tells rows apart; else the primary key.")] = None,
    channel: Annotated[str | None, channel_option("Where the map names none.")] = None,
    time: Annotated[str, option("FORM", "How times are kept: auto, s, ms, us or iso.")] = "auto",
    timezone: Annotated[str | None, option("ZONE", "For times without one, such as Asia/Kathmandu.")] = None,
    overdue: Annotated[
        bool,
        typer.Option("--overdue", help="Also take what is late by more than the grace; it goes out at once."),
    ] = False,
    as_: Annotated[str | None, option("--as", "NAME", "Remember the table by this name.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen; write nothing.")] = False,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Make messages of its rows. The same again takes only what is new."""

    async def work() -> None:
        from ..inputs.timezones import parse_timezone
        from ..outbound.imports.table_import import TableImportRequest
        from ..store.external_tables import open_table

        wish = TableImportRequest(
            map_,
            where,
            key,
            channel,
            time,
            parse_timezone(timezone) if timezone else None,
            overdue=overdue,
            source=as_,
        )
        async with (
            engine.opened(engine.settings(config, database)) as app,
            audited(app, "import.messages"),
            open_table(from_, table) as opened,
        ):
            with _progress(is_shown=not as_json) as say:
                report = await _takeover(app).take(
                    opened, wish, dry_run=dry_run, progress=lambda so_far: say(f"{so_far.read:,} rows read")
                )
        if as_json:
            output.say_json(report.described())
        else:
            _print(report)

    engine.run(work())


@group.command("list", epilog=examples("tidings import list"))
def list_(*, as_json: AsJson = False, database: Database = None, config: ConfigFile = None) -> None:
    """Runs, newest first."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app:
            runs = await _takeover(app).runs()
        columns = [
            Column("run", lambda row: row["run"], keep=True),
            Column("began", lambda row: row["began_at"], keep=True),
            Column("ended", lambda row: row["ended_at"], keep=True),
            Column("taken", lambda row: row["taken"], right=True),
            Column("undone", lambda row: row["undone_at"]),
            Column("source", lambda row: row["source"]),
        ]
        output.listing(runs, columns, as_json=as_json, nothing="nothing was taken over yet")

    engine.run(work())


@group.command(epilog=examples("tidings import undo 0198f0c5-6a3e-7cc2-9b1d-3f8a5c2e7d10"))
def undo(
    run: Annotated[str, argument("RUN", "The run's id.")],
    *,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Cancel what still waits of a run, and say what was already sent."""

    async def work() -> None:
        async with engine.opened(engine.settings(config, database)) as app, audited(app, "import.undo", run):
            told = await _takeover(app).undo(run)
        if as_json:
            output.say_json(told)
            return
        output.facts([(word.replace("_", " "), count, None) for word, count in told.items()])
        if told["being_sent"]:
            output.say("some are being sent this moment: undo it again in a minute")

    engine.run(work())


@contextmanager
def _progress(*, is_shown: bool) -> Iterator[Callable[[str], None]]:
    """A live line where a person looks."""
    if not (is_shown and output.on_terminal()):
        yield lambda _: None
        return
    with output.console().status("") as status:
        yield lambda text: status.update(output.quoted(text))


def _takeover(app: App) -> TableImportService:
    from ..outbound.imports.table_import import TableImportService

    return TableImportService(
        app.store, app.clock, app.messages, list(app.channels), grace=app.settings.expire_after
    )


def _print(report: TableImportReport) -> None:
    row = report.described()
    is_dry = report.run is None
    output.facts(
        [
            ("run", row["run"], "dry run: nothing was written" if is_dry else None),
            ("source", row["source"], None),
            *((f"{name} is", said, None) for name, said in row["fields"].items()),
            ("read", row["read"], None),
            ("would take" if is_dry else "taken", row["taken"], None),
            ("taken before", row["known"], None),
            ("refused", row["refused"], None),
        ]
    )
    _section("samples", row["samples"], ("key", "channel", "to", "at", "text"))
    _section("bad rows", row["bad"], ("key", "field", "problem", "remedy"))
    for reason, count in row["reasons"].items():
        output.say(f"{count:,} × {reason}")


def _section(title: str, rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    if not rows:
        return
    output.say()
    output.say((f"{title}:", "dim"))
    columns = [Column(name, lambda row, name=name: row[name], keep=name == "key") for name in names]  # type: ignore[misc]
    output.listing(rows, columns, as_json=False, nothing="")
