"""`tidings rollout`: gradual rollout of a channel, and comparison with another sender."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import files, output, shell_completion
from .commands import CommandContext, command
from .options import TimesZone, argument, option
from .output import Column, Row

group = typer.Typer(help="Roll out a channel gradually: observe, shadow, share, live.", no_args_is_help=True)

Name = Annotated[str, argument("CHANNEL", "Channel name.", complete=shell_completion.channels)]


@command(group, "tidings rollout list", name="list")
async def list_(ctx: CommandContext) -> None:
    """List the channels with their mode and share."""
    columns = [
        *Column.plain("channel:keep", "mode"),
        Column("share", lambda row: row["share"], lambda row: f"{row['share']} %", right=True),
        *Column.plain("since=changed_at:time"),
    ]
    ctx.listing(await ctx.outbound.rollout.all(), columns, nothing="no channels")


@command(group, "tidings rollout show phone")
async def show(ctx: CommandContext, name: Name) -> None:
    """Show the rollout of a channel and its past changes."""
    row = await ctx.outbound.rollout.show(name)
    ctx.answer(row, lambda: _print(row))


@command(
    group,
    "tidings rollout set phone --mode observe",
    'tidings rollout set phone --mode live --share 10 --reason "first week"',
    name="set",
)
async def set_(
    ctx: CommandContext,
    name: Name,
    *,
    mode: Annotated[str | None, option("MODE", "live, observe or shadow.")] = None,
    share: Annotated[int | None, option("PERCENT", "Percentage of recipients to send to, 0 to 100.")] = None,
    reason: Annotated[str | None, option("TEXT", "Reason, kept with the change.")] = None,
) -> None:
    """Change mode or share of a channel, from the next message on in every process."""
    row = await ctx.outbound.rollout.set(name, mode=mode, share=share, reason=reason)
    ctx.answer(row, lambda: _print(row))


@command(group, "tidings rollout undo phone")
async def undo(ctx: CommandContext, name: Name) -> None:
    """Undo the last change."""
    row = await ctx.outbound.rollout.back(name)
    ctx.answer(row, lambda: _print(row))


@command(group, "tidings rollout report phone sent-by-the-old-system.csv")
async def report(
    ctx: CommandContext,
    name: Name,
    file: Annotated[Path, argument("FILE", "CSV or NDJSON with to, at, text or digest, ref.")],
    *,
    timezone: TimesZone = None,
) -> None:
    """Upload the messages that another sender sent, for comparison. Safe to repeat."""
    from ..inputs.timezones import parse_timezone
    from ..outbound.contacts import uploads

    settings = ctx.app.settings
    times_zone = parse_timezone(timezone) if timezone else settings.timezone
    with files.opened(str(file)) as opened, output.working("reading the report", is_shown=not ctx.as_json):
        rows = uploads.read_rows(
            files.pieces(opened, lambda _: None),
            uploads.upload_format(file.name),
            largest=settings.max_body,
            most_lines=settings.max_bulk,
        )
        result = await ctx.outbound.rollout.report(name, rows, timezone=times_zone)
    ctx.answer(result, lambda: _print_report(result))


@command(group, "tidings rollout compare phone --since 24h --tolerance 2m")
async def compare(
    ctx: CommandContext,
    name: Name,
    *,
    since: Annotated[str, option("WHEN", "A time, or a duration ago.")] = "24h",
    until: Annotated[str, option("WHEN", "A time, or a duration ago.")] = "now",
    tolerance: Annotated[str, option("DURATION", "Maximum difference of times.")] = "1m",
    limit: Annotated[int, option("--limit", "-n", "N", "Maximum number of differences.")] = 100,
) -> None:
    """List the differences between the shadow and the report of another sender."""
    from ..outbound.rollout.service import parse_duration, parse_period

    begin, end = parse_period(since, until, now=ctx.app.clock.now(), timezone=ctx.app.settings.timezone)
    apart = parse_duration(tolerance, field="tolerance")
    with output.working("comparing", is_shown=not ctx.as_json):
        found = await ctx.outbound.rollout.compare(name, since=begin, until=end, tolerance=apart, limit=limit)
    if ctx.as_json:
        output.say_json(found._asdict())
        return
    output.facts([(word.replace("_", " "), count, None) for word, count in found.counts.items()])
    columns = [
        *Column.plain("kind", "to"),
        Column("ours", lambda row: (row["ours"] or {}).get("at"), keep=True),
        Column("theirs", lambda row: (row["theirs"] or {}).get("at"), keep=True),
        *Column.plain("apart=apart_s:right"),
        Column("our ref", lambda row: (row["ours"] or {}).get("ref"), keep=True),
        Column("their ref", lambda row: (row["theirs"] or {}).get("ref")),
    ]
    output.say()
    output.listing(found.differences, columns, nothing="no differences")
    if found.more and output.on_terminal():
        output.say(("more differences: raise --limit", "dim"))


def _print_report(result: Row) -> None:
    output.facts(output.fields(result, "taken", "known", "refused"))
    for bad in result["bad"]:
        output.say(f"line {bad['line']}: {bad['problem']}. {bad['remedy']}")


def _print(row: Row) -> None:
    share = ("share", row["share"], f"{row['share']} %")
    output.facts([*output.fields(row, "channel", "mode"), share])
    columns = [
        *Column.plain("time=at:keep"),
        Column("from", lambda entry: f"{entry['mode_before']} {entry['share_before']} %"),
        Column("to", lambda entry: f"{entry['mode']} {entry['share']} %"),
        *Column.plain("reason"),
    ]
    output.say()
    output.listing(row["past"], columns, nothing="no changes")
