"""`tidings roster`: senders that the inbound workflow accepts, with squad and role."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from . import output
from .commands import CommandContext, command
from .options import After, DryRun, InputFile, InputFormat, Limit, argument, option
from .output import Column

if TYPE_CHECKING:
    from ..inbound.service import InboundService

group = typer.Typer(help="Manage the senders that may make requests, with squad and role.", no_args_is_help=True)

Sender = Annotated[str, argument("SENDER", "Sender id on the platform.")]
Source = Annotated[str | None, option("--source", "NAME", "Source of the entry. [all sources]")]


@command(group, "tidings roster list", "tidings roster list --squad 42", name="list")
async def list_(
    ctx: CommandContext,
    *,
    squad: Annotated[str | None, option("NAME", "Filter by squad.")] = None,
    limit: Limit = 20,
    after: After = None,
) -> None:
    """List the roster by name."""
    page = await ctx.app.inbound.roster.page(squad=squad, limit=limit, after=after)
    columns = [
        *Column.plain("sender:keep", "name", "squad", "role"),
        Column("source", lambda row: row["source"], lambda row: row["source"] or "all"),
    ]
    nothing = "no entries yet; see: tidings roster add --help"
    ctx.listing(page.items, columns, more=page.next, nothing=nothing)


@command(group, 'tidings roster add 1001 --name "Ada" --squad 42 --role officer')
async def add(
    ctx: CommandContext,
    sender: Sender,
    *,
    name: Annotated[str, option("NAME", "Display name.", show_default=False)],
    squad: Annotated[str, option("NAME", "Squad of the sender.", show_default=False)],
    role: Annotated[str, option("ROLE", "member, officer or admin.")] = "member",
    source: Source = None,
) -> None:
    """Add or update an entry."""
    body = {"sender": sender, "name": name, "squad": squad, "role": role, "source": source}
    row, what = await ctx.app.inbound.roster.put(body)
    ctx.answer({**row, "what": what}, lambda: output.say((row["name"], "bold"), f" {what}"))


@command(group, "tidings roster remove 1001")
async def remove(ctx: CommandContext, sender: Sender, *, source: Source = None) -> None:
    """Remove an entry. Earlier messages of the sender stay."""
    row = await ctx.app.inbound.roster.remove(sender, source)
    ctx.answer(row, lambda: output.say((row["name"], "bold"), " removed"))


@command(group, "tidings roster import people.csv --dry-run", name="import")
async def import_(ctx: CommandContext, file: InputFile, *, format_: InputFormat = None, dry_run: DryRun = False) -> int:
    """Import a file with the columns sender, name, squad, role and source. Safe to repeat."""
    counts = await _import(ctx.app.inbound, file, format_, ctx.app.settings.max_bulk, dry_run=dry_run)
    words = ("created", "changed", "unchanged", "refused")
    summary = {word: counts.get(word, 0) for word in words}

    def in_words() -> None:
        counted = ", ".join(f"{n:,} {word}" for word, n in summary.items() if n) or "nothing"
        output.say(counted, "; nothing was written" if dry_run else "")

    ctx.answer(summary, in_words)
    return 2 if summary["refused"] else 0


async def _import(
    service: InboundService, name: str, format_: str | None, most: int, *, dry_run: bool
) -> dict[str, int]:
    from ..outbound.contacts import uploads
    from . import files

    counts: dict[str, int] = {}
    with files.opened(name) as file:
        pieces = files.pieces(file, lambda _: None)
        rows = uploads.read_rows(pieces, files.format_of(name, format_), largest=65_536, most_lines=most)
        async for progress in service.roster.take(rows, dry_run=dry_run):
            files.print_bad_rows(progress.bad, word="row", room=files.MAX_REPORTED - counts.get("refused", 0))
            for word, n in progress.counts.items():
                counts[word] = counts.get(word, 0) + n
    return counts
