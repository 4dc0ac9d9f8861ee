"""`tidings suppressions`: the suppression list of addresses that have opted out."""

from __future__ import annotations

from typing import Annotated

import typer

from . import engine, output
from .commands import CommandContext, command
from .help import examples
from .options import (
    After,
    AsJson,
    ConfigFile,
    Database,
    InputFile,
    InputFormat,
    Limit,
    argument,
    channel_option,
    option,
)
from .output import Column

group = typer.Typer(help="Manage opt-outs: addresses that get no messages.", no_args_is_help=True)

Address = Annotated[str, argument("ADDRESS", "Address that opted out.")]
Channel = Annotated[str | None, channel_option("Opt out of this channel. [all channels]")]


@command(group, 'tidings suppressions add ada --channel phone --reason "asked by phone"')
async def add(
    ctx: CommandContext,
    address: Address,
    *,
    channel: Channel = None,
    reason: Annotated[str | None, option("TEXT", "Reason, shown with every skipped message.")] = None,
) -> None:
    """Opt out an address. Its messages are skipped from now on, including those already accepted."""
    body = {"address": address, "channel": channel, "reason": reason}
    row = (await ctx.outbound.suppressions.create(body)).answer
    _say(ctx, row, "has opted out")


@command(group, "tidings suppressions remove ada", "tidings suppressions remove ada --channel phone")
async def remove(
    ctx: CommandContext,
    address: Address,
    *,
    channel: Annotated[str | None, channel_option("Channel of the opt-out. [all channels]")] = None,
) -> None:
    """Remove an opt-out."""
    await ctx.outbound.suppressions.remove(address, channel)
    _say(ctx, {"address": address, "channel": channel}, "can receive messages again")


@command(group, "tidings suppressions list", "tidings suppressions list --address ada", name="list")
async def list_(
    ctx: CommandContext,
    *,
    address: Annotated[str | None, option("ADDRESS", "Filter by address.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List opt-outs by address."""
    page = await ctx.outbound.suppressions.page(address=address, limit=limit, after=after)
    columns = [
        *Column.plain("address:keep"),
        Column("channel", lambda row: row["channel"], lambda row: row["channel"] or "all"),
        *Column.plain("since=at:time", "reason"),
        Column("evidence", lambda row: row["evidence"] or ""),
    ]
    ctx.listing(page.items, columns, more=page.next, nothing="no opt-outs")


@group.command("import", epilog=examples("tidings suppressions import opt-outs.csv --channel phone"))
def import_(
    file: InputFile,
    *,
    format_: InputFormat = None,
    channel: Annotated[str | None, channel_option("Channel for rows without one.")] = None,
    as_json: AsJson = False,
    database: Database = None,
    config: ConfigFile = None,
) -> None:
    """Import opt-outs from a file with the columns address, channel and reason. Safe to repeat."""
    from .contact_imports import import_opt_outs

    chosen = engine.settings(config, database)
    code = engine.run(import_opt_outs(chosen, file, format_, channel=channel, as_json=as_json))
    if code:
        raise typer.Exit(code)


def _say(ctx: CommandContext, row: output.Row, verb: str) -> None:
    where = f"on {row['channel']}" if row["channel"] else "on every channel"
    ctx.answer(row, lambda: output.say((row["address"], "bold"), f" {verb} {where}"))
