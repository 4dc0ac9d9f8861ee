"""`tidings rollout`: let a channel out step by step, and compare it with another sender."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated

import typer

from . import output, shell_completion
from .commands import CommandContext, command
from .help import examples
from .options import argument, option
from .output import Column, Row

group = typer.Typer(
    help="Roll-out: observe, shadow, a share of people, live; and back.", no_args_is_help=True
)

Name = Annotated[str, argument("CHANNEL", "The channel's name.", complete=shell_completion.channels)]
_PIECE = 1 << 16


@command(group, "list", epilog=examples("tidings rollout list"))
async def list_(ask: CommandContext) -> None:
    """Every channel with its mode and share."""
    now = ask.app.clock.now()
    columns = [
        Column("channel", lambda row: row["channel"], keep=True),
        Column("mode", lambda row: row["mode"]),
        Column("share", lambda row: row["share"], lambda row: f"{row['share']} %", right=True),
        Column.time("since", "changed_at", now),
    ]
    ask.listing(await ask.desk.rollout.all(), columns, nothing="no channels")


@command(group, epilog=examples("tidings rollout show phone"))
async def show(ask: CommandContext, name: Name) -> None:
    """One channel, and what was switched before."""
    row = await ask.desk.rollout.show(name)
    ask.answer(row, lambda: _print(row))


@command(
    group,
    "set",
    epilog=examples(
        "tidings rollout set phone --mode observe",
        'tidings rollout set phone --mode live --share 10 --reason "first week"',
    ),
)
async def set_(
    ask: CommandContext,
    name: Name,
    *,
    mode: Annotated[str | None, option("MODE", "live, observe or shadow.")] = None,
    share: Annotated[
        int | None, option("PERCENT", "How many of the recipients are served, 0 to 100.")
    ] = None,
    reason: Annotated[str | None, option("TEXT", "Kept with the switch.")] = None,
) -> None:
    """Switch a channel. It counts for the next message of every process."""
    row = await ask.desk.rollout.set(name, mode=mode, share=share, reason=reason)
    ask.answer(row, lambda: _print(row))


@command(group, epilog=examples("tidings rollout back phone"))
async def back(ask: CommandContext, name: Name) -> None:
    """To what it was before the last switch."""
    row = await ask.desk.rollout.back(name)
    ask.answer(row, lambda: _print(row))


@command(group, epilog=examples("tidings rollout report phone sent-by-the-old-system.csv"))
async def report(
    ask: CommandContext,
    name: Name,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="CSV or NDJSON: to, at, text or digest, ref.")],
    *,
    timezone: Annotated[str | None, option("ZONE", "For times without one, such as Asia/Kathmandu.")] = None,
) -> None:
    """Take in what another sender sent. The same report again changes nothing."""
    from ..inputs.timezones import parse_timezone
    from ..outbound.contacts import uploads

    settings = ask.app.settings
    rows = uploads.read_rows(
        _pieces(file),
        uploads.upload_format(file.name),
        largest=settings.max_body,
        most_lines=settings.max_bulk,
    )
    with output.working("taking the report in", is_shown=not ask.as_json):
        told = await ask.desk.rollout.report(
            name, rows, timezone=parse_timezone(timezone) if timezone else settings.timezone
        )
    ask.answer(told, lambda: _tell(told))


@command(group, epilog=examples("tidings rollout compare phone --since 24h --tolerance 2m"))
async def compare(
    ask: CommandContext,
    name: Name,
    *,
    since: Annotated[str, option("WHEN", "How long ago, or a time.")] = "24h",
    until: Annotated[str, option("WHEN", "How long ago, or a time.")] = "now",
    tolerance: Annotated[str, option("LENGTH", "Further apart counts as another time.")] = "1m",
    limit: Annotated[int, option("--limit", "-n", "N", "Differences to list.")] = 100,
) -> None:
    """Where a shadow and the other sender's report differ."""
    from ..outbound.rollout.periods import parse_duration, parse_period

    begin, end = parse_period(since, until, now=ask.app.clock.now(), timezone=ask.app.settings.timezone)
    apart = parse_duration(tolerance, field="tolerance")
    with output.working("comparing", is_shown=not ask.as_json):
        found = await ask.desk.rollout.compare(name, since=begin, until=end, tolerance=apart, limit=limit)
    if ask.as_json:
        output.say_json(found._asdict())
        return
    output.facts([(word.replace("_", " "), count, None) for word, count in found.counts.items()])
    columns = [
        *Column.plain("kind", "to"),
        Column("ours", lambda row: (row["ours"] or {}).get("at"), keep=True),
        Column("theirs", lambda row: (row["theirs"] or {}).get("at"), keep=True),
        Column("apart", lambda row: row["apart_s"], right=True),
        Column("our ref", lambda row: (row["ours"] or {}).get("ref"), keep=True),
        Column("their ref", lambda row: (row["theirs"] or {}).get("ref")),
    ]
    output.say()
    output.listing(found.differences, columns, as_json=False, nothing="no differences")
    if found.more and output.on_terminal():
        output.say(("there are more: raise --limit", "dim"))


async def _pieces(file: Path) -> AsyncIterator[bytes]:
    from ..model.errors import Invalid

    try:
        with file.open("rb") as opened:
            while piece := opened.read(_PIECE):
                yield piece
    except OSError as error:
        raise Invalid(
            f"{file} cannot be read ({error.strerror})", field="file", remedy="check the path"
        ) from None


def _tell(told: Row) -> None:
    output.facts(output.fields(told, "taken", "known", "refused"))
    for bad in told["bad"]:
        output.say(f"line {bad['line']}: {bad['problem']}. {bad['remedy']}")


def _print(row: Row) -> None:
    share = ("share", row["share"], f"{row['share']} %")
    output.facts([*output.fields(row, "channel", "mode"), share])
    columns = [
        Column("time", lambda entry: entry["at"], keep=True),
        Column("from", lambda entry: f"{entry['mode_before']} {entry['share_before']} %"),
        Column("to", lambda entry: f"{entry['mode']} {entry['share']} %"),
        Column("reason", lambda entry: entry["reason"]),
    ]
    output.say()
    output.listing(row["past"], columns, as_json=False, nothing="never switched")
