"""`tidings suppressions`: who has opted out, the way in and the way back."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine, output
from .commands import CommandContext, command
from .help import examples
from .options import After, AsJson, ConfigFile, Database, Limit, argument, channel_option, option
from .output import Column

group = typer.Typer(help="Opt-outs: who must not be written to.", no_args_is_help=True)

Address = Annotated[str, argument("ADDRESS", "Who it is about.")]
Channel = Annotated[str | None, channel_option("On this channel; without it on all.")]


@command(group, epilog=examples('tidings suppressions add ada --channel phone --reason "asked by phone"'))
async def add(
    ask: CommandContext,
    address: Address,
    *,
    channel: Channel = None,
    reason: Annotated[
        str | None, option("--reason", "TEXT", "Shown wherever a message is skipped for it.")
    ] = None,
) -> None:
    """Opt out. What is due to this address is skipped from now on, also what was accepted before."""
    body = {"address": address, "channel": channel, "reason": reason}
    row = (await ask.desk.suppressions.create(body)).answer
    _say(ask, row, "has opted out")


@command(
    group,
    epilog=examples("tidings suppressions remove ada", "tidings suppressions remove ada --channel phone"),
)
async def remove(
    ask: CommandContext,
    address: Address,
    *,
    channel: Annotated[str | None, channel_option("The opt-out on this channel; without it on all.")] = None,
) -> None:
    """The way back: this address may be written to again."""
    await ask.desk.suppressions.remove(address, channel)
    _say(ask, {"address": address, "channel": channel}, "may be written to again")


@command(
    group, "list", epilog=examples("tidings suppressions list", "tidings suppressions list --address ada")
)
async def list_(
    ask: CommandContext,
    *,
    address: Annotated[str | None, option("--address", "WHO", "Only this one.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """Who has opted out, by address."""
    page = await ask.desk.suppressions.page(address=address, limit=limit, after=after)
    now = ask.desk.clock.now()
    columns = [
        Column("address", lambda row: row["address"], keep=True),
        Column("channel", lambda row: row["channel"], lambda row: row["channel"] or "all"),
        Column.time("since", "at", now),
        Column("reason", lambda row: row["reason"]),
    ]
    ask.listing(page.items, columns, more=page.next, nothing="nobody has opted out")


@group.command("import", epilog=examples("tidings suppressions import opt-outs.csv --channel phone"))
def import_(
    file: Annotated[str, typer.Argument(metavar="FILE", help="CSV or NDJSON; - reads standard input.")],
    *,
    form: Annotated[str | None, option("FORM", "csv or ndjson, if no name says so.")] = None,
    channel: Annotated[str | None, channel_option("Where a row names none.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Opt out many: columns address, channel and reason. The same file again adds nothing."""
    from .contact_imports import take_opt_outs

    chosen = engine.settings(config, database)
    code = engine.run(take_opt_outs(chosen, file, form, channel=channel, as_json=as_json))
    if code:
        raise typer.Exit(code)


def _say(ask: CommandContext, row: output.Row, verb: str) -> None:
    where = f"on {row['channel']}" if row["channel"] else "on every channel"
    ask.answer(row, lambda: output.say((row["address"], "bold"), f" {verb} {where}"))
